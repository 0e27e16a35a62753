"""Every cell of every server: what it can do works, and what it cannot do still fails."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, LLMError
from witnesses.cells import check
from witnesses.witness import Running, Witness, serve

pytestmark = pytest.mark.integration

WITNESSES: dict[str, Witness] = {
    witness.name: witness
    for path in sorted((Path(__file__).parent / "servers").glob("*.py"))
    for witness in [import_module(f"witnesses.servers.{path.stem}").WITNESS]
}

FAILURES = (LLMError, AssertionError, pytest.fail.Exception)
"""How a cell fails that the server cannot do. That it does not start is an error of every cell."""


def cells() -> Iterator[Any]:
    for name, witness in WITNESSES.items():
        for way in witness.ways:
            for cell in witness.cells(way):
                reason = witness.reason(way, cell)
                fails = pytest.mark.xfail(reason=reason, raises=FAILURES)
                yield pytest.param(
                    name, way, cell, marks=[fails] if reason else [], id=f"{name}-{way}-{cell}"
                )


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, users_environment: Mapping[str, str]
) -> Iterator[Callable[[str], Running]]:
    """A server by its name. It is started when it is first asked for, and runs until the last test."""
    with ExitStack() as stack:

        @cache
        def start(name: str) -> Running:
            return stack.enter_context(
                serve(WITNESSES[name], tmp_path_factory.mktemp(name), users_environment)
            )

        yield start


@pytest.mark.parametrize(("name", "way", "cell"), [*cells()])
def test_a_cell(servers: Callable[[str], Running], name: str, way: str, cell: str, tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path / "cache") as client:
        check(cell, servers(name), WITNESSES[name].ways[way], client, tmp_path)
