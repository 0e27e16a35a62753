"""Warnings: whose line they show, and processes whose standard error is closed."""

import asyncio
import io
import sys
import threading
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from llm_provider import CacheWarning, Client, PriceWarning
from llm_provider._core.runtime.warning import warn_user
from llm_provider.simulator import Fault, Simulator


def test_a_closed_standard_error_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warn_user("a warning")


def test_a_warning_is_that_of_the_caller() -> None:
    with warnings.catch_warnings(record=True, action="always") as caught:
        warn_user("a warning", RuntimeWarning)
    assert (caught[0].category, caught[0].filename) == (RuntimeWarning, __file__)
    with warnings.catch_warnings(action="error"), pytest.raises(RuntimeWarning, match="a warning"):
        warn_user("a warning", RuntimeWarning)


WAYS: dict[str, Any] = {
    "call": lambda client, model: client.call(model, "a", max_tokens=5),
    "stream": lambda client, model: list(client.stream(model, "a", max_tokens=5)),
    "call_many": lambda client, model: client.call_many(model, ["a"], max_tokens=5),
    "acall": lambda client, model: asyncio.run(client.acall(model, "a", max_tokens=5)),
    "acall_many": lambda client, model: asyncio.run(client.acall_many(model, ["a"], max_tokens=5)),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_price_is_told_at_the_callers_line(client: Client, way: str) -> None:
    model = f"gpt-6.1-sol{list(WAYS).index(way)}"  # each is told once
    with warnings.catch_warnings(record=True, action="always") as caught:
        WAYS[way](client, model)
    [warning] = [each for each in caught if each.category is PriceWarning and model in str(each.message)]
    assert warning.filename == __file__
    assert "did you mean gpt-6.1-sol" in str(warning.message)


@pytest.mark.parametrize("way", ["call_many", "acall_many"])
def test_the_end_of_a_batch_is_told_at_the_callers_line(
    client: Client, simulator: Simulator, way: str
) -> None:
    simulator.inject(Fault(status=400), times=None)
    texts = [f"{way} {number}" for number in range(4)]
    with warnings.catch_warnings(record=True, action="always") as caught:
        if way == "call_many":
            client.call_many("gpt-6.1-sol", texts, max_errors=1, max_concurrent=1)
        else:
            asyncio.run(client.acall_many("gpt-6.1-sol", texts, max_errors=1, max_concurrent=1))
    [warning] = [each for each in caught if "the batch was stopped" in str(each.message)]
    assert warning.filename == __file__


@pytest.mark.parametrize("category", [PriceWarning, CacheWarning])
def test_no_line_of_the_package_is_shown_without_a_caller(category: type[Warning]) -> None:
    with warnings.catch_warnings(record=True, action="always") as caught:
        thread = threading.Thread(target=partial(warn_user, "a warning", category))
        thread.start()
        thread.join()
    assert [(each.filename, each.lineno, each.category) for each in caught] == [("llm_provider", 0, category)]


@pytest.mark.parametrize("way", WAYS)
def test_a_cache_that_fails_is_told_at_a_line_of_the_program(
    simulator: Simulator, tmp_path: Path, way: str
) -> None:
    (tmp_path / "file").touch()
    with (
        warnings.catch_warnings(record=True, action="always") as caught,
        Client(cache_dir=tmp_path / "file" / "cache") as client,
    ):
        WAYS[way](client, "gpt-6.1-sol")
        client.close()
    told = [each for each in caught if each.category is CacheWarning]
    assert {"read", "write"} == {
        str(each.message).split()[1] for each in told if "cannot" in str(each.message)
    }
    assert {each.filename for each in told} == {__file__}
