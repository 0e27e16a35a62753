"""Background jobs of Gemini's Interactions: models and agents, kills, cancellation, failures and prices."""

import asyncio
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interactions_server import AGENT, HERE, MODEL, Fault, InteractionsServer, serving, text_step
from llm_provider import (
    APIResponseValidationError,
    Budget,
    BudgetExceededError,
    Client,
    InternalServerError,
    Ledger,
    LLMError,
    PendingBatchError,
    RequestError,
    UncertainBatchError,
)
from llm_provider.simulator import Simulator
from support import RunCommand

MakeClient = Callable[..., Client]

WHO: dict[str, tuple[str, dict[str, Any]]] = {"model": (MODEL, HERE), "agent": (f"gemini/{AGENT}", {})}
"""Models and agents, with what their calls say."""

WAYS: dict[str, Callable[..., Any]] = {
    "call": lambda client, model, prompt, **options: client.call(model, prompt, **options),
    "acall": lambda client, model, prompt, **options: asyncio.run(client.acall(model, prompt, **options)),
    "call_many": lambda client, model, prompt, **options: client.call_many(
        model, [prompt], progress=False, **options
    )[0],
    "aiter_many": lambda client, model, prompt, **options: asyncio.run(
        first(client.aiter_many(model, [prompt], progress=False, **options))
    ),
    "submit_many": lambda client, model, prompt, **options: client.submit_many(
        model, [prompt], progress=False, **options
    ).results()[0],
}


async def first(results: Any) -> Any:
    # To the end, when its budget is settled.
    (result,) = [result async for _, result in results]
    return result


def ask(way: str, client: Client, who: str = "model", prompt: str = "Hi", **options: Any) -> Any:
    """The result of one prompt, or its error."""
    model, own = WHO[who]
    try:
        return WAYS[way](client, model, prompt, delivery="background", **own, **options)
    except LLMError as error:
        return error


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractionsServer]:
    with serving() as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.root)
        monkeypatch.setenv("GEMINI_API_KEY", "k")
        yield server


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", WHO)
def test_a_job_is_answered_once_and_stored_under_the_key_of_a_live_call(
    google: InteractionsServer, make_client: MakeClient, own_cache: Path, who: str, way: str
) -> None:
    client = make_client()
    answer = ask(way, client, who)
    assert (answer.text, answer.cached) == ("You said: Hi", False)
    assert answer.usage.input_tokens == 7
    (body,) = google.bodies
    assert (body["background"], body["store"], [*body["labels"]]) == (True, True, ["llm_provider"])
    for other in WAYS if way == "call" else ():
        assert ask(other, client, who).cached
    model, own = WHO[who]
    assert client.call(model, "Hi", cache="only", **own).text == "You said: Hi"
    assert len(google.made) == 1
    client.close()
    total = [row for row in Ledger.read(own_cache.parent / "ledger.jsonl").rows("delivery") if row.requests]
    assert [(row.delivery, row.unknown) for row in total] == [("background", int(answer.cost is None))]
    assert float(total[0].spent) == pytest.approx(answer.cost or 0)


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "incomplete": ({"status": "incomplete", "steps": [text_step("so far")]}, "length"),
    "budget": ({"status": "budget_exceeded", "steps": [text_step("so far")]}, "length"),
    "a word of later": ({"status": "paused_for_ever", "steps": [text_step("so far")]}, ""),
    "failed": ({"status": "failed", "usage": None, "errors": [{"code": 13, "message": "no"}]}, "unbilled"),
    "failed, billed": ({"status": "failed", "errors": [{"code": 13, "message": "no"}]}, "billed"),
    "cancelled": ({"status": "cancelled", "usage": None}, "unknown"),
}


@pytest.mark.parametrize("way", ["call", "call_many"])
@pytest.mark.parametrize("name", ENDS)
def test_how_a_job_ends(
    google: InteractionsServer, make_client: MakeClient, own_cache: Path, name: str, way: str
) -> None:
    end, kind = ENDS[name]
    google.answer = lambda body: end
    ended = ask(way, make_client())
    make_client().close()
    total = Ledger.read(own_cache.parent / "ledger.jsonl").total
    if not isinstance(ended, LLMError):
        assert ended.text == "so far"
        assert kind in ("", ended.finish_reason)
        assert float(total.spent) == pytest.approx(ended.cost)
        return
    known = APIResponseValidationError if kind == "unknown" else InternalServerError
    assert type(ended) is known
    assert len(google.made) == (2 if kind == "unbilled" else 1)
    assert (float(total.wasted) > 0, total.unknown) == (kind == "billed", int(kind == "unknown"))


@pytest.mark.parametrize("who", WHO)
def test_the_command_line_lists_waits_and_cancels(
    google: InteractionsServer, make_client: MakeClient, run: RunCommand, who: str
) -> None:
    google.questions = 10**6
    client, (model, own) = make_client(), WHO[who]
    batch = client.submit_many(model, ["a", "b"], delivery="background", progress=False, **own)
    assert batch.status == "in_progress"
    client.close()
    listed = json.loads(run("batches", "list", "--json").out)
    assert sorted(name.split()[0] for name in listed["batches"]) == ["v1_0", "v1_1"]
    assert "asked its provider" in run("batches", "cancel", batch.id).out
    assert {each["status"] for each in google.made.values()} == {"cancelled"}
    assert "0 of 2 rows answered" in run("batches", "wait", batch.id).out


@pytest.mark.parametrize(
    "options", [{"completion_window": "8h"}, {"completion_window": "2h"}, {"continuation_id": "night"}]
)
@pytest.mark.parametrize("way", WAYS)
def test_the_options_of_another_queue_are_refused(
    google: InteractionsServer, make_client: MakeClient, way: str, options: Any
) -> None:
    refused = ask(way, make_client(), background_options=options)
    assert isinstance(refused, RequestError)
    assert "leave it out" in str(refused)
    assert not google.bodies


@pytest.mark.parametrize("way", ["call", "call_many"])
def test_generate_content_has_no_jobs(google: InteractionsServer, make_client: MakeClient, way: str) -> None:
    with pytest.raises(RequestError, match=r"(?i)interactions"):
        WAYS[way](make_client(), MODEL, "Hi", delivery="background")


@pytest.mark.parametrize("way", ["call", "aiter_many"])
def test_a_budget_holds_the_worst_case(google: InteractionsServer, make_client: MakeClient, way: str) -> None:
    client = make_client()
    assert isinstance(ask(way, client, budget=Budget(1e-6)), BudgetExceededError)
    assert not google.bodies
    budget = Budget(10.0)
    answer = ask(way, client, budget=budget)
    assert float(budget.spent) == pytest.approx(answer.cost)


def test_samples_and_structure(google: InteractionsServer, make_client: MakeClient) -> None:
    google.answer = lambda body: {"status": "completed", "steps": [text_step('{"n": 3}')]}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    answer = ask("call", make_client(), n=2, response_format=schema, extra_body={"labels": {"run": "7"}})
    assert [json.loads(choice.text) for choice in answer.choices] == [{"n": 3}] * 2
    assert len(google.made) == 2
    assert google.bodies[0]["labels"].keys() == {"run", "llm_provider"}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("status", [429, 500, 503, 200])
def test_fetches_that_fail_are_repeated(
    google: InteractionsServer, make_client: MakeClient, who: str, status: int
) -> None:
    fault: Fault = (
        status,
        {"retry-after": "0.01"},
        {"error": {"code": "x", "message": "y"}} if status > 200 else b"<p>",
    )
    google.fetch_fault = lambda number: fault if number < 3 else None
    assert ask("call", make_client(outage_patience=10), who).text == "You said: Hi"
    assert len(google.made) == 1


@pytest.mark.parametrize("who", WHO)
def test_a_lost_submission_waits_for_a_decision(
    google: InteractionsServer, make_client: MakeClient, run: RunCommand, who: str
) -> None:
    google.after = lambda identifier: (500, {}, {"error": {"code": "internal", "message": "no"}})
    uncertain = ask("call", make_client(), who)
    assert isinstance(uncertain, UncertainBatchError)
    assert google.bodies[0]["labels"]["llm_provider"] == uncertain.batch
    assert isinstance(ask("call_many", make_client(), who), UncertainBatchError)
    make_client().close()
    run("batches", "claim", uncertain.batch, "v1_0")
    assert ask("call", make_client(), who).text == "You said: Hi"
    assert len(google.made) == 1


def test_an_interaction_may_end_under_another_id(google: InteractionsServer, make_client: MakeClient) -> None:
    # LionSR/TeXRA#9570
    serve = google.reply

    def rename(path: str, headers: Any, body: Any) -> Fault:
        status, fields, reply = serve(path, headers, body)
        return status, fields, reply if body else {**reply, "id": "v1_other"}

    google.reply = rename
    assert ask("call", make_client()).text == "You said: Hi"
    assert set(google.fetched) == {"v1_0"}


@pytest.mark.parametrize("who", WHO)
def test_a_job_that_is_not_found_stays_open(
    google: InteractionsServer, make_client: MakeClient, who: str
) -> None:
    # googleapis/python-genai#2985
    google.fetch_fault = lambda number: (404, {}, {"error": {"code": "not_found", "message": "no"}})
    assert isinstance(ask("call", make_client(), who), PendingBatchError)
    google.fetch_fault = lambda number: None
    assert ask("call", make_client(), who).text == "You said: Hi"
    assert len(google.made) == 1


@pytest.mark.parametrize("status", ["pending", "scheduled"])
@pytest.mark.parametrize("way", WAYS)
def test_a_job_under_a_new_word_is_awaited(
    google: InteractionsServer, make_client: MakeClient, way: str, status: str
) -> None:
    # mozilla-ai/any-llm#1338
    google.after = lambda identifier: (200, {}, {"id": identifier, "status": status, "agent": AGENT})
    assert ask(way, make_client(), "agent").text == "You said: Hi"
    assert len(google.made) == 1


@pytest.mark.parametrize("who", WHO)
def test_a_job_that_google_cannot_cancel_is_collected(
    google: InteractionsServer, make_client: MakeClient, run: RunCommand, who: str
) -> None:
    # googleapis/python-genai#1971
    serve, google.questions = google.reply, 10**6

    def refuse(path: str, headers: Any, body: Any) -> Fault:
        if path.endswith("/cancel"):
            return 404, {}, {"error": {"code": "not_found", "message": "Method not found."}}
        return serve(path, headers, body)

    google.reply = refuse
    client, (model, own) = make_client(), WHO[who]
    batch = client.submit_many(model, ["Hi"], delivery="background", progress=False, **own)
    client.close()
    ended = run("batches", "cancel", batch.id)
    assert "Method not found" in ended.out + ended.err
    google.questions = 1
    assert ask("call", make_client(), who).text == "You said: Hi"
    assert len(google.made) == 1


PROGRAM = """
from llm_provider import Client
from llm_provider._core.batches import collect, remote, submit
collect._FIRST_POLL, remote._FIRST_PAUSE, submit._SETTLING_SECONDS = 0.02, 0.025, 0.1
with Client(ledger={ledger!r}, outage_patience=0.3) as client:
    print(client.call({model!r}, "Hi", delivery="background", **{own!r}).text)
"""


@pytest.mark.parametrize("who", ["agent"])
def test_a_killed_process_loses_no_job(
    google: InteractionsServer, make_client: MakeClient, own_cache: Path, warm_python: list[str], who: str
) -> None:
    reached = threading.Event()
    google.questions = 10**6
    google.fetch_fault = lambda number: reached.set()  # type: ignore[func-returns-value]  # it is no fault
    model, own = WHO[who]
    program = PROGRAM.format(ledger=str(own_cache.parent / "ledger.jsonl"), model=model, own=own)
    with subprocess.Popen(
        [*warm_python, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    ) as process:
        assert reached.wait(30)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    google.questions = 0
    again = ask("call", make_client(), who)
    assert again.text == "You said: Hi"
    assert len(google.made) == len(google.bodies) == 1
    make_client().close()
    assert float(Ledger.read(own_cache.parent / "ledger.jsonl").total.spent) == pytest.approx(again.cost or 0)


@pytest.mark.parametrize("who", WHO)
def test_the_simulator_keeps_interactions(simulator: Simulator, client: Client, who: str) -> None:
    assert ask("call", client, who).text == "echo: Hi"
