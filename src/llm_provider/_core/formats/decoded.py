"""What was decoded of a plain answer, from which a hit makes the answer without reading its body as JSON.

A plain answer is one text that ended by itself, and nothing else. Its place in the body is stored.
"""

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from ..money.price_rows import get_counts
from ..requests.routing import Target
from ..runtime.frozen import quick_maker, with_late_field
from ..runtime.json_pieces import is_plain, read_plain
from ..types.response import make_choice
from ..types.usage import usage_of
from .protocol import Answer

DECODERS = 1
"""Whoever changes what a decoder makes of plain answers raises it, so that stored ones are decoded anew."""

Decoded: TypeAlias = list[str | int | list[int]]
"""The decoder; start and end of the text; id, model and service level, "" for None; counts of the usage."""

_LONGEST = 65536
"""Bytes. To decode a longer body takes about as long as to read its text."""


@dataclass(slots=True)
class StoredAnswer(Answer):
    """An answer that holds a text, counts and a body. Its fields are made from them when they are read."""


def _read_reply(body: bytes) -> Any:
    try:
        return read_plain(body)
    except ValueError:  # another program has stored it
        return None


held_choices = with_late_field(StoredAnswer, "choices", str, lambda it: (make_choice(text=it, message=it),))
held_usage = with_late_field(StoredAnswer, "usage", tuple, usage_of)
with_late_field(StoredAnswer, "reply", bytes, _read_reply)
_make_answer: Any = quick_maker(StoredAnswer)


def describe_body(body: bytes, answer: Any, target: Target, payload: Any) -> tuple[bool, Decoded | None]:
    """The fields `plain` and `decoded` of the entry of an answer to a payload."""
    plain = is_plain(body)
    is_chat = plain and type(answer) is Answer and len(body) <= _LONGEST
    return plain, write_decoded(answer, body, target, payload.get("max_output_tokens")) if is_chat else None


def write_decoded(answer: Answer, body: bytes, target: Target, most: Any = None) -> Decoded | None:
    """What `read_decoded` makes an equal answer of; None for one that is not plain.

    Whether one with the `most` tokens is cut, and what impossible counts are, depends on the operation.
    """
    (choice, *others), usage, text = answer.choices, answer.usage, answer.choices[0].text
    names = answer.id, answer.model, answer.service_tier
    if (
        others or usage is None or not 0 < usage.total_tokens < 10**12 or usage.output_tokens == most
        or not text or choice.message != {"role": "assistant", "content": text} or choice.reasoning
        or choice.finish_reason != "stop" or answer.has_media or answer.cost is not None or answer.iterations
        or "" in names or choice.logprobs is not None
    ):  # fmt: skip
        return None
    try:
        written, _ = orjson.dumps(text), orjson.dumps(names)
    except TypeError:  # half a surrogate pair
        return None
    if (start := body.find(written)) < 0:
        written = json.dumps(text).encode()  # some servers write ASCII alone
        if (start := body.find(written)) < 0:
            return None
    counts = list(get_counts(usage))
    while not counts[-1]:
        counts.pop()
    name = f"{DECODERS} {target.route.adapter} {target.quirks}"
    return [name, start, start + len(written), *[name or "" for name in names], counts]


def read_decoded(decoded: Any, body: bytes, target: Target) -> Any:
    """A `StoredAnswer`; None if another decoder made it, or if another program wrote anything else."""
    try:
        name, start, end, identifier, model, tier, counts = decoded
        if name != f"{DECODERS} {target.route.adapter} {target.quirks}":
            return None
        text: Any = orjson.loads(body[start:end])
        # Sums of texts are texts, and those of integers are integers.
        are_texts = text and type(text) is str and type(identifier + model + tier) is str
        if not are_texts or not counts or type(sum(counts)) is not int:
            return None
    except (ValueError, TypeError):
        return None
    return _make_answer(
        choices=text,
        usage=tuple(counts),
        model=model or None,
        id=identifier or None,
        service_tier=tier or None,
        reply=body,
    )
