"""What `llm_provider.ray` does without a cluster; `tests/cluster/test_ray.py` has one."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from llm_provider import MissingDependencyError, RequestError
from llm_provider.ray import Caller, check_columns, error_column, map_dataset


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'llm-provider-call\[ray\]'"):
        map_dataset([], "gpt-6.1-sol")


@pytest.mark.parametrize(
    ("source", "prefix", "message"),
    [
        ("question", "", "no column 'question'; it has 'text', 'w'"),
        (5, "", "the name of a column, a template, or a function of a row, not int"),
        ("text", "", "has a column 'text' already: prefix="),
    ],
)
def test_columns_are_checked(source: Any, prefix: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        check_columns(["text", "w"], source, prefix, ["text", "error"])
    check_columns(["text", "w"], "Say {w}", "answer_", ["text", "error"])


def test_an_error_is_a_row() -> None:
    error = RequestError("no")
    assert error_column(error) == {"type": "RequestError", "message": "no", "retryable": False}


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_a_worker_answers_a_batch(tmp_path: Path, simulator: Any) -> None:
    import asyncio

    import pyarrow

    async def run() -> Any:
        worker = Caller("gpt-6.1-sol", "Say {word}", settings={"cache_dir": tmp_path})
        table = pyarrow.table({"word": ["fish", None, "bird"]})
        [answered] = [batch async for batch in worker(table)]
        return answered.to_pylist()

    fish, missing, bird = asyncio.run(run())
    assert (fish["text"], bird["text"], missing["text"]) == ("echo: Say fish", "echo: Say bird", None)
    assert missing["error"]["type"] == "RequestError"
