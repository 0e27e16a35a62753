"""Draws small bugs by seed: what one wrong line of the library could be. `tools.mutants` tries them."""

from __future__ import annotations

import ast
import functools
import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/llm_provider"

AREAS: dict[str, tuple[str, ...]] = {
    "engine": ("_core/journey",),
    "cache": ("_core/store", "_core/runtime/leases.py", "_core/runtime/files.py", "_features/second_level"),
    "batches": ("_core/batches",),
    "money": ("_core/money", "_features/shared_budget"),
    "limits": ("_core/pace", "_features/shared_pace", "_features/user_limits"),
}
"""The folders and modules of each area."""

CALLS = {
    "missing fsync": re.compile(r"(^|_)(f?sync|flush)"),
    "dropped await or renewal": re.compile(r"(^|_)(renew|touch|extend|wake|notify|set_result|refresh)"),
    "removed release": re.compile(
        r"(^|_)(release|close|cancel|end|leave|withdraw|unlock|free|clear|discard|pop)(_|$)"
    ),
}
"""What a call is for whose value nobody uses, by its name. Any other records something."""

QUIET = re.compile(r"(self\.)?_?(log|logger|logging)\.|.*\bwarn|super\(\)|print\b")
"""Functions that only tell people something."""

FIXED = re.compile(r"TYPE_CHECKING|sys\.platform|os\.name|fcntl|msvcrt|hasattr\(")
"""Conditions that never change on one machine."""

MOMENTS = re.compile(
    r"now|time|clock|second|until|since|age\b|deadline|delay|_at\b|wait|due|patience|latency", re.IGNORECASE
)
"""Values that are never exactly equal: `<` is as good as `<=`."""

SYMMETRIC = frozenset({
    "add", "cast", "gcd", "getattr", "isinstance", "issubclass", "max", "min", "multiply", "partial",
    "range", "suppress", "zip",
})  # fmt: skip
"""Functions whose swapped arguments change nothing, or stop every program."""

CHECKED = frozenset({"strict", "init", "repr", "eq", "slots", "kw_only", "frozen", "appauthor", "uri"})
"""Arguments that only forbid what no caller does, or that other systems need: Windows, or other SQLites."""

LARGE = 100
"""In a bound of a size from here on, one more changes nothing."""

COMPARED = {
    ast.Lt: ("<", "<=", ">"),
    ast.LtE: ("<=", "<", ">="),
    ast.Gt: (">", ">=", "<"),
    ast.GtE: (">=", ">", "<="),
}
"""A comparison, the same off by one, and swapped."""

Change = tuple[str, int, int, str]
"""A kind of bug, and what stands in place of the bytes from one place to another."""


@dataclass(frozen=True)
class Mutant:
    """One small bug: `text` stands in place of the bytes of a module from `begin` to `end`."""

    kind: str
    path: str
    begin: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """The module with the bug."""
        return source[: self.begin] + self.text.encode() + source[self.end :]

    def find_line(self, source: bytes) -> int:
        """The number of the line where the bug begins."""
        return source[: self.begin].count(b"\n") + 1

    def show(self, source: bytes) -> str:
        """The line before and after. A mark stands for further lines."""
        line = self.find_line(source) - 1
        before, after = (each.splitlines()[line].decode().strip() for each in (source, self.apply(source)))
        more = " …" if b"\n" in source[self.begin : self.end] else ""
        return f"{before}{more} → {after}"


def find_mutants(source: bytes, path: str = "") -> list[Mutant]:
    r"""Every small bug that a module can have.

    >>> code = b"def take(self, n: int = 1):\n    if n < len(self.free):\n        self.wake(n)\n"
    >>> for mutant in find_mutants(code):
    ...     print(mutant.find_line(code), mutant.kind, mutant.show(code), sep=": ")
    1: wrong default: def take(self, n: int = 1): → def take(self, n: int = 2):
    2: off by one: if n < len(self.free): → if n <= len(self.free):
    2: swapped comparison: if n < len(self.free): → if n > len(self.free):
    2: condition turned: if n < len(self.free): → if not (n < len(self.free)):
    3: dropped await or renewal: self.wake(n) → pass
    """
    changes = _Finder(source).find(ast.parse(source))
    return [Mutant(kind, path, begin, end, text) for kind, begin, end, text in changes]


class _Finder:
    """Finds the places of one module where a small bug is possible."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        lines = source.splitlines(keepends=True)
        self._starts = list(itertools.accumulate(map(len, lines), initial=0))
        self._large = _list_large_bounds(source) | _list_public_bounds()
        """Bounds of sizes: one more is as good."""
        self._beside_large: set[ast.expr] = set()
        """Literals that are compared with one, as `0` in `(count or 0) > MOST`."""
        self._excluded = {number for number, line in enumerate(lines, 1) if b"pragma: no cover" in line}

    def find(self, node: ast.AST) -> Iterator[Change]:
        """Every change below a node, without annotations, errors, and what only tells people something."""
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not self._is_skipped(name, child):
                    yield from self._change(name, child, node)
                    yield from self.find(child)

    def _is_skipped(self, name: str, node: ast.AST) -> bool:
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            return True
        if getattr(node, "lineno", None) in self._excluded:
            return True
        if isinstance(node, ast.If | ast.IfExp):
            return FIXED.search(self._text(node.test)) is not None
        if isinstance(node, ast.FunctionDef):
            return node.name in ("__repr__", "__str__", "__dir__", "__reduce__")
        if isinstance(node, ast.Expr):
            return self._is_skipped("value", node.value)
        if isinstance(node, ast.Call):
            return QUIET.match(self._text(node.func)) is not None
        return isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr)

    def _change(self, name: str, node: ast.AST, parent: ast.AST) -> Iterator[Change]:
        if isinstance(node, ast.stmt):
            yield from self._drop(name, node, parent)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED and len(node.ops) == 1:
            yield from self._change_comparison(node)
            if self._is_large(node):
                operands = [
                    value for value in (node.left, *node.comparators) if isinstance(value, ast.BoolOp)
                ]
                self._beside_large.update(value for operand in operands for value in operand.values)
        elif isinstance(node, ast.BoolOp) and not isinstance(node.values[-1], ast.Constant):
            for place in (0, -1):
                values = [each for each in node.values if each is not node.values[place]]
                rest = ast.BoolOp(node.op, values) if values[1:] else values[0]
                yield "condition turned", *self._span(node), f"({ast.unparse(rest)})"
        elif isinstance(node, ast.Call):
            yield from self._swap(node)
        if not isinstance(node, ast.expr):
            return
        if name in ("test", "ifs") and not isinstance(parent, ast.While):
            yield "condition turned", *self._span(node), f"not ({self._text(node)})"
        kind, number = _judge_number(name, node, parent, self._text(node))
        is_beside_bound = node in self._beside_large or (
            isinstance(parent, ast.BinOp) and self._is_large(parent)
        )
        if kind is not None and not is_beside_bound:
            # The place -1 is the place 0 in a sequence of one.
            other = number - 1 if kind == "wrong index" and number else number + 1
            yield kind, *self._span(node), repr(not number if isinstance(number, bool) else other)

    def _drop(self, name: str, node: ast.stmt, parent: ast.AST) -> Iterator[Change]:
        """Leave a statement out whose value nobody uses."""
        kinds = ["forgotten record"]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
            is_awaited = isinstance(node.value, ast.Await)
            words = re.findall(r"\w+", self._text(node).partition("(")[0])
            kinds = [kind for kind, names in CALLS.items() if names.search("".join(words[-1:]))]
            kinds += ["dropped await or renewal" if is_awaited else "forgotten record"]
        elif isinstance(node, ast.Assign):
            if not isinstance(node.targets[0], ast.Attribute | ast.Subscript):
                return
        elif not isinstance(node, ast.AugAssign):
            return
        yield "removed release" if name == "finalbody" else kinds[0], *self._span(node), "pass"

    def _change_comparison(self, node: ast.Compare) -> Iterator[Change]:
        begin, end = self._span(node.left)[1], self._span(node.comparators[0])[0]
        between = self._source[begin:end].decode()
        sign, other, swapped = COMPARED[type(node.ops[0])]
        if not MOMENTS.search(self._text(node)) and not self._is_large(node):
            yield "off by one", begin, end, between.replace(sign, other)
        yield "swapped comparison", begin, end, between.replace(sign, swapped)

    def _swap(self, node: ast.Call) -> Iterator[Change]:
        """Swap two arguments that are names, or the least and the most."""
        function = self._text(node.func).rpartition(".")[2]
        if function in ("min", "max"):
            yield "swapped comparison", *self._span(node.func), "max" if function == "min" else "min"
        for values in (node.args, [keyword.value for keyword in node.keywords]):
            for one, two in itertools.pairwise(values):
                are_names = all(isinstance(each, ast.Name | ast.Attribute) for each in (one, two))
                if are_names and function not in SYMMETRIC and self._text(one) != self._text(two):
                    (begin, middle), (rest, end) = self._span(one), self._span(two)
                    text = f"{self._text(two)}{self._source[middle:rest].decode()}{self._text(one)}"
                    yield "swapped argument", begin, end, text

    def _is_large(self, node: ast.expr) -> bool:
        """Whether an expression has a large number or a large bound."""
        words = re.findall(r"\w+", self._text(node))
        return any(word in self._large or (word.isdigit() and int(word) >= LARGE) for word in words)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        last, column = node.end_lineno, node.end_col_offset
        assert last is not None
        assert column is not None
        return self._starts[node.lineno - 1] + node.col_offset, self._starts[last - 1] + column

    def _text(self, node: ast.expr | ast.stmt) -> str:
        begin, end = self._span(node)
        return self._source[begin:end].decode()


def _list_large_bounds(source: bytes) -> set[str]:
    """The constants of a module that are large numbers."""
    bounds = re.findall(rb"^(_?[A-Z][A-Z_]+)(?:: [^=]+)? = (\d[\d_]*)(?:\*\*(\d+))?", source, re.MULTILINE)
    return {name.decode() for name, size, power in bounds if int(size) ** int(power or 1) >= LARGE}


@functools.cache
def _list_public_bounds() -> frozenset[str]:
    """The large constants of all modules that other modules may import."""
    modules = (ROOT / PACKAGE).rglob("*.py")
    names = (name for module in modules for name in _list_large_bounds(module.read_bytes()))
    return frozenset(name for name in names if not name.startswith("_"))


def _judge_number(name: str, node: ast.expr, parent: ast.AST, text: str) -> tuple[str | None, float]:
    """What is wrong if a literal is another number. In a large one, one more changes nothing."""
    literal = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    if not isinstance(literal, ast.Constant) or not isinstance(literal.value, bool | int | float):
        return None, 0
    number = literal.value if literal is node else -literal.value
    is_default = isinstance(parent, ast.arguments | ast.BoolOp)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
        is_default = parent.func.attr in ("get", "pop", "setdefault")
    if isinstance(number, bool):
        is_default |= isinstance(parent, ast.keyword) and parent.arg not in CHECKED
        return "wrong default" if is_default else None, number
    if is_default:
        return "wrong default" if abs(number) < LARGE or text.startswith("0o") else None, number
    if isinstance(parent, ast.Subscript) and name == "slice":
        return "wrong index", number
    is_sum = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Sub)
    is_count = isinstance(number, int) and (is_sum or isinstance(parent, ast.Compare | ast.Slice))
    return "off by one" if is_count and abs(number) <= 2 else None, number


def list_modules(area: str) -> Iterator[str]:
    """The modules of an area, as paths below the repository."""
    for part in AREAS[area]:
        path = ROOT / PACKAGE / part
        for module in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield module.relative_to(ROOT).as_posix()


@functools.cache
def list_all() -> tuple[tuple[str, Mutant], ...]:
    """The area and every bug that it can have."""
    return tuple(
        (area, mutant)
        for area in AREAS
        for path in list_modules(area)
        for mutant in find_mutants((ROOT / path).read_bytes(), path)
    )


def draw(seed: int, count: int) -> list[Mutant]:
    """Bugs by seed: the kinds in turn, and for each kind the areas by chance, then the places.

    A kind that has few places, such as a missing fsync, is left out once it has none.
    """
    numbers = random.Random(seed)
    places: dict[str, dict[str, list[Mutant]]] = {}
    for area, mutant in list_all():
        places.setdefault(mutant.kind, {}).setdefault(area, []).append(mutant)
    mutants: list[Mutant] = []
    while places and len(mutants) < count:
        for kind in sorted(places)[: count - len(mutants)]:
            area = numbers.choice(sorted(places[kind]))
            mutants.append(places[kind][area].pop(numbers.randrange(len(places[kind][area]))))
            if not places[kind][area]:
                del places[kind][area]
        places = {kind: areas for kind, areas in places.items() if areas}
    return mutants
