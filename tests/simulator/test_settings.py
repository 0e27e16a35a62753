"""Settings and their mistakes."""

import math
from typing import Any

import pytest

from llm_provider.simulator import Settings


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("latency", -1, ValueError),
        ("latency", math.inf, ValueError),
        ("latency", True, TypeError),
        ("latency", None, TypeError),
        ("chunks", 1.5, TypeError),
        ("error_rate", 1.5, ValueError),
        ("limits_per", "planet", ValueError),
        ("batch_counts", "some", ValueError),
        ("answer", None, TypeError),
        ("unknown", 1, TypeError),
        *(("key_limits", limits, ValueError) for limits in ("key1", "key1=", "=5", "key1=-5")),
    ],
)
def test_mistakes(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=name):
        Settings().copy_with({name: value})


def test_buckets_hold_six_seconds_unless_told_otherwise() -> None:
    assert Settings(requests_per_minute=600).burst_requests == 60
    assert Settings(requests_per_minute=1).burst_requests == 1
    assert Settings(requests_per_minute=600, burst=5).burst_requests == 5
    assert Settings(tokens_per_minute=600).burst_tokens == 60
    assert math.isinf(Settings().burst_requests)
