"""Wrong calls: each error names the argument, what is wrong with it, and what to write. Nothing is sent."""

import asyncio
import datetime
import enum
import inspect
import math
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pandas
import pytest

import llm_provider
from llm_provider import BatchError, Budget, Client, Ledger, RequestError, Response, Timeouts, Usage
from llm_provider._errors import cite
from llm_provider._requests.routing import COMPATIBLE_HOSTS
from llm_provider.simulator import Simulator

MODEL, CLAUDE, EMBEDDER = "gpt-6.1-sol", "claude-sonnet-5-5", "text-embedding-3-small"
NAN = math.nan


class Wrong(NamedTuple):
    """A wrong call, and the pieces that its message has."""

    label: str
    make: Callable[[Any], object]
    argument: str
    problem: tuple[str, ...]
    """One of these says what is wrong."""
    remedy: str


class Colour(enum.Enum):
    """No parameter takes a member of it."""

    RED = 1


def weather(city: str) -> str:
    """A function that somebody forgot to call, or to put into a list."""
    return city


async def prompts_later() -> AsyncIterator[str]:
    """An asynchronous iterable of prompts."""
    yield "Hi"


def of(name: str, remedy: str, *values: Any) -> list[Wrong]:
    """Wrong values of one parameter of a call."""
    return [
        Wrong(
            f"{name}={cite(value)}",
            lambda client, value=value: client.call(MODEL, "Hi", **{name: value}),
            name,
            (*inside(value), cite(value), type(value).__name__),
            remedy,
        )
        for value in values
    ]


def inside(value: Any) -> list[str]:
    """The entries of a list or a dict, of which the message may name only the wrong one."""
    if isinstance(value, dict):
        return [cite(entry) for pair in value.items() for entry in pair]
    return [cite(entry) for entry in value] if isinstance(value, list) else []


VALUES = [
    *of("temperature", "a number from 0 to 2", "hot", True, NAN, -0.1, 2.5, [0.5], Decimal("0.5"), 1 + 2j),
    *of("temperature", "write temperature=0.7, without quotes", "0.7"),
    *of("temperature", "a number from 0 to 2", numpy.array([0.1, 0.2]), numpy.bool_(True), numpy.float64(3)),
    *of("max_tokens", "an int from 1", 0, -1, 1.5, True, NAN, [5], math.inf),
    *of("max_tokens", "write max_tokens=100", "100", 100.0),
    *of("max_tokens", "write max_tokens=5", numpy.float64(5)),
    *of("top_p", "a number from 0 to 1", 50, -0.1, numpy.float32(1.5)),
    *of("top_k", "an int from 1", 0.5, 0),
    *of("n", "an int from 1 to 128", 0, 1000, numpy.int64(0)),
    *of("n", "write n=2", 2.0, "2"),
    *of("seed", "an int from", 2**70, True),
    *of("seed", "write seed=42, without quotes", "42"),
    *of("draw", "an int from 0", -1),
    *of("frequency_penalty", "from -2 to 2", 3, "x"),
    *of("logit_bias", "the id of a token", {"hello": 5}),
    *of("logit_bias", "from -100 to 100", {1: 500}),
    *of("logit_bias", "such as {1234: -100}", [1, 2]),
    *of("stop", "a non-empty str or a list", "", 5, ["a", ""], {"a"}, b"x", (letter for letter in "ab")),
    *of("system", "leave system out", ""),
    *of("system", "join the texts", ["x"]),
    *of("system", "write system='Be brief.'", {"role": "system", "content": "Be brief."}),
    *of("system", "write system=value.decode()", b"x"),
    *of("tools", "write tools=[weather]", weather),
    *of("tools", "write tools=['weather']", "weather"),
    *of(
        "tools", "'type': 'function'", [5], [None], [{"type": "function"}], [{"name": "x", "parameters": {}}]
    ),
    *of("tool_choice", "'auto', 'none', 'required'", "all", "Auto", 5, {"name": "x"}),
    *of("allowed_tools", "such as ['search']", "search", [5]),
    *of("max_tool_rounds", "an int from 0", -1, True),
    *of("max_repairs", "an int from 0 to 10", -1, 1.5),
    *of("parallel_tool_calls", "True or False", "yes", 1),
    *of("response_format", "{'type': 'json_object'}", "json", 5, [], Colour.RED, weather, {"type": "json"}),
    *of("reasoning_effort", "write reasoning_effort='high'", "HIGH", "very high"),
    *of("reasoning_effort", "in quotes", 3, True),
    *of("thinking_budget", "an int from -1", -5),
    *of("verbosity", "one of low, medium, high", "chatty", 1),
    *of("modalities", "such as ['text', 'audio']", "text", []),
    *of("logprobs", "True or False", 5, "true"),
    *of("top_logprobs", "from 0 to 20", 30),
    *of("safety_settings", "HARM_CATEGORY_HARASSMENT", "none", [{"category": "x"}]),
    *of("service_tier", "write service_tier='flex'", "Flex"),
    *of("store", "True or False", "yes"),
    *of("prompt_caching", "True or False", {"type": "ephemeral"}),
    *of("user", "write user='5'", 5),
    *of("metadata", "such as {'run': '7'}", "x", ["a"]),
    *of("endpoint", "write endpoint='responses'", "/v1/responses"),
    *of("unsupported", "'raise' or 'drop'", "ignore", True),
    *of("deadline", "positive number of seconds", 0, -5, "60", NAN, True),
    *of("deadline", "write 5, the seconds of it", datetime.timedelta(seconds=5)),
    *of("timeout", "positive number of seconds", 0, "60", {"total": 5}),
    *of("timeout", "Timeouts(connect=5, first_byte=60)", (5, 60)),
    *of("timeout", "leave it out", math.inf),
    *of("max_retries", "from 0 to 1000", -1, 1.5),
    *of("outage_patience", "0 or more", -1, "x", NAN, True),
    *of("cache", "use, refresh, only, off, True or False", "on", 1, {"ttl": 5}),
    *of("budget", "number of USD", "5", -1, NAN, True, "$5"),
    *of("strict_model", "True or False", "yes"),
    *of("in_batch", "live, wait, refuse", "skip", True),
    *of("extra_body", "write extra_body={'name': ...}", "x", [("a", 1)]),
    *of("extra_headers", "write extra_headers={'name': ...}", "x", ["a"]),
    *of("base_url", "leave base_url out", ""),
    *of("base_url", "write 'http://localhost:8000'", "localhost:8000"),
    *of("base_url", "use https", "http://example.com"),
    *of("base_url", "http or https", "ftp://x.example"),
    *of("base_url", "write 'https://x.example/v1'", "https://x.example/v1/chat/completions"),
]


def named(name: str, remedy: str, value: Any = 1) -> Wrong:
    """A parameter that does not exist."""
    return Wrong(
        f"call({name}=)",
        lambda client: client.call(MODEL, "Hi", **{name: value}),
        repr(name),
        ("unexpected parameter",),
        remedy,
    )


NAMES = [
    named("stream", "stream()", True),
    named("api_base", "base_url="),
    named("engine", "first argument"),
    named("functions", "tools="),
    named("max_completion_tokens", "max_tokens="),
    named("temprature", "did you mean 'temperature'?"),
    named("Temperature", "did you mean 'temperature'?"),
    named("maxTokens", "did you mean 'max_tokens'?"),
    named("request_timeout", "timeout="),
    named("num_retries", "max_retries="),
    named("json_mode", "response_format="),
    named("images", "Path('cat.png')"),
    named("history", "call(model, messages)"),
    named("verbose", "LLM_PROVIDER_LOG=debug"),
    named("callbacks", "Client(on_result=function)"),
    named("proxies", "HTTPS_PROXY"),
    named("verify", "SSL_CERT_FILE"),
    named("organization", "extra_headers="),
    named("custom_llm_provider", "before the model"),
    named("web_search", "tools=['web_search']"),
    named("cache_control", "prompt_caching=True"),
    named("batch_size", "max_concurrent="),
    named("rpm", "max_concurrent="),
    named("delivery", "call_many()"),
    named("on_error", "call_many()"),
    named("cache_dir", "Client(cache_dir=...)"),
    named("env_file", "Client(env_file=...)"),
    named("min_p", "extra_body="),
]


def prompt(label: str, messages: Any, remedy: str, *problem: str, where: str = "messages") -> Wrong:
    """A prompt that cannot be sent."""
    kind = (type(messages).__name__,)
    return Wrong(label, lambda client: client.call(MODEL, messages), where, problem or kind, remedy)


def message(label: str, remedy: str, problem: str, **fields: Any) -> Wrong:
    """A message that cannot be sent."""
    return prompt(label, [fields], remedy, problem, where="messages[0]")


def part(label: str, content: Any, remedy: str, problem: str) -> Wrong:
    """A content part that cannot be sent."""
    return prompt(label, [{"role": "user", "content": [content]}], remedy, problem, where="content[0]")


def not_awaited(client: Any) -> object:
    """An answer of `acall` without `await`, used as the next prompt."""
    coroutine = client.acall(MODEL, "Hi")
    try:
        return client.call(MODEL, coroutine)
    finally:
        coroutine.close()


def not_awaited_in_a_batch(client: Any) -> object:
    """The same, in a list."""
    coroutine = client.acall(MODEL, "Hi")
    try:
        return client.call_many(MODEL, [coroutine], on_error="raise")
    finally:
        coroutine.close()


ANSWER = Response(choices=(), usage=Usage(), model=MODEL, provider="openai")

PROMPTS = [
    prompt("None", None, "such as 'What is 2+2?'"),
    prompt("empty text", "", "give some text", "empty"),
    prompt("a number", 5, "str(value)"),
    prompt("no message", [], "at least one message", "empty"),
    prompt("a dict", {}, "json.dumps(value)"),
    prompt("one message", {"role": "user", "content": "Hi"}, "write [message]"),
    prompt("bytes", b"Hi", "give a list"),
    prompt("a set", {"Hi"}, "write a list"),
    prompt("a generator", (letter for letter in "ab"), "write list(value)"),
    prompt("a missing file", [Path("no.png")], "there is no file", "'no.png'"),
    prompt("a path alone", Path("a.png"), "give a list"),
    prompt("an array", numpy.array(["a"]), "tolist()"),
    prompt("a data frame", pandas.DataFrame({"q": ["a"]}), "call_many(model, df['question'])"),
    prompt("a series", pandas.Series(["a"]), "call_many(model, df['question'])"),
    prompt("a function", weather, "call it"),
    prompt("a response", ANSWER, "response.text"),
    prompt("pairs", [("user", "Hi")], "{'role': 'user'", "tuple"),
    prompt("conversations", [[{"role": "user", "content": "Hi"}]], "call_many", "list"),
    prompt("texts", ["a", "b"], "call_many()", "not str"),
    prompt("None inside", ["What?", None], "leave it out", "NoneType"),
    Wrong("acall without await", not_awaited, "messages", ("coroutine",), "write await"),
    message("role human", "'role': 'user'", "'human'", role="human", content="Hi"),
    message("role User", "'role': 'user'", "'User'", role="User", content="Hi"),
    message("role bot", "'role': 'assistant'", "'bot'", role="bot", content="Hi"),
    message("role function", "'role': 'tool'", "'function'", role="function", content="Hi"),
    message("no role", "'role': 'user'", "None", content="Hi"),
    message("no content", "give 'content'", "no content", role="user"),
    message("text", "instead of 'text'", "no content", role="user", text="Hi"),
    message("content of None", "give 'content'", "no content", role="user", content=None),
    message("content of a number", "str(value)", "int", role="user", content=5),
    message("content of a part", "write [part]", "dict", role="user", content={"type": "text", "text": "a"}),
    message("empty content", "give some text", "empty", role="system", content=""),
    message("no tool_call_id", "'tool_call_id'", "role 'tool'", role="tool", content="x"),
    message("tool calls of text", "a list", "'x'", role="assistant", content=None, tool_calls="x"),
    part("no type", {"text": "a"}, "{'type': 'text'", "'type'"),
    part("no text", {"type": "text"}, "'text': '...'", "None"),
    part("text of a number", {"type": "text", "text": 5}, "'text': '...'", "5"),
    part("a path as URL", {"type": "image_url", "image_url": {"url": "cat.png"}}, "Path(", "'cat.png'"),
    part("no URL", {"type": "image_url", "image_url": 5}, "'https://...'", "5"),
    part("unknown bytes", b"\0\1", "data.decode()", "unknown kind"),
    part("a folder", Path("/"), "one Path for each file", "folder"),
]


def model(name: Any, remedy: str, *problem: str) -> Wrong:
    """A name that no model has."""
    expected = (*problem, cite(name))
    return Wrong(f"model {cite(name)}", lambda client: client.call(name, "Hi"), "model", expected, remedy)


MODELS = [
    model(None, "'gpt-6.1-sol'"),
    model("", "'gpt-6.1-sol'"),
    model(5, "'gpt-6.1-sol'"),
    model("GPT-6.1-SOL", "openai/gpt-6.1-sol"),
    model(" gpt-6.1-sol\n", "write 'gpt-6.1-sol'"),
    model("What is 2+2?", "the first argument"),
    model("https://api.openai.com", "base_url="),
    model([MODEL, CLAUDE], "call_many("),
    model({MODEL}, "call_many("),
    model("openai/", "the model after the slash"),
    model("llama3", "put the provider before the name"),
    model("google/gemini-3.8-flash", "write 'gemini/gemini-3.8-flash'", "'google'"),
    model("together/x", "write 'together_ai/x'", "'together'"),
    model("OpenAI/gpt-6.1-sol", "write 'openai/gpt-6.1-sol'", "'OpenAI'"),
    model("lmstudio/x", "write 'local/x' and base_url='http://localhost:1234/v1'", "'lmstudio'"),
    model("llama.cpp/x", "write 'local/x' and base_url='http://localhost:8080/v1'", "'llama.cpp'"),
]


def many(
    label: str, argument: str, remedy: str, *problem: str, inputs: Any = ("a",), **parameters: Any
) -> Wrong:
    """A wrong batch."""
    models = parameters.pop("model", MODEL)
    return Wrong(
        f"call_many {label}",
        lambda client: client.call_many(models, inputs, **parameters),
        argument,
        problem,
        remedy,
    )


FRAME = pandas.DataFrame({"q": ["a", "b"]})
CONVERSATION = [{"role": "user", "content": "Hi"}]

BATCHES = [
    many("text", "inputs", "call()", "str", inputs="Hi"),
    many("None", "inputs", "call()", "NoneType", inputs=None),
    many("dict", "inputs", "such as a list", "dict", inputs={"a": "b"}),
    many("path", "inputs", "such as a list", "PosixPath", inputs=Path("in.jsonl")),
    many("data frame", "inputs", "df['q']", "DataFrame", inputs=FRAME),
    many("None inside", "messages", "such as 'What is 2+2?'", "NoneType", inputs=[None], on_error="raise"),
    many("numbers", "messages", "str(value)", "int", inputs=[1, 2], on_error="raise"),
    many("numpy numbers", "inputs[0]", "str(value)", "int", inputs=numpy.array([1, 2])),
    many("two dimensions", "inputs", "array[:, 0]", "2", inputs=numpy.array([["a", "b"]])),
    many("one conversation", "inputs", "[messages]", "one conversation", inputs=CONVERSATION),
    many("rows of data", "inputs[0]", "rows=rows", "dict", inputs=[{"q": "a"}]),
    many("asynchronous", "inputs", "acall_many()", "async_generator", inputs=prompts_later()),
    many("template alone", "inputs", "rows=", "str", inputs="Translate {x}"),
    many("no template", "inputs", "'Translate: {text}'", "list", inputs=["a"], rows=[{"x": 1}]),
    many("rows of text", "rows", "{'question': ...}", "str", inputs="{x}", rows="abc"),
    many("on_error", "on_error", "'return' or 'raise'", "'ignore'", on_error="ignore"),
    many("messages beside", "'messages'", "call_many(model, ['text', ...])", "unexpected", messages=["Hi"]),
    many("wait", "'wait'", "submit_many(", "unexpected", wait=False),
    many("dry_run", "'dry_run'", "estimate(", "unexpected", dry_run=True),
    many("progress", "progress", "True or False", "'bar'", progress="bar"),
    many("max_concurrent", "max_concurrent", "at least 1", "0", max_concurrent=0),
    many("max_workers", "'max_workers'", "max_concurrent=", "unexpected", max_workers=8),
    many("on_eror", "'on_eror'", "did you mean 'on_error'?", "call_many()", on_eror="raise"),
    many("delivery", "delivery", "write delivery='batch'", "'Batch'", delivery="Batch"),
    many("resend", "resend", "'batch' or 'live'", "True", delivery="batch", resend=True),
    many("no models", "model", "one model at least", "empty", model=[]),
    many("one model twice", "model", "name of their model", "twice", model=[MODEL, MODEL]),
    many("metadata of text", "metadata", "a list of dicts", "str", metadata="x"),
    many("temperatures", "temperature", "from 0 to 2", "[0, 1]", temperature=[0, 1]),
    many("budget", "budget", "number of USD", "'lots'", budget="lots"),
    Wrong("call_many acall", not_awaited_in_a_batch, "messages", ("coroutine",), "write await"),
    Wrong("iter_many", lambda c: c.iter_many([MODEL, CLAUDE], ["a"]), "model", ("list",), "call_many("),
    Wrong("aiter_many", lambda c: c.aiter_many([MODEL, CLAUDE], ["a"]), "model", ("list",), "call_many("),
    Wrong("submit_many", lambda c: c.submit_many([MODEL], ["a"]), "model", ("list",), "call it for each"),
    Wrong(
        "submit live",
        lambda c: c.submit_many(MODEL, ["a"], delivery="live"),
        "delivery",
        ("submit_many()", "'live'"),
        "write call_many()",
    ),
    Wrong(
        "estimate of both kinds",
        lambda c: c.estimate([MODEL, EMBEDDER], ["a"]),
        "model",
        ("others embed",),
        "estimate them apart",
    ),
    Wrong(
        "estimate one model twice",
        lambda c: c.estimate([EMBEDDER, EMBEDDER], ["a"]),
        "model",
        ("twice",),
        "name of their model",
    ),
    Wrong("estimate of no kind", lambda c: c.estimate(MODEL, ["a"], kind="x"), "kind", ("'x'",), "chat, "),
    Wrong("estimate a text", lambda c: c.estimate(MODEL, "Hi"), "inputs", ("str",), "such as a list"),
    Wrong(
        "several models and an asynchronous iterable",
        lambda c: asyncio.run(c.acall_many([MODEL, CLAUDE], prompts_later())),
        "inputs",
        ("asynchronous",),
        "async for",
    ),
]


def vectors(
    label: str, argument: str, remedy: str, *problem: str, inputs: Any = ("a",), **parameters: Any
) -> Wrong:
    """A wrong call of `embed`."""
    models = parameters.pop("model", EMBEDDER)
    return Wrong(
        f"embed {label}", lambda client: client.embed(models, inputs, **parameters), argument, problem, remedy
    )


EMBEDDINGS = [
    vectors("text", "inputs", "[text]", "str", inputs="Hi"),
    vectors("None", "inputs", "['a text']", "NoneType", inputs=None),
    vectors("a number", "inputs[0]", "texts", "token ids", inputs=[5]),
    vectors("an empty text", "inputs[1]", "leave it out", "empty", inputs=["a", ""]),
    vectors("missing", "inputs[1]", "leave it out", "nan", inputs=pandas.Series(["a", NAN])),
    vectors("a set", "inputs", "pass a list", "set", inputs={"a"}),
    vectors("a data frame", "inputs", "df['text']", "DataFrame", inputs=FRAME),
    vectors("messages", "inputs[0]", "str", "'role'", inputs=CONVERSATION),
    vectors("dimensions", "dimensions", "write dimensions=256", "'256'", dimensions="256"),
    vectors("too many dimensions", "dimensions", "at most", "9999999", dimensions=9999999),
    vectors("temperature", "'temperature'", "extra_body=", "unexpected", temperature=0),
    vectors("input_type", "'input_type'", "extra_body={'input_type'", "unexpected", input_type="query"),
    vectors("encoding_format", "'encoding_format'", "leave it out", "unexpected", encoding_format="base64"),
    vectors("dry_run", "'dry_run'", "estimate(", "unexpected", dry_run=True),
    vectors("a chat model", "gpt-6.1-sol", "use one of", "does not embed", model=MODEL),
    vectors("Anthropic", "anthropic", "use one of", "no embedding models", model=CLAUDE),
]


def setting(name: str, value: Any, remedy: str, *problem: str) -> Wrong:
    """A wrong setting of a client."""
    expected = problem or (cite(value), type(value).__name__)
    return Wrong(f"Client({name}={cite(value)})", lambda _: Client(**{name: value}), name, expected, remedy)


SETTINGS = [
    setting("cache_dir", 5, "pathlib.Path"),
    setting("cache_dir", "", "leave cache_dir out"),
    setting("cache", "on", "use, refresh, only, off"),
    setting("cache_finish_reasons", None, "['stop', 'length']"),
    setting("cache_shared", "yes", "True or False"),
    setting("max_concurrent", 0, "at least 1"),
    setting("max_concurrent", "8", "an int of at least 1"),
    *(setting("max_concurrent", wrong, "at least 1") for wrong in (-1, True, 1.5, [8])),
    setting("telemetry", "yes", "True, False, None or a Telemetry"),
    setting("telemetry", 1, "True, False, None or a Telemetry"),
    setting("keys", "sk-x", "{'openai': 'sk-...'}", "str"),
    setting("keys", {"OpenAI": "sk-x"}, "did you mean 'openai'?", "OpenAI"),
    setting("prices", 5, "pathlib.Path"),
    setting("prices", "/no/prices.csv", "docs/prices.md", "No such file"),
    setting("budget", "5", "number of USD"),
    setting("timeout", "60", "positive number of seconds"),
    setting("outage_patience", -1, "0 or more"),
    setting("max_response_bytes", "64MB", "an int from 1"),
    setting("on_result", "log", "such as print"),
    setting("rate_control", "fast", "one of adaptive"),
    setting("transport", "HTTP2", "write transport='http2'"),
    setting("ledger", 5, "pathlib.Path"),
    setting("ledger", "/no/such/folder/runs.jsonl", "make the folder", "No such file"),
    setting("show_estimate_above", -1, "0 or more"),
    setting("strict_model", 1, "True or False"),
    setting("temperature", "hot", "from 0 to 2"),
    setting("api_key", "", "leave it out", "empty"),
    setting("api_key", ["sk-a"], "Client(keys=", "list"),
    setting("api_key", "Bearer sk-a", "without the word Bearer", "printable ASCII"),
    setting("api_key", "sk-a sk-b", "cut or mistyped", "printable ASCII"),
    setting("max_workers", 8, "max_concurrent=", "unexpected"),
    setting("http_client", 1, "transport=", "unexpected"),
    setting("temprature", 1, "did you mean 'temperature'?", "unexpected"),
    Wrong("with_options", lambda c: c.with_options(cache_dir="x"), "cache_dir", ("unexpected",), "Client("),
    Wrong("with_options value", lambda c: c.with_options(n="2"), "n", ("'2'",), "write n=2"),
]

USAGE = Usage(input_tokens=5)


def other(label: str, make: Callable[[Any], object], argument: str, remedy: str, *problem: str) -> Wrong:
    """Any other wrong call."""
    return Wrong(label, make, argument, problem, remedy)


def given(label: str, argument: str, remedy: str, problem: str, **parameters: Any) -> Wrong:
    """A call with a wrong parameter."""
    return other(label, lambda client: client.call(MODEL, "Hi", **parameters), argument, remedy, problem)


async def asynchronous_names(client: Any) -> object:
    """A misspelled parameter of `acall`."""
    return await client.acall(MODEL, "Hi", temprature=1)


OTHERS = [
    other("acall", lambda c: asyncio.run(asynchronous_names(c)), "'temprature'", "'temperature'", "acall()"),
    other(
        "astream",
        lambda c: c.astream(MODEL, "Hi", temprature=1),
        "'temprature'",
        "'temperature'",
        "astream()",
    ),
    other("astream outside", lambda c: c.astream(MODEL, "Hi"), "astream()", "stream()", "event loop"),
    other(
        "stream in_batch", lambda c: c.stream(MODEL, "Hi", in_batch="wait"), "in_batch", "call()", "'wait'"
    ),
    given("a key's type", "api_key", "str", "int", api_key=5),
    given("extra_body NaN", "extra_body", "numbers", "nan", extra_body={"x": NAN}),
    given("extra_body object", "extra_body", "lists", "set", extra_body={"x": {1}}),
    given("extra_body stream", "extra_body", "stream()", "'stream'", extra_body={"stream": True}),
    given("a header", "extra_headers", "ASCII text", "int", extra_headers={"a": 5}),
    given("a key as header", "extra_headers", "api_key=", "'Auth", extra_headers={"Authorization": "x"}),
    given("metadata", "metadata['a']", "must be a str", "1", metadata={"a": 1}),
    other("count exact", lambda c: c.count_tokens(MODEL, "Hi", exact=1), "exact", "True or False", "1"),
    other("count None", lambda c: c.count_tokens(MODEL, None), "messages", "such as", "NoneType"),
    other(
        "count name",
        lambda c: c.count_tokens(MODEL, "Hi", sytem="x"),
        "'sytem'",
        "'system'",
        "count_tokens()",
    ),
    other("models typed", lambda c: c.models(5), "provider", "models('openai')", "int"),
    other("models live", lambda c: c.models("openai", live=1), "live", "True or False", "1"),
    other("models", lambda c: c.models("OpenAI"), "provider", "did you mean openai?", "'OpenAI'"),
    other("price usage", lambda c: c.price(MODEL, 1000), "usage", "response.usage", "int"),
    other("price tier", lambda c: c.price(MODEL, USAGE, service_tier="x"), "service_tier", "batch", "'x'"),
    other("price day", lambda c: c.price(MODEL, USAGE, at="2026-01-01"), "at", "date(2026", "str"),
    other("price count", lambda c: c.price(MODEL, Usage(input_tokens=-5)), "input_tokens", "0 or more", "-5"),
    other("track", lambda _: llm_provider.track(5).__enter__(), "name", "must be a str", "int"),  # type: ignore[arg-type]  # on purpose
    other("budget text", lambda _: Budget("5"), "budget", "number of USD", "'5'"),  # type: ignore[arg-type]  # on purpose
    other("budget None", lambda _: Budget(None), "budget", "number of USD", "None"),  # type: ignore[arg-type]  # on purpose
    other("budget file", lambda _: Budget(5, path=5), "path", "pathlib.Path", "5"),  # type: ignore[arg-type]  # on purpose
    other("budget folder", lambda _: Budget(5, path="/"), "budget's file", "name a file", "folder"),
    other("allow_unknown", lambda _: Budget(5, allow_unknown="no"), "allow_unknown", "True or False", "'no'"),  # type: ignore[arg-type]  # on purpose
    other("timeouts", lambda _: Timeouts(total="60"), "total", "number of seconds", "'60'"),  # type: ignore[arg-type]  # on purpose
    other("ledger", lambda _: Ledger.read("/no.jsonl"), "/no.jsonl", "No such file", "Errno"),
    other("response of text", lambda _: Response.from_dict("{}"), "from_dict", "json.loads", "str"),  # type: ignore[arg-type]  # on purpose
    other("response", lambda _: Response.from_dict({}), "dict of a response", "'choices'", "{}"),
    other("explain_miss", lambda c: c.explain_miss(MODEL, 5), "messages", "str(value)", "int"),
]

GROUPS = {
    "values": VALUES,
    "names": NAMES,
    "prompts": PROMPTS,
    "models": MODELS,
    "batches": BATCHES,
    "embeddings": EMBEDDINGS,
    "settings": SETTINGS,
    "others": OTHERS,
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One client for all wrong calls, of which nothing may arrive at the simulator."""
    with Simulator() as simulator, pytest.MonkeyPatch.context() as patch:
        for name, value in simulator.environment(*COMPATIBLE_HOSTS).items():
            patch.setenv(name, value)
        with Client(cache_dir=tmp_path_factory.mktemp("cache"), max_retries=0, outage_patience=0) as client:
            yield client
        assert simulator.requests() == []


@pytest.mark.parametrize(
    "function",
    ["call", "stream", "astream", "embed", "score", "call_many", "iter_many", "submit_many", "estimate",
     "count_tokens", "explain_miss"],
)  # fmt: skip
@pytest.mark.parametrize("name", ["input", "messages", "inputs", "prompt", "text"])
def test_inputs_by_the_name_of_another_library_are_named(client: Client, function: str, name: str) -> None:
    method = getattr(client, function)
    required = [each for each in inspect.signature(method).parameters.values() if each.default is each.empty]
    if name not in [each.name for each in required]:
        with pytest.raises(
            TypeError, match=rf"{name}.* the model|{name}.*second argument: {function}\(model"
        ):
            method(MODEL, **{name: ["Hi"]})
    with pytest.raises(TypeError, match=rf"^{function}\(\) missing .* '{required[1].name}'$"):
        method(MODEL)


def test_there_are_many() -> None:
    rows = [row for group in GROUPS.values() for row in group]
    assert len(rows) >= 150
    assert len({row.label for row in rows}) == len(rows)


@pytest.mark.parametrize("group", GROUPS)
def test_the_message_says_what_to_write(client: Client, group: str) -> None:
    poor = []
    for row in GROUPS[group]:
        with pytest.raises((RequestError, BatchError, TypeError, RuntimeError, OSError)) as caught:
            row.make(client)
        said = str(caught.value)
        names = row.argument in said and row.remedy in said
        if not names or not any(problem in said for problem in row.problem):
            poor.append(f"{row.label}: {said}")
    assert not poor, "\n".join(poor)


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("max_tokens", numpy.int64(5), 5),
        ("n", numpy.int32(2), 2),
        ("seed", numpy.uint8(3), 3),
        ("temperature", numpy.float64(0.5), 0.5),
        ("temperature", numpy.float32(0.1), 0.1),
        ("top_p", numpy.float16(0.1), 0.1),
        ("temperature", numpy.int64(1), 1),
        ("top_logprobs", numpy.int64(3), 3),
        ("logit_bias", {numpy.int64(7): numpy.float64(1.5)}, {7: 1.5}),
        ("draw", numpy.int64(4), 4),
    ],
)
def test_numbers_of_numpy_make_the_key_of_plain_ones(
    client: Client, name: str, value: Any, plain: Any
) -> None:
    def key(value: Any) -> str:
        with pytest.raises(llm_provider.CacheMissError) as caught:
            client.call("gpt-4.1", "Hi", cache="only", **{name: value})  # type: ignore[misc]  # any parameter
        return caught.value.key

    assert key(value) == key(plain)


def test_numbers_of_numpy_are_settings_too() -> None:
    with Client(max_concurrent=numpy.int64(4), timeout=numpy.int64(9), budget=numpy.int64(3)) as client:  # type: ignore[arg-type]  # on purpose
        assert client.budget is not None
        assert client.budget.limit == 3
