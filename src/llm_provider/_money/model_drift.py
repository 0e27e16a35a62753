"""Detects that another model serves under a name than before.

A name such as `gpt-6.1-sol` is an alias: the provider decides which snapshot answers, and may change that
from one day to the next, even in the middle of an evaluation. These differences are not a change:

- the same name with another prefix (`models/x`, `openai/x` and `x`), another case, or `@` for `-` before a
  date;
- a snapshot after the bare alias, or the bare alias after a snapshot. A provider that reports less has not
  changed the model, and further answers are compared with the last snapshot that it named;
- an answer without a model's name.

A model that was asked for by a dated name is compared with that name: another date in the first answer is a
change.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Alias: TypeAlias = tuple[str, str, str]
"""Provider, base URL (empty for the provider's own) and model that a call asked for."""

_MOST_REPORTED = 1000
"""Changes that a client reports: a server may make up a name for each answer."""

_DATED = re.compile(r"(.+)[-@](?:\d{4}-\d{2}-\d{2}|\d{8})")


class ModelDriftWarning(UserWarning):
    """Another snapshot than before answered under a model's name."""


def is_same_model(name: str, other: str) -> bool:
    """Whether two names mean the same model."""
    name, other = _simplify(name), _simplify(other)
    return name == other or _drop_date(name) == other or _drop_date(other) == name


def _simplify(name: str) -> str:
    return name.rpartition("/")[2].casefold().replace("@", "-")


def _drop_date(name: str) -> str:
    dated = _DATED.fullmatch(name)
    return dated[1] if dated else name


class Served:
    """The models that served a client last, also in earlier runs, by the model that was asked for."""

    def __init__(self, before: dict[Alias, str] | None = None) -> None:
        self.last: dict[Alias, str] = dict(before or {})
        """The names with which the next answers are compared."""
        self._reported: set[tuple[Alias, frozenset[str]]] = set()

    def update(self, alias: Alias, served: str, *, keep: bool) -> str | None:
        """The model that served before, if another one serves now; else None.

        Further answers are compared with the new model then if `keep`.
        """
        last = self.last.get(alias)
        if last == served:
            return None
        if last is None:
            if not _DATED.fullmatch(alias[2]):
                self.last[alias] = served
                return None
            last = self.last[alias] = alias[2]
        if is_same_model(last, served):
            if _DATED.fullmatch(served):
                self.last[alias] = served
            return None
        if keep:
            self.last[alias] = served
        return last

    def is_news(self, alias: Alias, before: str, served: str) -> bool:
        """Whether this pair of names has not been reported yet; from now on it counts as reported."""
        pair = (alias, frozenset((before, served)))
        if pair in self._reported or len(self._reported) >= _MOST_REPORTED:
            return False
        self._reported.add(pair)
        return True
