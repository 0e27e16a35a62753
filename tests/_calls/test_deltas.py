"""The deltas of a call: whole samples, and the numbers of samples in a call that makes several requests."""

from llm_provider._calls.deltas import delta_of_choice, renumber
from llm_provider._types.messages import Delta, Step, ToolCall, ToolCallDelta
from llm_provider._types.response import Choice


def test_a_sample_is_one_delta() -> None:
    choice = Choice(text="Hi", reasoning="why", tool_calls=(ToolCall(id="c", name="f", arguments="{}"),))
    call = ToolCallDelta(index=0, id="c", name="f", arguments="{}")
    assert delta_of_choice(choice, 2) == Delta(text="Hi", reasoning="why", tool_calls=(call,), index=2)


def test_a_delta_gets_the_number_of_its_sample_and_one_too_many_is_not_shown() -> None:
    steps: list[Step] = []
    emit = renumber(steps.extend, [3, 5])
    emit([Delta(text="a", index=0), Delta(text="b", index=1), Delta(text="c", index=2)])
    assert steps == [Delta(text="a", index=3), Delta(text="b", index=5)]
