"""Each refusal of a parameter, a value or a part before anything is sent has its source beside it."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import llm_provider

_PACKAGE = Path(llm_provider.__file__).parent

_SOURCE = re.compile(
    r"[\w.-]+/[\w.-]+#\d|\w\.(ai|co|com|dev|io)/\w|\w\.(py|go|rs|cpp)\b|\w \d+\.\d"
    r'|\b(API reference|guide|documentation)\b|"[^"]{15,}"'
)
"""A report, a page, a module of an SDK, a server or our tables, a version of an SDK, a document, an error."""

_REFUSES = {"refuse", "_refuse", "_wrong", "problem"}
_CONTENT = ("messages", "foreign_messages", "embeddings")
"""Modules where each error is about what the provider takes."""

_FORM = re.compile(
    r"must (look|be|have)|cannot set|is not UTF-8|needs |has no (text|'source')|\.content: |not valid"
)
"""Words of an error about the form of a value, which no provider takes."""


def _refuses(node: ast.AST, *, content: bool) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            refuses = name in _REFUSES or (content and name == "RequestError")
            return refuses and not _FORM.search(ast.unparse(node))
        # A value with a name has its source where the name is defined.
        case ast.keyword(arg="lacks", value=ast.Call(func=ast.Name(id="frozenset"))):
            return True
        case ast.keyword(arg="models_lack", value=ast.Tuple()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.endswith("LACKS")
        case ast.Dict():
            return "lacks" in (getattr(key, "value", "") for key in node.keys)
    return False


def _places(tree: ast.AST, *, content: bool) -> Iterator[tuple[int, int]]:
    """The lines of each refusal, from the `if` around it on."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not _refuses(node, content=content):
            continue
        start = node
        while isinstance(node, ast.Call) and not isinstance(start, (ast.If, ast.FunctionDef)):
            start = parents[start]
        if getattr(start, "name", "") not in _REFUSES:
            yield start.lineno, node.end_lineno  # type: ignore[attr-defined]  # neither is a module


def _without_source(text: str, *, content: bool = False) -> list[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    missing = []
    for first, last in _places(ast.parse(text), content=content):
        above = first
        while above - 1 in comments:
            above -= 1
        beside = " ".join(comments.get(line, "").removeprefix("#") for line in range(above, last + 1))
        if not _SOURCE.search(beside):
            missing.append(last)
    return missing


def test_each_has_a_source_beside_it() -> None:
    modules = [*_PACKAGE.glob("_core/requests/*rout*.py"), *_PACKAGE.glob("_core/formats/**/*.py")]
    missing = {
        f"{path.relative_to(_PACKAGE)}:{line}"
        for path in modules
        for line in _without_source(path.read_text(encoding="utf-8"), content=path.stem in _CONTENT)
    }
    assert not missing


def test_one_without_a_source_is_found() -> None:
    refusal = 'def write(draft):\n    if draft.strange:\n        {}raise draft.refuse("top_k")\n'
    assert _without_source(refusal.format("")) == [3]
    assert _without_source(refusal.format("# It is strange.\n        ")) == [4]
    assert not _without_source(refusal.format("# owner/repository#12\n        "))
    assert _without_source('Route("a", lacks=frozenset({"n"}))\n') == [1]
    assert not _without_source('# docs.a.com/n\nRoute("a", lacks=frozenset({"n"}))\n')
