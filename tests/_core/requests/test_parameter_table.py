"""The table of parameters agrees with their documentation and with the fields of a request."""

import pytest

from llm_provider._core.requests.parameter_table import CHECKS, PARAMETERS
from llm_provider._core.requests.parameters import Parameters
from llm_provider._core.requests.request import Request


def test_every_documented_parameter_has_a_row_and_no_other() -> None:
    assert PARAMETERS.keys() == CHECKS.keys() == Parameters.__annotations__.keys()


@pytest.mark.parametrize(("first", "later"), [("tools", "tool_choice"), ("reasoning_effort", "top_k")])
def test_a_parameter_that_depends_on_another_comes_after_it(first: str, later: str) -> None:
    tools = [{"type": "function", "function": {"name": "weather"}}]
    parameters = {"top_k": 3, "tool_choice": "auto", "reasoning_effort": "low", "tools": tools}
    names = list(Request.build("claude-haiku-4-5", "Hi", parameters).parameters_to_send)  # type: ignore[arg-type]  # a dict
    assert names.index(first) < names.index(later)


def test_empty_lists_ask_for_nothing() -> None:
    assert Request.build("gpt-5.5", "Hi", {"stop": [], "tools": []}).parameters_to_send == {}
