"""Every request that is not refused fits the SDK's own types, with no field that they do not list."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.checks import examples
from conformance.features import LEFT_OUT, MESSAGES, NO, PARAMETERS, YES, sent
from conformance.formats import CHAT, FORMATS, RESPONSES, Format
from conformance.sdk_types import problems

# Each value may be combined with each other one.
PIECES = list(PARAMETERS.values())


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_parameter(form: Format, name: str) -> None:
    assert sent(form, "Hi", PARAMETERS[name]) in (YES, NO)


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_message(form: Format, name: str) -> None:
    assert sent(form, MESSAGES[name], {}) in (YES, LEFT_OUT, NO)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@examples(50)
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=5),
    names=st.lists(st.sampled_from(list(MESSAGES)), min_size=1, max_size=3),
)
def test_every_combination(form: Format, pieces: list[Mapping[str, Any]], names: list[str]) -> None:
    parameters = {name: value for piece in pieces for name, value in piece.items()}
    messages = [message for name in names for message in MESSAGES[name]]
    assert sent(form, messages, parameters) in (YES, LEFT_OUT, NO)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"bogus": 1}, ".bogus"),
        ({"model": 5}, ".model"),
        ({"messages": [{"role": "robot", "content": "x"}]}, ".messages[0].role"),
        ({"messages": [{"role": "user", "content": "x", "bogus": 1}]}, ".messages[0].bogus"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "txt": "x"}]}]},
            ".messages[0].content[0].text",
        ),
        ({"reasoning_effort": "huge"}, ".reasoning_effort"),
    ],
)
def test_the_check_finds_what_is_wrong(change: dict[str, Any], path: str) -> None:
    payload = CHAT.encode("Hi")
    assert not CHAT.check(payload)
    assert any(problem.startswith(path) for problem in CHAT.check({**payload, **change}))


def test_a_missing_field_is_found() -> None:
    (problem,) = RESPONSES.check({"input": [{"type": "function_call", "call_id": "a", "name": "f"}]})
    assert problem == ".input[0].arguments: missing"
    assert problems({"a": 1}, dict[str, str]) == [".a: 1 is no str"]
