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

Where no snapshot is named, fingerprints of configurations are compared, and versions of weights. Several are
in use at the same time, so a new one is no change by itself. All fingerprints of the first 20 answers are
known, and so is each later one that answers between known ones. Only if 20 answers in a row have fingerprints
that are not known, the known ones count as replaced. If each answer is of one of some machines at random, a
false alarm has a probability of at most 2^-40 at each answer: one kind of machine, with a share q, gives none
of the first 20 answers and then 20 in a row, which has the probability (1-q)^20 * q^20.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

Alias: TypeAlias = tuple[str, str, str]
"""Provider, base URL (empty for the provider's own) and model that a call asked for."""

_MOST_REPORTED = 1000
"""Changes that a client reports: a server may make up a name for each answer."""

ENOUGH = 20
"""Answers in a row with other fingerprints that mean a change; also the answers that it learns from first."""

_MOST_KNOWN = 1000
"""Fingerprints that are known of one host at most."""

CHANGED = "the provider has changed the model"

_DATED = re.compile(r"(.+)[-@](?:\d{4}-\d{2}-\d{2}|\d{8})")


class ModelDriftWarning(UserWarning):
    """Another snapshot answered under a model's name, or other fingerprints replaced all known ones."""


class Change(NamedTuple):
    """Who answered before, and who answers now: names of models, or fingerprints."""

    before: str
    now: str
    text: str
    """The end of the message for the user."""


class Answered(NamedTuple):
    """An answer as the ledger has it."""

    alias: Alias
    served: str
    """The model that the reply named."""
    who: Mapping[str, str]
    """The fields of its `ServedBy`."""
    refused: bool = False
    """Whether the user did not get it, because of `strict_model`."""

    @property
    def identity(self) -> tuple[str, str | None]:
        """The name of the model to compare, and the fingerprint if no snapshot is named."""
        snapshot = self.who.get("snapshot")
        if snapshot is None or not (snapshot == self.served or _DATED.fullmatch(snapshot)):
            # The snapshot is then a version of the weights.
            return self.served, self.who.get("fingerprint") or snapshot
        return snapshot, None


def is_same_model(name: str, other: str) -> bool:
    name, other = _simplify(name), _simplify(other)
    return name == other or _drop_date(name) == other or _drop_date(other) == name


def plain_name(name: str) -> str:
    """The name of a model without its provider and its date.

    >>> plain_name("openai/gpt-6.1-sol-2026-10-21")
    'gpt-6.1-sol'
    """
    return _drop_date(_simplify(name))


def _simplify(name: str) -> str:
    return name.rpartition("/")[2].casefold().replace("@", "-")


def _drop_date(name: str) -> str:
    dated = _DATED.fullmatch(name)
    return dated[1] if dated else name


class Fingerprints:
    """The fingerprints that one host gives to the answers of one model."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._new: set[str] = set()
        self._seen = self._row = 0

    def update(self, fingerprint: str, *, keep: bool) -> Change | None:
        """The change, if the known fingerprints are replaced. The new ones are known then if `keep`."""
        self._seen += 1
        if fingerprint in self._known or self._seen <= ENOUGH:
            if self._new or fingerprint not in self._known:
                self._learn({*self._new, fingerprint})
            return None
        self._new.add(fingerprint)
        self._row += 1
        if self._row < ENOUGH:
            return None
        if len(self._new) > ENOUGH // 2:
            # It is an identifier of the answer.
            self._learn(self._new)
            return None
        before, now = (", ".join(sorted(names)) for names in (self._known, self._new))
        if keep:
            self._known = set()
            self._learn(self._new)
        text = f"the last {ENOUGH} answers had the fingerprint {now}, and those before {before}"
        return Change(before, now, f"{text}: the provider has changed its machines or their settings")

    @property
    def is_settled(self) -> bool:
        """Whether the fingerprint of the last update changes nothing if it comes again."""
        return self._seen > ENOUGH and not self._new

    def _learn(self, names: set[str]) -> None:
        self._known = self._known | names if len(self._known) < _MOST_KNOWN else set(names)
        self._new, self._row = set(), 0


class Served:
    """Who answered a client last, also in earlier runs, by the model that was asked for."""

    def __init__(self, before: Iterable[Answered] = ()) -> None:
        self.last: dict[Alias, str] = {}
        """The names with which the next answers are compared."""
        self.settled: dict[Alias, object] = {}
        """The marks of the last answer, where another one with equal marks changes nothing."""
        self._fingerprints: dict[tuple[Alias, str], Fingerprints] = {}
        self._reported: set[tuple[Alias, frozenset[str]]] = set()
        for answered in before:
            name, fingerprint = answered.identity
            if not answered.refused:
                self.last[answered.alias] = name
            self._compare_fingerprints(answered, fingerprint, keep=not answered.refused)

    def compare(self, answered: Answered, *, keep: bool, marks: object = None) -> Change | None:
        """The change that an answer shows. Further answers are compared with it then if `keep`.

        Answers with equal `marks` have equal identities, and come from the same host.
        """
        name, fingerprint = answered.identity
        self.settled[answered.alias] = None
        before = self.update(answered.alias, name, keep=keep)
        if before is None:
            return self._compare_fingerprints(answered, fingerprint, keep=keep, marks=marks)
        return Change(before, name, f"it was answered by {name}, and before by {before}: {CHANGED}")

    def _compare_fingerprints(
        self, answered: Answered, fingerprint: str | None, *, keep: bool, marks: object = None
    ) -> Change | None:
        if fingerprint is None:
            self.settled[answered.alias] = marks
            return None
        # Each host behind a router has its own.
        host = answered.alias, answered.who.get("host", "")
        known = self._fingerprints.get(host)
        if known is None:
            if len(self._fingerprints) >= _MOST_REPORTED:
                return None
            known = self._fingerprints[host] = Fingerprints()
        change = known.update(fingerprint, keep=keep)
        self.settled[answered.alias] = marks if known.is_settled else None
        return change

    def update(self, alias: Alias, served: str, *, keep: bool) -> str | None:
        """The model that served before, if another one does now, which replaces it if `keep`; else None."""
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
