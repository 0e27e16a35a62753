"""Tools that the provider bills beside the tokens, at prices that are not known: no cost is told too low."""

import copy
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Budget, Client, LLMError, Response, Results
from raw_server import RawServer, answering, streaming
from support import ask
from wire_shapes import JSON, SHAPES

pytestmark = pytest.mark.filterwarnings("ignore::llm_provider.PriceWarning")

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
    "12 hours in the prompt cache": (RESPONSES, {"ttl_12h_tokens": 9, "ttl_30m_tokens": 1}, 0),
    "30 minutes in the prompt cache": (RESPONSES, {"ttl_12h_tokens": 0, "ttl_30m_tokens": 9}, 0),
    "local shell": (
        RESPONSES,
        {"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "local"}},
        0,
    ),
    "no code": (CLAUDE, {}, 0),
    "code": (CLAUDE, {"content": [run("code_execution")]}, 1),
    "two commands": (CLAUDE, {"content": [run("bash_code_execution"), run("text_editor_code_execution")]}, 2),
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


FORMATS = {RESPONSES: "responses", CLAUDE: "anthropic", GEMINI: "gemini", GROQ: "openai"}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}


def reply_of(model: str, used: JSON) -> tuple[JSON, list[JSON]]:
    """A reply that tells of a tool, and the events of its stream."""
    reply = copy.deepcopy(SHAPES[FORMATS[model]][0].whole)
    if model == RESPONSES:
        if "ttl_12h_tokens" in used:
            written = sum(used.values())
            for total in ("input_tokens", "total_tokens"):
                reply["usage"][total] += written
            writes = {"cache_write_tokens": written, "cache_write_tokens_details": used}
            reply["usage"]["input_tokens_details"] |= writes
        elif used:
            reply["output"][:0] = [{"id": "x", "status": "completed", **used}]
        return reply, [{"type": "response.completed", "response": reply}]
    if model == GEMINI:
        reply["candidates"][0] |= used
        return reply, [reply]
    if model == GROQ:
        message = reply["choices"][0]["message"] = {**reply["choices"][0]["message"], **used}
        return reply, [{**reply, "choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]}]
    blocks = [*used.get("content", ()), *reply["content"]]
    container = {name: used[name] for name in ("container",) if name in used}
    events: list[JSON] = [{"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}}]
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", **container},
        "usage": reply["usage"],
    }
    return {**reply, **container, "content": blocks}, [*events, end, {"type": "message_stop"}]


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
    reply, events = reply_of(model, used)
    behaviour = answering(json.dumps(reply).encode())
    if way == "stream":
        behaviour = streaming(events, done=model in (RESPONSES, GROQ))
    if way == "unusable":
        if model != RESPONSES:
            pytest.skip("only responses have a status that makes a whole answer unusable")
        behaviour = answering(json.dumps({**reply, "status": "cancelled"}).encode())
    file, budget = tmp_path / "calls.jsonl", Budget(5, allow_unknown=True)
    with RawServer(behaviour) as server, Client(cache_dir=tmp_path / "cache", ledger=file) as client:
        parameters["base_url"] = server.root + ("/v1" if model in (RESPONSES, GROQ) else "")
        how = way if way in ("stream", "call_many") else "call"
        try:
            outcome: Response | LLMError = ask(client, how, model, "2+2?", budget=budget, **parameters)
        except LLMError as error:
            outcome = error
        # A call that waits for the user's program is not held against the schema.
        failed = way == "unusable" or (way == "mismatched" and "shell" not in tool)
        assert isinstance(outcome, LLMError) == failed
        (line,) = lines_of(file)
        check(outcome, unpriced, line)
        assert client.usage.rows()[0].unknown == bool(unpriced)
        if isinstance(outcome, Response):
            assert outcome.price == outcome.cost
            again = ask(client, "call", model, "2+2?", **parameters)
            assert again.cached
            assert (again.cost, again.price) == (0, outcome.cost)
            hit = lines_of(file)[-1]
            assert hit["outcome"] == "hit"
            assert hit["usd"] == line["usd"]
            assert client.usage.saved == Decimal(line["usd"] or 0)
            assert Results([again]).saved.unknown == bool(unpriced)
    if not unpriced:
        assert float(budget.spent) == outcome.cost
