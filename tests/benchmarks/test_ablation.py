"""What mechanisms of the rate control are worth: that each switch replaces something, and is measured."""

from importlib import import_module

import pytest

from benchmarks.rate_control import outages
from benchmarks.scenarios import Options, ablation


@pytest.mark.parametrize("part", ablation.PARTS)
def test_a_switch_replaces_what_exists(part: str) -> None:
    for path in ablation.PARTS[part]:
        module, *names = path.split(".")
        target: object = import_module(f"llm_provider._core.pace.{module}")
        source = vars(target)
        if len(names) == 2 and names[1] not in vars(source[names[0]]):
            assert hasattr(source[names[0]](), names[1]), path
            continue
        for name in names:
            target = getattr(target, name)


@pytest.mark.long
def test_a_mechanism_that_an_outage_needs_is_worth_it() -> None:
    (table,) = ablation.run(Options(quick=True)).tables[:1]
    ((part, scenario, *_, stays),) = table.rows
    assert (part, scenario, stays) == ("the ramp", "ten workers when it is back", "yes")


def test_an_outage_is_waited_for_with_few_requests() -> None:
    seconds, requests, lost = outages.run(outages.Outage("a minute", 300, 20, 5.0, 65.0), 1)
    assert 65 < seconds < 130
    assert requests < 300 + 2 * 20 + 20
    assert lost == 0
