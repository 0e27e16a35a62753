"""Which model serves under a name, and whether it is still the one that served before.

A name such as `gpt-6.1-sol` is an alias: the provider decides which snapshot answers, and may change that
from one day to the next, in the middle of an evaluation too. What is no change:

- the same name under other prefixes: `models/x`, `openai/x` and `x`; another case; `@` for `-` before a date;
- a snapshot where only the bare alias was told before, or the alias where a snapshot was. A provider that
  tells less has not changed the model, and the snapshot told last stays the one to compare with;
- no name at all.

A name that was asked for with a date of its own is its own past: another date in the first answer is a
change.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Alias: TypeAlias = tuple[str, str, str]
"""Provider, base URL (empty for the provider's own) and model, as they were asked."""

_MOST_TOLD = 1000
"""Changes that a client tells of: a server may make up a name for each answer."""

_DATED = re.compile(r".+[-@](?:\d{4}-\d{2}-\d{2}|\d{8})")


class ModelDriftWarning(UserWarning):
    """A model's name was answered by another snapshot than before."""


def same(one: str, other: str) -> bool:
    """Whether two names that providers gave mean one model.

    >>> same("models/gemini-3.8-flash", "gemini-3.8-flash")
    True
    >>> same("gpt-6.1-sol-2026-10-21", "gpt-6.1-sol"), same("claude-x@20261021", "claude-x-20261021")
    (True, True)
    >>> same("gpt-6.1-sol-2026-10-21", "gpt-6.1-sol-2026-11-19"), same("gpt-6", "gpt-6-mini")
    (False, False)
    """
    one, other = _bare(one), _bare(other)
    return one == other or _undated(one) == other or _undated(other) == one


def _bare(name: str) -> str:
    return name.rpartition("/")[2].casefold().replace("@", "-")


def _undated(name: str) -> str:
    return re.sub(r"-(?:\d{4}-\d{2}-\d{2}|\d{8})$", "", name) if _DATED.fullmatch(name) else name


class Served:
    """The models that served a client last, by what was asked.

    Args:
        before: What is known from earlier runs.

    >>> served, alias = Served(), ("openai", "", "gpt-6.1-sol")
    >>> served.changed(alias, "gpt-6.1-sol-2026-10-21", keep=True)
    >>> served.changed(alias, "gpt-6.1-sol-2026-11-19", keep=True)
    'gpt-6.1-sol-2026-10-21'
    >>> served.changed(alias, "gpt-6.1-sol-2026-11-19", keep=True)
    """

    def __init__(self, before: dict[Alias, str] | None = None) -> None:
        self.last: dict[Alias, str] = dict(before or {})
        """What answers are compared with."""
        self._told: set[tuple[Alias, frozenset[str]]] = set()

    def changed(self, alias: Alias, served: str, *, keep: bool) -> str | None:
        """The model that served before, if it is another one.

        Args:
            alias: What was asked.
            served: Who answered.
            keep: Whether answers are compared with this one from now on, where it is another.
        """
        last = self.last.get(alias)
        if last == served:
            return None
        if last is None:
            if not _DATED.fullmatch(alias[2]):
                self.last[alias] = served
                return None
            last = self.last[alias] = alias[2]
        if same(last, served):
            if _DATED.fullmatch(served):
                self.last[alias] = served
            return None
        if keep:
            self.last[alias] = served
        return last

    def is_news(self, alias: Alias, before: str, served: str) -> bool:
        """Whether nobody was told of these two yet; they count as told from now on."""
        pair = (alias, frozenset((before, served)))
        if pair in self._told or len(self._told) >= _MOST_TOLD:
            return False
        self._told.add(pair)
        return True
