"""What an answer costs, by the public reports of wrong costs in docs/reports.md: in every way to call.

The server tells a usage as the provider of the report does. What it must cost is computed here by hand.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from counting_server import CountingServer
from llm_provider import Client
from support import ask

PRICES = """\
provider,model,variant,min_input_tokens,input,cache_read,output
openai,tiny,standard,0,1,0.1,10
openai,tiny,standard,200001,2,0.2,15
openai,tiny,priority,0,2,0.2,20
openai,tiny,flex,0,0.5,0.05,5
openai,bare,standard,0,1,,10
gemini,tiny,standard,0,1,0.1,10
openrouter,google/tiny,standard,0,1,0.1,10
"""
WAYS = ("call", "acall", "stream", "astream", "call_many", "acall_many")


class Case(NamedTuple):
    model: str
    usage: Mapping[str, Any]
    usd: str | None
    """By hand; None where it is not known."""
    served: str | None = None
    """The service level that the reply names."""
    asked: str | None = None


def openai(read: int, written: int, cached: int = 0, **more: Any) -> dict[str, Any]:
    counts = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}, **more}


def gemini(read: int, written: int, thoughts: int, cached: int) -> dict[str, Any]:
    details = [{"modality": "TEXT", "tokenCount": read}]
    return {
        "promptTokenCount": read, "candidatesTokenCount": written, "thoughtsTokenCount": thoughts,
        "cachedContentTokenCount": cached, "totalTokenCount": read + written + thoughts,
        "promptTokensDetails": details,
    }  # fmt: skip


CASES = {
    # BerriAI/litellm#14849, danny-avila/LibreChat#12855: 262,960 tokens, of which 257,955 were cached.
    "cached tokens once": Case("gemini/tiny", gemini(262_960, 1_744, 0, 257_955), "0.0482405"),
    # langfuse/langfuse#16508: thoughts have the price of output, and stand beside it.
    "thoughts": Case("gemini/tiny", gemini(100, 20, 409, 0), "0.00439"),
    # langfuse/langfuse#13780
    "priority": Case("openai/tiny", openai(1000, 100), "0.004", served="priority", asked="priority"),
    # BerriAI/litellm#13810, langchain-ai/langsmith-sdk#1763
    "flex": Case("openai/tiny", openai(1000, 100, 400), "0.00082", served="flex", asked="flex"),
    # defog-ai/defog#303: what served counts, not what was asked for.
    "flex that was not served": Case("openai/tiny", openai(1000, 100), "0.002", "default", "flex"),
    # earendil-works/pi#7912: a prompt above 200,000 tokens has the price of its tier, cached tokens included.
    "above a tier": Case("openai/tiny", openai(200_001, 10, 200_000), "0.040152"),
    "at a tier": Case("openai/tiny", openai(200_000, 10), "0.2001"),
    # appstrate/appstrate#1042: a price that nobody lists is no zero.
    "no price of cached tokens": Case("openai/bare", openai(1000, 10, 400), None),
    "nothing cached": Case("openai/bare", openai(1000, 10), "0.0011"),
    # preloop/preloop#197, mastra-ai/mastra#16281: the vendor is a part of the name at a router.
    "a vendor's prefix": Case("openrouter/google/tiny", openai(1000, 10), "0.0011"),
    "a router's own cost": Case("openrouter/google/tiny", openai(1000, 10, cost=0.0123), "0.0123"),
    # nearai/ironclaw#613: a free model has its own cost, and no model's price in its place.
    "free, as the reply says": Case(
        "openrouter/google/tiny:free", openai(1000, 10, cost=0, is_byok=False), "0"
    ),
    "perhaps free": Case("openrouter/google/tiny:free", openai(1000, 10), None),
}


class Server(CountingServer):
    def __init__(self, case: Case) -> None:
        super().__init__(self.answer)
        self.case = case

    def answer(self, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], Any]:
        case, streamed = self.case, "stream" in path or bool(body.get("stream"))
        if "generateContent" in path or "streamGenerateContent" in path:
            content = {"role": "model", "parts": [{"text": "Four"}]}
            reply = {
                "candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": case.usage,
                "modelVersion": "tiny", "responseId": "r1",
            }  # fmt: skip
            events = [reply]
        else:
            tier = {} if case.served is None else {"service_tier": case.served}
            shared = {"id": "c1", "created": 1, "model": body["model"], **tier}
            end = {"index": 0, "finish_reason": "stop"}
            message = {"role": "assistant", "content": "Four"}
            reply = {
                **shared, "object": "chat.completion", "choices": [{**end, "message": message}],
                "usage": case.usage,
            }  # fmt: skip
            chunk = {**shared, "object": "chat.completion.chunk"}
            events = [
                {**chunk, "choices": [{**end, "delta": message}]},
                {**chunk, "choices": [], "usage": case.usage},
            ]
        if not streamed:
            return 200, {}, reply
        lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
        if "usageMetadata" not in reply:
            lines.append(b"data: [DONE]\n\n")
        return 200, {"content-type": "text/event-stream"}, b"".join(lines)


@pytest.fixture
def prices(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "prices.csv"
    file.write_text(PRICES, encoding="utf-8")
    return file


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(7)
def test_an_answer_costs_what_its_usage_says(name: str, way: str, prices: Path, tmp_path: Path) -> None:
    case, ledger = CASES[name], tmp_path / "ledger.jsonl"
    version = "v1beta" if case.model.startswith("gemini/") else "v1"
    asked = {} if case.asked is None else {"service_tier": case.asked}
    settings: dict[str, Any] = {"prices": prices, "ledger": ledger, "cache_dir": tmp_path / "cache"}
    with Server(case) as server, Client(**settings) as client:
        where = {"base_url": f"{server.root}/{version}", "api_key": "key-of-a-test-0123456789"}
        answer = ask(client, way, case.model, "What is 2+2?", **where, **asked)
    assert answer.cost == (None if case.usd is None else float(case.usd))
    (line,) = map(json.loads, ledger.read_text().splitlines())
    assert (line["usd"] and Decimal(line["usd"])) == (case.usd and Decimal(case.usd))
