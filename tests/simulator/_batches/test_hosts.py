"""The shapes of the hosts, beside the fields that the types of their SDKs require."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from llm_provider import Client
from llm_provider.simulator import Simulator

SHAPES: dict[str, tuple[str, str, set[str]]] = {
    # `BatchJob` of mistralai 3.7.
    "mistral": (
        "mistral-small-2603",
        "/batch/jobs/{}",
        {"id", "input_files", "endpoint", "errors", "status", "created_at", "total_requests"}
        | {"completed_requests", "succeeded_requests", "failed_requests"},
    ),
    # `BatchJob` of together 3.1.
    "together_ai": (
        "zai-org/GLM-5.3",
        "/batches/{}",
        {"id", "input_file_id", "status", "created_at", "error", "output_file_id", "progress"},
    ),
    # `Batch` of xai-sdk 1.21, and its REST API.
    "xai": ("grok-4.20", "/batches/{}", {"batch_id", "name", "create_time", "expire_time", "state"}),
    # `BatchInferenceJob` of fireworks-ai 1.2.
    "fireworks_ai": (
        "accounts/fireworks/models/gpt-oss-120b",
        "/accounts/simulator/batchInferenceJobs/{}",
        {"name", "displayName", "state", "status", "jobProgress", "inputDatasetId", "outputDatasetId"},
    ),
}


def fetch(url: str, key: str = "simulator-key", body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    with urlopen(Request(url, data, headers)) as reply:
        return json.loads(reply.read())


@contextlib.contextmanager
def refused(status: str) -> Iterator[None]:
    with pytest.raises(HTTPError, match=status) as caught:
        yield
    caught.value.close()


@pytest.mark.parametrize("provider", SHAPES)
def test_a_batch_has_the_fields_that_its_sdk_requires(
    client: Client, simulator: Simulator, provider: str
) -> None:
    model, path, required = SHAPES[provider]
    batch = client.submit_many(f"{provider}/{model}", ["1+1?"])
    url = simulator.url(provider) + path.format(batch.batch_ids[0])
    assert required <= fetch(url).keys()
    with refused("404"):
        fetch(url, "another-key")
    with refused("404"):
        fetch(url + "x")


def test_a_job_of_fireworks_is_made_once(client: Client, simulator: Simulator) -> None:
    batch = client.submit_many("fireworks_ai/accounts/fireworks/models/gpt-oss-120b", ["1+1?"])
    url = simulator.url("fireworks_ai") + "/accounts/simulator/batchInferenceJobs?batchInferenceJobId="
    job = {"inputDatasetId": f"accounts/simulator/datasets/{batch.batch_ids[0]}", "model": "m"}
    with refused("409"):
        fetch(url + batch.batch_ids[0], body=job)


@pytest.mark.parametrize(("provider", "model"), [("together_ai", None), ("xai", None), ("mistral", "m")])
def test_a_row_that_its_host_does_not_take_fails_the_batch(
    simulator: Simulator, provider: str, model: str | None
) -> None:
    simulator.configure(batch_seconds=0.0)
    row = {"custom_id": "a", "body": {"messages": [], **({"model": model} if model else {})}}
    boundary = "x"
    form = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{boundary}\r\n'
        f'Content-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n{json.dumps(row)}\r\n'
        f"--{boundary}--\r\n"
    )
    root = simulator.url(provider)
    headers = {"authorization": "Bearer k", "content-type": f"multipart/form-data; boundary={boundary}"}
    if provider == "together_ai":
        # A file within the form is not Together's way.
        with refused("400"):
            urlopen(Request(root + "/files", form.encode(), headers))
        return
    with urlopen(Request(root + "/files", form.encode(), headers)) as reply:
        file = json.loads(reply.read())["id"]
    body = {"input_file_id": file, "input_files": [file], "endpoint": "/v1/chat/completions", "model": "m"}
    path = "/batch/jobs" if provider == "mistral" else "/batches"
    batch = fetch(root + path, "k", body)
    told = batch.get("cancel_by_xai_message") or str(batch.get("errors"))
    assert "line 1 names" in told
