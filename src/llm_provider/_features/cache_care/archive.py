"""A cache as one file of JSON lines, for a paper's artefact, a pull request or a test's fixture.

The first line names the format, every other line is an answer. Lines are sorted by key and their fields by
name, so the same answers give the same bytes, and a new answer adds one line. An archive contains no API
keys, as the cache contains none. The digest of a line shows whether the line was changed.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import orjson

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject
from ..._core.runtime.files import read_lines, replace_file
from ..._core.runtime.json_pieces import loads
from ..._core.store.entry import SCHEMA_VERSION, Entry, decode_entry, decode_question, encode_entry, tag_of
from ..._core.store.shard import Row
from ..._core.store.store import Store

_FORMAT = "llm_provider_cache"
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    Args:
        added: Answers that were added.
        kept: Answers that were already stored and stay unchanged.
    """

    added: int
    kept: int


def write_archive(store: Store, path: str | os.PathLike[str], keys: Iterable[str] | None = None) -> int:
    """Write the intact answers of some keys, or all, to a file once it is complete. Returns their number."""
    count = 0
    with replace_file(Path(path).expanduser(), 0o666, "an earlier file is as it was") as file:
        file.write(_line({_FORMAT: SCHEMA_VERSION}))
        for key, value in store.items() if keys is None else ((key, store.read(key)) for key in keys):
            fields = None if value is None else _fields(key, value)
            if fields is not None:
                file.write(_line({**fields, "digest": _digest(fields)}))
                count += 1
    return count


def read_archive(store: Store, path: str | os.PathLike[str]) -> Imported:
    """Add the answers of a file to the cache, once all of it is checked; `RequestError` if it is damaged."""
    source = Path(path)
    total = sum(1 for _ in _rows(source))
    missing = (row for row in _rows(source) if decode_entry(row[0], store.read(row[0]) or b"") is None)
    added = 0
    while some := list(islice(missing, _AT_ONCE)):
        added += store.insert(some)
    return Imported(added=added, kept=total - added)


def _fields(key: str, value: bytes) -> dict[str, object] | None:
    entry = decode_entry(key, value)
    if entry is None:
        return None
    fields: dict[str, object] = {
        "asked": decode_question(key, value),
        # Text, as JSON writers differ in how they write numbers.
        "body": entry.body.decode(),
        "created": entry.created,
        "key": key,
        "seconds": entry.seconds,
    }
    return fields | entry.list_known()


def _rows(path: Path) -> Iterator[Row]:
    lines = read_lines(path)
    _check_first(path, next(lines, b""))
    for number, line in enumerate(lines, 2):
        try:
            yield _row(loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            message = f"{path}, line {number}: this is not an answer, or it was changed"
            raise RequestError(message) from None


def _check_first(path: Path, line: bytes) -> None:
    try:
        version = orjson.loads(line)[_FORMAT]
    except (ValueError, KeyError, TypeError):
        raise RequestError(f"{path} is not an exported cache") from None
    if version != SCHEMA_VERSION:
        raise RequestError(
            f"{path} has format version {version}, but only version {SCHEMA_VERSION} can be imported: "
            "export it again with a matching version of llm-provider"
        )


def _row(fields: JSONObject) -> Row:
    digest = fields.pop("digest")
    key, question = fields["key"], fields["asked"]
    if digest != _digest(fields) or len(key) != 64 or not isinstance(question, dict | None):
        raise ValueError
    own = {name: value for name, value in fields.items() if name in Entry._fields}
    entry = Entry(**own | {"body": fields["body"].encode()})
    value = encode_entry(
        key, entry, b"" if question is None else orjson.dumps(question, option=orjson.OPT_SORT_KEYS)
    )
    if decode_entry(key, value) is None:
        raise ValueError
    return key, value, tag_of(question)


def _digest(fields: Mapping[str, object]) -> str:
    return hashlib.sha256(_line(fields)).hexdigest()[:32]


def _line(fields: Mapping[str, object]) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
