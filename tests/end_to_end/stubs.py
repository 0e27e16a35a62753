"""Writes what editors and `help` show of the public functions, from `_requests/parameters`: `make stubs`.

The functions of `STUBBED` take `**parameters: Unpack[Parameters]`. Their stubs and the tables of
`_requests/signatures` name each of these parameters with its type and one line of documentation. The stub of
a function that returns responses has one more overload, which gives `Response.parsed` the type in
`response_format`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[2] / "src" / "llm_provider"
STUBBED = (
    "_client/model_functions",
    "_client/functions",
    "_client/client",
    "_client/batch_methods",
    "_client/embed_methods",
    "_client/count_methods",
)
PARAMETERS = PACKAGE / "_requests" / "parameters.py"
SIGNATURES = PACKAGE / "_requests" / "signatures.py"
START = "# fmt: off\n"
WIDTH = 96
"""Characters of a line of documentation, without its indentation."""
HEADER = '"""Written by `make stubs` from {module}.py and _requests/parameters.py."""\n'

TYPED = {
    "Response": "Response[T]",
    "Result": "Response[T] | LLMError",
    "Stream": "Stream[T]",
    "AsyncStream": "AsyncStream[T]",
}
"""The types that know the type of `parsed`."""
TYPED_IMPORTS = {
    "TypeForm": "from typing_extensions import TypeForm",
    "TypeVar": "from typing import TypeVar",
    "overload": "from typing import overload",
    "LLMError": "from llm_provider._errors import LLMError",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def tables() -> tuple[dict[str, str], dict[str, dict[str, tuple[str, str]]]]:
    """The base of each class of parameters, and its own: name → (type, entry of a docstring)."""
    bases, groups = {}, {}
    for node in tree_of(PARAMETERS).body:
        if not isinstance(node, ast.ClassDef):
            continue
        base = ast.unparse(node.bases[0])
        if base != "TypedDict":
            bases[node.name] = base
        group = {}
        for entry, comment in zip(node.body, node.body[1:], strict=False):
            if isinstance(entry, ast.AnnAssign):
                kind = ast.unparse(entry.annotation)
                name = ast.unparse(entry.target)
                line = f"{name}: {first_sentence(docstring_of(comment))}"
                group[name] = kind, "\n    ".join(textwrap.wrap(line, WIDTH, break_on_hyphens=False))
        groups[node.name] = group
    return bases, groups


def docstring_of(node: ast.stmt) -> str:
    assert isinstance(node, ast.Expr), "every parameter has a docstring"
    assert isinstance(node.value, ast.Constant), "every parameter has a docstring"
    return str(node.value.value)


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, in one line.

    >>> first_sentence('Seconds, up to 0.5, for\\n    one call. More.')
    'Seconds, up to 0.5, for one call.'
    """
    return re.split(r"(?<=\.) +(?=[A-Z`\"])", " ".join(text.split()))[0]


def signatures() -> str:
    """The text of `_signatures.py` with the tables that belong into it."""
    fixed = SIGNATURES.read_text(encoding="utf-8").partition(START)[0]
    bases, groups = tables()
    lines = [
        START,
        f"BASES: Mapping[str, str] = {bases!r}",
        "GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {",
    ]
    for group, entries in groups.items():
        lines.append(f"    {group!r}: {{")
        for name, (kind, line) in entries.items():
            lines += [f"        {name!r}: ({kind!r},", f"            {line!r}),"]
        lines.append("    },")
    return fixed + "\n".join(lines) + "\n}\n"


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """What a module imports: the name, and the statement that a stub imports it with."""
    folder = path.relative_to(PACKAGE).parts[:-1]
    statements = list(tree_of(path).body)
    for node in statements:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            statements += node.body
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0], f"import {alias.name}"
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            above = folder[: len(folder) - (node.level - 1)] if node.level else ()
            package = ["llm_provider", *above] if node.level else []
            module = ".".join([*package, node.module or ""])
            for alias in node.names:
                yield alias.asname or alias.name, f"from {module} import {alias.name}"


def stub(module: str) -> str:
    """The stub of a module: its names, with functions that list their parameters."""
    source = PACKAGE / f"{module}.py"
    body = "\n".join(_declared(tree_of(source).body, "", tables()))
    if "TypeForm[T]" in body and "T = TypeVar" not in body:
        body = f"T = TypeVar('T')\n\n{body}"
    used = set(re.findall(r"\w+", re.sub(r'""".*?"""', "", body, flags=re.DOTALL)))
    lines = {line for path in (source, PARAMETERS) for name, line in imported(path) if name in used}
    lines |= {line for name, line in TYPED_IMPORTS.items() if name in used}
    imports = "\n".join(sorted(lines, key=lambda line: (line.startswith("from llm_provider"), line)))
    return f"{HEADER.format(module=module)}\n{imports}\n\n{body}\n"


def _declared(statements: Sequence[ast.stmt], indent: str, known: Any) -> Iterator[str]:
    functions = [node for node in statements if isinstance(node, Function)]
    overloaded = {node.name for node in functions if _is_overload(node)}
    documentation = {node.name: node for node in functions}
    for node in statements:
        if isinstance(node, ast.ClassDef):
            bases = ", ".join(map(ast.unparse, node.bases))
            yield f"{indent}class {node.name}({bases}):"
            yield from _documentation(node, indent + "    ")
            yield from _declared(node.body, indent + "    ", known)
            yield ""
        elif isinstance(node, Function):
            if _is_overload(node) or (node.name not in overloaded and (indent or node.name[0] != "_")):
                # The implementation of an overloaded function comes last, and has its docstring.
                yield from _overloads(node, indent, known, documentation[node.name])
        elif isinstance(node, ast.AnnAssign) and (indent or not ast.unparse(node.target).startswith("_")):
            value = f" = {ast.unparse(node.value)}" if node.value and not indent else ""
            yield f"{indent}{ast.unparse(node.target)}: {ast.unparse(node.annotation)}{value}"
        elif isinstance(node, ast.Assign) and re.match(r"(TypeVar\(|Literal\[)", ast.unparse(node.value)):
            yield f"{indent}{ast.unparse(node)}"


def _is_overload(node: Function) -> bool:
    return any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)


def _overloads(node: Function, indent: str, known: Any, documented: Function) -> Iterator[str]:
    returned = ast.unparse(node.returns) if node.returns else "None"
    with_type = re.sub(r"\b(\w+)\b", lambda found: TYPED.get(found[1], found[1]), returned)
    takes_type = any(name == "response_format" for name, _, _ in parameters_of(group_of(node.args), *known))
    if takes_type and with_type != returned:
        yield from _function(node, indent, known, documented, with_type, typed=True)
        if not _is_overload(node):
            yield f"{indent}@overload"
    yield from _function(node, indent, known, documented, returned)


def _function(
    node: Function, indent: str, known: Any, documented: Function, returned: str, *, typed: bool = False
) -> Iterator[str]:
    inner = indent + "    "
    if typed and not _is_overload(node):
        yield f"{indent}@overload"
    for decorator in node.decorator_list:
        if ast.unparse(decorator) != "with_parameters":
            yield f"{indent}@{ast.unparse(decorator)}"
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    yield f"{indent}{word} {node.name}("
    yield from (f"{inner}{argument}," for argument in _arguments(node.args, known, typed=typed))
    yield f"{indent}) -> {returned}:"
    yield from _documentation(documented, inner)
    yield f"{inner}..."
    yield ""


def _arguments(given: ast.arguments, known: Any, *, typed: bool) -> Iterator[str]:
    missing = len(given.args) - len(given.defaults)
    for place, argument in enumerate(given.args):
        default = given.defaults[place - missing] if place >= missing else None
        yield _argument(argument, default)
    group = group_of(given)
    if given.kwonlyargs or group:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(argument, default)
    for name, kind, _ in parameters_of(group, *known):
        yield (
            "response_format: TypeForm[T]"
            if typed and name == "response_format"
            else f"{name}: {kind} = None"
        )
    if given.kwarg and not group:
        yield f"**{_argument(given.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    return argument.arg + annotation + (f" = {ast.unparse(default)}" if default else "")


def group_of(given: ast.arguments) -> str:
    """The class of parameters that a function takes; empty if it takes none."""
    found = (
        given.kwarg
        and given.kwarg.annotation
        and re.fullmatch(r"Unpack\[(\w+)\]", ast.unparse(given.kwarg.annotation))
    )
    return found[1] if found else ""


def parameters_of(
    group: str, bases: dict[str, str], groups: dict[str, dict[str, tuple[str, str]]]
) -> Iterator[tuple[str, str, str]]:
    if not group:
        return
    if group in bases:
        inherited = parameters_of(bases[group], bases, groups)
        yield from (entry for entry in inherited if entry[0] not in groups[group])
    yield from ((name, kind, line) for name, (kind, line) in groups[group].items())


def _documentation(node: Function | ast.ClassDef, indent: str) -> Iterator[str]:
    from llm_provider._requests.signatures import documented

    text = ast.get_docstring(node, clean=False)
    if text is None:
        return
    holder: Any = node
    if isinstance(node, ast.ClassDef):
        made = [entry for entry in node.body if isinstance(entry, Function) and entry.name == "__init__"]
        holder = made[0] if made else None
    group = group_of(holder.args) if holder is not None else ""
    if group:
        text = documented(text, group, holder.args.kwarg.arg)
    yield f'{indent}"""{text}"""'


def written() -> dict[Path, str]:
    """Every file that `make stubs` writes, and its text."""
    return {SIGNATURES: signatures(), **{PACKAGE / f"{module}.pyi": stub(module) for module in STUBBED}}


def main() -> None:
    SIGNATURES.write_text(signatures(), encoding="utf-8")
    # The docstrings of the stubs have the lines of the new tables.
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
