"""Checks a file of evidence, and sums up what it holds."""

import os
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

from .._errors import EvidenceError
from .._json_values import JSONObject
from .._money.price_rows import PriceWarning, check, mapping_lines
from .._money.pricing import PriceTable
from .._runtime.files import open_data
from .._types.evidence import Evidence
from .checks import list_differences
from .container import (
    FORMAT,
    VERSION,
    Figures,
    Part,
    describe_parts,
    hash_file,
    make_statement,
    read_json,
    read_parts,
)
from .score_records import ScoreRecords

ROWS, PRICES, MANIFEST = "rows.jsonl", "prices.jsonl", "manifest.json"
STATEMENT = ".intoto.json"
"""What is added to the name of a file for that of its statement."""
_LONGEST_STATEMENT = 1 << 24
"""Bytes. The figures of a model take some hundred."""


def verify(path: str | os.PathLike[str]) -> Evidence:
    """Check a file that `Results.export` wrote. It needs no key, no network and no cache.

    Every byte is compared with what an export would write of the parts, and every digest with its part. Then
    each stored reply is decoded again, and keys, usage, who answered, parsed values, prices by the price rows
    inside, and all sums are computed anew. The statement beside the file is compared, if there is one. Rows
    that somebody changed together with all digests are found by the signature of a statement alone.
    `ResponseCache.verify` checks the cache of this machine instead.

    Raises:
        EvidenceError: something differs. The message names the first thing that does.
        OSError: the file cannot be read.
    """
    goal = Path(path).expanduser()
    with open_data(goal) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", PriceWarning)
        comparison = _Comparison(file, read_parts(file))
        try:
            manifest, rows = comparison.read_manifest(), comparison.compare_rows()
        except (EvidenceError, OSError):
            raise
        except Exception as error:  # a file of a stranger may hold anything in the place of each value
            raise EvidenceError(f"{comparison.where}: it cannot be read: {error!r:.200}") from None
    digest = hash_file(goal)
    beside = goal.with_name(goal.name + STATEMENT)
    if beside.exists():
        _check_statement(beside, goal.name, digest, manifest)
    return Evidence(path=goal, sha256=digest, rows=rows, manifest=manifest, has_statement=beside.exists())


class _Comparison:
    """Compares the parts of a file with each other."""

    def __init__(self, file: IO[bytes], parts: dict[str, Part]) -> None:
        self._file, self._parts, self._manifest = file, parts, JSONObject()
        self.where = MANIFEST
        """What is read."""

    def read_manifest(self) -> JSONObject:
        """The manifest, whose digests are those of the parts."""
        if list(self._parts)[-1] != MANIFEST or not {ROWS, PRICES} <= self._parts.keys():
            raise EvidenceError(
                f"the parts are {', '.join(self._parts)}, not {ROWS}, {PRICES} and {MANIFEST}"
            )
        (manifest,) = self._read_objects(MANIFEST)
        if (manifest.get("format"), manifest.get("version")) != (FORMAT, VERSION):
            raise EvidenceError(f"{MANIFEST}: it is not that of {FORMAT}, version {VERSION}")
        described = describe_parts(part for part in self._parts.values() if part.name != MANIFEST)
        for name in [*described, *manifest["parts"]]:
            if described.get(name) != manifest["parts"].get(name):
                raise EvidenceError(f"{name}: its size or SHA-256 is not that of {MANIFEST}")
        self._manifest = manifest
        return manifest

    def compare_rows(self) -> int:
        """Compute all that can be computed, and return the number of rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriceWarning)
            prices = PriceTable(check(mapping_lines(self._read_objects(PRICES))))
        figures, records, count = Figures(), ScoreRecords(self._manifest), 0
        for row in self._read_objects(ROWS):
            allowed = row["not_computed"]
            if type(allowed) is not dict or row["index"] != count:
                raise EvidenceError(f"{self.where}: it is not row {count}")
            for name, problem in list_differences(row, prices):
                if name not in allowed:
                    raise EvidenceError(f"{self.where}: {name}: {problem}")
            figures.add(row)
            records.add(row)
            count += 1
        self._compare_scores(dict(records.finish()))
        if figures.to_dict() != self._manifest["figures"]:
            raise EvidenceError(f"{MANIFEST}: its figures are not those of the rows")
        return count

    def _compare_scores(self, expected: dict[str, list[bytes]]) -> None:
        for name in self._parts.keys() - expected.keys() - {ROWS, PRICES, MANIFEST}:
            raise EvidenceError(f"{name}: a file of evidence has no such part")
        for name, lines in expected.items():
            read = self._parts[name].read_lines(self._file) if name in self._parts else iter(())
            for number, (line, made) in enumerate(zip_longest(read, lines), start=1):
                if line != made:
                    raise EvidenceError(f"{name}, line {number:,}: it is not that of the scores in {ROWS}")

    def _read_objects(self, name: str) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(self._parts[name].read_lines(self._file), start=1):
            self.where = f"{name}, line {number:,}"
            value = read_json(line, self.where)
            if not isinstance(value, dict):
                raise EvidenceError(f"{self.where}: it is no object")
            yield value


def _check_statement(path: Path, name: str, digest: str, manifest: JSONObject) -> None:
    expected = make_statement(name, digest, manifest)
    with open_data(path) as file:
        statement = read_json(file.read(_LONGEST_STATEMENT).strip(), path.name)
    for field in expected:
        claimed = statement.get(field) if isinstance(statement, dict) else None
        if claimed != expected[field]:
            raise EvidenceError(f"{path.name}: its {field} is not that of the file")
