"""Writes benchmarks/results/witnesses.md: what the servers of tests/witnesses do, and why not the rest.

The tests of `make test-integration` hold each cell, also that what a server cannot do still fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from witnesses.all_servers import WITNESSES
from witnesses.witness import CELLS, Witness

DOCUMENT = Path(__file__).parents[1] / "benchmarks" / "results" / "witnesses.md"

_HEAD = """# Servers that nobody here wrote

Each server is installed from a registry by the hashes of `constraints/witnesses`, and the library asks it for
each column. "+" works, "." is not asked, and a number is a reason below, for which the cell still fails.
`make test-integration` runs all of them, and `make witnesses` writes this page.

The provider behind Portkey's gateway, nginx and mitmproxy is the simulator. `tests/witnesses/test_boxes.py`
asks nginx and mitmproxy for their own failures too: pages, redirects, gzip, HTTP/1.0, answers that break.
litellm's proxy and llama.cpp's servers have tests of their own in `tests/integration`.
"""


def document() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield f"| server | way | {' | '.join(CELLS)} |"
    yield f"|---|---|{'---|' * len(CELLS)}"
    reasons: list[str] = []
    for name, witness in WITNESSES.items():
        registry = "PyPI" if witness.lock.suffix == ".txt" else "npm"
        label = f"{name} {witness.version} ({registry})"
        for way in witness.ways:
            cells = [_cell(witness, way, cell, reasons) for cell in CELLS]
            yield f"| {label} | {way} | {' | '.join(cells)} |"
            label = ""
    yield ""
    yield from (f"{number}. {reason}" for number, reason in enumerate(reasons, 1))


def _cell(witness: Witness, way: str, cell: str, reasons: list[str]) -> str:
    """What the page says of a cell. A new reason is added to the list."""
    if cell not in witness.cells(way):
        return "."
    if (reason := witness.reason(way, cell)) is None:
        return "+"
    reasons.extend({f"{witness.name}: {reason}"}.difference(reasons))
    return str(reasons.index(f"{witness.name}: {reason}") + 1)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
