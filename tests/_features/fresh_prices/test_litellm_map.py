"""Files that are no price map; golden pairs of tools/prices have what a map is read as."""

from pathlib import Path

import pytest

from llm_provider._features.fresh_prices import litellm_map
from price_sources import TODAY


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"tiny": 3}', '{"tiny": {"litellm_provider": 3}}', "{"])
def test_other_files_are_no_price_map(tmp_path: Path, text: str) -> None:
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"price map|Expecting"):
        litellm_map.read_models(path, TODAY)
