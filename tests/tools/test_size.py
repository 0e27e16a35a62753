"""The lines and names that `make size` counts."""

from __future__ import annotations

import re

import pytest

from tools.size import main


@pytest.mark.long
def test_every_part_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    counts = dict(re.findall(r"^(.+?) +([\d,]+)\b", capsys.readouterr().out, re.MULTILINE))
    assert list(counts) == [
        "library without simulator", "simulator", "stubs (.pyi)", "tests", "benchmarks", "tools",
        "functions of the library", "functions of the simulator", "uses of Any there",
    ]  # fmt: skip
    assert all(number != "0" for name, number in counts.items() if name != "stubs (.pyi)")
