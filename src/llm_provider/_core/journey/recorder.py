"""Records the cost of each call where it arises.

A request's is recorded as soon as its answer or failure arrives, so a call that is cancelled afterwards has
still paid. Every posting goes to the totals of the client, to the `track` blocks around the call, and to the
ledger file.
"""

import contextlib
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from .. import doors
from ..errors import ModelDriftError, cite
from ..formats.protocol import AnyAnswer, Iteration
from ..formats.shared.payload import SERVICE_TIER, find_marks, find_tier, read_fields
from ..formats.shared.replies import same
from ..json_values import JSONObject, json_value
from ..money.ledger_file import LedgerFile
from ..money.model_drift import CHANGED, Alias, Answered, Change, ModelDriftWarning, Served
from ..money.price_rows import PriceWarning
from ..money.pricing import PriceTable
from ..money.totals import HitGroup, Key, Posting, Totals
from ..money.unknown_prices import warn_of_unknown_cost
from ..requests.routing import suggest_near_model
from ..runtime import clock
from ..runtime.exact_decimal import total
from ..runtime.warning import warn_user
from ..types.usage import CostSource, Usage
from .call import Call, Sample
from .sent_requests import Charge

_LONGEST_NAME = 200
"""Characters of a model's name that are kept: a server may answer with anything."""

_MOST_NAMES = 1000


Bound: TypeAlias = "Callable[[PriceTable], Decimal | None]"
"""The most USD that a request can cost by a price table; None if no bound is known."""


class _Names(NamedTuple):
    """The names under which a call counts in the totals, and its hits. Equal calls share them."""

    key: Key
    alias: Alias
    priced: tuple[str, str]
    hits: dict[str, HitGroup]
    """By variant."""


class BatchRow(NamedTuple):
    """A row of a provider's batch, which is billed at batch prices."""

    batch: str
    """The batch by its name in the journal."""
    row: str
    again: bool = False
    """Whether the ledger has its line already, from a process that was killed before it stored the answer."""
    delivery: str = "batch"
    """Its delivery in the ledger: "batch", "background", or "background-2h" after its completion window."""


def variants_of(delivery: str) -> tuple[str, ...]:
    """The service levels that bill a delivery; none where it is the level of a live call."""
    return () if delivery in ("live", "background") else (delivery,)


class CostRecorder:
    """Computes the cost of a client's calls and keeps its totals. `strict` is its `strict_model`."""

    def __init__(self, prices: Callable[[], PriceTable], file: LedgerFile | None, *, strict: bool) -> None:
        self.totals = Totals()
        self.prices = prices
        self._file = file
        self._strict = strict
        self._served = Served(() if file is None else file.read_answered())
        self._names: dict[tuple[str | bool | None, ...], _Names] = {}

    def record_answer(
        self,
        call: Call[Any],
        sample: Sample,
        parts: Sequence[int],
        bound: Bound,
        account: str,
        batch: BatchRow | None = None,
    ) -> Decimal | None:
        """Record an answered request, set `change` of its sample, and return its cost in USD if known.

        The request was for some `parts`. `bound` gives the most that it can have cost, and is called if the
        usage is not known. `account` is the fingerprint of its key. `batch` is the row of a batch that it
        answers.
        """
        if not call.exchange.billed:
            return None
        answer = sample.answer
        if RETIRING or not call.target.custom_base_url:
            doors.retirements.warn_of_retirement(call.target, (call.target.model, answer.model))
        names = self._names_of(call, answer, batch)
        marks = find_marks(answer.model, answer.reply, answer.origin)
        settled, strict, who = self._served.settled.get(names.alias), False, None
        # Beside what a change needs, only the file and listeners take who answered.
        if settled is None or self._file is not None or call.listeners or not same(settled, marks):
            strict, who = self._is_strict(call), _describe_origin(call, answer)
            if answer.model is not None:
                answered = Answered(names.alias, names.key.served, who)
                sample.change = self._served.compare(answered, keep=not strict, marks=marks)
        source: CostSource = "reply"
        cost: Decimal | str | None = answer.cost
        if cost is None:
            (variant,) = variants_of(names.key.delivery) or (_variant(call, answer),)
            source, cost = "prices", self._explain_cost(names, variant, answer.usage, answer.iterations)
            if isinstance(cost, str) and call.target.provider == "litellm":
                known = doors.litellm_prices.litellm_cost(
                    call.target.model, answer.model, answer.usage, variant
                )
                source, cost = "litellm", cost if known is None else known
        # If the usage is known, only the price can be missing, and without it there is no bound.
        at_most = bound(self.prices()) if isinstance(cost, str) and answer.usage is None else None
        charge = _add_charge(call, cost, answer.usage, source, at_most)
        if batch is not None and batch.again:
            return charge.usd
        posting = Posting(clock.time(), "answered", names.key, charge.usd, answer.usage, charge.at_most, who)
        self._post(call, posting)
        if self._file is not None:
            self._write(
                call,
                names,
                posting,
                id=answer.id,
                account=account,
                cost_unknown=charge.unknown,
                served_before=None if sample.change is None else sample.change.before,
                refused="strict_model" if strict and sample.change is not None else None,
                batch=None if batch is None else batch.batch,
                row=None if batch is None else batch.row,
                # By these the answers of a tag are found in the cache.
                keys=None if call.cache == "off" else list(map(call.key, parts)),
            )
        return charge.usd

    def record_failure(
        self,
        call: Call[Any],
        error: BaseException,
        bound: Bound,
        account: str,
        usage: Usage | None = None,
        cost: Decimal | None = None,
        batch: BatchRow | None = None,
    ) -> Decimal | None:
        """The cost in USD of a request that failed or was cancelled, if known. It may have been billed.

        `bound` gives the most that it can have cost, and is called if the usage is not known. `account` is
        the fingerprint of its key. `usage` and `cost` (USD) are those that an invalid answer reported.
        `batch` is the row of a batch that failed.
        """
        if not call.exchange.billed:
            return None
        names = self._names_of(call, None, batch)
        source: CostSource = "reply"
        known: Decimal | str | None = cost
        if known is None:
            source, known = "prices", f"a request failed with {type(error).__name__} and may have been billed"
            if usage is not None:
                (variant,) = variants_of(names.key.delivery) or (call.operation.variant(call),)
                known = self._explain_cost(names, variant, usage)
        has_bound = isinstance(known, str) and not (usage is not None and usage.unpriced_tools)
        at_most = bound(self.prices()) if has_bound else None
        charge = _add_charge(call, known, usage, source, at_most)
        posting = Posting(clock.time(), "failed", names.key, charge.usd, usage, at_most)
        if batch is None or not batch.again:
            where = {} if batch is None else {"batch": batch.batch, "row": batch.row}
            details = {"error": type(error).__name__, "account": account, "cost_unknown": charge.unknown}
            self._post(call, posting)
            self._write(call, names, posting, **details, **where)
        return charge.usd

    def record_side_request(
        self, call: Call[Any], cost: Decimal | str, usage: Usage, account: str, name: str
    ) -> Decimal | None:
        """Record a request beside those for answers, such as one that stores a prompt; its cost in USD.

        `cost` is in USD, or the reason why it is not known. `name` is the provider's for what it made.
        """
        names = self._names_of(call, None)
        charge = _add_charge(call, cost, usage, "prices", None)
        posting = Posting(clock.time(), "answered", names.key, charge.usd, usage)
        self._post(call, posting)
        self._write(call, names, posting, id=name, account=account, cost_unknown=charge.unknown)
        return charge.usd

    def rows_of(self, batch: str) -> set[str]:
        """The rows of a batch that the ledger's file has already."""
        return set() if self._file is None else self._file.find_rows(batch)

    def hit(self, call: Call[Any], answer: AnyAnswer) -> Change | None:
        """Record a hit. Returns the change if another model answered; fingerprints are not compared."""
        names, change = self._names_of(call, answer), None
        if self._served.last.get(names.alias) != names.key.served and answer.model is not None:
            # Of the body of an answer only the name is read here: a hit takes few microseconds.
            snapshot = {name: value for name, value in (answer.origin or {}).items() if name == "snapshot"}
            change = self._served.compare(Answered(names.alias, names.key.served, snapshot), keep=False)
        variant = _variant(call, answer)
        group = names.hits.get(variant)
        if group is None:
            group = names.hits[variant] = HitGroup(names.key, self.prices, names.priced, variant)
        if answer.cost is not None or answer.iterations:
            cost = answer.cost
            if cost is None:
                priced = self._explain_cost(names, variant, answer.usage, answer.iterations)
                cost = None if isinstance(priced, str) else priced
            who = {} if self._file is None else _describe_origin(call, answer)
            posting = Posting(clock.time(), "hit", names.key, cost, answer.usage, None, who)
            self._post(call, posting)
            self._write(call, names, posting, id=answer.id, keys=answer.key and [answer.key])
            return change
        self.totals.hit(group, answer.usage)
        for totals in call.tracks.totals:
            totals.hit(group, answer.usage)
        if self._file is not None:
            price, who = group.price(answer.usage), _describe_origin(call, answer)
            posting = Posting(clock.time(), "hit", names.key, price, answer.usage, None, who)
            self._write(call, names, posting, id=answer.id, keys=answer.key and [answer.key])
        return change

    def check_model(self, call: Call[Any], sample: Sample) -> None:
        """Warn, or raise `ModelDriftError` for a strict call, if another model served than before."""
        change = sample.change
        if change is None:
            return
        names, message = self._names_of(call, sample.answer), f"{call.request.model}: {change.text}"
        if len(call.target.servers) > 1:
            host = call.target.provider
            message = message.replace(
                CHANGED, f"give the servers of {host} that have different models hosts of their own"
            )
        if self._is_strict(call):
            error = ModelDriftError(
                message,
                served=change.now,
                served_before=change.before,
                provider=call.target.provider,
                model=call.request.model,
            )
            call.sent.write_to(error)
            raise error
        if self._served.is_news(names.alias, change.before, change.now):
            # If the user turns warnings into errors, the answer must not be lost: it is paid for.
            with contextlib.suppress(ModelDriftWarning):
                warn_user(ModelDriftWarning(message))

    def sum_saved(self) -> float:
        """USD that the client's hits would have cost."""
        return float(total(sums.saved for _, sums in self.totals.rows()))

    def _is_strict(self, call: Call[Any]) -> bool:
        strict = call.request.strict_model
        return self._strict if strict is None else strict

    def _explain_cost(
        self, names: _Names, variant: str, usage: Usage | None, iterations: Sequence[Iteration] = ()
    ) -> Decimal | str:
        if usage is None:
            return f"{'/'.join(names.priced)}: an answer tells no usage"
        return self.prices().explain_cost(*names.priced, usage, variant=variant, iterations=iterations)

    def _post(self, call: Call[Any], posting: Posting) -> None:
        for listener in call.listeners:
            listener.note_payment(call, posting)
        self.totals.post(posting)
        for totals in call.tracks.totals:
            totals.post(posting)

    def _write(self, call: Call[Any], names: _Names, posting: Posting, **details: Any) -> None:
        if self._file is not None:
            self._file.append(posting, base_url=names.alias[1] or None, **_describe_call(call), **details)

    def _names_of(self, call: Call[Any], answer: AnyAnswer | None, batch: BatchRow | None = None) -> _Names:
        target, tag = call.target, call.tracks.tag
        served, reply = (None, None) if answer is None else (answer.model, answer.reply)
        in_us = target.provider in ("anthropic", "litellm") and call.is_in_us(reply)
        delivery = "live" if batch is None else batch.delivery
        # Decisions have prices of their own.
        identity = (
            target.route.provider, target.base_url, target.model, call.upstream, served, tag, delivery, in_us,
            call.encoded.operation,
        )  # fmt: skip
        names = self._names.get(identity)
        if names is None:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            # Deployments of equal names at two resources may be different models.
            own = target.base_url if target.custom_base_url or target.route.cloud is not None else None
            names = self._names[identity] = _Names(
                Key(target.provider, target.model, (served or target.model)[:_LONGEST_NAME], tag, delivery),
                (target.provider, own or "", target.model),
                call.find_price_names(served, reply),
                {},
            )
        return names


RETIRING: dict[tuple[str, str], str] = {}
"""Provider and model → the day of its retirement (ISO), where a list of models in this process told one. The
warning of a model takes it out."""


def _add_charge(
    call: Call[Any], cost: Decimal | str, usage: Usage | None, source: CostSource, at_most: Decimal | None
) -> Charge:
    """Count a request with its USD, or with the reason why they are not known, and warn of that once."""
    usd, unknown = (None, cost) if isinstance(cost, str) else (cost, None)
    charge = Charge(usd, usage, source, unknown, at_most)
    if not call.sent.is_reported:
        call.sent.charges += (charge,)
    # A server of the user's own has no price, and nobody expects a bill.
    if unknown is not None and usage is not None and call.target.provider != "local":
        # If the user turns warnings into errors, the answer must not be lost: it is paid for.
        with contextlib.suppress(PriceWarning):
            warn_of_unknown_cost(unknown, partial(suggest_near_model, call.target, call.request.model))
    return charge


def plain_metadata(call: Call[Any]) -> Any:
    """The metadata of a call as JSON holds it: for its line in the ledger, and for its row in a batch."""
    try:
        return json_value(call.metadata)
    except Exception:
        # It may be an object of a class of the user, and the answer must not be lost.
        return cite(call.metadata)


def _describe_call(call: Call[Any]) -> JSONObject:
    """What a line has of the call beside its model and its cost."""
    passed = [{"model": each.model, "error": each.error} for each in call.passed_over or ()]
    return {"metadata": plain_metadata(call), "passed_over": passed or None}


def _describe_origin(call: Call[Any], answer: AnyAnswer) -> dict[str, str]:
    """Who answered, as a line of the ledger has it; its field `served` is the model."""
    who = read_fields(call.target.provider, answer.reply, answer.origin)
    who.pop("model", None)
    return who


def _variant(call: Call[Any], answer: AnyAnswer) -> str:
    """The service level that bills a call: the one that the answer names, else the one that was asked for."""
    tier, origin = answer.service_tier, answer.origin
    if origin and SERVICE_TIER in origin:
        tier = find_tier(origin, tier)
    return tier or call.operation.variant(call)
