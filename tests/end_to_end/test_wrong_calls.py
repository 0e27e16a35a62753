"""Wrong calls: each error names the argument, what is wrong with it, and what to write. Nothing is sent.

`tests/data/golden/_client/client.json` has the whole messages of wrong calls that JSON can express.
"""

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
from llm_provider._core.errors import cite
from llm_provider._core.requests.routing import COMPATIBLE_HOSTS
from llm_provider.simulator import Simulator

MODEL, CLAUDE, EMBEDDER = "gpt-6.1-sol", "claude-sonnet-5-5", "text-embedding-3-small"


class Wrong(NamedTuple):
    """A wrong call. Its message names the argument, what is wrong with it, and what to write."""

    make: Callable[[Any], object]
    argument: str
    problem: str
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
            lambda client, value=value: client.call(MODEL, "Hi", **{name: value}), name, cite(value), remedy
        )
        for value in values
    ]


VALUES = [
    *of("temperature", "a number from 0 to 2", Decimal("0.5"), 1 + 2j),
    *of("temperature", "a number from 0 to 2", numpy.array([0.1, 0.2]), numpy.bool_(True), numpy.float64(3)),
    *of("max_tokens", "write max_tokens=5", numpy.float64(5)),
    *of("top_p", "a number from 0 to 1", numpy.float32(1.5)),
    *of("n", "an int from 1 to 128", numpy.int64(0)),
    *of("stop", "a non-empty str or a list", {"a"}, b"x", (letter for letter in "ab")),
    *of("system", "write system=value.decode()", b"x"),
    *of("tools", "write tools=[weather]", weather),
    *of("response_format", "{'type': 'json_object'}", Colour.RED, weather),
    *of("deadline", "write 5, the seconds of it", datetime.timedelta(seconds=5)),
    Wrong(
        lambda c: c.call(MODEL, "Hi", timeout=(5, 60)), "timeout", "tuple", "Timeouts(connect=5, first_byte"
    ),
    Wrong(lambda c: c.call(MODEL, "Hi", extra_body={"x": {1}}), "extra_body", "x is of type set", "lists"),
]


def prompt(messages: Any, remedy: str, problem: str = "", where: str = "messages") -> Wrong:
    """A prompt that cannot be sent."""
    kind = problem or type(messages).__name__
    return Wrong(lambda client: client.call(MODEL, messages), where, kind, remedy)


def part(content: Any, remedy: str, problem: str) -> Wrong:
    """A content part that cannot be sent."""
    return prompt([{"role": "user", "content": [content]}], remedy, problem, where="content[0]")


def not_awaited(client: Any, *, batch: bool = False) -> object:
    """An answer of `acall` without `await`, used as the next prompt or in a list of prompts."""
    coroutine = client.acall(MODEL, "Hi")
    try:
        if batch:
            return client.call_many(MODEL, [coroutine], on_error="raise")
        return client.call(MODEL, coroutine)
    finally:
        coroutine.close()


ANSWER = Response(choices=(), usage=Usage(), model=MODEL, provider="openai")
FRAME = pandas.DataFrame({"q": ["a", "b"]})

PROMPTS = [
    prompt(b"Hi", "give a list"),
    prompt({"Hi"}, "write a list"),
    prompt((letter for letter in "ab"), "write list(value)"),
    prompt([Path("no.png")], "there is no file", "'no.png'"),
    prompt(Path("a.png"), "give a list"),
    prompt(numpy.array(["a"]), "tolist()"),
    prompt(FRAME, "call_many(model, df['question'])"),
    prompt(pandas.Series(["a"]), "call_many(model, df['question'])"),
    prompt(weather, "call it"),
    prompt(ANSWER, "response.text"),
    prompt([("user", "Hi")], "{'role': 'user'", "tuple"),
    Wrong(not_awaited, "messages", "coroutine", "write await"),
    part(b"\0\1", "data.decode()", "unknown kind"),
    part(Path("/"), "one Path for each file", "folder"),
    Wrong(lambda client: client.call({MODEL}, "Hi"), "model", cite({MODEL}), "call_many("),
]


def many(argument: str, remedy: str, problem: str, inputs: Any) -> Wrong:
    """A wrong batch."""
    return Wrong(lambda client: client.call_many(MODEL, inputs), argument, problem, remedy)


def vectors(argument: str, remedy: str, problem: str, inputs: Any) -> Wrong:
    """Inputs that `embed` does not take."""
    return Wrong(lambda client: client.embed(EMBEDDER, inputs), argument, problem, remedy)


BATCHES = [
    many("inputs", "such as a list", "PosixPath", Path("in.jsonl")),
    many("inputs", "df['q']", "DataFrame", FRAME),
    many("inputs[0]", "str(value)", "int", numpy.array([1, 2])),
    many("inputs", "array[:, 0]", "2", numpy.array([["a", "b"]])),
    many("inputs", "acall_many()", "async_generator", prompts_later()),
    Wrong(lambda c: not_awaited(c, batch=True), "messages", "coroutine", "write await"),
    Wrong(lambda c: c.aiter_many([MODEL, CLAUDE], ["a"]), "model", "list", "call_many("),
    Wrong(
        lambda c: asyncio.run(c.acall_many([MODEL, CLAUDE], prompts_later())),
        "inputs",
        "asynchronous",
        "async for",
    ),
    vectors("inputs[1]", "leave it out", "nan", pandas.Series(["a", math.nan])),
    vectors("inputs", "pass a list", "set", {"a"}),
    vectors("inputs", "df['text']", "DataFrame", FRAME),
]

OTHERS = [
    Wrong(
        lambda c: asyncio.run(c.acall(MODEL, "Hi", temprature=1)), "'temprature'", "acall()", "'temperature'"
    ),
    Wrong(lambda c: c.astream(MODEL, "Hi"), "astream()", "event loop", "stream()"),
    Wrong(lambda c: c.price(MODEL, Usage(input_tokens=5), at="2026-01-01"), "at", "str", "date(2026"),
    Wrong(lambda _: llm_provider.track(5).__enter__(), "name", "int", "must be a str"),  # type: ignore[arg-type]  # on purpose
    Wrong(lambda _: Budget("5"), "budget", "'5'", "number of USD"),  # type: ignore[arg-type]  # on purpose
    Wrong(lambda _: Budget(None), "budget", "None", "number of USD"),  # type: ignore[arg-type]  # on purpose
    Wrong(lambda _: Budget(5, path=5), "path", "5", "pathlib.Path"),  # type: ignore[arg-type]  # on purpose
    Wrong(lambda _: Budget(5, path="/"), "budget's file", "folder", "name a file"),
    Wrong(lambda _: Budget(5, allow_unknown="no"), "allow_unknown", "'no'", "True or False"),  # type: ignore[arg-type]  # on purpose
    Wrong(lambda _: Timeouts(total="60"), "total", "'60'", "number of seconds"),  # type: ignore[arg-type]  # on purpose
    Wrong(lambda _: Ledger.read("/no.jsonl"), "/no.jsonl", "Errno", "No such file"),
    Wrong(lambda _: Response.from_dict("{}"), "from_dict", "str", "json.loads"),  # type: ignore[arg-type]  # on purpose
    Wrong(lambda _: Response.from_dict({}), "dict of a response", "{}", "'choices'"),
]


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


@pytest.mark.parametrize(
    "group", [VALUES, PROMPTS, BATCHES, OTHERS], ids=["values", "prompts", "batches", "others"]
)
def test_the_message_says_what_to_write(client: Client, group: list[Wrong]) -> None:
    poor = []
    for row in group:
        with pytest.raises((RequestError, BatchError, TypeError, RuntimeError, OSError)) as caught:
            row.make(client)
        said = str(caught.value)
        if not all(piece in said for piece in (row.argument, row.problem, row.remedy)):
            poor.append(f"{row}: {said}")
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
def test_numpys_numbers_make_the_key_of_plain_ones(client: Client, name: str, value: Any, plain: Any) -> None:
    def key(value: Any) -> str:
        with pytest.raises(llm_provider.CacheMissError) as caught:
            client.call("gpt-4.1", "Hi", cache="only", **{name: value})  # type: ignore[misc]  # any parameter
        return caught.value.key

    assert key(value) == key(plain)


def test_numbers_of_numpy_are_settings_too() -> None:
    with Client(max_concurrent=numpy.int64(4), timeout=numpy.int64(9), budget=numpy.int64(3)) as client:  # type: ignore[arg-type]  # on purpose
        assert client.budget is not None
        assert client.budget.limit == 3
