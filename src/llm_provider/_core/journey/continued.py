"""Answers that a provider divides over several requests: each goes on where the one before it ended.

Each request is limited, budgeted and recorded like any other. Their replies are joined into one, and only the
whole is stored. If a request fails, the call fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..formats.shared.replies import reply_body
from .call import Call, Emit, Sample
from .sent_requests import sum_of_prices

if TYPE_CHECKING:
    from .sender import Sender

MOST_REQUESTS = 16
"""Requests for one answer. Gemini's models write up to 65,536 tokens in one and read 1,048,576: after 16
requests nothing fits. A server that never ends an answer is asked no more."""


async def fetch_whole(call: Call[Any], parts: Sequence[int], emit: Emit | None, sender: Sender) -> Sample:
    """The answer with some parts of a call, from as many requests as the provider divides it over."""
    # A protocol cannot have functions that only some formats have.
    adapter: Any = call.adapter
    whole = await sender.send(call, parts, emit)
    token = adapter.continuation(whole.answer.reply)
    for _ in range(MOST_REQUESTS - 1):
        if token is None:
            break
        answered = await sender.send(_continue(call, whole, token), parts, emit)
        before, token = token, adapter.continuation(answered.answer.reply)
        whole = await call.run_off_loop(partial(_join, call, parts, whole, answered), whole.body)
        if token == before:  # the next answer would be the same
            break
    return whole


def _continue(call: Call[Any], whole: Sample, token: dict[str, Any]) -> Call[Any]:
    """The same call with a token, which like a label is sent and is not in the key of the answer."""
    encoded = call.encoded
    payload = {name: value for name, value in encoded.payload.items() if name not in token}
    labels = {**(encoded.labels or {}), **token}
    continued = replace(encoded, payload=payload, labels=labels, continues=whole.answer.reply)
    return replace(call, encoded=continued)


def _join(call: Call[Any], parts: Sequence[int], before: Sample, after: Sample) -> Sample:
    adapter: Any = call.adapter  # as above
    reply = adapter.join(before.answer.reply, after.answer.reply)
    answer = call.operation.decode(call, reply, len(parts))
    answer.origin = before.answer.origin
    return Sample(
        answer,
        reply_body(reply),
        cached=False,
        queue=before.queue + after.queue,
        sending=before.sending + after.sending,
        first_token=before.first_token or after.first_token,
        price=sum_of_prices((before.price, after.price)),
        change=before.change or after.change,
    )
