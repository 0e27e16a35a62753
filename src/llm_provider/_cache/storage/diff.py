"""Explains a cache miss: finds the nearest stored question and its differences. Without I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

import orjson

from .entry import ELIDED

_MOST_SHOWN = 5
_WIDTH = 60
_SIMILAR = 0.5
"""Part of the groups of three letters that two similar texts have in common."""


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
        space = " only white space differs," if self.is_white_space else ""
        common = _common(stored, asked)
        if common > _WIDTH // 2:
            # Two long texts: they are equal before their first difference.
            stored, asked = (f"…{text[common - 20 :]}" for text in (stored, asked))
        return f"{self.path}:{space} stored {_cut(stored)}, asked {_cut(asked)}"

    @property
    def is_white_space(self) -> bool:
        """Whether two texts are equal but for their white space."""
        both = isinstance(self.stored, str) and isinstance(self.asked, str)
        return both and self.stored.split() == self.asked.split()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The stored question that is nearest to one that was asked.

    Args:
        key: The key of the stored question; None if none is similar.
        differences: The differences, sorted by path; none if the same question is stored under another key,
            for example by another version.
        compared: The number of stored questions that were compared.
        stored: Whether the question itself is stored.
    """

    key: str | None
    differences: tuple[Difference, ...]
    compared: int
    stored: bool = False

    def __str__(self) -> str:
        if self.key is None:
            return f"none of {self.compared} stored requests is similar"
        if self.stored:
            return f"the question itself is stored under {self.key[:12]}"
        places = [str(difference) for difference in self.differences[:_MOST_SHOWN]]
        more = len(self.differences) - len(places)
        places += [f"and {more} more"] if more else []
        found = "; ".join(places) or "nothing that is stored of a question"
        return f"the nearest of {self.compared} stored requests, {self.key[:12]}, differs in {found}"


def nearest(asked: Mapping[str, Any], stored: Iterable[tuple[str, Mapping[str, Any]]]) -> Explanation | None:
    """The similar question that differs least, the first of several.

    Questions are similar if a text of one conversation is similar to one of the other, system prompts aside.

    Args:
        asked: The `Asked.facts` of the question without an answer.
        stored: Keys and facts of stored questions.

    Returns:
        None if there are no stored questions.

    >>> print(nearest({"payload": {"seed": 2}}, [("3f0a", {"payload": {"seed": 1}})]))
    the nearest of 1 stored requests, 3f0a, differs in payload.seed: stored 1, asked 2
    """
    best = Explanation(None, (), 0)
    least, compared, texts = 0.0, 0, _texts(asked)
    for key, facts in stored:
        compared += 1
        distance = _distance(texts, _texts(facts))
        if distance is None:
            continue
        found = tuple(differences(facts, asked))
        if any(one.path.endswith(".model") for one in found):
            # The name as the user wrote it follows from the name that is sent.
            found = tuple(one for one in found if one.path != "model")
        weight = len(found) + distance
        if best.key is None or weight < least:
            best, least = Explanation(key, found, 0), weight
    return Explanation(best.key, best.differences, compared) if compared else None


def _texts(facts: Mapping[str, Any]) -> set[str]:
    """The plain texts of a conversation without its system prompt, or of a payload without a conversation."""
    payload = facts.get("payload")
    fields = payload if isinstance(payload, Mapping) and ELIDED not in payload else {}
    lists = [value for value in fields.values() if isinstance(value, list)]
    turns = [turn for each in lists for turn in each if isinstance(turn, Mapping) and "role" in turn]
    said = [turn for turn in turns if turn["role"] not in ("system", "developer")]
    others = [value for name, value in fields.items() if name != "model"]
    return {_plain(text) for text in _leaf_texts(said if turns else others)} - {""}


def _leaf_texts(value: Any) -> Iterator[str]:
    text = _text(value)
    if text is not None:
        yield text
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if name not in ("role", "type"):
                yield from _leaf_texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaf_texts(part)


def _text(value: Any) -> str | None:
    """A text, or the beginning of a long one."""
    if isinstance(value, Mapping) and ELIDED in value:
        value = value[ELIDED]["start"]
    return value if isinstance(value, str) else None


def _plain(text: str) -> str:
    """A text without the differences of white space and of small and capital letters."""
    return re.sub(r"\s+", " ", text).strip().casefold()


def _distance(texts: set[str], others: set[str]) -> float | None:
    """How far apart two conversations are: 0 if one holds the other, None if they have nothing in common.

    Another text counts more than three other settings.
    """
    here, there = texts - others, others - texts
    alike = bool(texts & others) or not texts
    if not here or not there:
        return 0.0 if alike else None
    most = max(_similarity(one, other) for one in here for other in there)
    return 3.0 + 10.0 * (1.0 - most) if alike or most >= _SIMILAR else None


def _similarity(one: str, other: str) -> float:
    """The part of their groups of three letters that two texts have in common: 0 to 1."""
    left, right = _groups(one), _groups(other)
    return 2 * len(left & right) / (len(left) + len(right))


def _groups(text: str) -> set[str]:
    padded = f"  {_plain(text)} "
    return {padded[place : place + 3] for place in range(len(padded) - 2)}


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
