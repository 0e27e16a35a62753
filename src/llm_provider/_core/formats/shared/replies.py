"""What the decoders of replies share: JSON values that may be absent or of a wrong type. Pure."""

from collections.abc import Iterable
from typing import Any

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...runtime.canonical_json import write_exactly
from ...types.messages import Delta, Step, ToolCall, delta_of


def split_reply(reply: JSONObject, samples: str, usage: str) -> list[Any]:
    """Divide a reply with several samples, in the field `samples`, into one reply for each.

    The field `usage` has their tokens, which no provider counts by sample. The first reply keeps it.

    >>> reply = {"choices": [{"index": 0}, {"index": 1}], "usage": {"total_tokens": 9}}
    >>> split_reply(reply, "choices", "usage")
    [{'choices': [{'index': 0}], 'usage': {'total_tokens': 9}}, {'choices': [{'index': 0}], 'usage': {}}]
    """
    replies: list[Any] = []
    for number, sample in enumerate(sorted(reply[samples], key=lambda sample: count(sample, "index"))):
        shared = reply if number == 0 or usage not in reply else {**reply, usage: {}}
        replies.append({**shared, samples: [{**sample, "index": 0}]})
    return replies


def reply_body(reply: object) -> bytes:
    """A reply as JSON, at most 254 levels deep; an `APIResponseValidationError` where it is none."""
    try:
        return write_exactly(reply)
    except (TypeError, ValueError, RecursionError) as error:
        # It came whole and was billed, so it is not asked for again.
        raise APIResponseValidationError(
            f"the answer is no JSON that can be kept: {error}", retryable=False
        ) from None


def expect_dict(value: object, what: str) -> JSONObject:
    """`value` if it is a JSON object; an `APIResponseValidationError` if it is anything else."""
    if not isinstance(value, dict):
        raise APIResponseValidationError(
            f"the provider's {what} is {type(value).__name__}, not a JSON object"
        )
    return value


def count(container: JSONMapping, name: str) -> int:
    """A count of tokens from a usage object; 0 where it is absent, null or not a positive whole number."""
    value = container.get(name)
    # Most counts are 0. `isinstance` would accept True.
    if value and type(value) is float and value.is_integer():
        value = int(value)
    return value if value and type(value) is int and value > 0 else 0


def keep_whole(reply: Any) -> list[Any]:
    """The reply itself: a request asks for one sample."""
    return [reply]


def part(container: JSONMapping, name: str) -> JSONMapping:
    """A nested object; empty where it is absent or not an object."""
    value = container.get(name)
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def find_counts(reply: object, name: str) -> JSONObject | None:
    """The usage object in a reply; None where it has none."""
    reported = reply.get(name) if isinstance(reply, dict) else None
    return reported if isinstance(reported, dict) else None


def call_entry(call: ToolCall) -> JSONObject:
    """A call of a function as an entry of a message's `tool_calls`."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def join_counts(before: Any, after: Any) -> Any:
    """The usage that a stream has told so far: counts grow, so a later 0, or none, says nothing."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return before if after is None else after
    return before | {name: count for name, count in after.items() if count or before.get(name) is None}


def join_steps(steps: Iterable[Step]) -> Step:
    """Several steps of one sample as one."""
    filled = [step for step in steps if step]
    if len(filled) < 2:
        return filled[0] if filled else ""
    deltas = list(map(delta_of, filled))
    return Delta(
        text="".join([delta.text for delta in deltas]),
        reasoning="".join([delta.reasoning for delta in deltas]),
        tool_calls=tuple([call for delta in deltas for call in delta.tool_calls]),
    )


def number_step(step: Step, index: int) -> Step:
    """A step of a stream of several samples, with the number of its sample."""
    delta = delta_of(step)
    return Delta(text=delta.text, reasoning=delta.reasoning, tool_calls=delta.tool_calls, index=index)


def same(first: object, second: object) -> bool:
    """Whether two JSON values are equal. Values that are nested too deep to be compared are not."""
    try:
        return bool(first == second)
    except RecursionError:
        return False


def dicts(value: Any) -> list[JSONObject]:
    """The objects in a list; empty where it is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(container: JSONMapping, *names: str) -> str | None:
    """The first of some fields that is a text which is not empty."""
    return next((value for name in names if isinstance(value := container.get(name), str) and value), None)
