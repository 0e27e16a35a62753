"""Together's answers: a job within an answer, a list without order, and a place for a file."""

from typing import Any

import pytest

from llm_provider import APIResponseValidationError, Client
from llm_provider._features.batch_hosts.together_ai import TogetherBatches
from llm_provider.simulator import Fault, Simulator

MODEL = "together_ai/zai-org/GLM-5.3"

pytestmark = pytest.mark.filterwarnings("ignore::llm_provider.PriceWarning")


def read(job: dict[str, Any]) -> Any:
    return TogetherBatches.read_batch(job)


@pytest.mark.parametrize("is_within", [True, False])
@pytest.mark.parametrize(
    ("status", "ended", "early"),
    [
        ("VALIDATING", False, False),
        ("IN_PROGRESS", False, False),
        ("COMPLETED", True, False),
        ("FAILED", True, True),
        ("EXPIRED", True, True),
        ("CANCELLED", True, True),
    ],
)
def test_every_word_of_a_job_is_known(status: str, ended: bool, early: bool, is_within: bool) -> None:
    job: dict[str, Any] = {
        "id": "b",
        "status": status,
        "created_at": "2026-11-28T00:00:00Z",
        "input_file_id": "f",
    }
    # An empty object, as Groq writes it, is no file.
    job |= {"output_file_id": "out", "error_file_id": {}}
    batch = read({"job": job, "warning": "slow"} if is_within else job)
    assert batch.results == ("out",)
    assert (batch.identifier, batch.state, batch.ended, batch.ended_early) == (
        "b", status.lower(), ended, early,
    )  # fmt: skip
    assert (batch.created, batch.input_file, batch.total, batch.label) == (1_795_824_000.0, "f", None, None)


def test_a_file_is_put_without_the_key_and_confirmed(client: Client, simulator: Simulator) -> None:
    client.submit_many(MODEL, ["1+1?"])
    asked, put, confirmed, created = [
        request for request in simulator.requests() if request.path.split("?")[0] != "/together_ai/v1/batches"
        or request.body
    ][:4]  # fmt: skip
    assert asked.status == 302
    assert ("authorization" in asked.headers, "authorization" in put.headers) == (True, False)
    assert confirmed.path.endswith("/preprocess")
    assert created.body["completion_window"] == "24h"


def test_an_upload_without_a_place_is_asked_for_again(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(redirect=""), match="files.upload")
    simulator.inject(Fault(status=503), match="files.upload")
    assert client.call_many(MODEL, ["1+1?"], delivery="batch").texts == ["2"]


def test_a_key_that_is_refused_says_so(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=401, message="no such key"), match="files.upload", times=9)
    (error,) = client.call_many(MODEL, ["1+1?"], delivery="batch", on_error="return")
    assert not isinstance(error, APIResponseValidationError)
    assert "no such key" in str(error)


@pytest.mark.parametrize("hops", [1, 3])
def test_an_address_may_lead_to_another_one(client: Client, simulator: Simulator, hops: int) -> None:
    for _ in range(hops):
        simulator.inject(Fault(redirect="?signature=y"), match="files.store")
    client.call_many(MODEL, ["1+1?"], delivery="batch")
    stored = [request for request in simulator.requests() if "/storage" in request.path]
    assert [request.status for request in stored] == [*[307] * hops, 200]


def test_an_address_that_is_too_old_is_asked_for_anew(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=403, message="Request has expired"), match="files.store")
    assert client.call_many(MODEL, ["1+1?"], delivery="batch").texts == ["2"]
    asked = [request for request in simulator.requests() if request.status == 302]
    assert len(asked) == 2


def test_a_list_without_batches_may_be_null(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(body="null"), match="batches.list", times=2)
    assert client.call_many(MODEL, ["1+1?"], delivery="batch").texts == ["2"]
