from __future__ import annotations

import pytest

from benchmarks.scenarios import Options, memory


@pytest.mark.long
def test_a_few_calls_are_seen_from_outside() -> None:
    result = memory.run(Options(quick=True, here=True))
    assert set(result.measured) == {"memory_growth", "descriptor_growth"}
    assert len(result.tables[0].rows) == len(memory.CASES)
    for samples in result.data.values():
        assert all(resident > 10 and files >= 3 for resident, files in samples)
