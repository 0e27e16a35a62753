"""Legal JSON that not every reader takes: halves of surrogate pairs, and integers beyond 64 bits.

A server of its own answers in the four formats. What the user reads, what is stored, written and sent back,
is exact, and no answer is paid twice.
"""

# ruff: noqa: UP031  # JSON is full of braces
from __future__ import annotations

import http.server
import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Response, Results, verify
from support import WAYS, ask

BIG = 12345678901234567890123
HALF, PAIR = "\ud83d", "\U0001f600"
MODELS = ("local/m", "gpt-5.5-pro", "claude-haiku-5-5", "gemini-3.8-flash")


class FourFormats(http.server.ThreadingHTTPServer):
    """Answers `pieces`, one a delta, or first with a call of `f` with an integer beyond 64 bits."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pieces: list[str] = []
        self.calls_tool = False
        self.bodies: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FourFormats

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.bodies.append(body)
        streamed = "alt=sse" in self.path or json.loads(body).get("stream") is True
        answered = '"tool_result"' in body or '"functionResponse"' in body
        answer = self.answer(streamed, self.server.calls_tool and not answered)
        if streamed:
            answer = [f"data: {event}\n\n" for event in answer]
        sent = "".join(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def answer(self, streamed: bool, calls_tool: bool) -> list[str]:
        """The events, or the body."""
        pieces = [json.dumps(piece) for piece in self.server.pieces]
        text = json.dumps("".join(self.server.pieces))
        if "/chat/" in self.path:
            head = '{"id":"1","model":"m","choices":[{"index":0,"finish_reason":%s,"%s":%s}]%s}'
            usage = ',"usage":{"prompt_tokens":3,"completion_tokens":2}'
            if not streamed:
                return [head % ('"stop"', "message", '{"role":"assistant","content":%s}' % text, usage)]
            deltas = [head % ("null", "delta", '{"content":%s}' % piece, "") for piece in pieces]
            return [*deltas, head % ('"stop"', "delta", "{}", usage), "[DONE]"]
        if "/responses" in self.path:
            content = '[{"type":"output_text","text":%s,"annotations":[]}]' % text
            message = (
                '{"type":"message","id":"m","role":"assistant","status":"completed","content":%s}' % content
            )
            whole = (
                '{"id":"r","model":"m","status":"completed","output":[%s],'
                '"usage":{"input_tokens":3,"output_tokens":2}}' % message
            )
            place = '"output_index":0,"content_index":0,"item_id":"m"'
            delta = '{"type":"response.output_text.delta","sequence_number":%d,' + place + ',"delta":%s}'
            deltas = [delta % pair for pair in enumerate(pieces, 1)]
            end = '{"type":"response.completed","sequence_number":9,"response":%s}' % whole
            return [*deltas, end] if streamed else [whole]
        if "/messages" in self.path:
            block = '{"type":"tool_use","id":"t","name":"f","input":%s}'
            reason = "tool_use" if calls_tool else "end_turn"
            content = block % ('{"x":%d}' % BIG) if calls_tool else '{"type":"text","text":%s}' % text
            whole = (
                '{"id":"m","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":"%s",'
                '"usage":{"input_tokens":3,"output_tokens":2}}'
            )
            if not streamed:
                return [whole % (content, reason)]
            begun = block % "{}" if calls_tool else '{"type":"text","text":""}'
            cut = [json.dumps(piece) for piece in ('{"x": 12345678', f"{str(BIG)[8:]}}}")]
            parts = [f'{{"type":"input_json_delta","partial_json":{piece}}}' for piece in cut]
            if not calls_tool:
                parts = [f'{{"type":"text_delta","text":{piece}}}' for piece in pieces]
            return [
                '{"type":"message_start","message":%s}' % (whole % ("", "")).replace('""', "null"),
                '{"type":"content_block_start","index":0,"content_block":%s}' % begun,
                *('{"type":"content_block_delta","index":0,"delta":%s}' % part for part in parts),
                '{"type":"content_block_stop","index":0}',
                '{"type":"message_delta","delta":{"stop_reason":"%s"},"usage":{"output_tokens":2}}' % reason,
                '{"type":"message_stop"}',
            ]
        entry = (
            '{"responseId":"r","modelVersion":"m","candidates":[{"content":{"role":"model","parts":[%s]}%s}],'
            '"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}'
        )
        parts = ['{"functionCall":{"name":"f","args":{"x":%d}}}' % BIG] if calls_tool else [
            f'{{"text":{piece}}}' for piece in (pieces if streamed else [text])
        ]  # fmt: skip
        ends = ["" for _ in parts[1:]] + [',"finishReason":"STOP"']
        return [entry % pair for pair in zip(parts, ends, strict=True)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FourFormats]:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-test")
    with FourFormats() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


def address(server: FourFormats, model: str) -> str:
    return server.url if model.startswith(("claude", "gemini")) else f"{server.url}/v1"


TEXTS = {
    "a lone first half": ["x" + HALF, " y"],
    "a pair in two deltas": ["a" + HALF, "\ude00b"],
    "a lone second half": ["\ude00", "b"],
    "a half at the end": ["b", HALF],
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pieces", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("model", MODELS)
def test_halves_of_surrogate_pairs_are_read_stored_and_joined(
    server: FourFormats, own_cache: Path, model: str, pieces: list[str], way: str
) -> None:
    server.pieces, deltas = pieces, []
    expected = "".join(pieces).replace(HALF + "\ude00", PAIR)
    with Client(cache_dir=own_cache, max_retries=0) as client:
        where = {"base_url": address(server, model)}
        answer = ask(client, way, model, deltas=deltas, **where)
        assert answer.text == expected
        assert "stream" not in way or "".join(delta.text for delta in deltas) == expected
        hit = ask(client, way, model, cache="only", **where)
        assert (hit.text, hit.cached, len(server.bodies)) == (expected, True, 1)
        # What leaves us can be read by everybody: U+FFFD stands for each half.
        history = [{"role": "user", "content": "Hi"}, answer.message, {"role": "user", "content": "More"}]
        client.call(model, history, **where)
        sent = expected.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert json.dumps(sent, ensure_ascii=False)[1:-1] in server.bodies[-1]


@pytest.mark.parametrize("model", MODELS)
def test_every_file_of_such_an_answer_can_be_written_and_read(
    server: FourFormats, tmp_path: Path, model: str
) -> None:
    server.pieces = ["x" + HALF + " y"]
    where = {"base_url": address(server, model)}
    with Client(cache_dir=tmp_path / "cache", ledger=tmp_path / "ledger.jsonl") as client:
        results = client.call_many(model, ["one"], progress=False, **where)
        [result] = results
        assert isinstance(result, Response)
        assert pickle.loads(pickle.dumps(result)).text == result.text
        results.to_jsonl(tmp_path / "r.jsonl")
        [again] = Results.from_jsonl(tmp_path / "r.jsonl")
        assert isinstance(again, Response)
        assert again.text == result.text
        # JSON has an escape for a half.
        assert '"x\\ud83d y"' in (tmp_path / "r.jsonl").read_text(encoding="utf-8")
        results.to_html(tmp_path / "r.html")
        assert "\\ud83d" in (tmp_path / "r.html").read_text(encoding="utf-8")
        results.export(tmp_path / "r.zip", client=client)
    verify(tmp_path / "r.zip")


def f(x: int) -> str:
    """Take a number."""
    return str(x)


@pytest.mark.parametrize("way", ["call", "stream", "acall_many"])
@pytest.mark.parametrize("model", MODELS[2:])
def test_an_argument_beyond_64_bits_reaches_the_function_and_the_next_round(
    server: FourFormats, own_cache: Path, model: str, way: str
) -> None:
    server.pieces, server.calls_tool = ["done"], True
    parameters: dict[str, Any] = {"tools": [f], "max_tool_rounds": 2, "base_url": server.url}
    with Client(cache_dir=own_cache, max_retries=0) as client:
        answer = ask(client, way, model, **parameters)
        assert (answer.text, len(server.bodies)) == ("done", 2)
        assert server.bodies[1].count(str(BIG)) == 2
        again = ask(client, way, model, cache="only", **parameters)
        assert (again.text, again.cached, len(server.bodies)) == ("done", True, 2)


@pytest.mark.parametrize("model", MODELS[2:])
def test_a_history_keeps_such_an_argument_and_what_is_no_number_stays_text(
    server: FourFormats, own_cache: Path, model: str
) -> None:
    server.pieces = ["done"]
    with Client(cache_dir=own_cache) as client:
        for arguments in (f'{{"x": {BIG}}}', '{"x": 1E400}', '{"x": NaN}'):
            function = {"name": "f", "arguments": arguments}
            history = [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": "c", "content": "ok"},
            ]
            if str(BIG) in arguments:
                client.call(model, history, tools=[f], base_url=server.url)
                assert f'"x":{BIG}' in server.bodies[-1]
            else:
                with pytest.warns(UserWarning, match="not a JSON object"):
                    client.call(model, history, tools=[f], base_url=server.url)
                assert json.dumps(arguments) in server.bodies[-1]
