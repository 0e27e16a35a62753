"""OpenAI's tokenizer: used where it is on the machine, never fetched."""

import csv
import hashlib
from pathlib import Path

import pytest

from llm_provider._core.tokens import tokenizer
from llm_provider._core.tokens.tokenizer import (
    ENCODINGS,
    VOCABULARIES,
    counter_for,
    load_weights,
    vocabulary_of,
)
from support import RunScript

needs_encoding = pytest.mark.usefixtures("vocabulary")


@needs_encoding
def test_texts_are_counted_as_tiktoken_does() -> None:
    for model in ("gpt-5.5", "gpt-4o", "gpt-4-0613", "ft:gpt-4o:mine::1"):
        counter = counter_for("openai", model)
        assert counter is not None
        assert counter("hello world") == 2
        # What looks like a control token is text here, as it is for the API.
        assert counter("<|endoftext|>") > 1


@needs_encoding
@pytest.mark.parametrize("text", [" ", "x", "\n", "字", "\ud800"])
def test_monotonous_texts_are_counted_too(text: str) -> None:
    counter = counter_for("openai", "gpt-5.5")
    assert counter is not None
    assert 0 < counter(text * 200_000) <= 600_000


@needs_encoding
def test_the_environment_is_left_as_it_was(run_warm_script: RunScript) -> None:
    code = """
        import os, sys
        from llm_provider._core.tokens.tokenizer import counter_for
        before = dict(os.environ)
        assert counter_for("openai", "gpt-5.5")("hello world") == 2
        assert dict(os.environ) == before
        assert "litellm" not in sys.modules
    """
    run_warm_script(code)
    run_warm_script(code, TIKTOKEN_CACHE_DIR="/nonexistent")


def test_nothing_is_fetched_and_nothing_deleted(run_script: RunScript, tmp_path: Path) -> None:
    # A damaged file, which tiktoken itself would remove and fetch anew.
    name = hashlib.sha1(tokenizer._ADDRESS.format("o200k_base").encode()).hexdigest()
    damaged = tmp_path / name
    damaged.write_text("damaged", encoding="utf-8")
    run_script(
        """
        import importlib.util, socket

        def refuse(*arguments, **options):
            raise AssertionError("a connection was opened")

        socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "litellm" else find(name, *rest)
        from llm_provider._core.tokens.tokenizer import counter_for
        assert counter_for("openai", "gpt-5.5") is None
        """,
        TIKTOKEN_CACHE_DIR=str(tmp_path),
        TMPDIR=str(tmp_path),
    )
    assert damaged.read_text(encoding="utf-8") == "damaged"
    assert [path.name for path in tmp_path.iterdir()] == [name]


ROOT = Path(__file__).parents[3]


def test_every_model_of_openai_in_the_price_table_has_an_encoding() -> None:
    with (ROOT / "prices.csv").open(encoding="utf-8") as file:
        models = {row["model"] for row in csv.DictReader(file) if row["provider"] == "openai"}
    assert len(models) > 50
    assert {vocabulary_of("openai", model) for model in models} == set(ENCODINGS)


def test_every_vocabulary_has_weights_that_count_something() -> None:
    assert set(load_weights()) == set(VOCABULARIES)
    for weights in load_weights().values():
        assert all(weight >= 0 for weight in weights.values())
        assert weights["words"] > 0.5
