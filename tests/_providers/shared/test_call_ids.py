"""Ids for tool calls without one."""

from typing import Any

import pytest

from llm_provider._errors import RequestError
from llm_provider._providers.shared.call_ids import find_id, make_id


def calls(*identifiers: Any) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": identifier} for identifier in identifiers]}


def result(identifier: str = "") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identifier}


def test_results_answer_the_calls_without_an_id_in_their_order() -> None:
    conversation = [calls(""), result(), calls("a", None, ""), result(), result("a"), result()]
    assert [find_id(conversation, position) for position in (1, 3, 5)] == [
        make_id(0, 0),
        make_id(2, 1),
        make_id(2, 2),
    ]


@pytest.mark.parametrize(
    "conversation",
    [
        [result()],
        [calls("a"), result()],
        [calls(""), result(), result()],
        [calls(""), {"role": "assistant", "content": "x"}, result()],
    ],
)
def test_a_result_that_answers_nothing(conversation: list[dict[str, Any]]) -> None:
    with pytest.raises(RequestError, match="empty tool_call_id"):
        find_id(conversation, len(conversation) - 1)
