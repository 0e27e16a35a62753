"""Many jobs: each is submitted once, and fails alone."""

import json
from collections.abc import Callable
from typing import Any

from background_server import BackgroundServer, Reply, error
from llm_provider import Client

MakeClient = Callable[..., Client]

MODEL = "gpt-5.5"


def test_many_jobs_are_submitted_side_by_side_and_each_once(
    server: BackgroundServer, make_client: MakeClient
) -> None:
    prompts = [f"prompt {number % 12}" for number in range(18)]
    client = make_client()
    results = client.call_many(MODEL, prompts, delivery="background", progress=False)
    assert [result.text for result in results] == [f"answer to {prompt}" for prompt in prompts]
    assert sorted(map(json.dumps, server.prompts)) == sorted(map(json.dumps, set(prompts)))
    (batch,) = client.batches()
    assert (batch.counts.total, batch.counts.done, batch.last_status) == (12, 12, "completed")


def test_one_wrong_job_fails_alone_and_a_wrong_key_fails_all(
    server: BackgroundServer, make_client: MakeClient
) -> None:
    def refuse(method: str, path: str, body: Any) -> Reply | None:
        wrong = method == "POST" and "wrong" in json.dumps(body)
        return (400, {}, error("invalid_value", "no")) if wrong else None

    server.fault = refuse
    prompts = [*(f"p{number}" for number in range(3)), "wrong", *(f"q{number}" for number in range(5))]
    results = make_client().call_many(MODEL, prompts, delivery="background", progress=False)
    kinds = [type(result).__name__ for result in results]
    assert kinds == ["Response"] * 3 + ["BadRequestError"] + ["Response"] * 5
    assert len(server.jobs) == 8
    server.fault = lambda method, path, body: (401, {}, error("invalid_api_key", "no"))
    before = server.requests
    results = make_client().call_many(
        MODEL, [f"r{number}" for number in range(40)], delivery="background", progress=False
    )
    assert {type(result).__name__ for result in results} == {"AuthenticationError"}
    assert server.requests - before < 20
