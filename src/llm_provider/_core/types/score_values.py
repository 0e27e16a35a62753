"""The scores that `Results.score` gives to results."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, SupportsIndex, TypeAlias, TypeVar, cast

from ..errors import READERS

ResultT = TypeVar("ResultT")

ScoreValue: TypeAlias = float | Mapping[str, float | None] | None
"""The score of a sample: a number, or several by name. None stands for a sample without a score."""


class Scorable:
    """A value that may have scores. They are no field, so what has none is made and pickled as before."""

    __slots__ = ("_score_values",)

    @property
    def score_values(self) -> tuple[ScoreValue, ...]:
        """The scores that `Results.score` gave, one for each sample; empty if there are none."""
        try:
            return cast("tuple[ScoreValue, ...]", _SCORES.__get__(self))
        except AttributeError:
            return ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        plain = super().__reduce_ex__(protocol)
        return (_rebuild_scored, (plain, self.score_values)) if self.score_values else plain


_SCORES: Any = vars(Scorable)["_score_values"]


def _rebuild_scored(plain: tuple[Any, ...], values: tuple[ScoreValue, ...]) -> Any:
    make, arguments, state = plain[:3]
    result = make(*arguments)
    result.__setstate__(state)
    object.__setattr__(result, "_score_values", values)
    return result


def list_scores(result: Scorable) -> dict[str, list[ScoreValue]]:
    """The field of the scores in the dict of a result, which has none without scores."""
    return {"score_values": list(result.score_values)} if result.score_values else {}


def with_scores(result: ResultT, values: Iterable[ScoreValue] | None) -> ResultT:
    """A copy of a result with scores; without any, the result itself."""
    if values is None or not (values := tuple(values)):
        return result
    scored = copy.copy(result)
    if isinstance(result, Exception) and isinstance(scored, Exception):
        scored.__cause__ = result.__cause__
        object.__setattr__(scored, "score_values", values)
    else:
        object.__setattr__(scored, "_score_values", values)
    return scored


READERS["score_values"] = tuple
