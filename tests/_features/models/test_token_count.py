"""`TokenCount` is a number that knows how it was found."""

import asyncio
import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import MessageCountTokensParams

from llm_provider import (
    APIResponseValidationError,
    AuthenticationError,
    Client,
    Ledger,
    LLMError,
    TokenCount,
    UnsupportedParameterError,
    count_tokens,
    track,
)  # fmt: skip
from llm_provider._core.formats import registry
from llm_provider._core.formats.gemini.connection import connect
from llm_provider._core.formats.protocol import Outgoing
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import canonical
from llm_provider._features.models import token_count as token_counts
from llm_provider.simulator import Fault, Simulator


def test_it_is_an_int() -> None:
    count = TokenCount(12, method="provider")
    assert (count, count + 1, count > 11, f"{count:>4}", str(count)) == (12, 13, True, "  12", "12")
    assert (count.exact, count.low, count.high) == (True, 12, 12)
    assert json.dumps({"tokens": count}) == '{"tokens": 12}'
    assert sum([count, count]) == 24


def test_an_estimate_has_bounds_and_keeps_them() -> None:
    count = TokenCount(12, method="estimate", low=9, high=16)
    assert not count.exact
    assert repr(count) == "TokenCount(12, method='estimate', low=9, high=16)"
    for other in (pickle.loads(pickle.dumps(count)), copy.copy(count), copy.deepcopy(count)):
        assert (other, other.method, other.low, other.high) == (12, "estimate", 9, 16)


def test_fields_of_the_answer_are_left_out() -> None:
    target = resolve("claude-sonnet-4-5")
    request = Request.build(
        "claude-sonnet-4-5",
        "hello",
        {"system": "Be brief.", "max_tokens": 5000, "stop": "END", "thinking_budget": 2000}
        | {"metadata": None, "tools": ["web_search"], "extra_headers": {"X-A": "b"}},
    )
    encoded = token_counts.FORMATS["anthropic"].encode(
        CHAT.encode(request, target, registry.load("anthropic")), target
    )
    assert encoded.operation == "messages/count_tokens"
    assert encoded.payload.keys() == {"model", "messages", "system", "tools", "thinking"}
    assert encoded.headers["x-a"] == "b"
    assert MessageCountTokensParams.__annotations__.keys() >= token_counts._COUNTED


def test_the_whole_request_is_counted(simulator: Simulator) -> None:
    target = resolve("gemini/gemini-3.8-flash", simulator.url("gemini"))
    request = Request.build("gemini/gemini-3.8-flash", "hello", {"system": "Be brief.", "max_tokens": 5})
    encoded = token_counts.FORMATS["gemini"].encode(
        CHAT.encode(request, target, registry.load("gemini")), target
    )
    assert encoded.operation.endswith("/models/gemini-3.8-flash:countTokens")

    async def main() -> bytes:
        connection = connect("aiohttp")
        outgoing = Outgoing(encoded, canonical(encoded.payload), target, APIKey("key"), Timeouts(total=30))
        try:
            return await connection.send(outgoing)
        finally:
            await connection.close()

    assert token_counts.FORMATS["gemini"].decode(json.loads(asyncio.run(main()))) > 2
    (sent,) = simulator.requests()
    assert sent.body.keys() == {"generateContentRequest"}
    whole = sent.body["generateContentRequest"]
    assert whole["model"] == "models/gemini-3.8-flash"
    assert {"contents", "systemInstruction", "generationConfig"} <= whole.keys()


MODELS = ["claude-sonnet-5-5", "gemini/gemini-3.8-flash"]
FIELDS = {"claude-sonnet-5-5": "input_tokens", "gemini/gemini-3.8-flash": "totalTokens"}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("model", MODELS)
def test_the_provider_counts_what_a_call_reads(client: Client, model: str) -> None:
    parameters = {"system": "Be brief.", "tools": [add], "max_tokens": 50, "stop": "END"}
    count = client.count_tokens(model, "What is 2+2?", **parameters)
    assert (count.exact, count.method) == (True, "provider")
    assert count == client.call(model, "What is 2+2?", **parameters).usage.input_tokens
    assert count > client.count_tokens(model, "What is 2+2?")


@pytest.mark.parametrize("model", MODELS)
def test_it_costs_nothing_and_no_budget_is_asked(
    simulator: Simulator, own_cache: Path, tmp_path: Path, model: str
) -> None:
    ledger = tmp_path / "calls.jsonl"
    with Client(cache_dir=own_cache, budget=1e-9, ledger=ledger) as client, track() as sums:
        client.count_tokens(model, "hello", budget=1e-9)
    assert (simulator.ledger().requests, simulator.ledger().billed) == (1, 0)
    assert (sums.spent, sums.rows(), Ledger.read(ledger).rows()) == (0, [], [])


def test_one_process_asks_once(client: Client, simulator: Simulator) -> None:
    counts = [client.count_tokens("claude-sonnet-5-5", text) for text in ("hello", "hello", "other")]
    assert counts[0] == counts[1]
    assert simulator.ledger().requests == 2
    client.with_options(temperature=None).count_tokens("claude-sonnet-5-5", "hello")
    assert simulator.ledger().requests == 2
    client.count_tokens("claude-sonnet-5-5", "hello", cache="refresh")
    assert simulator.ledger().requests == 3
    assert client.cache.stats().entries == 0


def test_nothing_is_sent_if_the_user_forbids_it(simulator: Simulator, own_cache: Path) -> None:
    assert count_tokens("claude-sonnet-5-5", "hello", exact=False).method == "estimate"
    assert count_tokens("claude-sonnet-5-5", "hello", cache="only").method == "estimate"
    with Client(cache="only") as client:
        assert client.count_tokens("gemini/gemini-3.8-flash", "hello").method == "estimate"
    assert simulator.ledger().requests == 0


@pytest.mark.parametrize("model", MODELS)
def test_a_failure_is_retried_or_typed(client: Client, simulator: Simulator, model: str) -> None:
    simulator.inject(Fault(status=500))
    assert client.count_tokens(model, "hello").exact
    assert simulator.ledger().requests == 2
    simulator.inject(Fault(status=401))
    with pytest.raises(AuthenticationError) as caught:
        client.count_tokens(model, "other")
    assert (caught.value.model, caught.value.attempts, caught.value.maybe_billed) == (model, 1, False)


@pytest.mark.parametrize("reply", ['{"other": 1}', "[]", '{"%s": "7"}', '{"%s": -1}', '{"%s": true}'])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(3)
def test_a_reply_without_a_count_fails(client: Client, simulator: Simulator, model: str, reply: str) -> None:
    body = reply.replace("%s", FIELDS[model])
    for _ in range(2):
        simulator.inject(Fault(status=200, body=body))
    with pytest.raises(APIResponseValidationError) as caught:
        client.count_tokens(model, "hello", max_retries=1)
    assert (caught.value.attempts, caught.value.maybe_billed, bool(caught.value.cost)) == (2, False, False)


def test_what_a_call_refuses_is_refused(client: Client, simulator: Simulator) -> None:
    with pytest.raises(UnsupportedParameterError, match="temperature"):
        client.count_tokens("claude-sonnet-5-5", "hello", temperature=0)
    assert simulator.ledger().requests == 0


def test_defaults_and_dropped_parameters(simulator: Simulator) -> None:
    client = Client(temperature=0, unsupported="drop", system="Be brief and kind.")
    with client, pytest.warns(UserWarning, match="temperature"):
        longer = client.count_tokens("claude-sonnet-5-5", "hello")
    with Client() as plain:
        assert plain.count_tokens("claude-sonnet-5-5", "hello") < longer


def test_on_result_hears_of_failures_only(simulator: Simulator) -> None:
    results: list[Any] = []
    simulator.inject(Fault(status=401))
    with Client(on_result=results.append) as client:
        with pytest.raises(AuthenticationError):
            client.count_tokens("claude-sonnet-5-5", "hello")
        client.count_tokens("claude-sonnet-5-5", "hello")
    assert [isinstance(each, LLMError) for each in results] == [True]


needs_vocabulary = pytest.mark.usefixtures("vocabulary")


@needs_vocabulary
def test_texts_for_a_model_whose_rule_is_published_are_exact() -> None:
    with Client() as client:
        # The figure of OpenAI's API: prompt_tokens of this message alone are 8.
        count = client.count_tokens("gpt-4o", "hi")
        assert (count, count.exact, count.method) == (8, True, "tiktoken")
        more = client.count_tokens("gpt-4o", [{"role": "user", "content": "hi"}], system="hi")
        assert more - count == 5


@needs_vocabulary
def test_a_model_without_a_published_rule_has_a_narrow_range() -> None:
    with Client() as client:
        count = client.count_tokens("groq/openai/gpt-oss-120b", "hello " * 1000)
    assert count.method == "tiktoken"
    assert 1000 <= count.low < count < count.high < 1100


def test_everything_else_is_estimated() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    picture = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "https://x/a.png"}}]
    with Client() as client:
        plain = client.count_tokens("claude-sonnet-5-5", "hello", exact=False)
        counts = [
            plain,
            client.count_tokens("claude-sonnet-5-5", "hello", exact=False, tools=[tool]),
            client.count_tokens("gpt-4o", [{"role": "user", "content": picture}]),
            client.count_tokens("mistral/mistral-large-4", "hello"),
        ]
    assert {count.method for count in counts} == {"estimate"}
    assert all(0 < count.low < count < count.high and not count.exact for count in counts)
    assert counts[1] > plain + 100
