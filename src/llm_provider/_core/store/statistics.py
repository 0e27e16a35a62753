"""`CacheStatistics`: the use of a cache in this process, and its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..._features.second_level.access import SecondLevelStatistics


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """The use of a cache in this process, and its size.

    Args:
        hits: Lookups that found an answer.
        misses: Lookups that found none.
        writes: Answers stored.
        pending: Answers that are not stored yet, including those kept in memory after a failed write.
        entries: Answers on disk.
        bytes: Size of the files.
        saved: USD that the hits would have cost, at today's prices; hits of unknown price are left out.
        second_level: The use of the store that machines share; None if there is none.
    """

    hits: int
    misses: int
    writes: int
    pending: int
    entries: int
    bytes: int
    saved: float
    second_level: SecondLevelStatistics | None = None
