"""What the stored answers of a model tell of further ones: tokens, seconds, and how its input is counted.

A provider's count has a constant part, its template, and a part that grows with the text. So the counts of
questions correct the estimates of others with about their length, and of no others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from ..._core.journey.engine import Engine
from ..._core.runtime import clock
from ..._core.store.entry import Entry, Question, decode_entry, decode_question, lacks_text
from ..._core.tokens.counting import Range, input_tokens

if TYPE_CHECKING:
    from ..._core.journey.call import Call

_FEWEST, _MOST = 5, 200
"""The fewest stored answers that make a history, and the most that are read, which takes some 10 ms."""

_FIRST_SEARCHED, _LONGEST_SEARCH = 2000, 0.8
"""After so many answers of all models the fewest are enough. The seconds of a search for these."""

_LEAST_DOUBT = 0.1
"""The least share of a mean that is doubted: new questions may differ from the stored ones."""

_NEAR = 2.0
"""A question is corrected if it is at most so many times as long, or as short, as the stored ones. Lengths
that differ by less do not tell the constant part of a count from the growing one."""


class InputCounts(NamedTuple):
    """The provider's counts of stored questions, as a line over the estimated numbers of tokens."""

    shortest: float
    """Estimated tokens, as are `longest` and `middle`, without the shortest and the longest question."""
    longest: float
    middle: float
    tokens: float
    """Counted tokens of a question of `middle` tokens."""
    slope: float | None
    """Counted tokens for each further one; None if the lengths are too much alike to tell."""
    factor: Range
    """The counts divided by what the line says of them."""

    def correct(self, read: Range) -> Range | None:
        """The corrected range of an estimate; None if it is far from the lengths of the stored questions."""
        if not self.shortest / _NEAR <= read.likely <= self.longest * _NEAR:
            return None
        ratio, least, most = self.tokens / self.middle, read.low / read.likely, read.high / read.likely
        slopes = [min(ratio, least), min(max(ratio, least), most), max(ratio, most)]
        if self.slope is not None:
            slopes = [self.slope]
        ends = [max(1.0, self.tokens + slope * (read.likely - self.middle)) for slope in slopes]
        return Range(min(ends), ends[len(ends) // 2], max(ends)).times(self.factor)


def learn_counts(pairs: Sequence[tuple[float, float]]) -> InputCounts | None:
    """The line through some pairs of estimated and counted tokens; None if there are too few.

    It goes through the medians of the short and of the long questions, so that a few odd ones do not turn it.
    """
    from statistics import median

    if len(pairs) < _FEWEST:
        return None
    pairs = sorted(pairs)[1:-1]
    shortest, longest, middle, slope = pairs[0][0], pairs[-1][0], median(pair[0] for pair in pairs), 0.0
    if longest > shortest:
        border = (shortest * longest) ** 0.5
        halves = [pair for pair in pairs if pair[0] <= border], [pair for pair in pairs if pair[0] > border]
        (x, y), (further, more) = (map(median, zip(*half, strict=True)) for half in halves)
        slope = max(0.0, (more - y) / (further - x))
    tokens = max(1.0, median(counted - slope * (length - middle) for length, counted in pairs))
    factor = mean([counted / max(1.0, tokens + slope * (length - middle)) for length, counted in pairs])
    known = slope if longest >= _NEAR * shortest else None
    return InputCounts(shortest, longest, middle, tokens, known, factor)


class History(NamedTuple):
    """Statistics of some stored answers. `output_tokens` and `seconds` are of one answer."""

    answers: int
    output_tokens: Range
    seconds: Range
    counts: InputCounts | None
    """None if too few questions are stored in full."""


class Recent(NamedTuple):
    """Stored answers of one model and server, the newest first."""

    answers: list[tuple[Entry, dict[str, Any] | None]]
    """Each with the payload of its question; None if that is not stored in full."""
    searched: int | None
    """The answers of all models that were searched; None if these are all."""


def list_recent(question: Question, groups: Iterator[list[tuple[str, bytes]]]) -> Recent:
    """The answers of a question's model and server, among answers of all models."""
    answers: list[tuple[Entry, dict[str, Any] | None]] = []
    searched, end = 0, clock.monotonic() + _LONGEST_SEARCH
    name = b'"model":' + orjson.dumps(question.model)
    for group in groups:
        if len(answers) >= (_MOST if searched < _FIRST_SEARCHED else _FEWEST) or clock.monotonic() > end:
            return Recent(answers, searched)
        searched += len(group)
        for key, value in group:
            if value.endswith(b"}") and name not in value:
                # A question that is not compressed shows the name. This takes a tenth of the time.
                continue
            stored, entry = decode_question(key, value) or {}, decode_entry(key, value)
            same = (stored.get("model"), stored.get("base_url")) == (question.model, question.base_url)
            if same and entry is not None:
                payload = stored["payload"]
                answers.append((entry, None if lacks_text(payload) else payload))
    return Recent(answers, None)


def history_of(
    engine: Engine, call: Call[Any], count: Callable[[str], int] | None
) -> tuple[History | None, str]:
    """Statistics of the newest answers of a call's model and server; if there are too few, that in words."""
    tokens, seconds, pairs = [], [], []
    question = call.build_question(call.parts[0])
    recent = engine.cache.read_newest(question.tag, _MOST, partial(list_recent, question))
    for entry, payload in recent.answers:
        answer = engine.decode_entry(call, entry)
        if answer is None or answer.usage is None or not answer.usage.output_tokens:
            continue
        tokens.append(float(answer.usage.output_tokens))
        seconds.append(entry.seconds)
        if payload is not None and answer.usage.input_tokens:
            facts = call.adapter.facts(replace(call.encoded, payload=payload))
            expected = input_tokens(facts, call.target, count).likely
            pairs.append((expected, float(answer.usage.input_tokens)))
    if len(tokens) >= _FEWEST:
        return History(len(tokens), mean(tokens), mean(seconds), learn_counts(pairs)), ""
    number = f"fewer than {_FEWEST}" if tokens else "no"
    among = "" if recent.searched is None else f"among the newest {recent.searched:,} "
    return None, f"{number} answers of this model are {among}stored here"


def mean(values: Sequence[float]) -> Range:
    """The mean of a population from a sample, give or take two standard errors and `_LEAST_DOUBT`."""
    # Imported here because only estimates need it, and its import takes longer than an estimate.
    import statistics

    middle = statistics.fmean(values)
    error = 2 * statistics.stdev(values) / math.sqrt(len(values)) + _LEAST_DOUBT * middle
    return Range(max(middle / 5, middle - error), middle, middle + error)
