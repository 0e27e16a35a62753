"""What the stored answers of a model tell about the next ones.

How long they are, how long they take, and how many tokens the model's own tokenizer, which most providers do
not publish, makes of a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._requests.routing import priced_as
from .._tokens.counting import payload_tokens
from .._tokens.range import Range

if TYPE_CHECKING:
    from .._calls.call import Call
    from .._calls.engine import Engine

_FEWEST, _MOST = 5, 200
"""Stored answers from which something is learned, and that are read for it; they take some 10 ms."""

_LEAST_DOUBT = 0.1
"""What holds for those questions need not hold for the next ones: a share of it is doubted in any case."""


class History(NamedTuple):
    """What was learned from so many answers.

    `output_tokens` and `seconds` are those of one answer. `input_factor` is by how much questions were longer
    than they are estimated to be; None where too few of them are stored in full.
    """

    answers: int
    output_tokens: Range
    seconds: Range
    input_factor: Range | None


def learned(engine: Engine, call: Call[Any], count: Callable[[str], int] | None) -> History | None:
    """What the newest stored answers of a call's model and server tell; None if there are too few.

    Args:
        engine: What reads the cache.
        call: A call of that model.
        count: What counts a text's tokens, as for `input_tokens`.
    """
    tokens, seconds, factors = [], [], []
    for entry, payload in engine.cache.recent(call.asked(call.parts[0]), _MOST):
        answer = engine.stored(call, entry)
        if answer is None or answer.usage is None or not answer.usage.output_tokens:
            continue
        tokens.append(float(answer.usage.output_tokens))
        seconds.append(entry.seconds)
        if payload is not None and answer.usage.input_tokens:
            expected = payload_tokens(payload, *priced_as(call.target), count).likely
            factors.append(answer.usage.input_tokens / expected)
    if len(tokens) < _FEWEST:
        return None
    factor = mean(factors) if len(factors) >= _FEWEST else None
    return History(len(tokens), mean(tokens), mean(seconds), factor)


def mean(values: Sequence[float]) -> Range:
    """The mean of a population by some of it, give or take two standard errors and some doubt.

    >>> low, likely, high = mean([8.0, 10.0, 12.0, 10.0])
    >>> 5 < low < likely == 10 < high < 15
    True
    """
    # Loaded by those who estimate only: it takes longer than an estimate.
    import statistics

    middle = statistics.fmean(values)
    error = 2 * statistics.stdev(values) / math.sqrt(len(values)) + _LEAST_DOUBT * middle
    return Range(max(middle / 5, middle - error), middle, middle + error)
