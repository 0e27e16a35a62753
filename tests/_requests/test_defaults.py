"""The defaults of a client: which are taken, and which a call gets."""

from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._requests.defaults import check_defaults, fill
from llm_provider._requests.embed_request import DEFAULTS

TOOL = {"type": "function", "function": {"name": "weather"}}


def filled(defaults: dict[str, Any], *, embeds: bool = False, **parameters: Any) -> dict[str, Any]:
    fill(parameters, defaults, DEFAULTS if embeds else None)
    return parameters


def test_defaults_are_checked_once() -> None:
    assert check_defaults("Client", {"stop": "END", "seed": None}) == {"stop": ("END",)}
    with pytest.raises(RequestError, match="temperature must be"):
        check_defaults("Client", {"temperature": 3})


def test_the_call_wins_and_none_is_not_given() -> None:
    assert filled({"seed": 1, "n": 2}, seed=0, n=None) == {"seed": 0, "n": 2}


def test_defaults_of_tools_are_for_calls_with_tools() -> None:
    assert filled({"tool_choice": "auto"}) == {}
    assert filled({"tool_choice": "auto"}, tools=[TOOL])["tool_choice"] == "auto"
    assert filled({"tool_choice": "auto", "tools": [TOOL]}) == {"tool_choice": "auto", "tools": [TOOL]}


def test_a_default_that_contradicts_the_call_is_left_out() -> None:
    assert filled({"reasoning_effort": "low"}, thinking_budget=2000) == {"thinking_budget": 2000}
    assert filled({"thinking_budget": 2000}, reasoning_effort="low") == {"reasoning_effort": "low"}
    assert filled({"top_logprobs": 3}, logprobs=False) == {"logprobs": False}


def test_embeddings_get_what_they_have() -> None:
    defaults = {"temperature": 0, "api_key": "k", "extra_body": {"a": 1}, "timeout": 5}
    assert filled(defaults, embeds=True) == {"api_key": "k", "timeout": 5}
