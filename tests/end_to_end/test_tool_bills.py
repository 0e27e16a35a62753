"""Tools that the provider bills beside the tokens, at prices that are not known: no cost is told too low."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Budget, Client, LLMError, Response, Results
from llm_provider.simulator import Fault, Simulator
from raw_server import Behaviour, RawServer, answering, streaming

pytestmark = pytest.mark.filterwarnings("ignore::llm_provider.PriceWarning")

JSON = dict[str, Any]
RESPONSES, CLAUDE, GEMINI, GROQ = (
    "gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-3.8-flash", "groq/openai/gpt-oss-120b"
)  # fmt: skip


def run(name: str, **fields: Any) -> JSON:
    return {"type": "server_tool_use", "id": f"s_{name}", "name": name, "input": {}, **fields}


SEARCHED_BY_CODE = run(
    "web_search", caller={"type": "code_execution_20260120", "tool_id": "s_code_execution"}
)
TOOLS: dict[str, tuple[str, JSON, int]] = {
    "nothing": (RESPONSES, {}, 0),
    "code interpreter": (RESPONSES, {"type": "code_interpreter_call", "container_id": "cntr_1"}, 1),
    "file search": (RESPONSES, {"type": "file_search_call", "queries": ["a"], "results": None}, 1),
    "image": (RESPONSES, {"type": "image_generation_call", "result": "aGk="}, 1),
    "hosted shell": (
        RESPONSES,
        {"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "container_reference"}},
        1,
    ),
    "local shell": (
        RESPONSES,
        {"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "local"}},
        0,
    ),
    "no code": (CLAUDE, {}, 0),
    "code": (CLAUDE, {"content": [run("code_execution")]}, 1),
    "two commands": (
        CLAUDE,
        {"content": [run("bash_code_execution"), run("text_editor_code_execution")]},
        2,
    ),
    "container": (CLAUDE, {"container": {"id": "container_1", "expires_at": "2026-11-22T20:00:00Z"}}, 1),
    "free code": (CLAUDE, {"content": [run("code_execution"), SEARCHED_BY_CODE]}, 0),
    "free fetch": (CLAUDE, {"content": [run("web_fetch")]}, 0),
    "no map": (GEMINI, {}, 0),
    "map": (GEMINI, {"groundingMetadata": {"groundingChunks": [{"maps": {"title": "Bern"}}]}}, 1),
    "files": (GEMINI, {"groundingMetadata": {"groundingChunks": [{"retrievedContext": {}}]}}, 0),
    "groq": (GROQ, {}, 0),
    "groq's code": (GROQ, {"executed_tools": [{"type": "python", "index": 0, "arguments": ""}]}, 1),
    "groq's search": (GROQ, {"executed_tools": [{"type": "search", "index": 0, "arguments": ""}]}, 0),
}


def response_of(used: JSON, text: str) -> tuple[JSON, list[JSON]]:
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
    reply = {
        "id": "r", "object": "response", "status": "completed", "model": RESPONSES,
        "usage": {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14},
        "output": [*([{"id": "x", "status": "completed", **used}] if used else []), message],
    }  # fmt: skip
    return reply, [{"type": "response.completed", "response": reply}]


def message_of(used: JSON, text: str) -> tuple[JSON, list[JSON]]:
    blocks = [*used.get("content", ()), {"type": "text", "text": text}]
    reply = {
        "id": "m", "type": "message", "role": "assistant", "model": CLAUDE, "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 5}, **used, "content": blocks,
    }  # fmt: skip
    events: list[JSON] = [{"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}}]
    events[0]["message"].pop("container", None)
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": "end_turn", **{name: used[name] for name in ("container",) if name in used}}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}})
    return reply, [*events, {"type": "message_stop"}]


def candidate_of(used: JSON, text: str) -> tuple[JSON, list[JSON]]:
    content = {"role": "model", "parts": [{"text": text}]}
    reply = {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP", **used}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14},
        "modelVersion": "gemini-3.8-flash",
    }
    return reply, [reply]


def completion_of(used: JSON, text: str) -> tuple[JSON, list[JSON]]:
    head = {"id": "c", "created": 1, "model": "openai/gpt-oss-120b"}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    message = {"role": "assistant", "content": text, **used}
    whole = {"index": 0, "message": message, "finish_reason": "stop"}
    piece = {"index": 0, "delta": message, "finish_reason": "stop"}
    return {**head, "choices": [whole], "usage": usage}, [{**head, "choices": [piece], "usage": usage}]


FORMS = {RESPONSES: response_of, CLAUDE: message_of, GEMINI: candidate_of, GROQ: completion_of}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}


def served(model: str, used: JSON, text: str, *, streamed: bool) -> Behaviour:
    reply, events = FORMS[model](used, text)
    return (
        streaming(events, done=model in (RESPONSES, GROQ))
        if streamed
        else answering(json.dumps(reply).encode())
    )


def ask(client: Client, way: str, model: str, **parameters: Any) -> Response | LLMError:
    if way == "stream":
        stream = client.stream(model, "2+2?", **parameters)
        list(stream)
        return stream.response
    if way == "call_many":
        return client.call_many(model, ["2+2?"], **parameters)[0]
    try:
        return client.call(model, "2+2?", **parameters)
    except LLMError as error:
        return error


def lines_of(file: Path) -> list[JSON]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def check(outcome: Response | LLMError, used: int, line: JSON) -> None:
    """An outcome and its line in the ledger have a cost if the tools have a price, and else none."""
    assert outcome.usage is not None
    assert outcome.usage.unpriced_tools == used
    assert outcome.maybe_billed
    assert line["usage"].get("unpriced_tools", 0) == used
    if used:
        assert (outcome.cost, line["usd"], line.get("at_most")) == (None, None, None)
    else:
        assert outcome.cost == float(line["usd"]) > 0


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("way", ["call", "stream", "call_many", "mismatched", "unusable"])
@pytest.mark.sampled(7)
def test_a_cost_is_whole_or_unknown(tool: str, way: str, tmp_path: Path) -> None:
    model, used, unpriced = TOOLS[tool]
    parameters: JSON = {"api_key": "k", "max_tokens": 300, "max_retries": 0}
    if model == RESPONSES:
        parameters["endpoint"] = "responses"
    if way == "mismatched":
        parameters |= {"response_format": SCHEMA, "max_repairs": 0}
    behaviour = served(model, used, "no JSON", streamed=way == "stream")
    if way == "unusable":
        if model != RESPONSES:
            pytest.skip("only responses have a status that makes a whole answer unusable")
        reply, _ = response_of(used, "Hello")
        behaviour = answering(json.dumps({**reply, "status": "cancelled"}).encode())
    file, budget = tmp_path / "calls.jsonl", Budget(5, allow_unknown=True)
    with RawServer(behaviour) as server, Client(cache_dir=tmp_path / "cache", ledger=file) as client:
        parameters["base_url"] = server.root + ("/v1" if model in (RESPONSES, GROQ) else "")
        outcome = ask(client, way, model, budget=budget, **parameters)
        # A call that waits for the user's program is not held against the schema.
        failed = way == "unusable" or (way == "mismatched" and "shell" not in tool)
        assert isinstance(outcome, LLMError) == failed
        (line,) = lines_of(file)
        check(outcome, unpriced, line)
        assert client.usage.rows()[0].unknown == bool(unpriced)
        if isinstance(outcome, Response):
            assert outcome.price == outcome.cost
            again = ask(client, "call", model, **parameters)
            assert isinstance(again, Response)
            assert again.cached
            assert (again.cost, again.price) == (0, outcome.cost)
            hit = lines_of(file)[-1]
            assert hit["outcome"] == "hit"
            assert hit["usd"] == line["usd"]
            assert client.usage.saved == Decimal(line["usd"] or 0)
            assert Results([again]).saved.unknown == bool(unpriced)
    if not unpriced:
        assert float(budget.spent) == outcome.cost


@pytest.mark.parametrize("tool", [tool for tool, (model, *_) in TOOLS.items() if model == RESPONSES])
@pytest.mark.parametrize("status", ["completed", "cancelled"])
@pytest.mark.sampled(5)
def test_a_row_of_a_batch_too(tool: str, status: str, simulator: Simulator, tmp_path: Path) -> None:
    _, used, unpriced = TOOLS[tool]
    file = tmp_path / "calls.jsonl"
    reply = {**response_of(used, "Hello")[0], "status": status}
    with Client(cache_dir=tmp_path / "cache", ledger=file) as client:
        batch = client.submit_many(RESPONSES, ["2+2?"], endpoint="responses", max_retries=0)
        written = [
            path.read_bytes() for path in (tmp_path / "cache" / "batches").rglob("*") if path.is_file()
        ]
        (row,) = set(re.findall(rb'"row":"([^"]+)"', b"".join(written)))
        line = {"custom_id": row.decode(), "response": {"status_code": 200, "body": reply}, "error": None}
        simulator.inject(Fault(status=200, body=json.dumps(line)), match="files.download", times=None)
        (outcome,) = batch.results()
    assert isinstance(outcome, Response) == (status == "completed")
    (entered,) = lines_of(file)
    assert entered["delivery"] == "batch"
    check(outcome, unpriced, entered)
