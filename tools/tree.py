"""Writes the tree of the package in docs/design.md from its folders and their first lines: `make tree`."""

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "llm_provider"
PAGE = ROOT / "docs" / "design.md"
FIRST = "<!-- The tree is written by `make tree`. -->\n"
LAST = "<!-- the end of the tree -->\n"


def page() -> str:
    """The page with the tree made anew between the two marks; the rest stays."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(FIRST)
    return f"{before}{FIRST}\n{''.join(_lines())}\n{LAST}{rest.partition(LAST)[2]}"


def _lines() -> Iterator[str]:
    yield "    src/llm_provider/\n"
    for folder in sorted(path.parent for path in PACKAGE.rglob("__init__.py")):
        path = folder.relative_to(PACKAGE)
        module = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
        what = (ast.get_docstring(module) or "").partition("\n")[0].rstrip(".")
        names = ", ".join(sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__"))
        indent = "      " + "  " * len(path.parts)
        name = f"{path.name}/ " if path.parts else ""
        text = f"{name}{what}{': ' if names else ''}{names}"
        yield textwrap.fill(text, 116, initial_indent=indent, subsequent_indent=f"{indent}    ") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
