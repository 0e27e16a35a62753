"""The settings of a client: checks, defaults and the environment."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm_provider import CacheMissError, Client, RequestError
from llm_provider._core.requests.parameters import ClientSettings
from llm_provider._core.settings import NAMES, parse_settings
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"


def test_each_setting_has_a_check_a_type_and_a_row_of_the_manual() -> None:
    assert ClientSettings.__annotations__.keys() == NAMES
    manual = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z_]+)` \|", manual, flags=re.MULTILINE)) == NAMES


def test_none_means_that_a_setting_is_not_set() -> None:
    default, none = parse_settings({}), parse_settings(dict.fromkeys(NAMES))
    assert none == replace(default, show_estimate_above=None)


def test_variables_as_settings(monkeypatch: pytest.MonkeyPatch, simulator: Simulator, tmp_path: Path) -> None:
    monkeypatch.setenv("LLM_PROVIDER_MAX_CONCURRENT", "2")
    simulator.configure(latency=0.02)
    with Client(cache_dir=tmp_path) as client:
        client.call_many(MODEL, [f"item {number}" for number in range(10)])
    assert simulator.ledger().peak_in_flight == 2
    monkeypatch.setenv("LLM_PROVIDER_MAX_CONCURRENT", "lots")
    with pytest.raises(RequestError, match="LLM_PROVIDER_MAX_CONCURRENT"):
        Client()


def test_the_cache_mode_from_the_environment(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(cache_dir=tmp_path) as client:
        client.call(MODEL, "Hi")
    monkeypatch.setenv("LLM_PROVIDER_CACHE", "only")
    with Client(cache_dir=tmp_path) as client:
        assert client.call(MODEL, "Hi").cached
        with pytest.raises(CacheMissError):
            client.call(MODEL, "Something else")
        # What the call, or the client, says itself comes first.
        assert not client.call(MODEL, "Something else", cache="off").cached
    with Client(cache_dir=tmp_path, cache="use") as client:
        assert not client.call(MODEL, "Something else").cached
    for text, is_on in {"": True, "1": True, "True": True, "0": False, "false": False}.items():
        monkeypatch.setenv("LLM_PROVIDER_CACHE", text)
        with Client(cache_dir=tmp_path) as client:
            assert client.call(MODEL, "Hi").cached is is_on
    monkeypatch.setenv("LLM_PROVIDER_CACHE", "sometimes")
    with pytest.raises(RequestError, match="LLM_PROVIDER_CACHE must be one of use, refresh, only, off, not "):
        Client()
    monkeypatch.delenv("LLM_PROVIDER_CACHE")
    monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(tmp_path))
    with pytest.raises(RequestError, match=r"LLM_PROVIDER_LEDGER: .*; it is a folder: name a file in it"):
        Client()
    with pytest.raises(RequestError, match=r"^ledger: "):
        Client(ledger=tmp_path)


def test_finish_reasons_of_kept_answers_are_a_setting(simulator: Simulator, tmp_path: Path) -> None:
    simulator.inject(Fault(finish="length"), times=3)
    with Client(cache_dir=tmp_path) as client:
        for _ in range(2):
            assert not client.call(MODEL, "Hi").cached
    with Client(cache_dir=tmp_path, cache_finish_reasons=("stop", "tool_calls", "length")) as client:
        cut = client.call(MODEL, "Hi")
        assert (cut.finish_reason, cut.cached) == ("length", False)
        assert client.call(MODEL, "Hi").cached
    # What another client kept is not served where the rule is another.
    with Client(cache_dir=tmp_path) as client:
        answer = client.call(MODEL, "Hi")
        assert (answer.finish_reason, answer.cached) == ("stop", False)


def test_empty_answers_are_kept_on_request(simulator: Simulator, tmp_path: Path) -> None:
    simulator.inject(Fault(finish="empty"), times=2)
    with Client(cache_dir=tmp_path, cache_finish_reasons=("stop", "empty")) as client:
        assert client.call(MODEL, "Hi").text == ""
        assert client.call(MODEL, "Hi").cached
    with Client(cache_dir=tmp_path) as client:
        assert not client.call(MODEL, "Hi").cached


@pytest.mark.parametrize("reasons", ["stop", ("stop", "cut"), ["refused"]])
def test_unknown_finish_reasons_are_refused(reasons: Any) -> None:
    with pytest.raises(RequestError, match="cache_finish_reasons must be some of"):
        Client(cache_finish_reasons=reasons)
