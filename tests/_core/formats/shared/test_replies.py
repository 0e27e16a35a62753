"""What replies and streams of all formats share, and the searches and costs that they report."""

import http.server
import json
import threading
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Budget, Client, Response, Usage, price
from llm_provider._core.formats.anthropic import encode as anthropic
from llm_provider._core.formats.gemini import encode as gemini
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._features.litellm import encode as chat
from llm_provider._features.quirks import any_server as openai_chat
from llm_provider.simulator import Simulator
from raw_server import RawServer, answering
from support import WAYS, ask

CHOICE = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
CANDIDATE = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}


@pytest.mark.parametrize(
    ("form", "told", "counts"),
    [
        (chat, [(10, 5), None], (10, 5)),
        (chat, [(10, 5), (0, 0)], (10, 5)),
        (gemini, [(10, 3), (10, None)], (10, 3)),
        (gemini, [(10, None), (None, 3)], (10, 3)),
        # The output of the first event is a placeholder.
        (anthropic, [(10, 1), None], None),
        (anthropic, [(10, 1), (None, 0)], (10, 0)),
        (anthropic, [(10, 1), (0, 5)], (10, 5)),
        (anthropic, [None, (10, 1), (0, 2)], (10, 2)),
    ],
)
def test_the_counts_of_a_stream_grow(form: Any, told: list[Any], counts: tuple[int, int] | None) -> None:
    names = {chat: ("prompt_tokens", "completion_tokens"), anthropic: ("input_tokens", "output_tokens")}
    pair = names.get(form, ("promptTokenCount", "candidatesTokenCount"))
    usages = [
        each and {name: n for name, n in zip(pair, each, strict=True) if n is not None} for each in told
    ]
    events: list[Any] = [{"choices": [CHOICE], "usage": usage} for usage in usages]
    if form is gemini:
        events = [{"candidates": [CANDIDATE], "usageMetadata": usage} for usage in usages]
    elif form is anthropic:
        start = {"type": "message_start", "message": {"content": [], "usage": usages[0]}}
        events = [start, *({**END, "usage": usage} for usage in usages[1:]), {"type": "message_stop"}]
    assembler = form.assembler(EncodedRequest("", {}))
    for event in events:
        assembler.feed(event)
    usage = form.decode(assembler.reply()).usage
    assert counts == (None if usage is None else (usage.input_tokens, usage.output_tokens))


# The words for the end of an answer, of every provider, in every format, and what is kept of each.


WORDS = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "end_turn": "stop", "stop_sequence": "stop",
    "STOP": "stop",
    "length": "length", "max_tokens": "length", "MAX_TOKENS": "length", "model_length": "length",
    "model_context_window_exceeded": "length", "pause_turn": "length", "MALFORMED_FUNCTION_CALL": "length",
    "content_filter": "content_filter", "sensitive": "content_filter", "SAFETY": "content_filter",
    "RECITATION": "content_filter", "guardrail_intervened": "content_filter", "refusal": "refusal",
    "network_error_of_tomorrow": "unknown", "OTHER": "unknown", "MALFORMED_RESPONSE": "unknown",
    "MISSING_THOUGHT_SIGNATURE": "unknown",
}  # fmt: skip


def reply_of(form: str, word: str) -> dict[str, Any]:
    if form == "chat":
        return {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": word}]}
    if form == "claude":
        return {"content": [{"type": "text", "text": "Hi"}], "stop_reason": word}
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": word}]}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("form", ["chat", "claude", "gemini"])
@pytest.mark.filterwarnings("ignore:an answer ended for the reason")
def test_a_word_means_the_same_in_every_format(form: str, word: str) -> None:
    decode = {"chat": openai_chat, "claude": anthropic, "gemini": gemini}[form].decode
    [choice] = decode(reply_of(form, word)).choices
    assert choice.finish_reason == WORDS[word]


def test_a_call_that_google_could_not_read_is_not_run() -> None:
    entry = reply_of("gemini", "MALFORMED_FUNCTION_CALL")
    entry["candidates"][0]["content"]["parts"] = [{"functionCall": {"name": "f", "args": {}}}]
    [choice] = gemini.decode(entry).choices
    assert (choice.finish_reason, len(choice.tool_calls)) == ("length", 1)


@pytest.mark.parametrize(("text", "reason"), [("done", "stop"), ("", "unknown")])
def test_calls_that_are_announced_and_missing(text: str, reason: str) -> None:
    entry = reply_of("chat", "tool_calls")
    entry["choices"][0]["message"]["content"] = text
    [choice] = openai_chat.decode(entry).choices
    assert choice.finish_reason == reason


class Words(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = reply_of("chat", "word_of_tomorrow")
        sent = json.dumps(reply).encode()
        if body.get("stream"):
            reply["choices"][0]["delta"] = reply["choices"][0].pop("message")
            sent = f"data: {json.dumps(reply)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if body.get("stream") else "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Words) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_word_is_named_once_and_its_answer_is_not_stored(
    server: str, own_cache: Path, way: str
) -> None:
    with Client(cache_dir=own_cache) as client, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            answer = ask(client, way, "local/m", base_url=server)
            assert (answer.text, answer.finish_reason, answer.cached) == ("Hi", "unknown", False)
    assert [str(each.message)[:52] for each in caught] == [
        "an answer ended for the reason 'word_of_tomorrow', w"
    ]
    with Client(cache_dir=own_cache, cache_finish_reasons=["stop", "unknown"]) as client:
        ask(client, way, "local/m", base_url=server)
        assert ask(client, way, "local/m", base_url=server).cached


SEARCHING = [
    ("gpt-5.5-pro", 3, 3),
    ("gemini-3.8-flash", 2, 2),
    ("gemini-2.5-pro", 2, 1),
    ("claude-sonnet-5-5", 2, 2),
    ("gpt-5-search-api", 0, 1),
]


@pytest.fixture(autouse=True)
def bill(simulator: Simulator) -> None:
    simulator.configure(prices=default_prices_path())


def ask_searching(client: Client, model: str, *, stream: bool, **parameters: Any) -> Response:
    if not stream:
        return client.call(model, "What is new?", max_tokens=100, **parameters)
    with client.stream(model, "What is new?", max_tokens=100, **parameters) as answer:
        for _ in answer:
            pass
        return answer.response


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "made", "billed"), SEARCHING)
def test_searches_are_counted_and_priced(
    client: Client, simulator: Simulator, model: str, made: int, billed: int, stream: bool
) -> None:
    simulator.configure(web_searches=made)
    answer = ask_searching(client, model, stream=stream)
    assert answer.usage.web_searches == billed
    tokens = Usage(input_tokens=answer.usage.input_tokens, output_tokens=answer.usage.output_tokens)
    fee = {"gpt-5.5-pro": "0.03", "gemini-3.8-flash": "0.028", "gemini-2.5-pro": "0.035"}.get(model, "0.01")
    if model.startswith("claude"):
        fee = "0.02"
    of_tokens = price(model, tokens)
    assert of_tokens is not None
    assert client.usage.spent == of_tokens + Decimal(fee) == simulator.ledger().billed
    assert answer.cost == pytest.approx(float(of_tokens) + float(fee))
    assert answer.cost_source == "prices"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "model", ["openrouter/openai/gpt-6.1-sol", "xai/grok-4.3", "openrouter/no/such-model"]
)
def test_the_cost_of_the_reply_wins(client: Client, simulator: Simulator, model: str, stream: bool) -> None:
    simulator.configure(reported_cost=0.0161)
    answer = ask_searching(client, model, stream=stream)
    assert (answer.cost, answer.cost_source) == (0.0161, "reply")
    assert client.usage.spent == Decimal("0.0161") == simulator.ledger().billed
    again = client.call(model, "What is new?", max_tokens=100)
    assert (again.cached, again.cost, again.cost_source) == (True, 0.0, None)
    assert client.usage.saved == Decimal("0.0161")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash"])
def test_zeros_are_an_unknown_cost(client: Client, simulator: Simulator, model: str, stream: bool) -> None:
    simulator.configure(count_usage=False)
    answer = ask_searching(client, model, stream=stream)
    assert (answer.cost, answer.cost_source, answer.usage) == (None, None, Usage())
    (row,) = client.usage.rows("model")
    assert row.unknown == 1
    assert not row.spent
    assert client.usage.unknown_at_most
    budget = Budget(9)
    assert client.call(model, "Another", max_tokens=100, budget=budget).cost is None
    assert budget.spent > 0


def test_the_cost_of_the_reply_has_its_tools(client: Client) -> None:
    usage: dict[str, Any] = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14, "cost": 0.05}
    call = {"type": "file_search_call", "id": "x_1", "status": "completed"}
    reply = {"id": "r", "object": "response", "status": "completed", "model": "gpt-6.1-sol", "usage": usage}
    with RawServer(answering(json.dumps({**reply, "output": [call]}).encode())) as raw:
        answer = client.call("gpt-6.1-sol", "2+2?", base_url=f"{raw.root}/v1", api_key="sk-test")
    assert (answer.cost, answer.usage.unpriced_tools) == (0.05, 1)
