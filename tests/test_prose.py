"""Names of functions are verbs, and no sentence of comments, docstrings and messages must be read twice."""

import ast
import re
from pathlib import Path

from support import parse_module
from tools.size import LIBRARY, is_participle, list_functions

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "tools").rglob("*.py"),
    *(ROOT / "docs").glob("*.md"),
    *ROOT.glob("*.md"),
]

TANGLED = re.compile(r"\b(of which|of whom|by which [^.]* of)\b", re.IGNORECASE)
"""Phrases that refer back to a word which the reader has to look for."""


def read_prose(path: Path) -> str:
    """The text of a file on one line, without the signs of comments at the beginning of its lines."""
    return re.sub(r"\s+#?\s*", " ", path.read_text(encoding="utf-8"))


def test_no_sentence_refers_back() -> None:
    tangled = {path: TANGLED.findall(read_prose(path)) for path in PAGES}
    assert {path.relative_to(ROOT): phrases for path, phrases in tangled.items() if phrases} == {}


def test_tangled_phrases_are_found() -> None:
    assert TANGLED.search("words, of which the beginning is enough")
    assert TANGLED.search("the way by which parts of it go")
    assert not TANGLED.search("the way by which it goes. A part of it")


NAMED_BY_OTHERS = {"served_model_usage": "a method that inspect_ai calls"}
"""Function that a participle names → the reason."""


def test_no_function_is_named_by_a_participle() -> None:
    names = {name for path in LIBRARY.rglob("*.py") for name in list_functions(parse_module(path))}
    assert {name for name in names if is_participle(name)} == set(NAMED_BY_OTHERS)


VAGUE = frozenset(
    {"asked", "chosen", "dollars", "found", "front", "one", "place", "places", "shown", "taken", "told"}
)
"""Words that had several meanings each, as names of values. A name says what the value is."""


def list_names(path: Path) -> set[str]:
    """The variables, arguments and attributes that a module sets."""
    nodes = list(ast.walk(parse_module(path)))
    variables = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    attributes = {
        node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    return variables | attributes | {node.arg for node in nodes if isinstance(node, ast.arg)}


PUBLIC = {"_features/cache_care/maintenance.py": {"asked"}}
"""`Difference.asked` is public: what a call asks, beside what is stored."""


def test_no_value_has_a_vague_name() -> None:
    modules = {path.relative_to(LIBRARY).as_posix(): list_names(path) for path in LIBRARY.rglob("*.py")}
    vague = {
        module: {name for name in names if name.strip("_") in VAGUE} for module, names in modules.items()
    }
    assert {module: names for module, names in vague.items() if names} == PUBLIC
