"""The names, types and documentation of the parameters."""

import ast
import typing
from pathlib import Path

import pytest

from llm_provider import BatchParameters, EmbedParameters, Parameters
from llm_provider._core.requests import parameters
from llm_provider._core.requests.parameters import Defaults


@pytest.mark.parametrize("group", [Defaults, Parameters, BatchParameters, EmbedParameters])
def test_types_can_be_read_at_run_time_and_none_means_not_set(group: type) -> None:
    for name, kind in typing.get_type_hints(group).items():
        assert kind is typing.Any or type(None) in typing.get_args(kind), name


def test_every_parameter_is_documented() -> None:
    tree = ast.parse(Path(parameters.__file__).read_text(encoding="utf-8"))
    for group in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for entry, after in zip(group.body, [*group.body[1:], None], strict=True):
            if isinstance(entry, ast.AnnAssign):
                assert isinstance(after, ast.Expr), ast.unparse(entry)
                assert isinstance(after.value, ast.Constant), ast.unparse(entry)
