"""Statistics of the stored answers of a model, from which its next answers are estimated.

How many tokens its own tokenizer makes of a text is one: most providers do not publish their tokenizers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..._core.journey.call import Call
from ..._core.journey.engine import Engine
from ..._core.tokens.counting import input_tokens
from ..._core.tokens.range import Range

_FEWEST, _MOST = 5, 200
"""The fewest stored answers that make a history, and the most that are read, which takes some 10 ms."""

_LEAST_DOUBT = 0.1
"""The least share of a mean that is doubted: new questions may differ from the stored ones."""


class History(NamedTuple):
    """Statistics of some stored answers.

    `output_tokens` and `seconds` are those of one answer. `input_factor` is the number of input tokens that
    the provider counted, divided by the estimated number. It is None if too few questions are stored in full.
    """

    answers: int
    output_tokens: Range
    seconds: Range
    input_factor: Range | None


def history_of(engine: Engine, call: Call[Any], count: Callable[[str], int] | None) -> History | None:
    """Statistics of the newest answers of a call's model and server; None if there are too few."""
    tokens, seconds, factors = [], [], []
    for entry, payload in engine.cache.recent(call.build_question(call.parts[0]), _MOST):
        answer = engine.decode_entry(call, entry)
        if answer is None or answer.usage is None or not answer.usage.output_tokens:
            continue
        tokens.append(float(answer.usage.output_tokens))
        seconds.append(entry.seconds)
        if payload is not None and answer.usage.input_tokens:
            facts = call.adapter.facts(replace(call.encoded, payload=payload))
            expected = input_tokens(facts, call.target, count).likely
            factors.append(answer.usage.input_tokens / expected)
    if len(tokens) < _FEWEST:
        return None
    factor = mean(factors) if len(factors) >= _FEWEST else None
    return History(len(tokens), mean(tokens), mean(seconds), factor)


def mean(values: Sequence[float]) -> Range:
    """The mean of a population from a sample, give or take two standard errors and `_LEAST_DOUBT`."""
    # Imported here because only estimates need it, and its import takes longer than an estimate.
    import statistics

    middle = statistics.fmean(values)
    error = 2 * statistics.stdev(values) / math.sqrt(len(values)) + _LEAST_DOUBT * middle
    return Range(max(middle / 5, middle - error), middle, middle + error)
