"""The batch and file endpoints of OpenAI, as the openai SDK sees them."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from llm_provider.simulator import Simulator


def connected(server: Simulator, provider: str = "openai") -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url(provider), api_key="sk-test", max_retries=0)


def lines(*contents: str, url: str = "/v1/chat/completions") -> bytes:
    rows = [
        {
            "custom_id": f"r{number}",
            "method": "POST",
            "url": url,
            "body": {"model": "gpt-5.5", "messages": [{"role": "user", "content": content}]},
        }
        for number, content in enumerate(contents)
    ]
    return "\n".join(map(json.dumps, rows)).encode()


def submitted(client: openai.OpenAI, content: bytes, purpose: Any = "batch") -> Any:
    file = client.files.create(file=("rows.jsonl", content), purpose=purpose)
    return client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"name": "mine"},
    )


def test_a_batch_has_its_results_in_a_file(batch_server: Simulator) -> None:
    with connected(batch_server) as client:
        batch = client.batches.retrieve(submitted(client, lines("1+1?", "2+2?")).id)
        assert (batch.status, batch.metadata) == ("completed", {"name": "mine"})
        assert batch.request_counts is not None
        assert batch.request_counts.completed == 2
        assert batch.output_file_id is not None
        found = map(json.loads, client.files.content(batch.output_file_id).text.splitlines())
        texts = {one["custom_id"]: one["response"]["body"] for one in found}
        assert texts["r1"]["choices"][0]["message"]["content"] == "4"
        assert batch.id in {one.id for one in client.batches.list(limit=5)}


def test_rows_that_fail_stand_in_a_file_of_their_own(batch_server: Simulator) -> None:
    with connected(batch_server) as client:
        bad = json.dumps(
            {
                "custom_id": "bad",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"model": "gpt-5.5"},
            }
        )
        batch = client.batches.retrieve(submitted(client, lines("Hi") + b"\n" + bad.encode()).id)
        assert batch.error_file_id is not None
        failure = json.loads(client.files.content(batch.error_file_id).text)
        assert (failure["custom_id"], failure["response"]["status_code"]) == ("bad", 400)


@pytest.mark.parametrize("content", [b"no json", lines("Hi", url="/v1/responses"), lines("a") * 2])
def test_an_invalid_file_fails_the_whole_batch(batch_server: Simulator, content: bytes) -> None:
    with connected(batch_server) as client:
        batch = client.batches.retrieve(submitted(client, content).id)
        assert batch.status == "failed"
        assert batch.errors is not None


def test_each_host_has_its_purpose_and_its_accounts(batch_server: Simulator) -> None:
    with connected(batch_server, "together_ai") as client:
        with pytest.raises(openai.BadRequestError):
            submitted(client, lines("Hi"))
        batch = submitted(client, lines("Hi"), "batch-api")
    with connected(batch_server) as client, pytest.raises(openai.NotFoundError):
        client.batches.retrieve(batch.id)
