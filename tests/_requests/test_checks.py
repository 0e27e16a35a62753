"""The checks that several parameters share."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._requests.checks import Endpoint, Verbosity, flag, number, one_of, text


@pytest.mark.parametrize(
    ("check", "value", "problem"),
    [
        (number(0, 2), True, "x must be a number from 0 to 2, not True"),
        (number(0, 2, whole=True), 1.0, "x must be an int from 0 to 2, not 1.0"),
        (flag, 1, "x must be True or False, not 1"),
        (text, "", "x must be a non-empty str, not ''"),
        (one_of(Endpoint), "both", "x must be 'chat' or 'responses', not 'both'"),
        (one_of(Verbosity), 1, "x must be one of low, medium, high, not 1"),
        (one_of(Verbosity), ["low"], "x must be one of low, medium, high"),
    ],
)
def test_other_values_are_refused_by_name(check: Any, value: Any, problem: str) -> None:
    with pytest.raises(RequestError) as caught:
        check("x", value)
    assert str(caught.value).startswith(problem)


def test_the_value_of_a_key_is_not_shown() -> None:
    with pytest.raises(RequestError, match="not int") as caught:
        text("api_key", 12345)
    assert "12345" not in str(caught.value)
