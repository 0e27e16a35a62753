"""Every fault, as it arrives at a plain client. `tests/end_to_end/test_fault_matrix.py` has the SDKs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator import Fault, Simulator
from llm_provider.simulator._behaviour.faults import FINISHES, RETRY_AFTER_STYLES, FaultQueue
from simulator.exchanges import REQUESTS

from ..conftest import Post


@pytest.mark.parametrize(
    ("style", "header"), [("seconds", "retry-after"), ("date", "retry-after"), ("ms", "retry-after-ms")]
)
def test_retry_after_is_sent_as_it_is(simulator: Simulator, post: Post, style: str, header: str) -> None:
    for value in ("3", "nan", "-1", "1e400", "Fri, 31 Dec 9999 23:59:59 GMT", "\u0661\u0662"):
        simulator.inject(Fault(status=429, retry_after=value, retry_after_style=style))
        assert post(*REQUESTS["openai"]).headers[header].encode("latin-1") == value.encode()


@pytest.mark.parametrize(
    "fields",
    [{"finish": "late"}, {"retry_after_style": "weeks"}, {"status": 99}, {"status": 100}, {"unknown": 1}],
)
def test_mistakes_in_an_order(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Fault(**fields)


@given(
    st.builds(
        Fault,
        status=st.none() | st.integers(200, 599),
        message=st.none() | st.text(),
        retry_after=st.none() | st.text(),
        retry_after_style=st.sampled_from(RETRY_AFTER_STYLES),
        quota=st.booleans(),
        body=st.none() | st.binary() | st.text(),
        delay=st.floats(0, 10),
        cut_after=st.none() | st.integers(0, 10),
        finish=st.none() | st.sampled_from(FINISHES),
    )
)
def test_a_fault_survives_the_control_channel(fault: Fault) -> None:
    assert Fault.from_json(fault.to_json()) == fault


@given(st.lists(st.sampled_from(["openai", "groq"]), max_size=20), st.integers(0, 5))
def test_exactly_so_many_requests_meet_a_fault(providers: list[str], times: int) -> None:
    queue, fault = FaultQueue(), Fault(status=500)
    queue.add(fault, provider="groq", times=times)
    met = [queue.take(provider, "text", "sk-any") for provider in providers]
    assert met.count(fault) == min(times, providers.count("groq"))
    assert all(one is None for one, provider in zip(met, providers, strict=True) if provider == "openai")
