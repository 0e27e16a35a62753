"""What a user asks of a whole cache: check, selection, pruning, why a call missed, recent answers."""

import hashlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product, zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict

import orjson

from ..._core.errors import LLMError, RequestError
from ..._core.json_values import JSONObject
from ..._core.runtime import clock
from ..._core.runtime.files import read_lines, replace_file
from ..._core.runtime.frozen import read_old_state
from ..._core.runtime.json_pieces import is_plain, loads
from ..._core.store.entry import (
    ELIDED,
    NOT_KEPT,
    SCHEMA_VERSION,
    Entry,
    Question,
    Row,
    decode_entry,
    decode_question,
    encode_entry,
    tag_of,
)
from ..._core.store.store import Store
from ..._core.words import format_duration

_MOST_LISTED = 5
_WIDTH = 60
_Question: TypeAlias = Mapping[str, object]
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
        path: Where it is, such as "payload.messages[0].content".
        stored: The JSON value of the stored question, or `ABSENT`.
        asked: The JSON value of the question that was asked, or `ABSENT`.
    """

    path: str
    stored: Any
    asked: Any

    def __str__(self) -> str:
        stored, wanted = _format(self.stored), _format(self.asked)
        space = " only white space differs," if self.is_white_space else ""
        pairs = enumerate(zip(stored, wanted, strict=False))
        shorter = min(len(stored), len(wanted))
        common = next((index for index, (left, right) in pairs if left != right), shorter)
        if common > _WIDTH // 2:
            # Two long texts: they are equal before their first difference.
            stored, wanted = (f"…{text[common - 20 :]}" for text in (stored, wanted))
        return f"{self.path}:{space} stored {_cut(stored)}, asked {_cut(wanted)}"

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
        age: Seconds since its answer was stored; None unless the question itself is stored.
        max_age: Seconds after which the call takes no answer, where that is why it was not answered.
        samples: Whether each sample of a call is stored, where only some are.
    """

    key: str | None
    differences: tuple[Difference, ...]
    compared: int
    stored: bool = False
    age: float | None = field(default=None, repr=False)
    max_age: float | None = field(default=None, repr=False)
    samples: tuple[bool, ...] = field(default=(), repr=False)

    __setstate__ = read_old_state

    def __str__(self) -> str:
        if self.samples:
            count, texts = (
                sum(self.samples),
                [f"{index}" for index, has in enumerate(self.samples) if not has],
            )
            are, missing = "is" if count == 1 else "are", " and ".join([", ".join(texts[:-1]), texts[-1]])
            rest = f"samples {missing} are" if texts[1:] else f"sample {texts[0]} is"
            return f"{count} of {len(self.samples)} samples {are} stored; {rest} not; {NOT_KEPT}"
        if self.key is None:
            return f"none of {self.compared} stored requests is similar; {NOT_KEPT}"
        if self.stored:
            text = f"the question itself is stored under {self.key[:12]}"
            if self.age is None or self.max_age is None:
                return text
            ages = format_duration(self.age), format_duration(self.max_age)
            return f"{text}, but its answer is {ages[0]} old, and max_age is {ages[1]}"
        lines = [str(difference) for difference in self.differences[:_MOST_LISTED]]
        more = len(self.differences) - len(lines)
        lines += [f"and {more} more"] if more else []
        differences = "; ".join(lines) or "nothing that is stored of a question"
        nearest = f"the nearest of {self.compared} stored requests, {self.key[:12]}, differs in {differences}"
        # Of the rows of a template another one is always near, and the question itself may have been asked.
        return f"{nearest}; {NOT_KEPT}" if lines else nearest


def explain_stored(key: str, entry: Entry, max_age: float | None) -> Explanation:
    """Why a stored question was not answered: by its `max_age` in seconds, or for no reason that is known."""
    age = max(0.0, clock.time() - entry.created)
    return Explanation(key, (), 1, True, age, max_age if max_age is not None and age > max_age else None)


def explain_samples(key: str, stored: Sequence[bool]) -> Explanation:
    """Which samples of a call are stored. `key` belongs to one that is not."""
    return Explanation(key, (), len(stored), samples=tuple(stored))


def find_nearest(question: _Question, stored: Iterable[tuple[str, _Question]]) -> Explanation | None:
    """The similar question that differs least, the first of several; None without stored questions.

    Questions are similar if a text of one conversation is similar to one of the other, system prompts aside.
    """
    best: tuple[float, str, tuple[Difference, ...]] | None = None
    compared, texts = 0, _texts(question)
    for key, other in stored:
        compared += 1
        distance = _distance(texts, _texts(other))
        if distance is None:
            continue
        differences = tuple(compare(other, question))
        if any(difference.path.endswith(".model") for difference in differences):
            # The name as the user wrote it follows from the name that is sent.
            differences = tuple(difference for difference in differences if difference.path != "model")
        weight = len(differences) + distance
        if best is None or weight < best[0]:
            best = weight, key, differences
    if best is None:
        return Explanation(None, (), compared) if compared else None
    return Explanation(best[1], best[2], compared)


def _texts(question: _Question) -> set[str]:
    """The plain texts of a conversation without its system prompt, or of a payload without a conversation."""
    payload = question.get("payload")
    fields = payload if isinstance(payload, Mapping) and ELIDED not in payload else {}
    lists = [value for value in fields.values() if isinstance(value, list)]
    turns = [turn for each in lists for turn in each if isinstance(turn, Mapping) and "role" in turn]
    without_system = [turn for turn in turns if turn["role"] not in ("system", "developer")]
    others = [value for name, value in fields.items() if name != "model"]
    return {_plain(text) for text in _leaf_texts(without_system if turns else others)} - {""}


def _leaf_texts(value: object) -> Iterator[str]:
    """The texts in a JSON value, a long one by its beginning."""
    if isinstance(value, Mapping):
        if ELIDED in value:
            yield from _leaf_texts(value[ELIDED]["start"])
            return
        value = [part for name, part in value.items() if name not in ("role", "type")]
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _leaf_texts(part)


def _plain(text: str) -> str:
    """A text without the differences of white space and of small and capital letters."""
    return re.sub(r"\s+", " ", text).strip().casefold()


def _distance(texts: set[str], others: set[str]) -> float | None:
    """How far apart two conversations are: 0 if one holds the other, None if they have nothing in common.

    Another text counts more than three other settings.
    """
    only_first, only_second = texts - others, others - texts
    alike = bool(texts & others) or not texts
    if not only_first or not only_second:
        return 0.0 if alike else None
    # The part of their groups of three letters that two texts have in common: 0 to 1.
    pairs = product(map(_letter_groups, only_first), map(_letter_groups, only_second))
    most = max(2 * len(left & right) / (len(left) + len(right)) for left, right in pairs)
    return 3.0 + 10.0 * (1.0 - most) if alike or most >= _SIMILAR else None


def _letter_groups(text: str) -> set[str]:
    padded = f"  {text} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def compare(stored: object, wanted: object, path: str = "") -> Iterator[Difference]:
    """The differences of two JSON values, sorted by path. 1, 1.0, "1" and true are four different values.

    Equal items at both ends of a list are skipped, so that an inserted message is one difference.

    >>> [str(difference) for difference in compare({"a": [1, 2]}, {"a": [0, 1, 2], "b": None})]
    ['a[0]: stored absent, asked 0', 'b: stored absent, asked null']
    """
    if isinstance(stored, Mapping) and isinstance(wanted, Mapping) and ELIDED not in {*stored, *wanted}:
        for name in sorted({*stored, *wanted}):
            inner = f"{path}.{name}" if path else name
            yield from compare(stored.get(name, ABSENT), wanted.get(name, ABSENT), inner)
    elif isinstance(stored, list) and isinstance(wanted, list):
        left, right = [*map(_encode, stored)], [*map(_encode, wanted)]
        shortest = min(len(left), len(right))
        start = next((index for index in range(shortest) if left[index] != right[index]), shortest)
        rest = range(shortest - start)
        end = next((index for index in rest if left[-1 - index] != right[-1 - index]), len(rest))
        left_middle, right_middle = stored[start : len(stored) - end], wanted[start : len(wanted) - end]
        pairs = zip_longest(left_middle, right_middle, fillvalue=ABSENT)
        for index, (old, new) in enumerate(pairs, start):
            yield from compare(old, new, f"{path}[{index}]")
    elif _encode(stored) != _encode(wanted):
        yield Difference(path, stored, wanted)


def _encode(value: object) -> bytes:
    # Equal encodings have equal types too.
    return b"" if value is ABSENT else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _format(value: object) -> str:
    if isinstance(value, Mapping) and ELIDED in value:
        text = value[ELIDED]
        return f"{text['start'][:20]!r}… ({text['length']} characters, SHA-256 {text['sha256']})"
    return repr(value) if value is ABSENT else orjson.dumps(value).decode()


def _cut(text: str) -> str:
    return text if len(text) <= 2 * _WIDTH else f"{text[:_WIDTH]}…"


_AT_ONCE = 200
_MOST_COMPARED = 300


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a check. It is true if the cache is intact.

    Args:
        entries: The number of intact answers.
        damaged: The keys of damaged answers. They count as absent, and the next call writes them again.
        problems: Descriptions of problems with the files.
    """

    entries: int
    damaged: tuple[str, ...]
    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.damaged and not self.problems


def verify(store: Store) -> Verification:
    """Read every answer and compare it with its checksum."""
    problems = store.check()
    problems += [f"{path}: a damaged database that was replaced" for path in store.list_damaged()]
    count, damaged = 0, []
    for key, value in store.items():
        count += 1
        if decode_entry(key, value) is None:
            damaged.append(key)
    return Verification(count - len(damaged), tuple(damaged), tuple(problems))


def prune(
    store: Store, *, older_than: float | None = None, model: str | None = None, dry_run: bool = False
) -> int:
    """Remove the answers that meet every condition; `RequestError` if there is none. Returns their number."""
    if older_than is None and model is None:
        raise RequestError("prune removes answers by age or by model: name one of them, or both")
    keys = _find_keys(store, math.inf if older_than is None else clock.time() - older_than, model)
    count = 0
    while some := list(islice(keys, _AT_ONCE)):
        count += len(some)
        if not dry_run:
            store.delete(some)
    return count


def _find_keys(store: Store, before: float, model: str | None) -> Iterator[str]:
    for key, value in store.items():
        entry = decode_entry(key, value)
        if entry is None:  # a damaged answer has no model, and any age
            if model is None:
                yield key
        elif entry.created < before and _has_model(key, value, entry, model):
            yield key


def _has_model(key: str, value: bytes, entry: Entry, model: str | None) -> bool:
    return model is None or model in (entry.served, (decode_question(key, value) or {}).get("model"))


class Selection(TypedDict, total=False):
    """Which answers of a cache are meant: those that meet every condition that is set."""

    results: Iterable[Any] | None
    """Results, or lines of `to_jsonl` and `map` as dicts: the answers of all their samples and rounds."""
    model: str | None
    """The model that was asked for, or the model that the provider named."""
    tag: str | None
    """The name of a `track` block, and of those inside it. A ledger has the keys of its answers."""
    ledger: str | os.PathLike[str] | None
    """The file of `Client(ledger=)`, for a tag; default is the file of `LLM_PROVIDER_LEDGER`."""


def find_keys(store: Store, selection: Selection) -> Iterator[str]:
    """The sorted keys of the whole answers that a selection means; `RequestError` for an unknown tag."""
    model, results, tag = selection.get("model"), selection.get("results"), selection.get("tag")
    wanted = None if results is None else set(list_keys(results))
    if tag is not None:
        from ..._core.money.ledger_file import read_keys

        path = selection.get("ledger") or os.environ.get("LLM_PROVIDER_LEDGER", "").strip()
        if not path:
            raise RequestError(
                "the answers of a tag are lists in a ledger, and there is none: name the file of "
                "Client(ledger=...), or set LLM_PROVIDER_LEDGER, before the calls are made"
            )
        tagged = read_keys(Path(path).expanduser(), tag)
        if not tagged:
            raise RequestError(f"{path} has no keys of answers with the tag {tag!r}")
        wanted = tagged if wanted is None else wanted & tagged
    for key, value in store.items() if wanted is None else ((key, store.read(key)) for key in sorted(wanted)):
        entry = None if value is None else decode_entry(key, value)
        if entry is not None and value is not None and _has_model(key, value, entry, model):
            yield key


def list_keys(results: Iterable[Any]) -> Iterator[str]:
    """The keys of the samples and rounds of some results. Errors have the keys of their samples."""
    for result in results:
        if isinstance(result, dict):
            rounds = (result.get("tool_rounds") or {}).get("responses")
            answers = rounds or result.get("samples") or [result]
            lists = [answer.get("cache_keys") or () for answer in answers]
        else:
            failed = isinstance(result, LLMError)
            answers = getattr(result, "samples", ()) if failed else getattr(result, "rounds", [result])
            lists = [getattr(answer, "cache_keys", ()) for answer in answers]
        yield from (key for keys in lists for key in keys if key is not None)


def explain(store: Store, question: Question) -> Explanation | None:
    """The nearest of the newest few hundred questions to the same provider and endpoint."""
    stored = next(store.newest(question.tag, _MOST_COMPARED), [])
    questions = ((key, decode_question(key, value)) for key, value in stored)
    return find_nearest(question.to_json(), ((key, each) for key, each in questions if each is not None))


_FORMAT = "llm_provider_cache"


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
    # The body is text, as JSON writers differ in how they write numbers.
    fields: dict[str, object] = {"asked": decode_question(key, value), "body": entry.body.decode()}
    fields |= entry._replace(decoded=None).list_known()
    return fields | {"created": entry.created, "key": key, "seconds": entry.seconds}


def _rows(path: Path) -> Iterator[Row]:
    lines = read_lines(path)
    try:
        version = orjson.loads(next(lines, b""))[_FORMAT]
    except (ValueError, KeyError, TypeError):
        raise RequestError(f"{path} is not an exported cache") from None
    if version != SCHEMA_VERSION:
        raise RequestError(
            f"{path} has format version {version}, but only version {SCHEMA_VERSION} can be imported: "
            "export it again with a matching version of llm-provider"
        )
    for number, line in enumerate(lines, 2):
        try:
            yield _row(loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            message = f"{path}, line {number}: this is not an answer, or it was changed"
            raise RequestError(message) from None


def _row(fields: JSONObject) -> Row:
    digest = fields.pop("digest")
    key, question = fields["key"], fields["asked"]
    if digest != _digest(fields) or len(key) != 64 or not isinstance(question, dict | None):
        raise ValueError
    own = {name: value for name, value in fields.items() if name in Entry._fields}
    body = fields["body"].encode()
    entry = Entry(**own | {"body": body, "plain": "plain" in own and is_plain(body), "decoded": None})
    encoded = b"" if question is None else orjson.dumps(question, option=orjson.OPT_SORT_KEYS)
    value = encode_entry(key, entry, encoded)
    if decode_entry(key, value) is None:
        raise ValueError
    return key, value, tag_of(question)


def _digest(fields: Mapping[str, object]) -> str:
    return hashlib.sha256(_line(fields)).hexdigest()[:32]


def _line(fields: Mapping[str, object]) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
