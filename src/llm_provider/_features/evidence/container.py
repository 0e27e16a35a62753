"""The file of the evidence and its manifest: a zip in one form, which can be written again from its parts.

Every member is stored as it is, with ZIP64 fields, and without dates, modes, comments and compression. So the
names, sizes and checksums of the members determine each other byte of the file. So is the JSON in it: sorted
names, no spaces, and what JSON lacks as Python writes it.
"""

import contextlib
import hashlib
import json
import os
import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from ..._core.errors import EvidenceError, RequestError
from ..._core.json_values import JSONObject
from ..._core.runtime.exact_decimal import exact, total
from ..._core.runtime.files import LONGEST_LINE, replace_file
from ..._core.runtime.json_pieces import canonical
from ..._core.types.results_table import name_model
from ..._core.types.usage import Cost
from ..._core.words import format_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a file of evidence holds, once it is written or checked.

    Args:
        path: The file.
        sha256: Its digest, the subject of its statement.
        rows: The number of results.
        manifest: Figures, settings, versions, the state of git, and the digests of the parts.
        has_statement: Whether a statement about it is beside it.
    """

    path: Path
    sha256: str
    rows: int
    manifest: JSONObject
    has_statement: bool

    @property
    def not_computed(self) -> dict[str, dict[str, int]]:
        """What the rows hold and their parts do not give: for each value the reasons, with their numbers."""
        reasons: dict[str, dict[str, int]] = self.manifest["figures"]["not_computed"]
        return reasons

    def __str__(self) -> str:
        total = self.manifest["figures"]["total"]
        counts = ", ".join(
            f"{total[name]:,} {name}"
            for name in ("responses", "scores", "decisions", "errors")
            if name in total
        )
        unknown, at_most = total.get("cost_unknown", 0), None
        if unknown == total.get("cost_bounded", 0):
            at_most = Decimal(total.get("cost_at_most", 0))
        paid = format_usd(Decimal(total["cost"]), unknown, at_most)
        bought = format_usd(Decimal(total["price"]), total.get("price_unknown", 0))
        lines = [f"{counts or 'no results'}, {paid} paid, {bought} when bought"]
        for name, reasons in self.not_computed.items():
            lines += [f"not computed: {name} of {count:,}: {reason}" for reason, count in reasons.items()]
        return "\n".join([*lines, f"sha256 {self.sha256}"])


_CHUNK = 1 << 20
_LOCAL = struct.Struct("<4s5H3I2H")
_FOLDER = rb"[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}/"
_NAME = re.compile(
    rb"(data/("
    + _FOLDER
    + rb"){3}[0-9a-f-]{36}(_samples)?|inspect/[A-Za-z0-9._+-]{1,160}|[a-z0-9_]{1,40})\.jsonl?"
)
_LONGEST_NAME = 320
_MOST_PARTS = 1000
_DAY, _VERSION, _ABOVE = 0x21, 45, 0xFFFFFFFF
"""1980-01-01, the first version with ZIP64, and the number that refers to the ZIP64 fields."""


class Part(NamedTuple):
    name: str
    start: int
    """The offset of its bytes in the file."""
    size: int
    crc: int
    sha256: str

    def read_lines(self, file: IO[bytes]) -> Iterator[bytes]:
        """Its lines, without their ends; `EvidenceError` if one has no end, or is too long."""
        position, end = self.start, self.start + self.size
        while position < end:
            file.seek(position)
            line = file.readline(min(LONGEST_LINE, end - position))
            if not line.endswith(b"\n"):
                raise EvidenceError(f"{self.name}, byte {position - self.start:,}: a line without an end")
            position += len(line)
            yield line[:-1]


def write_parts(path: Path, parts: Iterable[tuple[str, Iterable[bytes]]], written: list[Part]) -> str:
    """Write members, made one after the other, add them to `written`, and return the file's SHA-256.

    A file that was there stays as it was until the new one is complete.
    """
    with replace_file(path, 0o666, "the results are in memory") as file:
        for name, chunks in parts:
            begin = file.tell()
            file.write(_make_header(Part(name, 0, 0, 0, "")))
            start, crc, digest = file.tell(), 0, hashlib.sha256()
            for chunk in chunks:
                crc = zlib.crc32(chunk, crc)
                digest.update(chunk)
                file.write(chunk)
            end = file.tell()
            written.append(Part(name, start, end - start, crc, digest.hexdigest()))
            file.seek(begin)
            file.write(_make_header(written[-1]))
            file.seek(end)
        file.write(_make_directory(written))
        return hash_whole(file)


def hash_whole(file: Any) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def read_parts(file: IO[bytes]) -> dict[str, Part]:
    """The members of a file; `EvidenceError` unless it is, byte for byte, what `write_parts` writes."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    parts: list[Part] = []
    while (head := file.read(_LOCAL.size))[:4] == b"PK\3\4":
        parts.append(_read_part(file, head, size))
        if len(parts) > _MOST_PARTS or len({part.name for part in parts}) < len(parts):
            raise EvidenceError(f"{parts[-1].name} is one part too many: a file of evidence has no such part")
    if not parts:
        raise EvidenceError("this is no file of evidence: its first bytes are not those of a zip")
    directory = _make_directory(parts)
    end = parts[-1].start + parts[-1].size
    file.seek(end)
    if file.read(len(directory) + 1) != directory:
        raise EvidenceError(f"byte {end:,} or later: the directory at the end of the file differs")
    return {part.name: part for part in parts}


def _read_part(file: IO[bytes], head: bytes, size: int) -> Part:
    """The member whose header begins with `head`; its bytes are read and compared with their checksum."""
    begin = file.tell() - len(head)
    fields = _LOCAL.unpack(head.ljust(_LOCAL.size, b"\0"))
    name, extra = file.read(min(fields[9], _LONGEST_NAME)), file.read(20)
    length = int.from_bytes(extra[4:12], "little")
    part = Part(name.decode("ascii", "replace"), file.tell(), length, fields[6], "")
    if not _NAME.fullmatch(name) or _make_header(part) != head + name + extra:
        raise EvidenceError(f"byte {begin:,}: the header of a part is not as an export writes it")
    if part.start + length > size:
        raise EvidenceError(f"{part.name}: the file is cut, or the size of this part was changed")
    digest, crc = hashlib.sha256(), 0
    while chunk := file.read(min(_CHUNK, part.start + length - file.tell())):
        crc = zlib.crc32(chunk, crc)
        digest.update(chunk)
    if crc != part.crc:
        raise EvidenceError(f"{part.name}: its bytes differ from its checksum")
    return part._replace(sha256=digest.hexdigest())


def _make_header(part: Part) -> bytes:
    name = part.name.encode()
    fields = (_VERSION, 0, 0, 0, _DAY, part.crc, _ABOVE, _ABOVE, len(name), 20)
    return _LOCAL.pack(b"PK\3\4", *fields) + name + struct.pack("<2H2Q", 1, 16, part.size, part.size)


def _make_directory(parts: list[Part]) -> bytes:
    entries = []
    for part in parts:
        name = part.name.encode()
        fields = (_VERSION, _VERSION, 0, 0, 0, _DAY, part.crc, _ABOVE, _ABOVE, len(name), 28, 0, 0, 0, 0)
        offset = part.start - len(_make_header(part))
        extra = struct.pack("<2H3Q", 1, 24, part.size, part.size, offset)
        entries.append(struct.pack("<4s6H3I5H2I", b"PK\1\2", *fields, _ABOVE) + name + extra)
    body, start = b"".join(entries), parts[-1].start + parts[-1].size
    sizes = (len(parts), len(parts), len(body), start)
    end = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, _VERSION, _VERSION, 0, 0, *sizes)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + len(body), 1)
    return body + end + locator + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, _ABOVE, _ABOVE, 0)


def write_json(value: object) -> bytes:
    """A value as JSON; `read_json` reads it.

    >>> write_json({"b": float("nan"), "a": 10**30})
    b'{"a":1000000000000000000000000000000,"b":NaN}'
    """
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        # It writes NaN as null. To look for NaN in Python takes ten times as long.
        return text if b"null" not in text or orjson.loads(text) == value else canonical(value)
    except (RequestError, TypeError):
        # NaN, whole numbers of more than 64 bits, and halves of a surrogate pair.
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def read_json(text: bytes, where: str) -> Any:
    """The value of a text; `EvidenceError` if `write_json` would have written it in another way."""
    try:
        value = orjson.loads(text)
        if orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == text:
            return value
    except (ValueError, TypeError):
        pass
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
        if write_json(value) == text:
            return value
    raise EvidenceError(f"{where}: this is not JSON in its canonical form")


FORMAT, VERSION = "llm_provider evidence", 1
PREDICATE = "https://github.com/llm-provider/llm-provider/evidence/v1"
_COUNTS = ("input_tokens", "output_tokens")
_Name = tuple[str | None, str]
"""A provider and a model."""


class Figures:
    """The sums of rows, in all and by model: they name what is known, and count what is not."""

    def __init__(self) -> None:
        self._sums: defaultdict[_Name, Counter[str]] = defaultdict(Counter)
        self._usd: defaultdict[tuple[_Name, str], Decimal] = defaultdict(Decimal)
        self._answered = set[_Name]()
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, row: JSONObject) -> None:
        result = row["result"]
        model = result["provider"], str(result["model"])
        if not result.get("error"):
            self._answered.add(model)
        sums = self._sums[model]
        kinds = ("scores", "decisions")
        kind = "errors" if result.get("error") else next((n for n in kinds if n in result), "responses")
        sums[kind] += 1
        sums["cached"] += bool(result["cached"])
        for name in _COUNTS:
            sums[name] += (result["usage"] or {}).get(name, 0)
        if "score" in row:
            sums["scored"] += 1
            self._usd[model, "score_sum"] += Decimal(repr(float(row["score"])))
        for name, bounds in (("cost", result.get("cost_bounds")), ("price", None)):
            if name == "cost" or not result.get("error"):
                usd = Cost.between(result.get(name), bounds)
                sums[f"{name}_unknown"] += usd.unknown
                sums["cost_bounded"] += usd.unknown > 0 and usd.at_most is not None
                if usd or not usd.unknown:
                    self._add_usd(model, name, usd)
                self._add_usd(model, "cost_at_most", usd.at_most or 0)
        for name, reason in row["not_computed"].items():
            self._reasons[str(name)][str(reason)] += 1
        for request in row["requests"]:
            if "why" in request:
                self._reasons["key of a sample"][str(request["why"])] += 1

    def _add_usd(self, model: _Name, name: str, usd: float) -> None:
        self._usd[model, name] = exact().add(self._usd[model, name], Decimal(repr(float(usd))))

    def to_dict(self) -> JSONObject:
        """The sums, with USD as exact text."""
        groups: defaultdict[str, list[_Name]] = defaultdict(list)
        for model in self._sums:
            provider, name = model[0], name_model(*model, self._answered)
            groups[name if name.startswith(f"{provider}/") else f"{provider}/{name}"].append(model)
        models = {model: self._describe(groups[model]) for model in sorted(groups)}
        reasons = {name: dict(counts) for name, counts in self._reasons.items()}
        return {"total": self._describe(list(self._sums)), "models": models, "not_computed": reasons}

    def _describe(self, models: list[_Name]) -> JSONObject:
        counts: Counter[str] = sum((self._sums[model] for model in models), Counter())
        optional = {"score_sum": counts["scored"], "cost_at_most": counts["cost_bounded"]}
        names = ("cost", "price", *(name for name, count in optional.items() if count))
        usd = {name: total(self._usd[model, name] for model in models) for name in names}
        if "score_sum" in usd:
            # The mean of three samples is no exact number.
            usd["score_sum"] = round(usd["score_sum"], 9).normalize()
        return dict(counts) | {name: format(amount, "f") for name, amount in usd.items()}


def describe_parts(parts: Iterable[Part]) -> JSONObject:
    return {part.name: {"bytes": part.size, "sha256": part.sha256} for part in parts}


def make_statement(name: str, sha256: str, manifest: JSONObject) -> JSONObject:
    """An in-toto statement about the file, whose predicate is the manifest without the digests of parts."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": sha256}}],
        "predicateType": PREDICATE,
        "predicate": {key: value for key, value in manifest.items() if key != "parts"},
    }
