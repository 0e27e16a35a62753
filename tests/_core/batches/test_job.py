"""Jobs: what an input brings along reaches its row, and what its row brings back reaches the input."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from llm_provider import (
    APITimeoutError,
    CacheMissError,
    Client,
    RequestError,
    Response,
    Results,
    SchemaMismatchError,
)
from llm_provider._core.batches.journal import Journal
from llm_provider.simulator import Simulator


class City(BaseModel):
    # The order is not that of the alphabet.
    name: str
    area: float


class Refused(City):
    @field_validator("name")
    @classmethod
    def never(cls, name: str) -> str:
        raise ValueError("there is no such city")


def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@pytest.mark.parametrize("parameters", [{"user": "u-1"}, {"response_format": City}, {"n": 1, "seed": None}])
def test_a_row_has_the_live_body(client: Client, simulator: Simulator, parameters: dict[str, Any]) -> None:
    model = "claude-sonnet-5-5"
    client.call_many(model, ["Hi"], delivery="batch", **parameters)
    client.call(model, "Hi", cache="refresh", **parameters)
    bodies = [request.body for request in simulator.requests() if request.body]
    (batch,) = [body for body in bodies if "requests" in body]
    (live,) = [body for body in bodies if "messages" in body]
    row = batch["requests"][0]["params"]
    # The order of the fields of a schema counts, and that of the request does not.
    assert {name: json.dumps(value) for name, value in row.items()} == {
        name: json.dumps(value) for name, value in live.items()
    }
    assert client.call(model, "Hi", **parameters).cached


@pytest.mark.parametrize("model", ["gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"])
def test_the_journal_has_the_name_of_the_user_and_that_of_the_provider(client: Client, model: str) -> None:
    client.submit_many(model, ["1+1?"])
    (record,) = Journal(client.cache.directory / "batches").records()
    assert record.header is not None
    assert (record.header.model, record.header.name) == (model, model.rpartition("/")[2])


def test_an_answer_that_does_not_fit_is_an_error_and_not_stored(client: Client, simulator: Simulator) -> None:
    options: dict[str, Any] = {"response_format": Refused}
    good, bad = client.call_many("gpt-5.5", ["Name a city."], delivery="batch", response_format=City), None
    (bad,) = client.call_many("gpt-5.5", ["Name another."], delivery="batch", **options)
    assert isinstance(good.ok[0].parsed, City)
    assert isinstance(bad, SchemaMismatchError)
    assert "there is no such city" in bad.validation_error
    assert bad.usage is not None
    assert json.loads(bad.text).keys() == {"name", "area"}
    with pytest.raises(CacheMissError):
        client.call("gpt-5.5", "Name another.", cache="only", **options)
    assert simulator.ledger().answered == 2


def test_each_input_gets_its_metadata(client: Client, simulator: Simulator) -> None:
    ids = [{"id": number} for number in range(3)]
    results = client.call_many("gpt-5.5", ["1+1?", "2+2?", "1+1?"], delivery="batch", metadata=ids)
    assert isinstance(results, Results)
    assert [result.metadata for result in results] == ids
    rows = [{"question": "1+1?"}, {"question": "3+3?"}]
    batch = client.submit_many("gpt-5.5", "{question}", rows=rows, metadata=ids[:2])
    assert [result.metadata for result in batch.results()] == ids[:2]
    simulator.configure(batch_errored=1.0)
    with Client(cache_dir=client.cache.directory, max_retries=0) as another:
        failed = another.call_many("gpt-5.5", ["a", "b", "a"], delivery="batch", metadata=ids)
        assert len(another.batches()) == 3
    assert [result.metadata for result in failed] == ids
    assert not any(isinstance(result, Response) for result in failed)


@pytest.mark.parametrize("end", ["answered", "errored", "cut off"])
def test_of_equal_inputs_the_first_pays(
    own_cache: Path, simulator: Simulator, tmp_path: Path, end: str
) -> None:
    ids = [{"id": number} for number in range(4)]
    if end == "errored":
        simulator.configure(batch_errored=1.0)
    elif end == "cut off":
        simulator.configure(batch_seconds=80_000.0, batch_clock=40_000.0)
    path = tmp_path / "ledger.jsonl"
    with Client(cache_dir=own_cache, ledger=path, max_retries=0) as client:
        results = client.call_many(
            "gpt-5.5", ["a", "b", "a", "b"], delivery="batch", metadata=ids,
            deadline=0.5 if end == "cut off" else None,
        )  # fmt: skip
    assert [result.metadata for result in results] == ids
    attempts = [result.attempts for result in results]
    costs = [result.cost for result in results]
    if end == "answered":
        assert costs[0] == costs[1] != 0
        assert costs[2:] == [0, 0]
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert {line["metadata"]["id"] for line in lines if line.get("metadata")} == {0, 1}
    # On a slow machine, the deadline may end the batch before it is sent.
    assert attempts in ([1, 1, 0, 0], [0] * 4)


def test_an_input_of_several_rows_that_is_given_up_has_one_result(
    own_cache: Path, simulator: Simulator
) -> None:
    simulator.configure(batch_seconds=80_000.0, batch_clock=40_000.0)
    with Client(cache_dir=own_cache) as client:
        results = client.call_many("claude-haiku-5-5", ["a", "b"], n=3, delivery="batch", deadline=0.4)
    assert [type(result) for result in results] == [APITimeoutError] * 2


def test_what_a_batch_cannot_deliver_is_refused_before_sending(client: Client, simulator: Simulator) -> None:
    anything: Any = client
    with pytest.raises(RequestError, match="takes one model"):
        anything.submit_many(["gpt-5.5", "claude-haiku-5-5"], ["a"])
    with pytest.raises(RequestError, match="max_tool_rounds"):
        client.call_many("gpt-5.5", ["a"], delivery="batch", tools=[add], max_tool_rounds=2)
    with pytest.raises(RequestError, match="in_batch"):
        client.call("gpt-5.5", "a", in_batch="wait", tools=[add], max_tool_rounds=2)
    assert simulator.requests() == []
