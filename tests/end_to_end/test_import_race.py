"""A first call while another thread imports an SDK whose modules the call's own SDK needs too.

`python -m benchmarks import_race` runs a hundred processes for each SDK.
"""

import pytest

from benchmarks.scenarios.import_race import OTHERS, PROGRAM, ROUTES, Race
from llm_provider.simulator import Simulator


@pytest.mark.parametrize(
    "route",
    [
        "gemini",
        *(
            pytest.param(route, marks=pytest.mark.long)
            for route in ROUTES
            if route not in ("gemini", "litellm")
        ),
    ],
)
def test_the_first_call_waits_for_it(simulator: Simulator, route: str) -> None:
    assert Race(route, 0.0, ("openai first", *OTHERS[1:]), PROGRAM).run(simulator) == ""
