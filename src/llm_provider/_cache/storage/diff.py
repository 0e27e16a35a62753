"""Explains a cache miss: finds the nearest stored question and its differences. Without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import orjson

from .entry import ELIDED

_MOST_SHOWN = 5
_WIDTH = 60


class _Absent:
    """The value of a field or item that only one of two questions has."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two questions.

    Args:
        path: The place, such as "payload.messages[0].content".
        stored: The JSON value of the stored question, or `ABSENT`.
        asked: The JSON value of the question that was asked, or `ABSENT`.
    """

    path: str
    stored: Any
    asked: Any

    def __str__(self) -> str:
        stored, asked = _shown(self.stored), _shown(self.asked)
        common = _common(stored, asked)
        if common > _WIDTH // 2:
            # Two long texts: they are equal before their first difference.
            stored, asked = (f"…{text[common - 20 :]}" for text in (stored, asked))
        return f"{self.path}: stored {_cut(stored)}, asked {_cut(asked)}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The stored question that is nearest to one without an answer.

    Args:
        key: The key of the stored question.
        differences: The differences, sorted by path; none if the same question is stored under another key,
            for example by another version.
        compared: The number of stored questions that were compared.
    """

    key: str
    differences: tuple[Difference, ...]
    compared: int

    def __str__(self) -> str:
        places = [str(difference) for difference in self.differences[:_MOST_SHOWN]]
        more = len(self.differences) - len(places)
        places += [f"and {more} more"] if more else []
        found = "; ".join(places) or "nothing that is stored of a question"
        return f"the nearest of {self.compared} stored requests, {self.key[:12]}, differs in {found}"


def nearest(asked: Mapping[str, Any], stored: Iterable[tuple[str, Mapping[str, Any]]]) -> Explanation | None:
    """The stored question in which the fewest leaves differ, the first of several.

    Args:
        asked: The `Asked.facts` of the question without an answer.
        stored: Keys and facts of stored questions.

    Returns:
        None if there are no stored questions.

    >>> print(nearest({"payload": {"seed": 2}}, [("3f0a", {"payload": {"seed": 1}})]))
    the nearest of 1 stored requests, 3f0a, differs in payload.seed: stored 1, asked 2
    """
    best: Explanation | None = None
    fewest, compared = 0, 0
    for key, facts in stored:
        compared += 1
        found = tuple(differences(facts, asked))
        weight = sum(max(_leaves(one.stored), _leaves(one.asked)) for one in found)
        if best is None or weight < fewest:
            best, fewest = Explanation(key, found, 0), weight
    return best and Explanation(best.key, best.differences, compared)


def differences(stored: Any, asked: Any, path: str = "") -> Iterator[Difference]:
    """The differences of two JSON values, sorted by path. 1, 1.0, "1" and true are four different values.

    Equal items at both ends of a list are skipped, so that an inserted message is one difference.

    >>> [str(one) for one in differences({"a": [1, 2]}, {"a": [0, 1, 2], "b": None})]
    ['a[0]: stored absent, asked 0', 'b: stored absent, asked null']
    """
    if isinstance(stored, Mapping) and isinstance(asked, Mapping) and ELIDED not in {*stored, *asked}:
        for name in sorted({*stored, *asked}):
            inner = f"{path}.{name}" if path else name
            yield from differences(stored.get(name, ABSENT), asked.get(name, ABSENT), inner)
    elif isinstance(stored, list) and isinstance(asked, list):
        start, end = _equal_ends(stored, asked)
        pairs = zip_longest(
            stored[start : len(stored) - end], asked[start : len(asked) - end], fillvalue=ABSENT
        )
        for index, (one, other) in enumerate(pairs, start):
            yield from differences(one, other, f"{path}[{index}]")
    elif _encoded(stored) != _encoded(asked):
        yield Difference(path, stored, asked)


def _equal_ends(one: list[Any], other: list[Any]) -> tuple[int, int]:
    """The number of equal items at the beginning of two lists and, beyond these, at their end."""
    shortest, encoded = min(len(one), len(other)), ([*map(_encoded, one)], [*map(_encoded, other)])
    start = 0
    while start < shortest and encoded[0][start] == encoded[1][start]:
        start += 1
    end = 0
    while end < shortest - start and encoded[0][-1 - end] == encoded[1][-1 - end]:
        end += 1
    return start, end


def _encoded(value: Any) -> bytes:
    # Equal encodings have equal types too.
    return b"" if value is ABSENT else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _leaves(value: Any) -> int:
    if isinstance(value, Mapping):
        return max(1, sum(map(_leaves, value.values())))
    if isinstance(value, list):
        return max(1, sum(map(_leaves, value)))
    return 1


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and ELIDED in value:
        text = value[ELIDED]
        return f"{text['start'][:20]!r}… ({text['length']} characters, SHA-256 {text['sha256']})"
    return repr(value) if value is ABSENT else orjson.dumps(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= 2 * _WIDTH else f"{text[:_WIDTH]}…"


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))
