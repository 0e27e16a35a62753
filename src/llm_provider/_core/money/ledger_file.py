"""A ledger on disk: one JSON line for each posting, in a file to which any number of processes append.

Each line is one `write`, made before its call returns, so a killed process loses none and lines do not mix.
Only a failure of the machine or a full disk can leave a piece of a line, which reading leaves out.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import cast

from ..errors import RequestError
from ..json_values import JSONObject
from ..runtime import files
from ..runtime.files import file_remedy, full_disk
from ..runtime.forks import reset_in_child
from ..runtime.json_pieces import loads
from ..runtime.warning import warn_user
from ..types.usage import COUNTS, make_usage
from .model_drift import Answered
from .totals import POSTING_KINDS, Key, Posting, PostingKind

# No call costs more, has more decimals or is later. The bounds keep every sum exact.
_MOST_USD, _MOST_DECIMALS = 10**12, 40
_LATEST = 2.5e11

_NAMES = tuple(name for name in Key._fields if name != "delivery")
"""The names that every line has."""


class LedgerWarning(UserWarning):
    """The ledger's file cannot be written, or contains invalid lines. Calls are not affected."""


class LedgerFile:
    """Appends postings to a file, which is made if it is missing; a `RequestError` names the setting."""

    def __init__(self, path: str | os.PathLike[str], setting: str = "ledger") -> None:
        self.path = Path(path).expanduser()
        self._lock = threading.RLock()
        _files.add(self)
        self._file = files.LineFile(self.path)
        self._warned = False
        try:
            self._file.open()
        except OSError as error:
            raise RequestError(f"{setting}: {error}{file_remedy(self.path)}") from None

    def append(self, posting: Posting, **others: object) -> None:
        """Write a posting and other fields, without None. Only the first failure is a `LedgerWarning`."""
        fields = _fields(posting) | {name: value for name, value in others.items() if value is not None}
        line = files.encode_line(fields)
        try:
            with self._lock:
                self._file.append(line)
        except OSError as error:
            if self._warned:
                return
            self._warned = True
            reason = full_disk(error, self.path, "its earlier lines are safe") or error
            message = f"the ledger {self.path} cannot be written, calls go on: {reason}"
            # Even where warnings are errors, a ledger must not fail a call.
            with contextlib.suppress(LedgerWarning):
                warn_user(message, LedgerWarning)

    def close(self) -> None:
        """Close the file. A later posting opens it again."""
        with self._lock:
            self._file.close()

    def after_fork(self) -> None:
        """Replace the lock: a thread of the parent may hold it. Parent and child both append to the file."""
        self._lock = threading.RLock()

    def read_answered(self) -> Iterator[Answered]:
        """The last answers, some 10,000 lines, for `model_drift`."""
        for line in self._read(last=4_000_000):
            if line["outcome"] == "answered":
                alias = line["provider"], line.get("base_url", ""), line["model"]
                yield Answered(alias, line["served"], line.get("served_by") or {}, "refused" in line)

    def find_rows(self, batch: str) -> set[str]:
        """The rows of a provider's batch, by its name in the journal, that have a line."""
        lines = self._read(mark=f'"batch":"{batch}"'.encode())
        return {str(line.get("row")) for line in lines if line.get("batch") == batch}

    def _read(self, *, last: int | None = None, mark: bytes = b"") -> Iterator[JSONObject]:
        """The valid lines that contain a mark; with `last`, only of so many bytes at the end."""
        # A pipe or a device keeps nothing, and reading it might block.
        if self.path.is_file():
            with self.path.open("rb") as file:
                start = 0 if last is None else max(0, file.seek(0, os.SEEK_END) - last)
                file.seek(start)
                if start:
                    file.readline()
                lines = (parse_line(text) for text in files.lines_of(file, self.path) if mark in text)
                yield from (line for line in lines if line is not None)


_files: weakref.WeakSet[LedgerFile] = weakref.WeakSet()

reset_in_child(_files, LedgerFile.after_fork)


def read_postings(path: str | os.PathLike[str]) -> Iterator[Posting]:
    """The postings of a ledger's file. Invalid lines are left out, with one `LedgerWarning`."""
    return (posting_of(line) for _, line in read_lines(path))


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, JSONObject]]:
    """The numbers and fields of the valid lines of a file. One `LedgerWarning` tells of all others."""
    bad: list[int] = []
    for number, text in enumerate(files.read_lines(Path(path).expanduser()), start=1):
        line = parse_line(text)
        if line is not None:
            yield number, line
        elif text.strip():
            bad.append(number)
    if bad:
        message = f"{path}: invalid lines are left out ({len(bad)}, the first is line {bad[0]})"
        warn_user(message, LedgerWarning)


def read_keys(path: Path, tag: str) -> set[str]:
    """The cache keys of the answers of a `track` block, and of the blocks inside it."""
    lines = (parse_line(text) for text in files.read_lines(path) if b'"keys":[' in text)
    tagged = (line for line in lines if line is not None and f"{line['tag']}/".startswith(f"{tag}/"))
    return {key for line in tagged for key in line["keys"] if isinstance(key, str)}


def _fields(posting: Posting) -> dict[str, object]:
    line: dict[str, object] = {"time": posting.time, "outcome": posting.kind}
    line |= zip(_NAMES, posting.key, strict=False)
    if posting.key.delivery != "live":
        line["delivery"] = posting.key.delivery
    line["usd"] = None if posting.usd is None else format(posting.usd, "f")
    if posting.at_most is not None:
        line["at_most"] = format(posting.at_most, "f")
    if posting.usage is not None:
        line["usage"] = {name: value for name in COUNTS if (value := getattr(posting.usage, name))}
    if posting.who:
        line["served_by"] = posting.who
    return line


def parse_posting(line: object) -> Posting | None:
    """The posting of a line's JSON; None if it is no line of a ledger."""
    fields = _check(line)
    return None if fields is None else posting_of(fields)


_BEGINNING = b'{"time":'
"""The beginning of each line."""


def parse_line(text: bytes) -> JSONObject | None:
    """The fields of a line; None if it is no line of a ledger."""
    try:
        return _check(loads(text))
    except ValueError:
        # A killed process leaves the beginning of a line, and another goes on behind it.
        start = text.find(_BEGINNING, 1)
        return parse_line(text[start:]) if start > 0 else None


def _check(line: object) -> JSONObject | None:
    """The fields of a line if they have the types on which `posting_of` relies; else None."""
    if not isinstance(line, dict) or line.get("outcome") not in POSTING_KINDS:
        return None
    usage, who = line.get("usage", {}), line.get("served_by") or {}
    # A line of a live request does not name its delivery.
    words = [line.get(name) for name in _NAMES] + [line.get(name, "") for name in ("base_url", "delivery")]
    whole = (
        all(isinstance(word, str) for word in words)
        and isinstance(line.get("time"), (int, float))
        and 0 <= line["time"] < _LATEST
        and all(_amount(line.get(name)) is not False for name in ("usd", "at_most"))
        and isinstance(usage, dict)
        and all(name in COUNTS and type(count) is int and count >= 0 for name, count in usage.items())
        and isinstance(who, dict)
        and all(isinstance(value, str) for value in who.values())
    )
    return line if whole else None


def _amount(text: object) -> Decimal | bool | None:
    """The USD of a field; None if the field is null or missing, False if it is invalid."""
    if text is None:
        return None
    try:
        amount = Decimal(text) if isinstance(text, str) else Decimal("nan")
    except InvalidOperation:
        return False
    fits = amount.is_finite() and 0 <= amount < _MOST_USD
    return amount if fits and int(amount.as_tuple().exponent) >= -_MOST_DECIMALS else False


def posting_of(line: JSONObject) -> Posting:
    return Posting(
        line["time"],
        cast("PostingKind", line["outcome"]),
        Key(**{name: line[name] for name in _NAMES}, delivery=line.get("delivery", "live")),
        cast("Decimal | None", _amount(line.get("usd"))),
        make_usage(**line["usage"]) if "usage" in line else None,
        cast("Decimal | None", _amount(line.get("at_most"))),
        line.get("served_by"),
    )
