"""The doors lead to the modules that type checkers see."""

import ast
import importlib
from pathlib import Path

import pytest

from llm_provider._core import doors
from support import parse_module


def test_each_name_is_that_of_the_types() -> None:
    tree = parse_module(Path(doors.__file__))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname or alias.name: f"{(statement.module or '').removeprefix('_features.')}.{alias.name}"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert typed == doors._MODULES


@pytest.mark.parametrize("name", doors._MODULES)
def test_a_door_opens(name: str) -> None:
    assert getattr(doors, name) is importlib.import_module(f"llm_provider._features.{doors._MODULES[name]}")


def test_there_is_no_other_door() -> None:
    with pytest.raises(AttributeError, match="there is no door 'chat'"):
        doors.chat  # type: ignore[attr-defined]  # noqa: B018
