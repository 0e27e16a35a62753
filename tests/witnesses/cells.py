"""One check for each cell of the matrix: what a call of this library must be, whichever server answers."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import llm_provider as llm
from foreign_servers import TOOL
from llm_provider import Client, LLMError
from witnesses.witness import Running, Way

PROMPT = "Say something about birds."
TOOL_PROMPT = "Please use the tool for Bern."
SCHEMA_PROMPT = "Are you sure?"
ANSWERS_TO_SCHEMA = '{"sure": true, "score": 5}'
"""What servers that answer by rules say to `SCHEMA_PROMPT`."""
ERRORS: dict[int, type[LLMError]] = {
    401: llm.AuthenticationError, 404: llm.NotFoundError, 429: llm.RateLimitError,
    500: llm.InternalServerError,
}  # fmt: skip

_INPUT = re.compile(rb'"(?:prompt_tokens|(?:total_)?input_tokens|promptTokenCount)": ?(\d+)')
_OUTPUT = re.compile(rb'"(?:completion_tokens|(?:total_)?output_tokens|candidatesTokenCount)": ?(\d+)')

_TIME = re.compile(r"time=\S+")
"""What llm-katan's echo adds to the question."""
_numbers = itertools.count()


class Verdict(BaseModel):
    sure: bool
    score: int


def check(cell: str, server: Running, way: Way, client: Client, folder: Path) -> None:
    """Raises an AssertionError or an LLMError if the call is not what it must be."""
    arguments = server.arguments(way)
    if cell in ("call", "usage"):
        answer = client.call(way.model, PROMPT, **arguments)
        assert answer.text
        assert answer.finish_reason == "stop"
        assert cell == "call" or (answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0)
    elif cell in ("stream", "usage of a stream"):
        check_stream(server, way, client, usage=cell == "usage of a stream")
    elif cell in ("tool", "streamed tool", "tool result"):
        check_tool(server, way, client, cell)
    elif cell == "schema":
        answer = client.call(way.model, SCHEMA_PROMPT, response_format=Verdict, **arguments)
        assert isinstance(answer.parsed, Verdict)
    elif cell == "embeddings":
        assert way.embeds is not None
        arguments = {name: arguments[name] for name in arguments.keys() - {"endpoint", "max_tokens"}}
        vectors = client.embed(way.embeds, ["one text", "another one"], **arguments)
        assert len(vectors) == 2
        assert len(vectors[0]) == len(vectors[1]) > 0
        assert vectors[0] != vectors[1]
    elif cell == "429 of a stream":
        check_refusal(server, way, client, 429, streamed=True)
    elif cell == "20 calls":
        prompts = [f"{PROMPT} Number {number}." for number in range(20)]
        before = server.wire.requests
        answers = client.call_many(way.model, prompts, progress=False, **arguments)
        assert [answer.finish_reason for answer in answers] == ["stop"] * 20
        assert server.wire.requests - before == 20
    elif cell == "cache":
        first = client.call(way.model, PROMPT, **{**arguments, "cache": "refresh"})
        before = server.wire.requests
        second = client.call(way.model, PROMPT, **{**arguments, "cache": "use"})
        assert second.cached
        assert server.wire.requests == before
        assert (second.text, second.usage, second.message) == (first.text, first.usage, first.message)
    elif cell == "ledger":
        check_ledger(server, way, folder)
    else:
        check_refusal(server, way, client, int(cell), streamed=False)


def check_stream(server: Running, way: Way, client: Client, *, usage: bool) -> None:
    whole = client.call(way.model, PROMPT, **server.arguments(way))
    with client.stream(way.model, PROMPT, **server.arguments(way)) as stream:
        pieces = [delta.text for delta in stream if delta.text]
    answer = stream.response
    assert "".join(pieces) == answer.text
    assert _TIME.sub("", answer.text) == _TIME.sub("", whole.text)
    assert answer.finish_reason == "stop"
    if usage:
        assert answer.usage == whole.usage
        assert answer.usage.output_tokens > 0


def check_tool(server: Running, way: Way, client: Client, cell: str) -> None:
    """A tool is called, and its result is read."""
    # Some servers remember a conversation by its first message.
    prompt = f"{TOOL_PROMPT} {next(_numbers)}"
    arguments = {**server.arguments(way), "tools": [TOOL]}
    if cell == "streamed tool":
        with client.stream(way.model, prompt, **arguments) as stream:
            fragments = [fragment for delta in stream for fragment in delta.tool_calls]
        first = stream.response
    else:
        first = client.call(way.model, prompt, **arguments)
    assert first.finish_reason == "tool_calls"
    (requested,) = first.tool_calls
    assert requested.name == "weather"
    assert isinstance(requested.parsed_arguments["city"], str)
    if cell == "streamed tool":
        text = "".join(fragment.arguments for fragment in fragments)
        assert json.loads(text) == requested.parsed_arguments
    elif cell == "tool result":
        result = {"role": "tool", "tool_call_id": requested.id, "content": "sunny"}
        conversation = [{"role": "user", "content": prompt}, first.message, result]
        second = client.call(way.model, conversation, **arguments)
        assert second.finish_reason == "stop"
        assert second.text


def check_refusal(server: Running, way: Way, client: Client, status: int, *, streamed: bool) -> None:
    """A refusal has its class and status, is sent once, and does not show the key."""
    arguments = {**server.arguments(way), "model": way.model, "prompt": PROMPT}
    arguments |= server.witness.refuse(server, status)
    model, prompt, before = arguments.pop("model"), arguments.pop("prompt"), server.wire.requests
    with pytest.raises(LLMError) as caught:
        if streamed:
            with client.stream(model, prompt, **arguments) as stream:
                list(stream)
        else:
            client.call(model, prompt, **arguments)
    assert type(caught.value) is ERRORS[status]
    # A stream may have begun before it fails.
    assert caught.value.status in (status, 200 if streamed else status)
    assert server.wire.requests == before + 1
    assert arguments["api_key"] not in str(caught.value)


def check_ledger(server: Running, way: Way, folder: Path) -> None:
    """The lines of the ledger have the tokens that the server's bytes on the wire tell."""
    file = folder / "calls.jsonl"
    told: list[tuple[int, int]] = []
    with Client(ledger=file, cache_dir=folder / "ledger") as client:
        for number in range(3):
            begin = len(server.wire.received)
            client.call(way.model, f"{PROMPT} {number}", **server.arguments(way))
            reply = bytes(server.wire.received[begin:])
            told.append((int(_INPUT.findall(reply)[-1]), int(_OUTPUT.findall(reply)[-1])))
    lines: list[Any] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [(line["usage"]["input_tokens"], line["usage"]["output_tokens"]) for line in lines] == told
    assert [line["outcome"] for line in lines] == ["answered"] * 3
