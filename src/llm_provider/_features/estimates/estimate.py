"""What a batch will cost, before it is sent: `Estimate`, and the `Estimator` that makes it.

    input → prepare → stored or a duplicate? → input tokens → + output tokens → price, time

Each input takes the path of a call as far as the cache, so nothing is sent, and no SDK or key is needed.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._core import doors
from ..._core.batches.lookup import fetch_ahead
from ..._core.errors import CacheMissError, LLMError
from ..._core.hints import Hinting
from ..._core.journey.call import Call
from ..._core.journey.engine import Engine
from ..._core.journey.lookup import READING
from ..._core.money.price_rows import VARIANTS, WINDOW_SHARES
from ..._core.money.pricing import PriceTable
from ..._core.money.unknown_prices import advise_update
from ..._core.requests.routing import maker_names
from ..._core.tokens.counting import Range, adds_input, input_tokens, likely_input_tokens, most_output_tokens
from ..._core.tokens.model_limits import limits_of_target
from ..._core.tokens.tokenizer import counter_of_target
from ..._core.words import format_duration, format_usd
from .history import History, history_of
from .prompt_cache import CachedInput

if TYPE_CHECKING:
    from ..._core.journey.call import Call
    from ..._core.money.price_rows import PriceRow
    from ..._core.pace.scopes import ScopeStatistics
    from ..._core.types.messages import Prompt


_NOTHING = Range.exactly(0)

_DEFAULT_OUTPUT = Range(1, 500, 4000)
"""Tokens of an answer if nothing is known of it: one word, a page, or some reasoning and a page."""

_PRICES_OF_MEDIA = {"image": "input_image", "audio": "input_audio"}
"""Kind of a medium → the column of its price, where that is another than the price of text."""

_DEFAULT_SECONDS, _DEFAULT_SECONDS_PER_TOKEN = Range(0.3, 1.0, 3.0), Range(1 / 200, 1 / 70, 1 / 20)
"""Seconds of an answer if nothing is known of it: until its first token, and for each token."""

_REFUSED = 2.0
"""The longest time in times of one without refusals: each refusal halves what may be sent at once."""

_READ_CLOSELY = 2000
"""Requests whose texts are read. The tokens of further requests are estimated from their length."""

_WIDEST = 70
"""Characters of the table's last column, so that no row is longer than 110."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Estimate(Hinting):
    """The requests, tokens, USD and seconds that a batch would take. `print` shows it as a table.

    `inputs` counts the cached, duplicate and invalid inputs and those to send. Tokens, USD and seconds are
    `Range`s with `low`, `likely` and `high`, each for all requests together.

    >>> from llm_provider import Client
    >>> with Client() as client:
    ...     estimate = client.estimate("gpt-6.1-sol", ["Name a bird.", "Name a bird.", "Name a fish."])
    >>> estimate.inputs, estimate.cached, estimate.duplicates, estimate.requests
    (3, 0, 1, 2)
    """

    model: str
    provider: str
    inputs: int
    cached: int
    """Inputs whose answers are in the cache."""
    duplicates: int
    """Inputs that equal an earlier one and share its request."""
    invalid: tuple[tuple[int, LLMError], ...]
    """Inputs that cannot be sent: the index and the error of each."""
    requests: int
    """Requests to send if no request fails."""
    input_tokens: Range
    output_tokens: Range
    cached_input_tokens: Range = _NOTHING
    """The part of `input_tokens` that the provider reads from its prompt cache, with `prompt_caching`."""
    variant: str
    """The service level that the batch asks for, which determines its price."""
    costs: Mapping[str, Range]
    """USD by service level, for each level at which `prices.csv` has prices of the model, such as "batch"."""
    seconds: Range
    """Seconds from the first request to the last answer, within the present rate limits."""
    assumptions: tuple[str, ...]
    """The sources of the figures, and what is not known."""

    @property
    def cost(self) -> Range | None:
        """USD; None if the price is not known."""
        return self.costs.get(self.variant)

    def __str__(self) -> str:
        lines = (f"  {name:24}{likely:>12}  {more}".rstrip() for name, likely, more in self._rows())
        notes = (f"  - {assumption}" for assumption in self.assumptions)
        return "\n".join([self._title(), *lines, *notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        html = doors.html
        rows = ([html.words(name), html.figure(each), html.words(more)] for name, each, more in self._rows())
        notes = (html.small(f"- {assumption}") for assumption in self.assumptions)
        return html.block(html.table((), rows, caption=self._title()), *notes)

    def _title(self) -> str:
        return f"{self.model}: {self.inputs:,} inputs{count_duplicates(self.duplicates)}"

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        """The name of a figure, the likely one, and what else is to be said of it."""

        def describe(name: str, number: Range, write: Callable[[float], str]) -> tuple[str, str, str]:
            return name, write(number.likely), f"{write(number.low)} to {write(number.high)}"

        yield "answered by the cache", f"{self.cached:,}", ""
        if self.invalid:
            index, error = self.invalid[0]
            reason = f"inputs[{index}]: {error.message}"
            reason = reason if len(reason) <= _WIDEST else f"{reason[: _WIDEST - 1]}…"
            yield "cannot be sent", f"{len(self.invalid):,}", reason
        yield "requests", f"{self.requests:,}", ""
        if not self.requests:
            return
        yield describe("input tokens", self.input_tokens, format_count)
        if self.cached_input_tokens.high:
            yield describe("  from the prompt cache", self.cached_input_tokens, format_count)
        yield describe("output tokens", self.output_tokens, format_count)
        yield ("cost", "unknown", "") if self.cost is None else describe("cost", self.cost, format_usd)
        yield describe("time", self.seconds, format_duration)


def format_count(number: float) -> str:
    return f"{number:,.0f}"


def count_duplicates(number: int) -> str:
    """The end of a heading.

    >>> count_duplicates(17), count_duplicates(1), count_duplicates(0)
    (', 17 duplicates', ', 1 duplicate', '')
    """
    return f", {number:,} duplicate{'' if number == 1 else 's'}" if number else ""


class Estimator:
    """Adds up the inputs of a batch, one after the other, and makes an estimate of them.

    `prepare` makes a call of an input, and may raise a `RequestError`. With `counted`, tokens are counted if
    a tokenizer is available; to load one takes about a second. Of a call with `fallback`, the model with this
    `number` in the list answers.
    """

    def __init__(
        self, engine: Engine, prepare: Callable[[Prompt], Call[Any]], prices: Callable[[], PriceTable],
        scopes: Sequence[ScopeStatistics], *, counted: bool = True, number: int = 0,
    ) -> None:  # fmt: skip
        self._engine, self._prepare, self._prices, self._number = engine, prepare, prices, number
        self.fetch = functools.partial(fetch_ahead, engine, prepare)
        # An error in the model's name or in the parameters concerns every input, so it is raised here.
        self._first = prepare("a prompt that is never sent").candidates[number]
        self._priced, self._made = self._first.find_price_names(), maker_names(self._first.target)
        target = self._first.target
        if target.provider == "litellm" and not prices().applicable(*self._priced):
            rows = doors.litellm_prices.list_rows(target.model)
            if rows:
                table, self._priced = PriceTable(rows), rows[0][:2]
                self._prices = lambda: table
        self._variant = self._first.operation.variant(self._first)
        options = (self._first.request.options or {}).get("background_options") or {}
        if (variant := f"background-{options.get('completion_window')}") in WINDOW_SHARES:
            self._variant = variant
        facts = self._first.facts()
        self._writes = facts.max_output_tokens != 0
        self._adds_input = adds_input(facts, self._made[1])
        self._loops = self._first.request.max_tool_rounds is not None
        self._concurrent = self._first.concurrency.most
        self._rate: float | None = None
        """The most requests a second; None while no limit is known."""
        for scope in scopes:
            is_own = (scope.provider, scope.base_url) == (target.provider, target.base_url)
            if is_own and target.model.startswith(scope.model):
                window = self._concurrent if scope.window is None else scope.window
                self._concurrent = max(1, min(self._concurrent, window))
                self._rate = scope.rate if self._rate is None else self._rate
        self._counted = counted
        self._count: Callable[[str], int] | None = None
        self._seen: set[str] = set()
        self._inputs = self._cached = self._duplicates = 0
        self._invalid: list[tuple[int, LLMError]] = []
        self._requests = self._samples = 0
        self._read, self._written = Range.exactly(0), Range.exactly(0)
        # Input tokens of the requests that were read closely, and what `likely_input_tokens` says of them.
        self._read_closely, self._guessed = Range.exactly(0), 0
        self._history: History | None = None
        self._no_history = ""
        """Why there is none."""
        self._corrected = 0
        self._uncorrected: Counter[str] = Counter()
        """Inputs without a correction, by how much longer or shorter the stored questions are."""
        limits = limits_of_target(target)
        self._window = None if limits is None else limits.context_window
        self._too_long = 0
        self._expected: dict[int | None, Range] = {}
        names = sorted({*(VARIANTS - WINDOW_SHARES.keys()), self._variant})
        self._lists = {name: tiers for name in names if (tiers := self._price_list(name))}
        self._costs = dict.fromkeys(self._lists, Range.exactly(0))
        options = getattr(self._first.request, "options", None) or {}
        # The rounds of tools are not part of an estimate.
        reads_cache = options.get("prompt_caching") and not self._loops
        self._cached_input = CachedInput() if reads_cache else None

    def add(self, prompt: Prompt) -> None:
        index, self._inputs = self._inputs, self._inputs + 1
        try:
            call = self._prepare(prompt)
            missing = self._missing(call)
        except LLMError as error:
            self._invalid.append((index, error))
            return
        if not missing:
            self._cached += 1
            return
        if call.relay is not None:
            call = call.candidates[self._number]
            missing = self._parts_to_ask(call)
        if call.cache == "use":
            keys = {part: call.key(part) for part in missing}
            missing = [part for part, key in keys.items() if key not in self._seen]
            self._seen.update(keys.values())
        if not missing:
            self._duplicates += 1
            return
        self._send(call, missing)

    def add_texts(self, call: Call[Any]) -> None:
        """Count each text, or question, of a call as an input, or raise `CacheMissError`."""
        inputs = len(call.request.inputs)
        missing = self._missing(call)
        self._inputs += inputs
        self._duplicates += inputs - len(call.parts)
        self._cached += len(call.parts) - len(missing)
        self._count = counter_of_target(self._first.target) if self._counted and missing else None
        for group in call.operation.groups(call, missing):
            facts = call.facts(group)
            read = input_tokens(facts, self._first.target, self._count)
            most, draws = facts.max_output_tokens, getattr(call.request, "draws", None)
            each, column = Range.exactly(most or 0), "input"
            if facts.media:
                column = _PRICES_OF_MEDIA.get(facts.media[0].kind, "input")
            if draws:
                # An answer is a letter, which a model may reason about before.
                each = Range(1, 5, min(_DEFAULT_OUTPUT.high, most or _DEFAULT_OUTPUT.high))
            requests = call.operation.count_requests(call, group)
            self._add_requests(requests, draws or len(group), read, each, column)

    def _parts_to_ask(self, call: Call[Any]) -> list[int]:
        if call.cache not in READING:
            return list(call.parts)
        cache = self._engine.cache
        return [part for part in call.parts if self._engine.sample(call, cache.peek(call.key(part))) is None]

    def _missing(self, call: Call[Any]) -> list[int]:
        """The parts that have to be asked for. None has if a model of `fallback` has a stored answer."""
        missing = self._parts_to_ask(call)
        if not all(map(self._parts_to_ask, call.candidates[1:])):
            return []
        if missing and call.cache == "only":
            key = call.key(missing[0])
            raise CacheMissError("no answer is stored, and cache='only' sends nothing", key=key)
        return missing

    def _send(self, call: Call[Any], parts: Sequence[int]) -> None:
        if not self._requests:
            self._count = counter_of_target(self._first.target) if self._counted else None
            self._history, self._no_history = history_of(self._engine, call, self._count)
        facts = call.facts()
        likely = likely_input_tokens(call.body, lambda: facts)
        if self._requests < _READ_CLOSELY:
            read = input_tokens(facts, self._first.target, self._count)
            if self._history is not None and (counts := self._history.counts) is not None:
                corrected = counts.correct(read)
                if corrected is None:
                    self._uncorrected["longer" if read.likely < counts.middle else "shorter"] += 1
                else:
                    self._corrected, read = self._corrected + 1, corrected
            self._read_closely = self._read_closely.plus(read)
            self._guessed += likely
        else:
            read = self._read_closely.times(likely / self._guessed)
        self._too_long += self._window is not None and read.likely > self._window
        most = most_output_tokens(facts, self._first.target)
        if most not in self._expected:
            self._expected[most] = self._output(call, most)
        each = self._expected[most]
        requests = len(call.operation.groups(call, parts))
        if self._cached_input is not None:
            self._cached_input.add(call, requests, likely, read.likely)
        self._add_requests(requests, len(parts), read, each)

    def _add_requests(
        self, requests: int, samples: int, read: Range, each: Range, column: str = "input"
    ) -> None:
        """Add some requests, the tokens that each of them reads, and the tokens of each answer."""
        self._requests += requests
        self._samples += samples
        self._read = self._read.plus(read.times(requests))
        self._written = self._written.plus(each.times(samples))
        for variant, tiers in self._lists.items():
            cost = _cost(tiers, read, each.times(samples / requests), column)
            self._costs[variant] = self._costs[variant].plus(cost.times(requests))

    def _output(self, call: Call[Any], most: int | None) -> Range:
        expected = _DEFAULT_OUTPUT if self._history is None else self._history.output_tokens
        if self._history is None and call.request.max_tokens is not None and most is not None:
            expected = Range(expected.low, min(most / 2, expected.likely), most)
        return Range(*(min(tokens, most) for tokens in expected)) if most is not None else expected

    def _price_list(self, variant: str) -> list[PriceRow]:
        """The rows of a service level, the longest prompts first; empty if a row lacks a price."""
        rows: list[PriceRow] = []
        size: int = 10**12
        while True:
            row = self._prices().find(*self._priced, variant=variant, input_tokens=size)
            if row is None or row.input is None or (row.output is None and self._writes):
                return []
            rows.append(row)
            if row.min_input_tokens == 0:
                return rows
            size = row.min_input_tokens - 1

    def result(self, inputs: int | None = None) -> Estimate:
        """The estimate. `inputs` is the number of all inputs, if only a sample of them was added."""
        scale = 1.0 if inputs is None or not self._inputs else inputs / self._inputs
        requests = round(self._requests * scale)
        variant = self._variant
        costs, cached = self._costs, Range.exactly(0)
        if self._cached_input is not None and requests:
            # A stored prefix expires minutes after its last use.
            seconds = (
                self._seconds(scale).likely + doors.cached_contents.SECONDS
                if self._cached_input.is_stored
                else 0
            )
            costs = self._cached_input.cheaper(costs, self._lists, self._read, seconds)
            cached = self._cached_input.tokens(self._read).times(scale)
        costs = {name: cost.times(scale) for name, cost in costs.items()}
        if not requests:
            costs = {variant: Range.exactly(0)}
        return Estimate(
            model=self._first.request.model,
            provider=self._first.target.provider,
            inputs=inputs if inputs is not None else self._inputs,
            cached=round(self._cached * scale),
            duplicates=round(self._duplicates * scale),
            invalid=tuple(self._invalid),
            requests=requests,
            input_tokens=self._read.times(scale),
            output_tokens=self._written.times(scale),
            cached_input_tokens=cached,
            variant=variant,
            costs={name: costs[name] for name in sorted(costs, key=lambda name: (name != variant, name))},
            seconds=self._seconds(scale),
            assumptions=tuple(self._assumptions(inputs)),
        )

    def _seconds(self, scale: float) -> Range:
        if not self._requests:
            return Range.exactly(0)
        tokens = self._written.times(1 / self._requests)
        each = _DEFAULT_SECONDS.plus(tokens.times(_DEFAULT_SECONDS_PER_TOKEN))
        each = each if self._history is None else self._history.seconds
        # A batch takes at least the time of one request, even if the limit allows more requests at once.
        requests = self._requests * scale
        in_turn = each.times(max(1.0, requests / self._concurrent))
        if self._rate is not None:
            in_turn = Range(*(max(seconds, requests / self._rate) for seconds in in_turn))
        return in_turn._replace(high=in_turn.high * _REFUSED)

    def _assumptions(self, inputs: int | None) -> Iterator[str]:
        if inputs is not None and inputs > self._inputs:
            yield f"this is estimated from a sample: {self._inputs:,} of {inputs:,} inputs"
        if not self._requests:
            return
        if self._corrected:
            yield "input tokens are estimated, and corrected by the counts of stored questions"
        elif self._count is not None:
            yield "input tokens are counted by the model's tokenizer; the template around them is a guess"
        else:
            yield "input tokens are estimated by the kind of text, not counted"
        for length, number in self._uncorrected.items():
            yield f"stored questions are much {length} than {number:,} of the inputs: not corrected"
        if self._too_long:
            are, window = "input is" if self._too_long == 1 else "inputs are", self._window
            yield f"{self._too_long:,} {are} longer than the model's context of {window:,} tokens"
        if self._history is not None:
            number = self._history.answers
            yield f"output tokens and time are those of {number} stored answers of this model"
        else:
            yield f"{self._no_history}: output tokens and time are a guess"
        if self._adds_input:
            yield "input and fees of the provider's own tools, such as web searches, are not included"
        if self._loops:
            yield "each input takes one request: the further rounds of max_tool_rounds are not included"
        rate = "" if self._rate is None else f", {self._rate:.3g} a second"
        cached = "no input is cached by the provider"
        if self._cached_input is not None and self._cached_input.tokens(self._read).likely:
            cached = "the provider caches each common prefix once"
            if self._cached_input.is_stored:
                cached = "each common prefix is stored by a request of its own, and for rent"
                if any(row.cache_storage is None for row in self._lists.get(self._variant, ())):
                    yield "the rent is not known: give a price, cache_storage"
        yield f"{self._concurrent:,} requests at once{rate}, in the longest time half as many; {cached}"
        if self._variant not in self._lists:
            where = ", neither the router's nor in the list of the host" if self._first.upstream else ""
            names = "/".join(self._priced)
            yield f"no price of {names} ({self._variant}) is known{where}{advise_update()}"
        listed = self._first.upstream and self._prices().find_key(*self._priced)
        if listed and listed[0] != self._priced[0]:
            yield f"prices are those of {'/'.join(listed)}, to which the router adds nothing"


def estimate_texts(
    engine: Engine, calls: Sequence[Call[Any]], prices: Callable[[], PriceTable],
    scopes: Sequence[ScopeStatistics],
) -> Estimate:  # fmt: skip
    """The estimate of calls for embeddings, scores or decisions. It takes the arguments of `Estimator`."""
    following = iter(calls)
    estimator = Estimator(engine, lambda _: next(following, calls[0]), prices, scopes)
    estimator.fetch([""] * len(calls))
    for call in calls:
        estimator.add_texts(call)
    return estimator.result()


def _cost(tiers: Sequence[PriceRow], read: Range, written: Range, column: str) -> Range:
    costs = []
    for tokens, answer in zip(read, written, strict=True):
        row = next((row for row in tiers if row.min_input_tokens <= tokens), tiers[-1])
        price = getattr(row, column) or row.input
        million = tokens * float(price or 0) + answer * float(row.output or 0)
        costs.append(million / 1e6 + float(row.request or 0) / 1e3)
    return Range(*costs)
