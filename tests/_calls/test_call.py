"""A call: the keys of its parts."""

from llm_provider import Client
from llm_provider._calls.call import Call, delta_of_choice, renumber
from llm_provider._calls.operations.chat import CHAT
from llm_provider._limits.concurrency import Concurrency
from llm_provider._requests.request import Request
from llm_provider._types.messages import Delta, Step, ToolCall, ToolCallDelta
from llm_provider._types.response import Choice


def call_of(client: Client, **parameters: object) -> Call:
    request = Request.build("gpt-6.1-sol", "Hi", dict(parameters))
    return client._engine.prepare(CHAT, request, Concurrency(1, 1))


class TestKeys:
    def test_a_part_has_the_key_of_the_call_that_asks_for_it_alone(self, client: Client) -> None:
        several = call_of(client, n=3)
        for part in several.parts:
            alone = call_of(client, draw=part)
            assert list(alone.parts) == [part]
            assert alone.key(part) == several.key(part)
            assert alone.build_question(part) == several.build_question(part)


def test_a_sample_is_one_delta() -> None:
    choice = Choice(text="Hi", reasoning="why", tool_calls=(ToolCall(id="c", name="f", arguments="{}"),))
    call = ToolCallDelta(index=0, id="c", name="f", arguments="{}")
    assert delta_of_choice(choice, 2) == Delta(text="Hi", reasoning="why", tool_calls=(call,), index=2)


def test_a_delta_gets_the_number_of_its_sample_and_one_too_many_is_not_shown() -> None:
    steps: list[Step] = []
    emit = renumber(steps.extend, [3, 5])
    emit([Delta(text="a", index=0), Delta(text="b", index=1), Delta(text="c", index=2)])
    assert steps == [Delta(text="a", index=3), Delta(text="b", index=5)]
