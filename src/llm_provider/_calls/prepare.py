"""What happens to a call in the user's thread: it is made, looked up, and answered if the cache knows it.

    Request → prepare (route, encode) → lookup (key, cache) → respond (accounts)

A script whose answers are all stored goes no further than this module, and loads nothing that only a call
which is sent needs: no SDK, no event loop, no network.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Collection
from typing import TYPE_CHECKING

import orjson

from .._cache.response_cache import Entry, ResponseCache
from .._errors import CacheMissError, LLMError, RequestError
from .._limits.concurrency import Concurrency
from .._limits.timeouts import Deadline
from .._money.track import current
from .._providers import registry
from .._providers.adapter import Answer
from .._requests.request import Request
from .._requests.routing import resolve
from .._runtime.canonical_json import canonical
from .._runtime.exact_decimal import total
from .._settings import Settings
from .._types import Response, Timing, Usage
from .call import MAX_REQUEST_BYTES, Call, Sample
from .recorder import CostRecorder

if TYPE_CHECKING:
    import asyncio


_READ_HERE = 16
"""Entries that an event loop reads before it lets its other tasks run. Handing a read to a thread costs
several times what the read does, but many in a row would keep the loop from everything else."""

_EXPLAINED = 20
"""Misses of a client that are explained where nothing may be sent: each takes some 10 ms, and a batch may
have thousands."""

READING = ("use", "only")
"""The cache modes that look."""


class Front:
    """Makes calls and answers them; one per client."""

    def __init__(self, settings: Settings, cache: ResponseCache, accounts: CostRecorder) -> None:
        self.settings = settings
        self.cache = cache
        self.accounts = accounts
        self.closed = False
        """Whether the client is closed, which makes no calls any more."""
        # What each loop has read in this turn; one that ends in the middle of a turn takes its count along.
        self._reads: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()
        self._remote: bool | None = None
        self._explained = 0

    def prepare(self, request: Request, concurrency: Concurrency) -> Call:
        """Route and encode a request.

        Raises:
            RequestError: it cannot be served as it is.
            RuntimeError: the client is closed.
        """
        started = time.perf_counter()
        self.refuse_closed()
        target = resolve(request.model, request.base_url)
        adapter = registry.load(target.route.adapter)
        encoded = adapter.encode(request, target)
        body = canonical(encoded.payload)
        if len(body) > MAX_REQUEST_BYTES:
            raise RequestError(
                f"the request has {len(body) / 1e6:.1f} MB, and at most {MAX_REQUEST_BYTES / 1e6:.0f} MB "
                "are sent: give large files by their address",
                provider=target.provider,
                model=request.model,
            )
        mode = request.cache or self.settings.cache
        allowed = request.deadline
        deadline = None if allowed is None else Deadline(allowed, started + allowed)
        return Call(request, target, adapter, encoded, body, started, *concurrency, mode, current(), deadline)

    def refuse_closed(self) -> None:
        """Raise if the client is closed."""
        if self.closed:
            raise RuntimeError("this client is closed")

    def lookup(self, call: Call) -> Response | None:
        """The answer from the cache; None if any of its samples is not there.

        Raises:
            CacheMissError: it is not there, and the call may not be sent.
        """
        if call.cache not in READING:
            return None
        if call.request.n == 1:
            draw = call.request.draw
            response = self.answered(call, self.cache.get(call.key(draw)), call.started)
            if response is None and call.cache == "only":
                raise self.missing(call, draw)
            return response
        found = []
        for draw in call.draws:
            sample = self.kept(call, self.cache.get(call.key(draw)))
            if sample is None:
                if call.cache == "only":
                    raise self.missing(call, draw)
                return None
            found.append(sample)
        return self.respond(call, found)

    async def lookup_soon(self, call: Call) -> Response | None:
        """`lookup` for an event loop, which must not wait long for the disk."""
        if call.cache not in READING:
            return None
        import asyncio

        if self._remote is None:
            self._remote = self.cache.lease_directory is None
        if self._remote:
            # Each read may take a message to another machine.
            return await asyncio.to_thread(self.lookup, call)
        here = asyncio.get_running_loop()
        while (reads := self._reads.get(here, 0)) >= _READ_HERE:  # noqa: ASYNC110  # the next turn is waited for
            await asyncio.sleep(0)
        if not reads:
            here.call_soon(self._reads.pop, here, None)
        self._reads[here] = reads + call.request.n
        response = self.lookup(call)
        if response is not None:
            # A loop that only finds what it looks for would never let other tasks run.
            await asyncio.sleep(0)
        return response

    def missing(self, call: Call, draw: int) -> CacheMissError:
        """The error of a call that may not be sent and has a sample that is not there."""
        key = call.key(draw)
        message = f"no answer is stored under {key}, and cache='only' sends nothing"
        if self._explained < _EXPLAINED:
            self._explained += 1
            with contextlib.suppress(OSError):
                nearest = self.cache.explain_miss(call.asked(draw))
                if nearest is not None:
                    message += f"; {nearest}"
        return CacheMissError(message, key=key, provider=call.target.provider, model=call.request.model)

    def answered(self, call: Call, entry: Entry | None, started: float) -> Response | None:
        """The answer of a call for one sample; None if what the cache has for it cannot be served.

        Args:
            call: The call, or one that differs in its prompt alone.
            entry: What the cache has for it.
            started: Monotonic time at which the user asked.

        Raises:
            ModelDriftError: another model answered than before, and the call is strict.
        """
        answer = self.stored(call, entry)
        if answer is None or entry is None:
            return None
        before = self.accounts.hit(call, answer)
        if before is not None:
            self.accounts.check_model(call, Sample(answer, entry.body, cached=True, served_before=before))
        total = time.perf_counter() - started
        return Response(
            choices=answer.choices,
            usage=answer.usage or Usage(),
            model=answer.model or call.target.model,
            provider=call.target.provider,
            id=answer.id,
            cost=0.0,
            cached=True,
            timing=Timing(total=total, overhead=total),
            body=entry.body,
            response_format=call.request.response_format,
        )

    def kept(self, call: Call, entry: Entry | None) -> Sample | None:
        """A stored answer, if it can be served."""
        answer = self.stored(call, entry)
        return None if answer is None or entry is None else Sample(answer, entry.body, cached=True)

    def stored(self, call: Call, entry: Entry | None) -> Answer | None:
        """What an entry says, if it can be served."""
        if entry is None:
            return None
        try:
            answer = call.adapter.decode(orjson.loads(entry.body))
        except (LLMError, ValueError):
            # Written by another version that understood more, or less: ask again.
            return None
        return answer if is_kept(answer, self.settings.kept) else None

    def respond(self, call: Call, samples: list[Sample]) -> Response:
        """A call's samples, put together and accounted for.

        Raises:
            ModelDriftError: another model answered than before, and the call is strict.
        """
        cost = self._cost(call, samples)
        first, rest = samples[0], samples[1:]
        choices, usage, slowest = first.answer.choices, first.answer.usage or Usage(), first
        attempts, failures, cached, body = first.attempts, first.failures, first.cached, first.body
        for sample in rest:
            choices += sample.answer.choices
            usage += sample.answer.usage or Usage()
            attempts += sample.attempts
            failures += sample.failures
            cached = cached and sample.cached
            # Samples run side by side: what the call waited for is the slowest of them.
            slowest = max(slowest, sample, key=lambda sample: sample.queue + sample.sending)
        if rest:
            body = b"[" + b",".join(sample.body for sample in samples) + b"]"
        total = time.perf_counter() - call.started
        return Response(
            choices=choices,
            usage=usage,
            model=first.answer.model or call.target.model,
            provider=call.target.provider,
            id=first.answer.id,
            cost=cost,
            cached=cached,
            timing=Timing(
                queue=slowest.queue,
                first_token=slowest.first_token,
                total=total,
                attempts=attempts,
                overhead=max(0.0, total - slowest.queue - slowest.sending),
            ),
            failures=failures,
            body=body,
            response_format=call.request.response_format,
        )

    def _cost(self, call: Call, samples: list[Sample]) -> float | None:
        """USD that the samples cost this call; None where that is not known."""
        paid, changed = [], None
        for sample in samples:
            if sample.cached:
                before = self.accounts.hit(call, sample.answer)
                # Who shared another's request has its sample, and with it what that one was told.
                sample.served_before = sample.served_before or before
            else:
                paid.append(sample.cost)
            if sample.served_before is not None:
                changed = sample
        if changed is not None:
            self.accounts.check_model(call, changed)
        if not paid:
            return 0.0
        known = [cost for cost in paid if cost is not None]
        return float(total(known)) if len(known) == len(paid) else None


def is_kept(answer: Answer, kept: Collection[str]) -> bool:
    """Whether the cache keeps an answer, and serves it.

    Args:
        answer: The answer.
        kept: The finish reasons that every sample of it must have; with "empty", samples that say and call
            nothing are kept too.

    By default refusals, filtered, empty and length-truncated answers are not: asking again may do better.
    """
    # Nearly always of one sample, for which a generator would take longer than the look.
    for choice in answer.choices:
        if choice.finish_reason not in kept:
            return False
        if not (choice.text or choice.tool_calls or "empty" in kept):
            return False
    return True
