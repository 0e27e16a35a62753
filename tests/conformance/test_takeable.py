"""The message of every answer can be sent back, to its own provider unchanged and to all others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.checks import (
    ANSWERS,
    FAILED,
    UNFINISHED,
    USER,
    Content,
    contents,
    each_of,
    examples,
    is_empty,
    wrong_in_return,
)
from conformance.formats import ANTHROPIC, BY_NAME, CHAT, FORMATS, RESPONSES, Format

CUT = '{"city":"Be'
FUNCTION = {"name": "weather", "arguments": CUT}
CUT_CALLS: dict[str, tuple[Any, Any]] = {
    "chat": ({"tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}]}, "length"),
    "responses": (
        {"type": "function_call", "call_id": "c1", **FUNCTION},
        ("incomplete", "max_output_tokens"),
    ),
    # The text stands in place of the input if the answer ended inside a call.
    "anthropic": ({"type": "tool_use", "id": "c1", "name": "weather", "input": CUT}, "max_tokens"),
}
"""Format → a call inside which the answer ended, and the word for its end. Gemini's arguments are objects."""


def wrong_anywhere(form: Format, reply: Any) -> set[str]:
    return {
        f"to {target.name}: {problem}"
        for target in FORMATS
        for problem in wrong_in_return(form, reply, target)
    }


@pytest.mark.sampled(3)
@each_of(ANSWERS)
def test_every_answer_can_be_sent_to_every_format(form: str, cell: str, replies: list[Any]) -> None:
    answered = [
        reply
        for reply, content, finish in replies
        if finish not in UNFINISHED and (content or finish not in FAILED)
    ]
    # Some kinds of content have hundreds of samples, which differ deep inside them.
    answered = answered[:: 1 + len(answered) // 40]
    assert not {problem for reply in answered for problem in wrong_anywhere(BY_NAME[form], reply)}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@examples(40)
@given(data=st.data())
def test_every_mixture_of_content_can_be_sent(form: Format, data: st.DataObject) -> None:
    content: Content = data.draw(st.lists(st.sampled_from(contents(form)), max_size=5))
    # Thoughts alone are no answer.
    answers = any(kind.name != "thought" for kind, _ in content)
    endings = [
        ending for ending in form.finishes if ending not in UNFINISHED and (answers or ending not in FAILED)
    ]
    finish = data.draw(st.sampled_from(endings))
    assert not wrong_anywhere(form, form.reply(content, finish))


@pytest.mark.filterwarnings("ignore:the arguments of an earlier tool call")
@pytest.mark.parametrize("target", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize("form", [CHAT, RESPONSES, ANTHROPIC], ids=lambda form: form.name)
def test_a_call_that_was_cut_can_be_sent(form: Format, target: Format) -> None:
    sample, finish = CUT_CALLS[form.name]
    message = form.decode(form.reply([(form.kinds[0], sample)], finish)).choices[0].message
    payload = target.encode([USER, message, {"role": "tool", "tool_call_id": "c1", "content": "cut"}])
    assert not target.check(payload)
    assert "Be" in str(payload[target.turns])


@pytest.mark.filterwarnings("ignore:an earlier answer")
@pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}, {"content": []}])
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_an_empty_turn_is_no_obstacle(form: Format, content: dict[str, Any]) -> None:
    payload = form.encode([USER, {"role": "assistant", **content}, USER])
    assert not form.check(payload)
    # OpenAI takes an empty text.
    kept = form is CHAT and content == {"content": ""}
    assert [is_empty(turn) for turn in payload[form.turns]] == [False, *([True] if kept else []), False]


def test_unknown_fields_go_back_to_the_same_host() -> None:
    details = [{"type": "reasoning.encrypted", "data": "z_secret", "id": "rs_1", "format": "x", "index": 0}]
    extra = {"google": {"thought_signature": "z_signature"}}
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": extra,
    }
    unknown = {
        "reasoning_details": details,
        "extra_content": extra,
        "tool_calls": [call],
        "something_new": "z_new",
    }
    reply = CHAT.reply([(CHAT.kinds[0], {"content": "Hi", **unknown})], "tool_calls")
    message = CHAT.decode(reply).choices[0].message
    sent = CHAT.encode([USER, message, USER], "openrouter/google/gemini-3.8-flash")["messages"][1]
    assert sent == {"role": "assistant", "content": "Hi", **unknown}
