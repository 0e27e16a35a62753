"""`SentRequests`: the requests that were sent for one call, and what they cost.

Results and errors are made from these sums, so what the user reads covers all samples, rounds and repairs,
and what failed. A request belongs to the call that sent it: an equal call that waits for its answer pays
nothing. If the sender is cancelled, the first of those that wait takes over the request and its cost.

`EarlyStop` tells what the failures of a batch mean: all calls fail for one reason, or a few inputs are the
reason. In the first case the batch is stopped before every input is sent in vain. A call counts when it has
failed for good, with the last key of its pool. In the second one, where every other call is answered or
stored, the inputs are the suspects and not the provider: the batch does not wait for the end of an outage
that there is not. With `max_errors` it also ends a batch where so many rows have failed for any reason: then
requests under way are awaited, and no other one is sent, not even a retry.
"""

from __future__ import annotations

import contextlib
import copy
import operator
import re
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import APITimeoutError, FailedAttempt, LLMError, TooManyErrorsError
from ..formats.transport.wire import Departure
from ..json_values import JSONObject
from ..pace.call_limits import Deadline
from ..pace.failure_table import consequence_of
from ..runtime.exact_decimal import total
from ..runtime.warning import warn_user
from ..types.usage import CostBounds, CostSource, Usage

if TYPE_CHECKING:
    import asyncio
    from decimal import Decimal

    from ..pace.failures import Outage


_LEAST_CERTAIN_FIRST: tuple[CostSource, ...] = ("litellm", "prices", "reply")


class Charge(NamedTuple):
    """What one request cost that was answered, or that failed and may have been billed."""

    usd: Decimal | None
    """None where it is not known."""
    usage: Usage | None
    source: CostSource
    unknown: str | None = None
    """Why `usd` is None."""
    at_most: Decimal | None = None
    """USD that an unknown cost cannot exceed; None where there is no such bound."""


_usd, _usage, _source = map(operator.attrgetter, ("usd", "usage", "source"))


class SentRequests(Departure):
    """Counts the requests of one call, or of a part of it, which sends one request after the other."""

    failures: tuple[FailedAttempt, ...] = ()
    heir: SentRequests | None = None
    """The requests of the call that has taken these over. They count there alone."""
    problem: str = ""
    """The message of the last failure."""
    outage: Outage | None = None
    """What is known of the provider's outages, once a request has waited for its turn."""
    reported: SentRequests | None = None
    """A copy of the counts at the moment when an error reported them; counting starts again at 0."""
    numbers: Sequence[int] = ()
    """The samples of the call that the request under way asks for."""
    is_too_late: bool = False
    """Whether the last failure was not sent again because of the deadline of this call."""

    def __init__(self, charges: tuple[Charge, ...] = (), parts: tuple[SentRequests, ...] = ()) -> None:
        self.charges = charges
        self.parts = parts
        """Requests that count here too, such as those for each of several samples."""

    def end(self, failure: FailedAttempt | None = None) -> None:
        """Note that a request has ended, and its failure if it failed."""
        if not self.is_reported:
            self.under_way -= 1
            if failure is not None:
                self.failures += (failure,)

    def including_parts(self) -> SentRequests:
        """These requests and the requests of all parts as one count."""
        if self.heir is not None:
            return NOTHING_SENT
        if not self.parts:
            return self
        every = SentRequests()
        for part in _flat(self):
            every.attempts += part.attempts
            every.under_way += part.under_way
            every.failures += part.failures
            every.charges += part.charges
            every.problem, every.outage = part.problem or every.problem, part.outage or every.outage
        return every

    @property
    def cost(self) -> float | None:
        """USD that the requests cost; None if the cost of one is not known, as while it is under way."""
        return None if self.under_way else cost_of(list(map(_usd, self.charges)))

    @property
    def cost_bounds(self) -> CostBounds | None:
        """The least and the most USD that requests of unknown cost have cost; None where it is known."""
        charges = self.charges
        if not self.under_way and all(charge.usd is not None for charge in charges):
            return None
        most = [charge.at_most if charge.usd is None else charge.usd for charge in charges]
        least = float(total(charge.usd for charge in charges if charge.usd is not None))
        return least, None if self.under_way else cost_of(most)

    def describe_cost(self) -> JSONObject:
        """The fields of a result that say what the requests cost.

        The source is the least certain one: None if nothing was paid, or if the cost is not known. What is
        unknown is told by the first request without a cost.
        """
        cost, source, unknown, bounds = self.cost, None, None, None
        if cost is not None:
            source = min(map(_source, self.charges), key=_LEAST_CERTAIN_FIRST.index, default=None)
        else:
            bounds = self.cost_bounds
            unknown = (
                "a request is under way"
                if self.under_way
                else next(charge.unknown for charge in self.charges if charge.usd is None)
            )
        return {"cost": cost, "cost_source": source, "cost_unknown": unknown, "cost_bounds": bounds}

    @property
    def usage(self) -> Usage | None:
        """The usage that the provider reported for the requests; None if it reported none."""
        known = list(filter(None, map(_usage, self.charges)))
        return sum(known[1:], known[0]) if known else None

    def usage_with(self, samples: Sequence[Any]) -> Usage:
        """The usage of these requests, and of the samples that came from elsewhere."""
        stored = [sample.answer.usage for sample in samples if sample.cached]
        known = list(filter(None, (*map(_usage, self.charges), *stored)))
        return sum(known[1:], known[0]) if known else Usage()

    def write_to(self, error: LLMError) -> None:
        """Set what an error says of the requests of its call."""
        sent = self.including_parts()
        error.attempts, error.failures = sent.attempts, sent.failures
        error.maybe_billed = bool(sent.charges or sent.under_way)
        error.cost, error.usage, error.cost_bounds = sent.cost, sent.usage, sent.cost_bounds

    def mark_reported(self) -> None:
        """Note that an error tells of these requests now, so no other call does when they end.

        Requests that are sent later for equal calls are told by these: they are counted from 0.
        """
        self.reported = copy.copy(self.including_parts())
        for part in _flat(self):
            part.is_reported |= bool(part.under_way)
            part.attempts, part.under_way, part.failures, part.charges = 0, 0, (), ()

    def deadline_error(
        self, deadline: Deadline, bound: Callable[[Sequence[int]], Decimal | None]
    ) -> APITimeoutError:
        """The error of a call that was not answered by its deadline.

        `bound` has the most USD that a request for some samples can cost; None if that is not known.
        """
        sent = self.including_parts()
        answered = sent.attempts - sent.under_way - len(sent.failures)
        sentences = ["nothing was sent"] if not sent.attempts else []
        if sentences and deadline.is_loading:
            sentences = ["nothing was sent, as the SDK was still being loaded"]
        if sent.under_way:
            sentences.append("a request was under way")
        elif answered > 0:
            sentences.append(f"{answered} {'request was' if answered == 1 else 'requests were'} answered")
        if sent.failures:
            sentences.append(f"after {', '.join(failure.error for failure in sent.failures)}")
        cause = None if sent.attempts or sent.outage is None else sent.outage.cause
        if sent.problem:
            sentences[-1] += f": {sent.problem}"
        elif cause is not None:
            sentences[-1] += f", as other requests failed: {cause.message}"
        error = APITimeoutError(
            f"not answered by the deadline of {deadline.allowed:g} s: {', '.join(sentences)}",
            phase="deadline",
            limit=deadline.allowed,
        )
        sent.write_to(error)
        if error.cost_bounds is not None and sent.under_way:
            most = [charge.at_most if charge.usd is None else charge.usd for charge in sent.charges]
            most += [bound(part.numbers) for part in _flat(self) if part.under_way]
            error.cost_bounds = error.cost_bounds[0], cost_of(most)
        return error


NOTHING_SENT = SentRequests()
"""The requests of a call that is not sent. Nothing is counted here."""


def cost_of(costs: Sequence[Decimal | None]) -> float | None:
    """The sum of the costs of some requests in USD; None if one of them is not known.

    >>> from decimal import Decimal
    >>> cost_of([]), cost_of([Decimal("0.1")] * 3), cost_of([Decimal("0.1"), None])
    (0.0, 0.3, None)
    """
    if len(costs) == 1:  # as for nearly every call
        return None if costs[0] is None else float(costs[0])
    known = [cost for cost in costs if cost is not None]
    return float(total(known)) if len(known) == len(costs) else None


def sum_of_prices(prices: Collection[float | None]) -> float | None:
    """The sum of some prices in USD as their decimals have it; None if one of them is not known.

    >>> sum_of_prices([0.1, 0.2]), sum_of_prices([0.1, None])
    (0.3, None)
    """
    from decimal import Decimal

    known = [Decimal(repr(price)) for price in prices if price is not None]
    return float(total(known)) if len(known) == len(prices) else None


def _flat(sent: SentRequests) -> Iterator[SentRequests]:
    yield sent
    for part in sent.parts:
        if part.heir in (None, sent):
            yield from _flat(part)


ENOUGH_FAILURES = 3
"""Failures in a row with the same error, without an answer between them."""

_FEW = 4
"""So many failing inputs are few, whatever the number of the answered ones."""

_ANSWERED_PER_SUSPECT = 4
"""More failing inputs are few if at least so many were answered for each of them."""

_CHANGING = re.compile(r"\S*\d\S*")
"""Words with digits: ids of requests, times and numbers, in which equal errors may differ."""


def is_of_batch(error: LLMError) -> bool:
    """Whether a call was not sent because its batch was stopped."""
    return not error.attempts and bool(consequence_of(error).stops)


class EarlyStop:
    """Counts the failures of one batch. It is used on the background loop, apart from `warn` and `note_row`.

    `max_errors` is how many rows may fail before the batch ends; None if only equal failures stop it.
    """

    def __init__(self, max_errors: int | None = None) -> None:
        self.max_errors = max_errors
        self.is_over = False
        """Whether so many rows have failed that no request is sent any more, not even a retry."""
        self.waiting: set[asyncio.Task[Any]] = set()
        """With `max_errors`, the tasks that wait for a slot or before a retry."""
        self.interrupted: set[asyncio.Task[Any]] = set()
        """Those of them whose wait was broken off by the end of the batch."""
        self.of_fallbacks: dict[str, EarlyStop] = {}
        """By model, the counts of the calls that this batch's last model stands in for."""
        self._failed_rows = self._failed_inputs = 0
        self.all_read = False
        """Whether no more inputs follow."""
        self.stored = self.to_send = 0
        """Inputs that an earlier run has answered, and inputs that are to be sent."""
        self.answered_calls = self.ended_calls = 0
        """Calls that were answered, and calls that were answered or have failed for good."""
        self.failing: set[int] = set()
        """Identities of the calls whose last request failed as in an outage."""
        self.stopped = False
        """Whether no more calls are sent."""
        self.key_source = ""
        """Where the key that was not accepted comes from, in words."""
        self._answered = False
        self._count = 0
        self._kind: tuple[object, ...] = ()
        self._reason: LLMError | None = None
        self._refused = self._warned = False

    def refuse(self) -> LLMError:
        """The error of a call that is not sent. It has the class of the failures."""
        assert self._reason is not None
        self._refused = True
        if self.is_over:
            end = TooManyErrorsError(f"not sent, because {self._describe_end()}: {self._reason.message}")
            assert self.max_errors is not None
            end.failed, end.max_errors = self.failed_rows, self.max_errors
            return end
        error = type(self._reason)(
            f"not sent, because {ENOUGH_FAILURES} calls of this batch failed in a row: {self._reason.message}"
        )
        vars(error)["_stops"] = vars(self._reason).get("_stops")
        return error

    @property
    def blames_inputs(self) -> bool:
        """Whether the failing inputs are few beside the answered ones, and no other input is left to try."""
        answered = self.stored + self.answered_calls
        few = max(_FEW, answered // _ANSWERED_PER_SUSPECT)
        left = self.to_send - self.ended_calls
        return self.all_read and answered > 0 and left <= len(self.failing) <= few

    def note_answer(self, call: int) -> None:
        """Note that the call of this identity was answered."""
        self.failing.discard(call)
        self._answered, self._count = True, 0

    def note_failure(self, error: LLMError) -> None:
        """Note that a call failed for good."""
        stops = consequence_of(error).stops
        # Once the model has answered, the prompt is the reason.
        if not stops or self.stopped or (self._answered and stops == "before an answer"):
            return
        kind = (type(error), error.status, error.code, _CHANGING.sub("", error.message))
        self._count = self._count + 1 if kind == self._kind else 1
        self._kind = kind
        if self._count == ENOUGH_FAILURES:
            self._reason, self.stopped = error, True

    @property
    def failed_rows(self) -> int:
        """The number of rows that failed so far."""
        return self._failed_rows + self._failed_inputs

    def note_row(self, error: LLMError, *, is_sent: bool) -> bool:
        """Note that a row of the batch failed. Returns whether the batch ends now.

        Rows that are `is_sent` are noted on the loop, and others, such as wrong inputs, in the user's thread.
        So each thread has a counter of its own.
        """
        if self.max_errors is None or self.is_over or is_of_batch(error):
            return False
        if is_sent:
            self._failed_rows += 1
        else:
            self._failed_inputs += 1
        if self.failed_rows < self.max_errors:
            return False
        failed = self.failed_rows
        for each in (self, *self.of_fallbacks.values()):
            each._reason, each._failed_rows, each._failed_inputs = error, failed, 0  # noqa: SLF001
            each.is_over = each.stopped = True
        return True

    def of_fallback(self, model: str) -> EarlyStop:
        """The counts of the calls of a model that this batch's last model stands in for."""
        return self.of_fallbacks.setdefault(model, EarlyStop(self.max_errors))

    def break_off_waits(self) -> None:
        """End the waits of the calls, on the loop. They raise `refuse()`, or their failure."""
        for each in (self, *self.of_fallbacks.values()):
            each.interrupted |= each.waiting
            for task in each.waiting:
                task.cancel()

    async def ends_during(self, waiting: Coroutine[Any, Any, None]) -> bool:
        """Wait for a slot or a retry. Returns whether `max_errors` has ended the batch meanwhile."""
        import asyncio

        task = asyncio.current_task()
        assert task is not None
        self.waiting.add(task)
        try:
            await waiting
        except asyncio.CancelledError:
            if task not in self.interrupted or task.uncancel() > 0:
                raise
            return True
        finally:
            self.waiting.discard(task)
            self.interrupted.discard(task)
        return False

    def _describe_end(self) -> str:
        rows = "1 row" if self.failed_rows == 1 else f"{self.failed_rows:,} rows"
        return f"{rows} of this batch failed (max_errors={self.max_errors}), the last"

    def warn(self) -> None:
        """Tell the user once that calls of the batch were not sent."""
        if self._reason is None or not self._refused or self._warned:
            return
        self._warned = True
        source = f"; {self.key_source} is not accepted" if self.key_source else ""
        # Where warnings are errors, the results of the batch must not be lost.
        end = f"{self._describe_end()} one" if self.is_over else f"{ENOUGH_FAILURES} calls failed in a row"
        with contextlib.suppress(UserWarning):
            warn_user(
                f"the batch was stopped, because {end} with {type(self._reason).__name__}: {self._reason}"
                f"{source}; the other calls are not sent, and a second run sends them",
            )
