"""The operation `chat`: kept answers and dropped parameters. Golden pairs have all that are dropped."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"


@pytest.mark.parametrize(
    ("finish", "stored_by_default"),
    [
        ("tool_calls", True),
        *((finish, False) for finish in ("length", "empty", "content_filter", "refusal", "null_content")),
    ],
)
def test_only_complete_answers_are_kept(
    client: Client, simulator: Simulator, finish: str, stored_by_default: bool
) -> None:
    simulator.inject(Fault(finish=finish), times=1)
    assert not client.call(MODEL, "Hi").cached
    assert client.call(MODEL, "Hi").cached == stored_by_default


def test_answers_list_it_and_one_warning_names_it(simulator: Simulator, own_cache: Path) -> None:
    options: dict[str, Any] = {"temperature": 0, "unsupported": "drop"}
    with (
        Client(cache_dir=own_cache) as client,
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        live = client.call("gpt-6.1-sol", "1+1?", **options)
        hit = client.call("gpt-6.1-sol", "1+1?", **options)
        batch = client.call_many("gpt-6.1-sol", ["1+1?", "1+2?"], **options)
        with client.stream("gpt-6.1-sol", "1+4?", **options) as deltas:
            list(deltas)
        plain = client.call("gpt-6.1-sol", "1+1?")
    assert (live.cached, hit.cached, plain.cached) == (False, True, True)
    answers = [live, hit, *batch, deltas.response]
    assert [answer.dropped for answer in answers] == [("temperature",)] * 5  # type: ignore[union-attr]  # known to be set here
    assert plain.dropped == ()
    (warning,) = caught
    assert issubclass(warning.category, UserWarning)
    assert "gpt-6.1-sol does not accept temperature" in str(warning.message)
