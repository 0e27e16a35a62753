"""Counts the lines of this repository, and the functions that a participle names: `make size`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "llm_provider"

VERBS = frozenset({"aembed", "embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed", "succeed"})
"""Words that end like a participle and are a verb or a noun."""

# Without those that are verbs too, such as "put", "read" and "set".
IRREGULAR = frozenset({
    "begun", "bought", "broken", "brought", "built", "chosen", "done", "drawn", "found", "frozen",
    "given", "gone", "grown", "had", "heard", "held", "kept", "known", "laid", "led", "left", "lent",
    "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "spent", "stolen", "taken",
    "taught", "thought", "thrown", "told", "understood", "won", "worn", "written",
})  # fmt: skip


def main() -> None:
    """Print the table."""
    simulator = LIBRARY / "simulator"
    library = [path for path in LIBRARY.rglob("*.py") if simulator not in path.parents]
    parts: dict[str, Iterable[Path]] = {
        "library without simulator": library,
        "simulator": simulator.rglob("*.py"),
        "stubs (.pyi)": LIBRARY.rglob("*.pyi"),
        **{folder: (ROOT / folder).rglob("*.py") for folder in ("tests", "benchmarks", "tools")},
    }
    for name, paths in parts.items():
        print(f"{name:27}{sum(map(count_lines, paths)):7,} lines")
    for part, paths in (("library", library), ("simulator", simulator.rglob("*.py"))):
        trees = (ast.parse(path.read_text(encoding="utf-8")) for path in paths)
        names = [name for tree in trees for name in list_functions(tree)]
        participles = sum(map(is_participle, names))
        share = f"{participles} ({participles / len(names):.1%})"
        print(f"{f'functions of the {part}':27}{len(names):7,}, a participle names {share}")
    uses = sum(count_any(path.read_text(encoding="utf-8")) for path in library)
    print(f"{'uses of Any there':27}{uses:7,}")


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
