"""Reads the JSON of an answer while it arrives: each character once, each value when its end was seen.

A value is validated only if somebody asks for the partial while its container is open. So a stream whose
partials nobody reads is never parsed. A partial copies the references to the values of its open containers. A
container of 1,024 values or more is copied when it has grown by a 500th or so, with its complete values
alone, and an open text of 4,096 characters or more by a 2,000th. If it were copied for each value, a list of
140,000 numbers would take a minute, and not three seconds.

Which JSON of a text counts is what `_core/schemas/reading` says: the whole text, a code block, or one value
among words. A bracket that begins no JSON is passed over, unless something of it was shown.
"""

import contextlib
import io
import itertools
import json
import re
from typing import Any, Literal, TypeAlias

from ..._core.runtime.json_pieces import DEEPEST
from ..._core.schemas.reading import MOST_STARTS, NoMatchError, read
from ..._core.schemas.structure import Structure
from .plans import ABSENT, Plan, SchemaPlan, Shape, shape_of_answer
from .type_plans import TypePlan

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'[^"\\]*')
_WORD = re.compile(r"[-+.0-9A-Za-z]*")
_WORDS = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity")
_MOST_BITS = 10
"""Of the number of values in a container that is shown with each of them."""
_TEXT_BITS = 12
"""Of the length of a text that is shown with each of its characters."""
_MARKS = '"[]{}:,'
_START = re.compile(r"[\[{]")
_WHOLE_ESCAPES = re.compile(r'(?:[^\\]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')

_Expected: TypeAlias = Literal["value", "value or end", "key", "key or end", "colon", "comma or end"]


class _Node:
    """A list or an object whose end was not seen when it was made."""

    def __init__(self, start: int, shape: Shape | None, *, is_object: bool, inside: bool) -> None:
        self.start = start
        self.shape = shape
        """How its values are read; None if nothing of it is shown before its end."""
        self.inside = inside
        """Whether it is in an element of a list, which `partial` shows only as a whole."""
        self.is_closed = False
        self.expected: _Expected = "key or end" if is_object else "value or end"
        self.key: str | int = "" if is_object else 0
        """Of the value that is open or next."""
        self.pending: list[tuple[str | int, int, int, _Node | None]] = []
        """Values that are complete, but not yet validated: keys, ends, and objects or lists."""
        self.values: Any = {} if is_object else []
        self.known_size, self.known = 0, None
        """How much of a long container was shown last, and what was made of it."""


class Reader:
    """Reads an answer piece by piece, and makes its partials."""

    def __init__(self, structure: Structure) -> None:
        self.pieces_read = 0
        """How many pieces were read."""
        self._structure = structure
        self._plan: Plan = (SchemaPlan if structure.core is None else TypePlan).of(structure)
        self._text = io.StringIO()
        self._size = self._token = self._starts = 0
        self._mode: Literal["start", "space", "string", "word", "end"] = "start"
        self._is_blank, self._is_escaped, self._is_shown = True, False, False
        self._stack: list[_Node] = []
        self._root: _Node | None = None
        self._whole: Any = ABSENT
        self._grown: tuple[int, int, str] = (-1, 0, "")
        """The open string: where it begins, how far it was decoded, and its text."""
        self._versions = [0, 0]
        self._known: list[tuple[int, Any]] = [(-1, None), (-1, None)]

    def feed(self, piece: str) -> None:
        """Read the next piece of the answer."""
        self.pieces_read += 1
        self._text.seek(self._size)
        self._text.write(piece)
        begin, self._size = self._size, self._size + len(piece)
        while (failed := self._read(piece, begin)) and self._can_restart():
            # Read again behind the bracket that began no JSON.
            begin = self._stack[0].start + 1
            self._note(inside=False)
            self._stack.clear()
            self._root, self._mode, self._is_escaped, self._is_shown = None, "start", False, False
            piece = self._slice(begin, self._size)
        if failed:
            self._mode = "end"

    def _can_restart(self) -> bool:
        self._starts += 1
        return self._starts <= MOST_STARTS and not (self._is_shown and self._stack[0].shape is not None)

    def _read(self, piece: str, begin: int) -> bool:
        """Read a text that begins at a place of the answer. Returns whether it is no JSON."""
        at, size = 0, len(piece)
        while at < size and self._mode != "end":
            if self._mode == "start":
                at = self._find_start(piece, at, begin)
            elif self._mode == "string":
                at = self._read_string(piece, at, begin)
            elif self._mode == "word":
                at = _end_of(_WORD, piece, at)
                if at < size and not self._end_value(begin + at):
                    return True
            else:
                at = _end_of(_SPACE, piece, at)
                if at < size:
                    if not self._read_mark(piece[at], begin + at):
                        return True
                    at += piece[at] in _MARKS
        return False

    def _find_start(self, piece: str, at: int, begin: int) -> int:
        """Begin the value of the answer where it may begin, and return where reading goes on."""
        first = _end_of(_SPACE, piece, at)
        if first == len(piece):
            return first
        is_first, self._is_blank = self._is_blank, False
        if is_first and piece[first] == '"' and not self._structure.is_object:
            self._token, self._mode = begin + first, "string"
            return first + 1
        bracket = _START.search(piece, at)
        if bracket is None:
            return len(piece)
        is_object = bracket[0] == "{"
        shape = shape_of_answer(self._structure, self._plan, is_object=is_object)
        is_whole = is_first and bracket.start() == first and self._structure.schema is not None
        if self._structure.is_object and not is_object and not is_whole:
            # An object may come later, and count.
            shape = None
        self._root = _Node(begin + bracket.start(), shape, is_object=is_object, inside=False)
        self._stack.append(self._root)
        self._mode = "space"
        return bracket.end()

    def _read_string(self, piece: str, at: int, begin: int) -> int:
        self._versions[1] += 1
        if self._is_escaped:
            self._is_escaped = False
            return at + 1
        at = _end_of(_STRING, piece, at)
        if at < len(piece):
            if piece[at] == "\\":
                self._is_escaped = True
            else:
                self._end_string(begin + at + 1)
        return at + 1

    def _end_string(self, end: int) -> None:
        self._mode = "space"
        node = self._stack[-1] if self._stack else None
        if node is None or not node.expected.startswith("key"):
            self._end_value(end)
            return
        node.expected = "colon"
        if node.shape is not None:
            try:
                node.key = json.loads(self._slice(self._token, end), strict=False)
            except ValueError:  # an escape that does not exist: this is no JSON
                self._mode = "end"
            if node.shape.decide is not None:
                node.shape = node.shape.decide(str(node.key))

    def _read_mark(self, mark: str, at: int) -> bool:
        """Read a character between strings and numbers. Returns whether JSON may have it here."""
        node = self._stack[-1]
        expected, is_object = node.expected, isinstance(node.values, dict)
        if mark == '"':
            self._token, self._mode = at, "string"
            self._versions[1] += 1
            return expected not in ("colon", "comma or end")
        if mark in "]}":
            if is_object is not (mark == "}") or not expected.endswith(" end"):
                return False
            closed = self._stack.pop()
            closed.is_closed, self._token = True, closed.start
            self._end_value(at + 1, closed)
        elif mark in ":,":
            wanted: _Expected = "colon" if mark == ":" else "comma or end"
            node.expected = "key" if is_object and mark == "," else "value"
            if not self._is_shown:
                self._note(inside=node.inside)
            return expected == wanted
        elif not expected.startswith("value"):
            return False
        elif mark in "[{":
            inside = node.inside or not is_object
            plan = None if node.shape is None else node.shape.child(node.key)
            shape = None if plan is None or len(self._stack) >= DEEPEST else plan[1].shape(mark)
            self._stack.append(_Node(at, shape, is_object=mark == "{", inside=inside))
            self._note(inside=inside)
        else:
            self._token, self._mode = at, "word"
            return _WORD.fullmatch(mark) is not None
        return True

    def _end_value(self, end: int, closed: _Node | None = None) -> bool:
        """Take the value that ends at a place. Returns whether it is one."""
        start, is_word = self._token, self._mode == "word"
        self._mode = "space"
        if is_word and not _WORDS.fullmatch(self._slice(start, end)):
            return False
        if not self._stack:
            self._mode, root = "end", self._root
            self._versions = [version + 1 for version in self._versions]
            is_aside = root is None or (
                root.shape is None and self._structure.is_object and root.values == []
            )
            if root is None or not is_aside:
                with contextlib.suppress(NoMatchError):
                    self._whole = read(self._slice(0, end), self._structure).value
            if self._whole is ABSENT and is_aside:
                # A text or a list among words, whose JSON comes later.
                self._mode, self._root, self._is_shown = "start", None, False
            return True
        node = self._stack[-1]
        node.expected = "comma or end"
        if node.shape is not None:
            is_kept = closed is not None and closed.shape is not None and not closed.inside
            node.pending.append((node.key, start, end, closed if is_kept else None))
            if node.key == node.shape.tag:
                self._choose(node)
            self._note(inside=node.inside)
        if isinstance(node.key, int):
            node.key += 1
        return True

    def _choose(self, node: _Node) -> None:
        """Choose the shape of an object whose field says which one it has, once this field has ended."""
        while node.shape is not None and (tag := node.shape.tag) is not None:
            ends = next((each[1:3] for each in node.pending if each[0] == tag), None)
            if ends is None:
                break
            node.shape = node.shape.choose(self._slice(*ends))

    def _note(self, *, inside: bool) -> None:
        """Note that there is more to show, though not in `partial` if it is inside of a list's element."""
        self._versions[0] += not (inside and self._is_shown)
        self._versions[1] += 1
        self._is_shown = True

    def _slice(self, start: int, end: int) -> str:
        self._text.seek(start)
        return self._text.read(end - start)

    def partial(self, *, with_text: bool) -> Any:
        """The answer so far; None where nothing of it is known."""
        version, value = self._known[with_text]
        if version != self._versions[with_text]:
            value = self._whole
            if value is ABSENT and self._root is not None and self._is_shown:
                value = self._build(self._root, 0, with_text=with_text)
            elif value is ABSENT and with_text and self._mode == "string" and self._root is None:
                value = self._grow(self._plan)
            value = None if value is ABSENT else value
            self._known[with_text] = self._versions[with_text], value
        return value

    def _build(self, node: _Node, depth: int, *, with_text: bool) -> Any:
        """A new container with the values of a node so far."""
        shape = node.shape
        if shape is None or shape.tag is not None:
            return ABSENT
        self._settle(node, shape, with_text=with_text)
        is_object, step = isinstance(node.values, dict), len(node.values).bit_length() - _MOST_BITS
        if step > 0 and not node.is_closed:
            size = len(node.values) >> step << step
            if node.known_size != size:
                first = itertools.islice(node.values.items() if is_object else node.values, size)
                node.known_size, node.known = size, shape.make(dict(first) if is_object else list(first))
            return node.known
        values = node.values.copy()
        child = None if node.is_closed else shape.child(node.key)
        if child is not None and (is_object or (with_text and len(values) == node.key)):
            value: Any = ABSENT
            if depth + 1 < len(self._stack):
                value = self._build(self._stack[depth + 1], depth + 1, with_text=with_text)
            elif with_text and self._mode == "string" and node.expected.startswith("value"):
                value = self._grow(child[1])
            if value is not ABSENT and is_object:
                values[child[0]] = value
            elif value is not ABSENT:
                values.append(value)
        return shape.make(values)

    def _settle(self, node: _Node, shape: Shape, *, with_text: bool) -> None:
        """Validate the values that ended since the last partial."""
        for key, start, end, inner in node.pending:
            child = shape.child(key)
            if child is None:
                continue
            name, plan = child
            try:
                value = plan.load(self._slice(start, end))
            except Exception:
                # A validator may raise anything. The answer as a whole will not match, and `parsed` says why.
                value = ABSENT if inner is None else self._build(inner, len(self._stack), with_text=with_text)
            if isinstance(node.values, dict):
                if value is not ABSENT:
                    node.values[name] = value
            elif value is not ABSENT and len(node.values) == key:
                node.values.append(value)
        node.pending.clear()

    def _grow(self, plan: Plan) -> Any:
        """The text of the open string so far; `ABSENT` if it is more than a text."""
        if not plan.grows:
            return ABSENT
        start, to, text = self._grown
        if start != self._token:
            to, text = self._token + 1, ""
        length = self._size - self._token - 1
        step = max(0, length.bit_length() - _TEXT_BITS)
        raw = self._slice(to, self._token + 1 + (length >> step << step))
        known = raw[: _end_of(_WHOLE_ESCAPES, raw, 0)]
        piece: str = json.loads(f'"{known}"', strict=False)
        if piece and "\ud7ff" < piece[-1] < "\udc00" and len(known) >= 6:
            known = known[:-6]
            piece = json.loads(f'"{known}"', strict=False)
        self._grown = self._token, to + len(known), text + piece
        return text + piece


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()
