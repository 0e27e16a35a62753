"""Files, moves between them and upward calls of a call, a hit, a row of call_many and of a batch, and others.

The counts are the same on every machine and in every Python. A test fails if they grow. `--path call` lists
the files of one journey in the order in which they are entered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tools.layers import LAYERS, layer_of

from ..hot_path import environment
from ..journeys import FEW, LIMITS, MORE, Limit, Start, count, measured, module_of, moves, upward
from ..report import Cell, Result, Table
from . import Options

TEXT = (
    "Functions of the library alone, in all threads of a warm process, from the call of the user to its "
    "result. A *move* is the start of a function in another file than the start before it in the same "
    "thread; to return, or to go on after `await`, is no move. *Upward* are the pairs of files of which the "
    "first calls the second, which `tools/layers.py` has in a higher layer; *upward calls* counts each call. "
    "A batch takes no time in the simulator. `tests/benchmarks/test_journeys.py` fails if files, moves or "
    "upward pairs have grown. `python -m benchmarks journeys --path call` lists the files of a journey."
)
MOST = 30


def run(options: Options) -> Result:
    """Count every journey, or list the files of one."""
    return tell(measured(), options.path)


def tell(found: Mapping[str, Sequence[Start]], path: str | None) -> Result:
    """The result of all journeys, or the files of one."""
    if path is not None:
        if path not in found:
            raise SystemExit(f"there is no journey {path!r}; there are: {', '.join(found)}")
        starts = found[path]
        tables = [_path(path, starts), _pairs(starts), _functions(starts), _upward({path: starts})]
        return Result(title=f"The way of {path}", text=TEXT, tables=tables)
    counts = {name: count(starts) for name, starts in found.items()}
    few, more = (counts[f"call_many, {rows} rows"]["moves"] for rows in (FEW, MORE))
    further = f"Each row of `call_many` after the first {FEW}: {(more - few) / (MORE - FEW):.0f} moves."
    return Result(
        title="The way of a call through the library",
        text=TEXT,
        tables=[_counts(counts, further), _upward(found)],
        data={"environment": environment(), "counts": counts},
    )


def _counts(counts: Mapping[str, Mapping[str, int]], note: str) -> Table:
    rows: list[list[Cell]] = []
    for name, now in counts.items():
        limited = [(now[kind], getattr(LIMITS.get(name), kind, None)) for kind in Limit._fields]
        rows.append(
            [name, *(cell for pair in limited for cell in pair), now["upward calls"], now["functions"]]
        )
    columns = (
        "journey",
        *(name for kind in Limit._fields for name in (kind, "≤")),
        "upward calls",
        "functions",
    )
    return Table(title="Counts, and their limits", columns=columns, rows=rows, notes=[note])


def _upward(found: Mapping[str, Sequence[Start]]) -> Table:
    calls = {name: upward(starts) for name, starts in found.items()}
    pairs = sorted({pair for each in calls.values() for pair in each})
    rows = [[*pair, *(each[pair] or None for each in calls.values())] for pair in pairs]
    return Table(title="Upward calls", columns=("from", "to", *calls), rows=rows)


def _path(name: str, starts: Sequence[Start]) -> Table:
    entered = Counter(start.file for _, start in moves(starts))
    callers: dict[str, str] = {}
    functions: dict[str, set[str]] = {}
    for start in starts:
        callers.setdefault(start.file, start.caller)
        functions.setdefault(start.file, set()).add(start.function)
    rows = [
        [place, file, LAYERS[layer_of(module_of(file))], entered[file], len(functions[file]), callers[file]]
        for place, file in enumerate(functions, start=1)
    ]
    columns = ("", "file", "layer", "moves into it", "functions", "first called by")
    return Table(title=f"Files in the order in which {name} enters them", columns=columns, rows=rows)


def _pairs(starts: Sequence[Start]) -> Table:
    """What it would save to make one file of two."""
    between = Counter(tuple(sorted((before, start.file))) for before, start in moves(starts))
    rows = [[*pair, number] for pair, number in between.most_common(MOST)]
    return Table(title="Pairs with the most moves between them", columns=("file", "file", "moves"), rows=rows)


def _functions(starts: Sequence[Start]) -> Table:
    """What it would save to make an attribute of a function, or to write it where it is called."""
    into = Counter((start.file, start.function) for _, start in moves(starts))
    rows = [[*function, number] for function, number in into.most_common(MOST)]
    columns = ("file", "function", "moves")
    return Table(title="Functions with the most moves into them", columns=columns, rows=rows)
