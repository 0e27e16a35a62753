"""Checks a file of evidence, and sums up what it holds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from .._errors import EvidenceError
from .._json_values import JSONObject
from .._money.price_rows import PriceWarning, check, mapping_lines
from .._money.pricing import PriceTable
from .._types.evidence import Evidence
from .checks import list_differences
from .container import Part, hash_file, read_parts
from .json_lines import read_json, write_json
from .manifest import FORMAT, VERSION, Figures, make_statement
from .score_records import ScoreRecords

ROWS, PRICES, MANIFEST = "rows.jsonl", "prices.jsonl", "manifest.json"
STATEMENT = ".intoto.json"
"""What is added to the name of a file for that of its statement."""


def verify(path: str | os.PathLike[str]) -> Evidence:
    """Check a file that `Results.export` wrote. It needs no key, no network and no cache.

    Every byte is compared with what an export would write of the parts, and every digest with its part. Then
    each stored reply is decoded again, and keys, usage, who answered, parsed values, prices by the price rows
    inside, and all sums are computed anew. The statement beside the file is compared, if there is one. Rows
    that somebody changed together with all digests are found by the signature of a statement alone.

    Raises:
        EvidenceError: something differs. The message names the first thing that does.
        OSError: the file cannot be read.
    """
    goal = Path(path).expanduser()
    with goal.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", PriceWarning)
        parts = read_parts(file)
        manifest = _read_manifest(file, parts)
        rows = _check_rows(file, parts, manifest)
    digest = hash_file(goal)
    beside = goal.with_name(goal.name + STATEMENT)
    if beside.exists():
        _check_statement(beside, goal.name, digest, manifest)
    return Evidence(path=goal, sha256=digest, rows=rows, manifest=manifest, has_statement=beside.exists())


def _read_manifest(file: IO[bytes], parts: dict[str, Part]) -> JSONObject:
    if list(parts)[-1] != MANIFEST or not {ROWS, PRICES} <= parts.keys():
        raise EvidenceError(f"the parts are {', '.join(parts)}, not {ROWS}, {PRICES} and {MANIFEST}")
    lines = list(parts[MANIFEST].read_lines(file))
    manifest = read_json(lines[0], MANIFEST) if len(lines) == 1 else None
    if not isinstance(manifest, dict) or (manifest.get("format"), manifest.get("version")) != (
        FORMAT,
        VERSION,
    ):
        raise EvidenceError(f"{MANIFEST}: it is not that of {FORMAT}, version {VERSION}")
    digests = {
        part.name: {"bytes": part.size, "sha256": part.sha256}
        for part in parts.values()
        if part.name != MANIFEST
    }
    listed = manifest.get("parts")
    if not isinstance(listed, dict):
        raise EvidenceError(f"{MANIFEST}: it lists no parts")
    for name in [*digests, *listed]:
        if digests.get(name) != listed.get(name):
            raise EvidenceError(f"{name}: its size or SHA-256 is not that of {MANIFEST}")
    return manifest


def _check_rows(file: IO[bytes], parts: dict[str, Part], manifest: JSONObject) -> int:
    prices, figures, count = _read_prices(file, parts[PRICES]), Figures(), 0
    samples = _Samples(file, parts, manifest)
    for where, row in _read_objects(file, parts[ROWS]):
        allowed = row.get("not_computed")
        if type(allowed) is not dict or row.get("index") != count:
            raise EvidenceError(f"{where}: it is not row {count}")
        for name, problem in list_differences(row, prices):
            if name not in allowed:
                raise EvidenceError(f"{where}: {name}: {problem}")
        try:
            figures.add(row)
            samples.compare(row)
        except EvidenceError:
            raise
        except Exception as error:  # as in `list_differences`
            raise EvidenceError(f"{where}: it cannot be counted: {error!r}") from None
        count += 1
    samples.finish()
    if figures.to_dict() != manifest.get("figures"):
        raise EvidenceError(f"{MANIFEST}: its figures are not those of the rows")
    return count


class _Samples:
    """Compares the parts about scores with those that are made of the rows."""

    def __init__(self, file: IO[bytes], parts: dict[str, Part], manifest: JSONObject) -> None:
        self._file, self._others = (
            file,
            {name: parts[name] for name in parts.keys() - {ROWS, PRICES, MANIFEST}},
        )
        evaluation, versions = manifest.get("evaluation"), manifest.get("versions")
        known = isinstance(evaluation, str) and isinstance(versions, dict)
        version = str(versions.get("llm-provider-call")) if isinstance(versions, dict) else ""
        self._records = ScoreRecords(str(evaluation), version) if known else None
        self._lines: dict[str, Iterator[bytes]] = {}

    def compare(self, row: JSONObject) -> None:
        """Compare the line of a row, if it has a score."""
        sample = None if self._records is None else self._records.add(row)
        if sample is not None:
            name, line = sample
            if name not in self._lines and name in self._others:
                self._lines[name] = self._others.pop(name).read_lines(self._file)
            if next(self._lines.get(name, iter(())), None) != line[:-1]:
                raise EvidenceError(f"{name}: its line of row {row['index']} is not that of the row")

    def finish(self) -> None:
        """Compare the records of all models, and find lines and parts that belong to no row."""
        for name, record in ({} if self._records is None else self._records.finish()).items():
            part = self._others.pop(name, None)
            if part is None or list(part.read_lines(self._file)) != [record]:
                raise EvidenceError(f"{name}: it is not the record of the scores in {ROWS}")
        for name, lines in self._lines.items():
            if next(lines, None) is not None:
                raise EvidenceError(f"{name}: it has a line that belongs to no row")
        for name in self._others:
            raise EvidenceError(f"{name}: a file of evidence has no such part")


def _read_prices(file: IO[bytes], part: Part) -> PriceTable:
    rows = [row for _, row in _read_objects(file, part)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriceWarning)
        try:
            return PriceTable(check(mapping_lines(rows)))
        except PriceWarning as error:
            raise EvidenceError(f"{part.name}: {error}") from None


def _read_objects(file: IO[bytes], part: Part) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(part.read_lines(file), start=1):
        where = f"{part.name}, line {number:,}"
        row = read_json(line, where)
        if not isinstance(row, dict):
            raise EvidenceError(f"{where}: it is no object")
        yield where, row


def _check_statement(path: Path, name: str, digest: str, manifest: JSONObject) -> None:
    expected = make_statement(name, digest, manifest)
    statement = read_json(path.read_bytes().strip(), path.name)
    for field in expected:
        claimed = statement.get(field) if isinstance(statement, dict) else None
        if claimed != expected[field]:
            raise EvidenceError(f"{path.name}: its {field} is not that of the file")


def write_statement(evidence_path: Path, digest: str, manifest: JSONObject) -> bytes:
    """The bytes of the statement about a file."""
    return write_json(make_statement(evidence_path.name, digest, manifest)) + b"\n"
