"""Interactions and agents by public reports of other clients (docs/reports.md), in every way to call."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interactions_server import AGENT, HERE, MODEL, InteractionsServer, serving, text_step, thought, usage
from llm_provider import Client, LLMError, Response
from support import ask

pytestmark = pytest.mark.sampled(7)

WAYS = ("call", "acall", "stream", "astream", "call_many", "acall_many")


@pytest.fixture
def server() -> Iterator[InteractionsServer]:
    with serving() as made:
        yield made


@pytest.fixture
def client(server: InteractionsServer, tmp_path: Path) -> Iterator[Client]:
    keys = {"gemini": ["a-key-of-the-tests-0123456789"]}
    with Client(cache_dir=tmp_path, base_url=f"{server.root}/v1beta", keys=keys) as made:
        yield made


def outcome(client: Client, way: str, model: str, **more: Any) -> Response | LLMError:
    try:
        return ask(client, way, model, "Hello", max_retries=0, **more)
    except LLMError as error:
        return error


# mozilla-ai/any-llm#1338
@pytest.mark.parametrize("status", ["pending", "scheduled", "expired", "budget_exceeded"])
@pytest.mark.parametrize("way", WAYS)
def test_a_status_that_nobody_knows_is_no_complete_answer(
    server: InteractionsServer, client: Client, way: str, status: str
) -> None:
    server.answer = lambda body: {"status": status, "steps": []}
    ended = outcome(client, way, MODEL, **HERE)
    assert isinstance(ended, LLMError) or ended.finish_reason not in ("stop", "tool_calls")


# mozilla-ai/any-llm#1338
@pytest.mark.parametrize("status", ["pending", "scheduled", "running"])
@pytest.mark.parametrize("way", ["call", "acall", "call_many", "acall_many"])
def test_an_interaction_in_the_background_is_awaited_under_any_word(
    server: InteractionsServer, client: Client, way: str, status: str
) -> None:
    server.after = lambda identifier: (200, {}, {"id": identifier, "status": status, "agent": AGENT})
    ended = outcome(client, way, AGENT)
    assert isinstance(ended, Response), ended
    assert ended.text == "You said: Hello"


# promptfoo/promptfoo#10556
@pytest.mark.parametrize("body", [None, [], "ok", 7, {}])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [MODEL, AGENT])
def test_json_that_is_no_interaction_is_an_error(
    server: InteractionsServer, client: Client, model: str, way: str, body: Any
) -> None:
    server.fault = lambda number, asked: (200, {}, body)
    ended = outcome(client, way, model, **(HERE if model == MODEL else {}))
    assert isinstance(ended, LLMError)


# 0xPlaygrounds/rig#1976
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", [MODEL, AGENT])
def test_an_empty_last_output_does_not_hide_the_report(
    server: InteractionsServer, client: Client, model: str, way: str
) -> None:
    steps = [thought(), text_step("The report."), thought("c2k="), text_step("")]
    server.answer = lambda body: {"status": "completed", "steps": steps}
    ended = outcome(client, way, model, **(HERE if model == MODEL else {}))
    assert isinstance(ended, Response), ended
    assert ended.text == "The report."


# juanandresgs/claude-ctrl#48
@pytest.mark.parametrize("status", ["incomplete", "cancelled", "failed"])
@pytest.mark.parametrize("way", WAYS)
def test_an_agent_that_ends_without_a_whole_answer_ends_the_wait(
    server: InteractionsServer, client: Client, way: str, status: str
) -> None:
    server.answer = lambda body: {"status": status, "steps": [text_step("Half of")]}
    ended = outcome(client, way, AGENT)
    assert isinstance(ended, LLMError) == (status != "incomplete"), ended
    assert isinstance(ended, LLMError) or ended.finish_reason == "length"
    assert len(server.bodies) == 1


# agno-agi/agno#7926, DEEIX-AI/DEEIX-Chat#607
@pytest.mark.parametrize("way", WAYS)
def test_thoughts_caches_and_tools_are_counted_and_summaries_are_no_text(
    server: InteractionsServer, client: Client, way: str
) -> None:
    counts = usage(100, 5, total_thought_tokens=20, total_cached_tokens=40, total_tool_use_tokens=8)
    steps = [thought("c2ln", "I think."), text_step("Four")]
    server.answer = lambda body: {"status": "completed", "steps": steps, "usage": counts}
    ended = outcome(client, way, MODEL, **HERE)
    assert isinstance(ended, Response), ended
    assert (ended.text, ended.reasoning) == ("Four", "I think.")
    assert ended.usage.cache_read_input_tokens == 40
    assert ended.usage.reasoning_output_tokens == 20
    assert (ended.usage.input_tokens, ended.usage.output_tokens) == (108, 25)


# decocms/studio#6020
@pytest.mark.parametrize("way", ["call", "acall", "call_many", "acall_many"])
def test_a_question_that_hangs_ends_by_the_timeout_and_costs_no_second_interaction(
    server: InteractionsServer, client: Client, way: str
) -> None:
    gate = threading.Event()
    server.fetch_fault = lambda number: gate.wait(20) and None if number == 1 else None
    ended = outcome(client, way, AGENT, timeout=0.6)
    gate.set()
    assert isinstance(ended, LLMError)
    again = outcome(client, way, AGENT)
    assert isinstance(again, Response), again
    assert len(server.bodies) == 1
