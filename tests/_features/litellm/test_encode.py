"""What replies of litellm have of other formats: signed thinking, service levels and counts."""

import asyncio
import re
from typing import Any

import orjson
import pytest

from anthropic_support import SECRET, THOUGHT, reply, text
from litellm_support import ANTHROPIC, COMPATIBLE, IGNORED_WARNINGS, OPENAI, needs_litellm, outgoing, sent
from llm_provider import APIResponseValidationError, Client
from llm_provider._core import errors
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._features.litellm import encode as adapter
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer, answering
from support import RunScript


def chunk(finish_reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def test_thinking_is_put_together_from_its_pieces() -> None:
    assembler = adapter.assembler(EncodedRequest("chat/completions", {}))
    pieces = [
        {"type": "thinking", "thinking": "One", "signature": None},
        {"type": "thinking", "thinking": " two"},
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "thinking", "thinking": "Three"},
        {"type": "thinking", "thinking": "", "signature": "dHdv"},
    ]
    for piece in pieces:
        assembler.feed(chunk(thinking_blocks=[piece]))
    assembler.feed(chunk(content="Ho"))
    assembler.feed(chunk("stop"))
    assembler.feed({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})
    message = adapter.decode(assembler.reply()).choices[0].message
    assert message["provider_specific_fields"]["content"]["thinking_blocks"] == [
        {"type": "thinking", "thinking": "One two", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "thinking", "thinking": "Three", "signature": "dHdv"},
    ]


@pytest.mark.parametrize(
    ("model", "counts", "tier", "unpriced"),
    [
        ("claude-opus-5-5", {"speed": "fast", "service_tier": "standard"}, "fast", 0),
        ("claude-opus-5-5", {"iterations": [{"type": "compaction"}, {"type": "advisor_message"}]}, None, 1),
        ("gemini-2.5-flash", {"prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 1}}, None, 1),
        ("gemini-2.5-flash", {"prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": None}}, None, 0),
        ("gpt-6.1-sol", {"prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 0}}, None, 0),
    ],
)
def test_what_a_usage_tells_of_its_price(model: str, counts: Any, tier: str | None, unpriced: int) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, **counts}
    message = {"role": "assistant", "content": "Hi"}
    answer = adapter.decode({"model": model, "choices": [{"message": message}], "usage": usage})
    assert answer.usage is not None
    assert (answer.service_tier, answer.usage.unpriced_tools) == (tier, unpriced)


pytestmark = [needs_litellm, *IGNORED_WARNINGS]


def test_thinking_and_counts_of_claude_are_kept() -> None:
    counts = {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7}
    body = orjson.dumps(reply(THOUGHT, SECRET, text("Hello"), usage=counts))
    with RawServer(answering(body)) as server, Client(cache=False) as client:
        stream = client.stream(ANTHROPIC, "Hi", base_url=server.root, api_key="k")
        (delta,) = stream
        assert server.requests == 1
    response = stream.response
    assert (delta.text, delta.reasoning) == (response.text, response.reasoning) == ("Hello", "Hm.")
    assert (response.usage.input_tokens, response.usage.cache_read_input_tokens) == (95, 90)
    kept: Any = response.message["provider_specific_fields"]
    assert kept["content"] == {"thinking_blocks": [THOUGHT, SECRET]}


def test_a_cut_stream_is_no_answer(simulator: Simulator) -> None:
    simulator.inject(Fault(cut_after=1))
    # litellm 1.110 raises an error of its own, and earlier releases end such a stream as if it were whole.
    cut = pytest.raises(APIResponseValidationError, match=r"it was cut|Stream ended before")
    with Client(cache=False) as client, cut:
        list(client.stream(ANTHROPIC, "one two", base_url=simulator.url("anthropic"), api_key="k"))


@pytest.mark.parametrize("body", [b'{"output": "Hello"}', b"[1]", b'"Hello"'])
def test_a_document_that_is_not_known_is_not_asked_for_again(body: bytes) -> None:
    with RawServer(answering(body)) as server, Client(cache=False, max_retries=2) as client:
        with pytest.raises(APIResponseValidationError, match="did not stream"):
            list(client.stream("hosted_vllm/m", "Hi", base_url=f"{server.root}/v1", api_key="k"))
        assert server.requests == 1


def test_an_answer_whose_headers_litellm_cannot_read() -> None:
    error = RuntimeError("'ascii' codec can't encode character")
    error.__context__ = UnicodeEncodeError("ascii", "\u0665", 0, 1, "ordinal not in range(128)")
    assert isinstance(adapter.map_error(error), errors.APIResponseValidationError)


AT_HOME = """
import asyncio, socket, sys
from llm_provider import Client, LLMError

def guard(event, arguments):
    if event == "socket.connect" and arguments[0].family != socket.AF_UNIX:
        assert arguments[1][0] == "127.0.0.1", arguments
    if event == "socket.getaddrinfo":
        assert arguments[0] in ("127.0.0.1", b"127.0.0.1", None), arguments

sys.addaudithook(guard)
model = "litellm/anthropic/claude-sonnet-5-5"
with Client(cache="off", base_url={address!r}, api_key="sk-secret", max_retries=0) as client:
    assert not {{"litellm", "openai", "httpx", "aiohttp"}} & set(sys.modules)
    client.call(model, "What is 2 + 2?")
    client.call(model, "What is 2 + 2?", response_format=list[int])
    list(client.stream(model, "What is 2 + 2?"))
    asyncio.run(client.acall(model, "What is 2 + 2?"))
    try:
        client.call(model, "What is 2 + 2?", seed=1)
    except LLMError:
        pass
    else:
        raise AssertionError("answered")
"""
"""Litellm opens no connection but to the server that it is given, and prints nothing."""

WITHOUT_A_KEY = """
import asyncio, os, socket, sys, tempfile, warnings

warnings.simplefilter("ignore")
for name in [name for name in os.environ if name not in ("PATH", "LANG", "PYTHONPATH")]:
    del os.environ[name]
os.environ["HOME"] = (home := tempfile.TemporaryDirectory()).name

def refuse(*arguments, **more):
    raise OSError("no network")

from llm_provider import Client, LLMError

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refuse

def results(client, way, model):
    try:
        if way == "call":
            return [client.call(model, "Hi")]
        if way == "stream":
            return list(client.stream(model, "Hi"))
        if way == "acall":
            return [asyncio.run(client.acall(model, "Hi"))]
        if way == "embed":
            return [client.embed(model, ["Hi"])]
        return client.call_many(model, ["Hi", "Ho"])
    except LLMError as error:
        return [error]

def report(way, provider, model):
    with Client(cache="off", max_retries=0) as client:
        for error in results(client, way, f"litellm/{provider}/{model}"):
            print(
                type(error).__name__, error.cost, error.maybe_billed, error.retryable,
                error.attempts <= 1, error.message,
            )

OPENAIS = {"azure", "openai", "vertex_ai"}
OTHERS = {"gradient_ai", "huggingface", "text-completion-openai"}
for way, providers in {
    "call": OPENAIS | OTHERS,
    "acall": OPENAIS | OTHERS,
    "call_many": OPENAIS | OTHERS,
    # litellm's stream of text completions breaks before it finds that there is no key.
    "stream": OPENAIS | OTHERS - {"text-completion-openai"},
    "embed": OPENAIS,
}.items():
    for provider in sorted(providers):
        report(way, provider, "some-model")
sys.modules["botocore"] = None
report("call_many", "bedrock", "anthropic.claude-3")
sys.modules["google.auth"] = None
report("call", "vertex_ai", "gemini-3-pro")
"""


LOCAL = {"MissingAPIKeyError", "AuthenticationError", "UnknownModelError", "MissingDependencyError"}


# In one program, because litellm takes 5 s to import.
@needs_litellm
def test_litellm_stays_at_home_and_what_it_raises_before_it_sends_is_raised_at_once(
    run_script: RunScript, simulator: Simulator
) -> None:
    done = run_script(AT_HOME.format(address=simulator.url("anthropic")) + WITHOUT_A_KEY)
    lines = done.stdout.splitlines()
    assert len(lines) == 6 + 6 + 2 * 6 + 5 + 3 + 3, done
    for line in lines:
        kind, *fields, _ = line.split(" ", 5)
        assert kind in LOCAL, line
        assert fields == ["0.0", "False", "False", "True"], line
    for line, remedy in zip(lines[-3:], ("boto3", "boto3", "google"), strict=True):
        assert re.match(f"MissingDependencyError .*pip install .*{remedy}", line)


FAULTS: dict[Fault, type[errors.LLMError]] = {
    Fault(status=401): errors.AuthenticationError,
    Fault(status=403): errors.PermissionDeniedError,
    Fault(status=404): errors.NotFoundError,
    Fault(status=429, retry_after="7"): errors.RateLimitError,
    Fault(quota=True): errors.QuotaExceededError,
    Fault(context_length=True): errors.ContextWindowExceededError,
    Fault(status=500): errors.InternalServerError,
    Fault(status=529): errors.OverloadedError,
    Fault(body="<html>proxy</html>", content_type="text/html"): errors.APIResponseValidationError,
    Fault(body="null"): errors.APIResponseValidationError,
    Fault(abort_after=1): errors.APIConnectionError,
}
IN_STREAMS: dict[Fault, type[errors.LLMError]] = {
    Fault(cut_after=1): errors.APIResponseValidationError,
    Fault(error_after=1, status=529): errors.OverloadedError,
}


@needs_litellm
class TestFailuresThroughLiteLLM:
    """Behind OpenAI's part of litellm; tests/end_to_end/faults.py has every failure behind Anthropic's."""

    @pytest.mark.parametrize("model", [OPENAI, COMPATIBLE])
    @pytest.mark.parametrize("stream", [False, True])
    def test_failures(
        self, simulator: Simulator, runner: asyncio.Runner, connection: Any, model: str, stream: bool
    ) -> None:
        for fault, kind in {**FAULTS, **(IN_STREAMS if stream else {})}.items():
            simulator.clear()
            simulator.inject(fault)
            order = outgoing(simulator.url("openai"), "Say a few words", model)
            with pytest.raises(kind) as caught:
                runner.run(sent(connection, order, stream=stream))
            assert caught.value.retry_after == (7.0 if fault.retry_after else None), fault
            assert "Traceback" not in str(caught.value)
            assert caught.value.maybe_billed or fault not in IN_STREAMS, fault
            assert len(simulator.requests()) == 1, "no retries but ours"

    def test_a_provider_that_litellm_does_not_know(self, runner: asyncio.Runner, connection: Any) -> None:
        with pytest.raises(errors.UnknownModelError):
            runner.run(sent(connection, outgoing(None, "Hi", "nobody/model")))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_body_in_any_encoding_has_its_code_and_message(encoding: str) -> None:
    body = '{"error": {"message": "too long", "code": "context_length_exceeded"}}'.encode(encoding)

    class APIError(Exception):
        status_code = 400

    mapped = adapter.map_error(APIError(body.decode("utf-8", "replace")))
    assert isinstance(mapped, errors.ContextWindowExceededError)
    assert str(mapped).startswith("too long")
