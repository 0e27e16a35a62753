"""Jobs that fail, that others end, that are not found, and processes that die: none lost, none paid twice."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from background_server import BackgroundServer, Reply, answer, error, usage
from llm_provider import (
    APIResponseValidationError,
    APITimeoutError,
    BadRequestError,
    Client,
    InternalServerError,
    Ledger,
    LLMError,
    NotFoundError,
    PendingBatchError,
    QuotaExceededError,
    RateLimitError,
    UncertainBatchError,
)
from llm_provider._core.batches import job, journal
from support import RunCommand

MakeClient = Callable[..., Client]

MODEL = "gpt-5.5"
WAYS = ("call", "call_many")


def with_a_way(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of a name and a way of calling, in turn."""
    return [(name, WAYS[number % 2]) for number, name in enumerate(names)]


def ask(way: str, client: Client, prompt: str = "Hi", **options: Any) -> Any:
    """The result of one prompt, or its error."""
    options = {"delivery": "background", **options}
    try:
        if way == "call":
            return client.call(MODEL, prompt, **options)
        return client.call_many(MODEL, [prompt], progress=False, **options)[0]
    except LLMError as raised:
        return raised


def failing(code: str) -> Any:
    """The end of a job that has failed."""
    return {"status": "failed", "error": {"code": code, "message": "no luck"}}


def test_what_others_report_of_jobs(server: BackgroundServer, make_client: MakeClient) -> None:
    """A job that has ended is not cancelled, and pages of a proxy do not end the wait."""
    pages = iter([(502, {"content-type": "text/html"}, "<html>Bad gateway</html>")] * 3)
    refusal = error("invalid_request_error", "Cannot cancel a synchronous response.")

    def fault(method: str, path: str, body: Any) -> Reply | None:
        if path.endswith("/cancel"):
            return 400, {}, refusal
        return next(pages, None) if method == "GET" else None

    server.fault = fault
    batch = make_client(outage_patience=20).submit_many(MODEL, ["Hi"], delivery="background")
    assert batch.cancel() is False
    assert batch.results().texts == ["answer to Hi"]
    assert len(server.jobs) == 1


ENDS: dict[str, tuple[Any, type[LLMError], int]] = {
    "server_error": (failing("server_error"), InternalServerError, 2),
    "rate limit": (failing("rate_limit_exceeded"), RateLimitError, 2),
    "wrong prompt": (failing("invalid_prompt"), BadRequestError, 1),
    "billed failure": ({**failing("server_error"), "usage": usage(100, 50)}, InternalServerError, 1),
    "cancelled": ({"status": "cancelled"}, APIResponseValidationError, 1),
    "expired": ({"status": "expired"}, APITimeoutError, 2),
}
"""The end of a job, its error, and how many jobs are submitted for one call."""


@pytest.mark.parametrize(("name", "way"), with_a_way(ENDS))
def test_a_job_that_fails_is_a_typed_error(
    server: BackgroundServer, make_client: MakeClient, own_cache: Path, way: str, name: str
) -> None:
    end, kind, jobs = ENDS[name]
    server.end = lambda body: end
    failed = ask(way, make_client(), background_options={"completion_window": "2h"})
    assert type(failed) is kind
    assert (failed.provider, failed.model) == ("openai", MODEL)
    assert len(server.jobs) == jobs
    make_client().close()
    spent = Ledger.read(own_cache.parent / "ledger.jsonl").total
    # 100 tokens at 5 and 50 at 30 USD per million, less 30 %.
    assert float(spent.wasted) == pytest.approx(0.0014 if name == "billed failure" else 0)
    assert spent.unknown == (name == "cancelled")
    # The same call begins anew.
    server.end = answer
    assert ask(way, make_client()).text == "answer to Hi"


@pytest.mark.parametrize("way", WAYS)
def test_an_error_that_may_pass_is_submitted_again(
    server: BackgroundServer, make_client: MakeClient, way: str
) -> None:
    ends = iter([failing("server_error")])
    server.end = lambda body: next(ends, None) or answer(body)
    assert ask(way, make_client()).text == "answer to Hi"
    assert len(server.jobs) == 2
    server.end = lambda body: failing("server_error")
    assert isinstance(ask(way, make_client(), "other", max_retries=0), InternalServerError)
    assert len(server.jobs) == 3


QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For more information on "
    "this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."
)


def test_a_quota_is_not_asked_again(server: BackgroundServer, make_client: MakeClient) -> None:
    # LionSR/TeXRA#3851: a type of the SDK has no other code for it.
    server.end = lambda body: {**failing("rate_limit_exceeded"), "error": {"code": "x", "message": QUOTA}}
    assert isinstance(ask("call", make_client()), QuotaExceededError)
    assert len(server.jobs) == 1


@pytest.mark.parametrize(("status", "way"), [(401, "call"), (405, "call_many"), (405, "call")])
def test_a_job_that_cannot_be_read_may_be_billed_and_stays_open(
    server: BackgroundServer, make_client: MakeClient, way: str, status: int
) -> None:
    # maximhq/bifrost#3121: a gateway takes jobs, and has no way to read them.
    server.fault = lambda method, path, body: (status, {}, error("no", "no")) if method == "GET" else None
    failed = ask(way, make_client())
    assert (failed.status, failed.maybe_billed, failed.cost) == (status, True, None)
    server.fault = lambda method, path, body: None
    assert ask(way, make_client()).text == "answer to Hi"
    assert len(server.jobs) == 1


def test_a_word_that_is_not_known_is_no_end(server: BackgroundServer, make_client: MakeClient) -> None:
    states = iter(["pending", "running"])
    waiting = {"output": [], "usage": None}

    def end(body: Any) -> Any:
        word = next(states, None)
        # It goes on: the server asks here again.
        return answer(body) if word is None else {"status": word, **waiting}

    server.end, advance = end, server._advance

    def advance_again(identifier: str) -> None:
        if server.jobs[identifier]["status"] in ("pending", "running"):
            server.jobs[identifier]["status"] = "queued"
        advance(identifier)

    server._advance = advance_again  # type: ignore[method-assign]
    assert ask("call", make_client()).text == "answer to Hi"


def test_a_job_that_ends_while_it_is_cancelled_is_not_cancelled(
    server: BackgroundServer, make_client: MakeClient
) -> None:
    # Azure/azure-dev#9704
    server.polls_until_done = 10**6
    batch = make_client().submit_many(MODEL, ["Hi"], delivery="background", progress=False)

    def refuse(method: str, path: str, body: Any) -> Reply | None:
        if not path.endswith("/cancel"):
            return None
        server.jobs["resp_0000"] |= answer(server.bodies[0])
        return 400, {}, error("invalid_request_error", "Cannot cancel a completed response.")

    server.fault = refuse
    assert batch.cancel() is False
    assert batch.results().texts == ["answer to Hi"]


@pytest.mark.parametrize(("reason", "finish"), [("max_output_tokens", "length"), ("content_filter",) * 2])
@pytest.mark.parametrize("way", WAYS)
def test_an_incomplete_answer_keeps_its_text_and_its_cost(
    server: BackgroundServer,
    make_client: MakeClient,
    way: str,
    reason: str,
    finish: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The next job is one of a later second.
    monkeypatch.setattr(job, "_LOOKUP_SECONDS", 0.0)
    details = {"incomplete_details": {"reason": reason}}
    server.end = lambda body: answer(body, "so far", "incomplete", **details)
    result = ask(way, make_client())
    assert (result.text, result.finish_reason, result.cost) == ("so far", finish, 0.0305)
    # It is not stored, as of a live call.
    server.end = answer
    assert ask(way, make_client()).text == "answer to Hi"


@pytest.mark.parametrize(("polls", "way"), [(0, "call"), (0, "call_many"), (4, "call")])
def test_a_job_may_end_at_once_or_later(
    server: BackgroundServer, make_client: MakeClient, way: str, polls: int
) -> None:
    server.polls_until_done = polls
    assert ask(way, make_client()).text == "answer to Hi"
    assert len(server.jobs) == 1


FAULTS = {
    "429": (429, {"retry-after": "0.01"}, error("rate_limit_exceeded", "slow down")),
    "500": (500, {}, error("server_error", "oops")),
    "503": (503, {}, error("server_error", "overloaded")),
    "a page": (200, {"content-type": "text/html"}, b"<html>"),
    "no object": (200, {}, None),
    "no id": (200, {}, {"status": "completed"}),
}


def once(fault: Reply, wanted: str, times: int = 2) -> Callable[[str, str, Any], Reply | None]:
    """A fault of the first requests of a method."""
    left = iter(range(times))
    return lambda method, path, body: fault if method == wanted and next(left, None) is not None else None


@pytest.mark.parametrize(("name", "way"), with_a_way(FAULTS))
def test_polls_that_fail_are_repeated(
    server: BackgroundServer, make_client: MakeClient, way: str, name: str
) -> None:
    server.fault = once(FAULTS[name], "GET")
    assert ask(way, make_client(outage_patience=10)).text == "answer to Hi"
    assert len(server.jobs) == 1


@pytest.mark.parametrize("name", ["429", "503"])
@pytest.mark.parametrize("way", WAYS)
def test_submissions_that_were_refused_are_repeated(
    server: BackgroundServer, make_client: MakeClient, way: str, name: str
) -> None:
    server.fault = once(FAULTS[name], "POST")
    if name == "503":
        # The server above would have taken the job.
        take = server.reply
        server.reply = lambda path, headers, body: (
            (body and server.fault("POST", path, body)) or take(path, headers, body)
        )
    assert ask(way, make_client(outage_patience=10)).text == "answer to Hi"
    assert len(server.jobs) == 1


@pytest.mark.parametrize(("name", "way"), with_a_way(["500", "a page", "no object", "no id"]))
def test_a_submission_without_an_answer_waits_for_a_decision(
    server: BackgroundServer, make_client: MakeClient, run: RunCommand, way: str, name: str
) -> None:
    # A page in the place of an answer hides a job.
    server.fault = lambda method, path, body: (599, {}, {}) if method == "POST" else None
    take = server.reply
    server.reply = lambda path, headers, body: (
        FAULTS[name] if (reply := take(path, headers, body))[0] == 599 else reply
    )
    client = make_client()
    first, second = ask(way, client), ask(way, make_client())
    for raised in (first, second):
        assert isinstance(raised, UncertainBatchError)
        assert raised.maybe_billed
        assert f"llm_provider={raised.batch}" in str(raised)
    assert server.jobs["resp_0000"]["metadata"]["llm_provider"] == first.batch
    # Others are not held up.
    server.fault = lambda method, path, body: None
    assert ask(way, make_client(), "other").text == "answer to other"
    make_client().close()
    run("batches", "claim", first.batch, "resp_0000")
    assert ask(way, make_client()).text == "answer to Hi"
    assert len(server.jobs) == 2


def test_a_forgotten_job_is_submitted_again(
    server: BackgroundServer, make_client: MakeClient, run: RunCommand
) -> None:
    server.fault = lambda method, path, body: (500, {}, {}) if method == "POST" else None
    client = make_client()
    results = client.call_many(MODEL, ["a", "b"], delivery="background", progress=False)
    assert [type(result) for result in results] == [UncertainBatchError, UncertainBatchError]
    server.fault = lambda method, path, body: None
    (uncertain,) = client.batches()
    uncertain.forget()
    results = make_client().call_many(MODEL, ["a", "b"], delivery="background", progress=False)
    assert results.texts == ["answer to a", "answer to b"]


@pytest.mark.parametrize("way", WAYS[:1])
def test_a_job_that_is_not_found_stays_open_until_no_provider_can_have_it(
    server: BackgroundServer,
    make_client: MakeClient,
    own_cache: Path,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.polls_until_done = 10**6
    client = make_client()
    assert isinstance(ask(way, client, deadline=0.2), APITimeoutError)
    gone = dict(server.jobs)
    server.jobs.clear()
    assert isinstance(ask(way, make_client()), PendingBatchError)
    assert server.requests == 1
    server.jobs.update(gone)
    server.polls_until_done = 0
    assert ask(way, make_client()).text == "answer to Hi"
    # A job of long ago is gone, and may have been billed.
    server.polls_until_done = 10**6
    assert isinstance(ask(way, make_client(), "old", deadline=0.2), APITimeoutError)
    server.jobs.clear()
    (path,) = [
        path for path in (own_cache / "batches").glob("*.jsonl") if "collected" not in path.read_text()
    ]
    first, rest = path.read_text().split("\n", 1)
    header = json.loads(first) | {"created": json.loads(first)["created"] - journal.KEPT_SECONDS - 60}
    path.write_text(json.dumps(header) + "\n" + rest)
    lost = ask(way, make_client(), "old")
    assert isinstance(lost, NotFoundError)
    assert (lost.maybe_billed, lost.cost) == (True, None)
    assert server.requests == 2


def test_the_command_line_lists_waits_and_cancels(
    server: BackgroundServer, make_client: MakeClient, run: RunCommand
) -> None:
    server.polls_until_done = 10**6
    client = make_client()
    batch = client.submit_many(MODEL, ["a", "b"], delivery="background", progress=False)
    assert batch.status == "in_progress"
    client.close()
    listed = json.loads(run("batches", "list", "--json").out)
    assert (listed["id"], listed["rows"], listed["status"]) == (batch.id, 2, "in_progress")
    assert sorted(name.split()[0] for name in listed["batches"]) == ["resp_0000", "resp_0001"]
    assert "asked its provider" in run("batches", "cancel", batch.id).out
    assert {job["status"] for job in server.jobs.values()} == {"cancelled"}
    assert "0 of 2 rows answered" in run("batches", "wait", batch.id).out
    assert "nothing is left to cancel" in run("batches", "cancel", batch.id).out
    server.polls_until_done = 1
    assert ask("call", make_client(), "a").text == "answer to a"


def test_map_and_ask_deliver_in_the_background(
    server: BackgroundServer, run: RunCommand, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("a\nb\n")
    ended = run(
        "map", MODEL, str(source), str(target), "--delivery", "background", "--completion-window", "8h"
    )
    assert ended.code == 0, ended.err
    assert [json.loads(line)["text"] for line in target.read_text().splitlines()] == [
        "answer to a",
        "answer to b",
    ]
    assert {body["background_options"]["completion_window"] for body in server.bodies} == {"8h"}
    ended = run("ask", MODEL, "a", "--param", 'delivery="background"')
    assert (ended.code, ended.out) == (0, "answer to a\n"), ended.err
    assert len(server.jobs) == 2


PROGRAM = """
from llm_provider import Client
from llm_provider._core.batches import collect, remote, submit
collect._FIRST_POLL, remote._FIRST_PAUSE, submit._SETTLING_SECONDS = 0.02, 0.025, 0.1
with Client(ledger={ledger!r}, outage_patience=0.3) as client:
    print(client.call("gpt-5.5", "Hi", delivery="background").text)
"""

KILLS = {
    "in the submission": ("POST", True),
    "in the first poll": ("GET", False),
}
"""Where a process is killed, and whether its job is then uncertain."""


@pytest.mark.parametrize("name", KILLS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_ends_anywhere_loses_no_job(
    server: BackgroundServer,
    make_client: MakeClient,
    own_cache: Path,
    warm_python: list[str],
    name: str,
    number: signal.Signals,
) -> None:
    method, is_uncertain = KILLS[name]
    reached, may_go_on = threading.Event(), threading.Event()
    server.polls_until_done = 10**6
    take = server.reply

    def hold(path: str, headers: Any, body: Any) -> Reply:
        reply = take(path, headers, body)
        if (body is None) == (method == "GET"):
            reached.set()
            may_go_on.wait(20)
        return reply

    server.reply = hold
    program = PROGRAM.format(ledger=str(own_cache.parent / "ledger.jsonl"))
    with subprocess.Popen(
        [*warm_python, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    ) as process:
        assert reached.wait(30)
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.communicate(timeout=30)  # no answer may reach it any more
        may_go_on.set()
        _, err = process.communicate(timeout=30)
    server.reply = take
    server.polls_until_done = 0
    again = ask("call", make_client())
    if is_uncertain and number == signal.SIGKILL:
        assert isinstance(again, UncertainBatchError)
        make_client().batches()[0].claim("resp_0000")
        again = ask("call", make_client())
    elif number == signal.SIGINT:
        assert b"goes on at its provider" in err
    assert again.text == "answer to Hi"
    assert len(server.jobs) == 1
    make_client().close()
    assert float(Ledger.read(own_cache.parent / "ledger.jsonl").total.spent) == pytest.approx(0.0305)


def test_a_submission_that_was_only_planned_is_submitted(
    server: BackgroundServer, make_client: MakeClient, own_cache: Path
) -> None:
    server.fault = lambda method, path, body: (500, {}, {}) if method == "POST" else None
    assert isinstance(ask("call", make_client()), UncertainBatchError)
    server.fault = lambda method, path, body: None
    (path,) = (own_cache / "batches").glob("*.jsonl")
    lines = path.read_text().splitlines()
    # The process was killed before it began.
    path.write_text("\n".join(line for line in lines if "submitting" not in line) + "\n")
    assert ask("call", make_client()).text == "answer to Hi"


def test_a_live_call_can_wait_for_a_job(server: BackgroundServer, make_client: MakeClient) -> None:
    server.polls_until_done = 5
    client = make_client()
    client.submit_many(MODEL, ["Hi"], delivery="background", progress=False)
    waited = client.call(MODEL, "Hi", endpoint="responses", in_batch="wait")
    assert waited.text == "answer to Hi"
    assert len(server.jobs) == server.requests == 1
