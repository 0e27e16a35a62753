"""The description of a function and of its parameters, from its docstring in any of the common styles."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

_FIRST_SECTIONS = ("Args:", "Arguments:", "Parameters:", "Params:")
"""Lines with which a docstring without a description may begin."""


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description of a function, and those of its parameters, from its docstring."""
    written = (
        inspect.getdoc(function) if inspect.isroutine(function) else inspect.getdoc(type(function).__call__)
    )
    if not written:
        return "", {}
    import docstring_parser

    head, _, rest = written.partition("\n")
    if head.rstrip() in _FIRST_SECTIONS:
        # Python and the parser take away the indentation that all lines but the first have in common.
        rest = rest.lstrip("\n")
        written = f"\n{head}\n{rest if rest.startswith(' ') else textwrap.indent(rest, '    ')}"
    try:
        parsed = docstring_parser.parse(written)
    except docstring_parser.ParseError:
        return written, {}
    paragraphs = [text.strip() for text in (parsed.short_description, parsed.long_description) if text]
    meanings = {
        name.strip().lstrip("*"): " ".join(entry.description.split())
        for entry in parsed.params
        if entry.description
        for name in entry.arg_name.split(",")
    }
    return "\n\n".join(paragraphs), meanings
