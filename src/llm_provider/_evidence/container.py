"""The file of the evidence: a zip in one form only, so that it can be written again from its parts.

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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from .._errors import EvidenceError, RequestError
from .._runtime.canonical_json import canonical
from .._runtime.files import LONGEST_LINE, replace_file

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
        file.seek(0)
        whole: Any = file
        return hashlib.file_digest(whole, "sha256").hexdigest()


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
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
    """The bytes behind the members."""
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
