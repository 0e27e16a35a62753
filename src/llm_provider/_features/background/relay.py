"""`delivery="background"`: a call is submitted as a job of its provider, which outlives the process.

A job is a batch of one row, so that the journal of batches has it: it is noted before and after its
submission, and the same call, or `llm-provider batches wait`, gets its answer. The answer is stored under the
key of the same call without a delivery, of the Responses API or of Interactions: it is the same answer.
"""

from collections.abc import Coroutine
from copy import copy
from typing import Any, NoReturn, TypeVar

from ..._core.errors import RequestError
from ..._core.formats.openai_responses.encode import OPERATION
from ..._core.formats.shared.batches import limits_of
from ..._core.journey.call import Call, Emit, Operation, Relay
from ..._core.journey.engine import Engine
from ..._core.journey.sent_requests import SentRequests
from ..._core.json_values import JSONMapping
from ..._core.pace.call_limits import Concurrency
from ..._core.requests.checks import DeliveryOptions, check_background
from ..._core.requests.routing import Target
from ..._core.types.response import Response

T = TypeVar("T")


class Background(Relay):
    """The job of one call. A later round of tools is a job of its own."""

    interrupted = (
        "a background job that was submitted goes on at its provider, and is billed: run the same call "
        "again, or `llm-provider batches wait`"
    )

    def __init__(self, engine: Engine, call: Call[Any]) -> None:
        self._engine, self.calls = engine, (copy(call),)

    def look_up(self, call: Call[Any]) -> Any:
        """The stored answer, of a live call too; None if there is none."""
        return self._engine.lookup(self._inner(call))

    def run(self, call: Call[Any], emit: Emit | None) -> Coroutine[Any, Any, Any]:
        """The answer of the job, which may have been submitted before. It is not streamed."""
        from ..._core.batches.work import run_in_batch

        call.sent = SentRequests()
        options = check_background("background_options", call.request.options.get("background_options") or {})
        delivery = DeliveryOptions("background", "batch", background=options)
        return run_in_batch(self._engine, delivery, self._inner(call))

    def find_answering(self, response: Response) -> Call[Any]:
        """The call itself."""
        return self.calls[0]

    def prepare_round(self, operation: Operation[Any, T], request: Any, concurrency: Concurrency) -> Call[T]:
        """The call of a round, which has the options of the first one."""
        return self._engine.prepare(operation, request, concurrency)

    def _inner(self, call: Call[Any]) -> Call[Any]:
        """The call without its relay, as it is now."""
        (inner,) = self.calls
        for name in ("metadata", "tracks", "started", "deadline", "patience", "sent"):
            setattr(inner, name, getattr(call, name))
        return inner


def make_relay(engine: Engine, call: Call[Any]) -> Background:
    """The relay of a call with `delivery="background"`; a `RequestError` if its host has no such jobs."""
    if limits_of(call.target, call.encoded.operation, "background") is None:
        refuse(call.target, call.request.model)
    check_window(call.target, call.request.options.get("background_options") or {})
    return Background(engine, call)


def serves(target: Target) -> bool:
    """Whether a host has background jobs."""
    return limits_of(target, OPERATION, "background") is not None


def check_window(target: Target, options: JSONMapping) -> None:
    """Refuse the options of OpenAI's queue for the jobs of another host, which has no such queue."""
    window, others = options.get("completion_window", "soonest"), options.keys() - {"completion_window"}
    if target.route.adapter == "gemini_interactions" and (window != "soonest" or others):
        raise RequestError(
            f"background_options is {dict(options)!r}, and Google has no such options: leave it out",
            provider=target.provider,
        )


def check_many(target: Target, model: str, parameters: JSONMapping) -> None:
    """Refuse a host without background jobs, and what asks several times, for the jobs of many inputs."""
    for name in ("max_tool_rounds", "fallback"):
        if parameters.get(name):
            raise RequestError(
                f"{name} asks several times, and a background job of many asks once: leave it out, or write "
                "call(..., delivery='background') for each input"
            )
    if not serves(target):
        refuse(target, model)
    check_window(target, check_background("background_options", parameters.get("background_options") or {}))


def refuse(target: Target, model: str) -> NoReturn:
    """Raise the `RequestError` of a host or an endpoint without background jobs."""
    raise RequestError(
        f"{target.provider} has no background jobs for this call: they are of OpenAI's Responses API and of "
        "Gemini's endpoint='interactions'. Leave delivery out, or use call_many(..., delivery='batch')",
        provider=target.provider,
        model=model,
    )


def refuse_raw_field(call: Call[Any]) -> None:
    """Raise the `RequestError` of a call that sets OpenAI's field by itself: its answer would be lost."""
    if call.encoded.operation != OPERATION:
        return  # Gemini's field, whose answers are waited for
    raise RequestError(
        "extra_body has 'background', and the reply to that is no answer yet: write delivery='background' "
        "and background_options={'completion_window': ...}, which wait for the answer and find it again",
        provider=call.target.provider,
        model=call.request.model,
    )
