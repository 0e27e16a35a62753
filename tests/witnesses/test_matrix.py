"""Every cell of every server: what it can do works, and what it cannot do still fails."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, LLMError
from witnesses.all_servers import WITNESSES
from witnesses.cells import check
from witnesses.witness import Start

pytestmark = pytest.mark.integration

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


@pytest.mark.parametrize(("name", "way", "cell"), [*cells()])
def test_a_cell(servers: Start, name: str, way: str, cell: str, tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path / "cache") as client:
        check(cell, servers(name), WITNESSES[name].ways[way], client, tmp_path)
