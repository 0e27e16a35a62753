"""Makes what observers are told of a call, and has calls observed."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..._features.telemetry.observer import Watch
from ..events.observed_call import ObservedCall, Payment
from ..money.totals import Posting
from .call import Call

T = TypeVar("T")


def describe(call: Call[Any]) -> ObservedCall:
    """A call as its observer takes it."""
    target = call.target
    return ObservedCall(
        call.exchange.name,
        target.provider,
        target.model,
        getattr(call.request, "model", target.model),
        target.base_url,
        call.request,
        call.tracks.tag,
        call.streamed,
        call.metadata,
    )


def observe_lookup(call: Call[Any], started: float, outcome: T) -> T:
    """The outcome of a call that ended with the lookup, observed."""
    if call.watch is not None:
        call.watch.observer.note_lookup(describe(call), started, outcome)
    return outcome


async def observe_call(call: Call[Any], work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of an observed call that is sent. It runs in the task of the call."""
    assert call.watch is not None
    observer = call.watch.observer
    span, is_read = observer.start(call.exchange.name, call.target, call.started)
    if not is_read:
        call.watch = None
        try:
            return await work()
        finally:
            if span is not None and observer.spans is not None:
                observer.spans.drop(span)
    missed = call.cache in ("use", "only")
    call.watch = watch = observer.watch(describe(call), call.started, span, missed=missed)
    try:
        result = await work()
    except BaseException as error:
        _end(call, watch, error)
        raise
    _end(call, watch, result)
    return result


def _end(call: Call[Any], watch: Watch, outcome: Any) -> None:
    # After its deadline, a call counts what its error tells.
    sent = (call.sent.before_telling or call.sent).whole()
    watch.observer.note_end(watch, outcome, sent.attempts, sent.usage, sent.cost)


def observe_payment(call: Call[Any], posting: Posting) -> None:
    """Observe the tokens and the cost of a request that was billed, or may have been."""
    watch = call.watch
    if watch is None or posting.kind == "hit":
        return
    usd = None if posting.usd is None else float(posting.usd)
    payment = Payment(posting.usage, usd, posting.key.served, posting.key.delivery, posting.who)
    watch.observer.note_payment(watch.call or describe(call), payment)
