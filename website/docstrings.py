"""Prepares docstrings for the API reference: marks examples as code, and mentions of pages as links.

griffe's own support of `Unpack` shows the parameters of functions. It takes only the fields that a TypedDict
has itself, so classes of parameters get those of their bases here.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^>>> .*\n(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)
PAGE = re.compile(r"`?docs/([\w-]+)\.md`?")
REST = re.compile(r"^ *\*\*\w+: See .*\n", re.MULTILINE)
ROLE = re.compile(r":(?:class|func|meth|mod):`~?([^`]+)`")


class Docstrings(griffe.Extension):
    """Changes what griffe has read, before it parses docstrings."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Give a class of parameters the fields of its bases."""
        if cls.module.path == "llm_provider._core.requests.parameters":
            own, cls.members = cls.members, {}
            for base in map(str, cls.bases):
                if base != "TypedDict":
                    for name, field in cls.module.members[base].members.items():
                        cls.set_member(name, copy.copy(field))
            cls.members |= own

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Put its examples in fences, link pages, and drop roles of Sphinx."""
        if obj.docstring:
            fenced = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value)
            linked = PAGE.sub(r"[\1](../\1.md)", fenced)
            obj.docstring.value = ROLE.sub(r"`\1`", linked)
            if obj.is_class:
                # griffe replaces this entry in functions only. It shows the parameters with `__init__`.
                obj.docstring.value = REST.sub("", obj.docstring.value)
