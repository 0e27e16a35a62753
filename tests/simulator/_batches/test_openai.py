"""The batch and file endpoints of OpenAI, as the openai SDK sees them."""

import json
from typing import Any

import openai
import pytest

from llm_provider.simulator import Simulator

URL = "/v1/chat/completions"


def connect(server: Simulator, provider: str = "openai") -> openai.OpenAI:
    server.configure(batch_seconds=0.0)
    return openai.OpenAI(base_url=server.url(provider), api_key="sk-test", max_retries=0)


def lines(*contents: str, url: str = URL) -> bytes:
    def line(name: str, **fields: Any) -> str:
        body = {"model": "gpt-5.5", **fields}
        return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body})

    messages = [[{"role": "user", "content": content}] for content in contents]
    rows = [line(f"r{number}", messages=message) for number, message in enumerate(messages)]
    return "\n".join([*rows, line("bad")]).encode()


def submit(client: openai.OpenAI, content: bytes, purpose: Any = "batch") -> Any:
    file = client.files.create(file=("rows.jsonl", content), purpose=purpose)
    return client.batches.create(
        input_file_id=file.id, endpoint=URL, completion_window="24h", metadata={"name": "mine"}
    )


@pytest.mark.parametrize("content", [b"no json", lines("Hi", url="/v1/responses"), lines("a") * 2])
def test_an_invalid_file_fails_the_whole_batch(simulator: Simulator, content: bytes) -> None:
    with connect(simulator) as client:
        batch = client.batches.retrieve(submit(client, content).id)
        assert batch.status == "failed"
        assert batch.errors is not None


def test_each_host_has_its_accounts(simulator: Simulator) -> None:
    with connect(simulator, "groq") as client:
        batch = submit(client, lines("Hi"))
    with connect(simulator) as client, pytest.raises(openai.NotFoundError):
        client.batches.retrieve(batch.id)
