"""Lets the API reference show the parameters that a reader can write.

The functions take `**parameters: Unpack[Parameters]`, and `make stubs` writes stubs (`*.pyi`) that name each
parameter with its type and its documentation. griffe takes only the annotations from stubs. This extension
takes the parameters and the docstrings too. It also marks the examples in docstrings as code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^>>> .*\n(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)
PAGE = re.compile(r"`?docs/([\w-]+)\.md`?")
ROLE = re.compile(r":(?:class|func|meth|mod):`~?([^`]+)`")


class Stubs(griffe.Extension):
    """Replaces `**parameters` by the parameters of the stubs."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Apply every stub of the package."""
        folder = Path(str(pkg.filepath)).parent
        for path in sorted(folder.rglob("*.pyi")):
            parts = path.relative_to(folder).with_suffix("").parts
            stub = griffe.visit(
                ".".join((pkg.name, *parts)), filepath=path, code=path.read_text(encoding="utf-8")
            )
            apply(pkg[".".join(parts)], stub)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Mark the examples of a docstring."""
        if obj.docstring:
            obj.docstring.value = marked(obj.docstring.value)


def apply(target: griffe.Module | griffe.Class, stub: griffe.Module | griffe.Class) -> None:
    """Give a module or class, and its functions and classes, what their stubs say."""
    own = {name: member for name, member in stub.members.items() if not member.is_alias}
    functions = {name: overloads[-1] for name, overloads in stub.overloads.items() if overloads}
    functions |= {name: member for name, member in own.items() if member.is_function}
    for name, function in functions.items():
        expand(target.members[name], function)
    for name, member in own.items():
        if member.is_class:
            document(target.members[name], member)
            apply(target.members[name], member)


def expand(function: griffe.Function, stub: griffe.Function) -> None:
    """Put the parameters of the stub in the place of `**parameters`."""
    own = [one for one in function.parameters if one.kind is not griffe.ParameterKind.var_keyword]
    names = {one.name for one in own}
    function.parameters = griffe.Parameters(*own, *(one for one in stub.parameters if one.name not in names))
    function.overloads = None
    document(function, stub)


def document(target: griffe.Object, stub: griffe.Object) -> None:
    """Take the text of the stub's docstring. The present docstring stays, because it knows its style."""
    if target.docstring and stub.docstring:
        target.docstring.value = marked(stub.docstring.value)


def marked(docstring: str) -> str:
    """The docstring with its examples in fences, links to pages, and no roles of Sphinx."""
    fenced = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", docstring)
    linked = PAGE.sub(r"[\1](../\1.md)", fenced)
    return ROLE.sub(r"`\1`", linked)
