"""Counts what the limits of this repository are about: `make size` prints it beside the limits.

python -m tools.size --write   # benchmarks/results/size.md, where `git log` shows how the counts changed
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "llm_provider"
RESULT = ROOT / "benchmarks" / "results" / "size.md"

SHORT = 60
"""A file with fewer lines says in its first lines why it is alone."""

VAGUE = re.compile(r"\b(?:those|that)\s+(?:#\s+)?of\b", re.IGNORECASE)
"""Words that stand where a sentence can name the thing again."""

LIMITS = {
    "lines of the library": 58_000,
    "lines of _core": 34_000,
    "lines of _features": 24_000,
    "files of the library": 300,
    "imports of features by the core, at the start": 0,
    "imports of features by the core, later": 0,
    "vague words in 10,000 lines of the library": 8,
}

VERBS = frozenset({"aembed", "embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed", "succeed"})
"""Words that end like a participle and are a verb or a noun."""

# Without those that are verbs too, such as "put", "read" and "set".
IRREGULAR = frozenset({
    "begun", "bought", "broken", "brought", "built", "chosen", "done", "drawn", "found", "frozen",
    "given", "gone", "grown", "had", "heard", "held", "kept", "known", "laid", "led", "left", "lent",
    "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "spent", "stolen", "taken",
    "taught", "thought", "thrown", "told", "understood", "won", "worn", "written",
})  # fmt: skip


NOTES = (
    "Written by `python -m tools.size --write`. The library is `src/llm_provider` without its simulator. "
    "A golden pair is data in `tests/data/golden`. The imports are pairs of a module of `_core` and one of "
    "`_features`, without imports for type checkers. Vague words are `those of` and `that of`, where a "
    "sentence can name the thing again."
)


def main() -> None:
    """Print the table, or write it."""
    rows = [
        f"| {name} | {figure:,} | {f'{LIMITS[name]:,}' if name in LIMITS else ''} |"
        for name, figure in list_figures()
    ]
    table = "\n".join(["| | | at most |", "|---|---:|---:|", *rows])
    if "--write" in sys.argv[1:]:
        RESULT.write_text(f"# The size of this repository\n\n{NOTES}\n\n{table}\n", encoding="utf-8")
    print(table)


def list_figures() -> Iterator[tuple[str, float]]:
    """Every count, by its name."""
    simulator = list((LIBRARY / "simulator").rglob("*.py"))
    library = [path for path in LIBRARY.rglob("*.py") if path not in simulator]
    core, features = (list((LIBRARY / part).rglob("*.py")) for part in ("_core", "_features"))
    lines = {
        "the library": library,
        "_core": core,
        "_features": features,
        "the simulator": simulator,
        "stubs": LIBRARY.rglob("*.pyi"),
        **{folder: (ROOT / folder).rglob("*.py") for folder in ("tests", "benchmarks", "tools")},
        "golden pairs": (ROOT / "tests" / "data" / "golden").rglob("*.json"),
        "other JSON of the tests": (
            path for path in (ROOT / "tests").rglob("*.json") if "golden" not in path.parts
        ),
    }
    for part, paths in lines.items():
        yield f"lines of {part}", sum(map(count_lines, paths))
    yield "files of the library", len(library)
    modules = [path for path in library if path.name != "__init__.py"]
    yield f"modules below {SHORT} lines", sum(count_lines(path) < SHORT for path in modules)
    found = [each for path in core for each in sorted(set(list_feature_imports(path)))]
    yield "imports of features by the core, at the start", sum(eager for _, eager in found)
    yield "imports of features by the core, later", sum(not eager for _, eager in found)
    docs = [*(ROOT / "docs").rglob("*.md")]
    for part, paths in {"the library": library, "docs": docs}.items():
        vague = sum(len(VAGUE.findall(path.read_text(encoding="utf-8"))) for path in paths)
        yield (
            f"vague words in 10,000 lines of {part}",
            round(vague / sum(map(count_lines, paths)) * 10_000, 1),
        )
    yield from list_names(library, "the library")
    yield from list_names(simulator, "the simulator")
    yield "uses of Any in the library", sum(count_any(path.read_text(encoding="utf-8")) for path in library)


def list_names(paths: Iterable[Path], part: str) -> Iterator[tuple[str, int]]:
    """How many functions there are, and how many of them a participle names."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in paths)
    names = [name for tree in trees for name in list_functions(tree)]
    yield f"functions of {part}", len(names)
    yield f"functions of {part} that a participle names", sum(map(is_participle, names))


def count_lines(path: Path) -> int:
    """The number of lines of a file, blank ones and comments included."""
    return len(path.read_text(encoding="utf-8").splitlines())


def list_functions(tree: ast.Module) -> Iterator[str]:
    r"""The name of every function and method in a module, without properties.

    >>> list(list_functions(ast.parse("def send(): ...\nclass A:\n  @property\n  def sent(self): ...")))
    ['send']
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not any(
            ast.unparse(decorator).endswith("property") for decorator in node.decorator_list
        ):
            yield node.name


def list_feature_imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Each module of `_features` that a module imports, and whether at its start."""
    package = ["llm_provider", *path.relative_to(LIBRARY).parts[:-1]]
    for name, eager in list_imports(ast.parse(path.read_text(encoding="utf-8")), package):
        parts = name.split(".")
        while len(parts) > 2 and not (ROOT / "src").joinpath(*parts).with_suffix(".py").exists():
            parts.pop()
        if parts[:2] == ["llm_provider", "_features"]:
            yield ".".join(parts[2:]), eager


def list_imports(node: ast.AST, package: Sequence[str], *, eager: bool = True) -> Iterator[tuple[str, bool]]:
    r"""Every absolute name that a module imports when it runs, and whether it does so at its start.

    >>> code = "from ..b import c\nif TYPE_CHECKING:\n  import d\nelse:\n  import e"
    >>> code += "\ndef f():\n  from . import g"
    >>> list(list_imports(ast.parse(code), ["p", "a"]))
    [('p.b.c', True), ('e', True), ('p.a.g', False)]
    """
    if isinstance(node, ast.Import):
        yield from ((alias.name, eager) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        yield from ((f"{source}.{alias.name}", eager) for alias in node.names)
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        children = node.orelse
    inside = eager and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in children:
        yield from list_imports(child, package, eager=inside)


def count_any(source: str) -> int:
    r"""How often a module uses `typing.Any`.

    >>> count_any("from typing import Any\nx: dict[str, Any]")
    1
    """
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(source)))


def is_participle(name: str) -> bool:
    """Whether a name begins with a participle.

    >>> [is_participle(name) for name in ("told", "_asked_again", "embed_many", "read")]
    [True, True, False, False]
    """
    word = name.strip("_").partition("_")[0]
    return word in IRREGULAR or (word.endswith("ed") and word not in VERBS)


if __name__ == "__main__":
    main()
