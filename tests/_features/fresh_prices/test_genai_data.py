"""The data file of genai-prices, read without running it."""

import importlib.util
from pathlib import Path

import pytest

from llm_provider._features.fresh_prices import genai_data
from price_sources import needs_genai_prices
from tools.prices import genai_prices


@needs_genai_prices
def test_the_data_file_is_read_as_its_package_reads_it() -> None:
    spec = importlib.util.find_spec("genai_prices")
    assert spec is not None
    assert spec.origin is not None
    models = genai_data.read_models(Path(spec.origin).with_name("data.py"))
    assert models == genai_prices.read().models


@pytest.mark.parametrize("text", ["", "providers = 1", "providers: x = [1]", "def", "providers: x = f(*y)"])
def test_other_files_are_no_data_of_genai_prices(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.py"
    path.write_text(text)
    with pytest.raises(ValueError, match="is not the data of genai-prices"):
        genai_data.read_models(path)
