"""Many jobs: each is submitted once, and fails alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from background_server import BackgroundServer, Reply, error
from llm_provider import Client
from loop_support import run_threads

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


def test_two_clients_of_a_cache_share_their_jobs(server: BackgroundServer, own_cache: Path) -> None:
    """As processes do: a lease lets one submit, and the other finds the jobs in the journal."""
    server.polls_until_done = 3
    answers: list[list[str]] = []

    def ask() -> None:
        with Client(show_waits=False) as client:
            results = client.call_many(MODEL, ["a", "b", "c"], delivery="background", progress=False)
            answers.append(results.texts)

    run_threads(ask, ask)
    assert answers == [["answer to a", "answer to b", "answer to c"]] * 2
    assert len(server.jobs) == 3
