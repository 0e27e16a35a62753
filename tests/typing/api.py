"""The public types, as users' type checkers see them. `make types` checks them with mypy and basedpyright."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, assert_type

import PIL.Image

from llm_provider import (
    APITimeoutError,
    AsyncStream,
    Batch,
    BatchCounts,
    BatchError,
    BatchParameters,
    Budget,
    BudgetExceededError,
    CacheStatistics,
    Choice,
    Citation,
    Client,
    Content,
    Cost,
    Delta,
    Estimate,
    Estimates,
    Explanation,
    GeneratedAudio,
    GeneratedImage,
    Ledger,
    LedgerRow,
    LLMError,
    Message,
    Model,
    Parameters,
    Prompt,
    Range,
    RateLimitError,
    Response,
    Results,
    SchemaMismatchError,
    ScopeStatistics,
    SecondLevel,
    SecondLevelStatistics,
    ServerToolCall,
    Stream,
    Timeouts,
    Timing,
    TokenCount,
    TokenLogprob,
    ToolArgumentsError,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
    acall,
    acall_many,
    aestimate,
    aiter_many,
    astream,
    asubmit_many,
    batches,
    call,
    call_many,
    count_tokens,
    estimate,
    iter_many,
    models,
    price,
    stream,
    submit_many,
    track,
    usage,
)

T = TypeVar("T")


def costs(client: Client) -> None:
    with track("name") as sums:
        assert_type(sums, Ledger)
    assert_type(usage(), Ledger)
    assert_type(client.usage, Ledger)
    assert_type(Ledger.read("calls.jsonl"), Ledger)
    assert_type(sums.spent, Decimal)
    assert_type(sums.unknown_at_most, Decimal | None)
    assert_type(sums.usage, Usage)
    assert_type(sums.rows("model", "tag"), list[LedgerRow])
    assert_type(sums.timeline(), dict[str, list[tuple[int, Decimal]]])
    Client(ledger="calls.jsonl", strict_model=True).call("gpt-6.1-sol", "Hi", strict_model=False)


def one_call() -> None:
    answer = call("gpt-6.1-sol", "Hi", max_tokens=5, temperature=0, stop=["a", "b"], cache="off")
    assert_type(answer, Response)
    assert_type(answer.text, str)
    assert_type(answer.texts, list[str])
    assert_type(answer.reasoning, str)
    assert_type(answer.choices, tuple[Choice, ...])
    assert_type(answer.tool_calls, tuple[ToolCall, ...])
    assert_type(answer.finish_reason, Literal["stop", "length", "tool_calls", "content_filter", "refusal"])
    assert_type(answer.usage, Usage)
    assert_type(answer.usage + answer.usage, Usage)
    assert_type(answer.usage.total_tokens, int)
    assert_type(answer.cost, float | None)
    assert_type(answer.timing, Timing)
    assert_type(answer.timing.first_token, float | None)
    assert_type(answer.cached, bool)
    assert_type(answer.parsed, Any)
    assert_type(answer.parsed_from, Literal["text", "fence", "prose"] | None)
    assert_type(answer.all_parsed, list[Any])
    assert_type(answer.schema_in_prompt, bool)
    assert_type(price("gpt-6.1-sol", answer.usage), Decimal | None)


def conversation() -> None:
    messages: list[Message] = [{"role": "user", "content": "Hi"}]
    messages.append(call("gpt-6.1-sol", messages).message)
    prompts: list[Prompt] = ["one", messages]
    call_many("gpt-6.1-sol", prompts)
    call("gpt-6.1-sol", [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    shared: Parameters = {"max_tokens": 5, "seed": 1}
    call("gpt-6.1-sol", "Hi", **shared)


def media(picture: PIL.Image.Image) -> None:
    call("gpt-6.1-sol", ["What is this?", Path("a.png")])
    call("gpt-6.1-sol", ["And this?", picture, b"%PDF-1.7", {"type": "text", "text": "Hi"}])
    call("gpt-6.1-sol", [{"role": "user", "content": ["What is this?", Path("a.png")]}])
    answer = call("gpt-6.1-sol", "Draw it")
    assert_type(answer.citations, list[Citation])
    assert_type(answer.logprobs, tuple[TokenLogprob, ...] | None)
    assert_type(answer.citations[0].start, int | None)
    assert_type(answer.images[0], GeneratedImage)
    assert_type(answer.images[0].data, bytes)
    assert_type(answer.audio, GeneratedAudio | None)
    assert_type(answer.server_tool_calls, list[ServerToolCall])
    contents: list[Content] = ["What is this?", Path("a.png"), picture]
    call_many("gpt-6.1-sol", [contents, "Hi"])
    call("gpt-6.1-sol", ["What?", 5])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]  # a number is no content


def many() -> None:
    assert_type(call_many("gpt-6.1-sol", ["a", "b"]), Results[Response | LLMError])
    assert_type(call_many("gpt-6.1-sol", ["a"], on_error="raise"), Results[Response])
    assert_type(Client().call_many("gpt-6.1-sol", ["a"], on_error="raise"), Results[Response])
    for index, result in iter_many("gpt-6.1-sol", (str(number) for number in range(3)), progress=False):
        assert_type(index, int)
        if isinstance(result, LLMError):
            assert_type(result.retryable, bool)
        else:
            assert_type(result, Response)
    assert_type(iter_many("gpt-6.1-sol", ["a"]), Iterator[tuple[int, Response | LLMError]])


def delivered() -> None:
    assert_type(call_many("gpt-6.1-sol", ["a"], delivery="batch"), Results[Response | LLMError])
    batch = submit_many("gpt-6.1-sol", ["a"], resend="live")
    assert_type(batch, Batch)
    assert_type(batch.counts, BatchCounts)
    assert_type(batches(), list[Batch])
    assert_type(Client().batches(), list[Batch])


def results(on_error: Literal["return", "raise"]) -> None:
    results_of_texts = call_many("gpt-6.1-sol", ["a", "b"])
    as_list: list[Response | LLMError] = results_of_texts
    assert_type(as_list[0], Response | LLMError)
    assert_type(results_of_texts[0], Response | LLMError)
    assert_type(results_of_texts[1:], Results[Response | LLMError])
    assert_type(results_of_texts.ok, Results[Response])
    assert_type([answer.text for answer in results_of_texts.ok], list[str])
    assert_type(results_of_texts.errors, list[LLMError])
    assert_type(results_of_texts.errors_by_index, dict[int, LLMError])
    assert_type(results_of_texts.raise_for_errors(), Results[Response])
    assert_type(results_of_texts.cost, Cost)
    assert_type(results_of_texts.cost.unknown, int)
    total: float = sum(part.cost for part in (results_of_texts, results_of_texts))
    print(f"{total:.4f}")
    assert_type(results_of_texts.usage, Usage)
    assert_type(results_of_texts.texts, list[str | None])
    # An error in place raises itself here, so the text is a text.
    assert_type([result.text for result in results_of_texts], list[str])
    assert_type(Results.from_jsonl("results.jsonl"), Results[Response | LLMError])
    assert_type(results_of_texts[0].to_dict(), dict[str, Any])
    assert_type(Response.from_dict({}), Response)
    assert_type(LLMError.from_dict({}), LLMError)
    # A pandas DataFrame or any iterable of mappings; the function gets a dict for each row.
    rows = [{"question": "Why?"}]
    assert_type(
        call_many("gpt-6.1-sol", lambda row: str(row["question"]), rows=rows, metadata=lambda row: row["id"]),
        Results[Response | LLMError],
    )
    call_many("gpt-6.1-sol", "{question}", rows=rows, metadata=[{"id": 1}])
    assert_type(results_of_texts[0].metadata, Any)
    sweep = call_many(["gpt-6.1-sol", "claude-sonnet-5-5"], ["a"])
    assert_type(sweep, dict[str, Results[Response | LLMError]])
    raising = call_many(("gpt-6.1-sol",), ["a"], on_error="raise")
    assert_type(raising["gpt-6.1-sol"].raise_for_errors(), Results[Response])
    assert_type(Client().estimate(["gpt-6.1-sol"], ["a"]), Estimates)
    either = call_many("gpt-6.1-sol", ["a"], on_error=on_error)
    assert_type(either, Results[Response | LLMError] | Results[Response])


def streamed() -> None:
    with stream("gpt-6.1-sol", "Hi") as deltas:
        assert_type(deltas, Stream)
        for delta in deltas:
            assert_type(delta, Delta)
            assert_type(delta.tool_calls, tuple[ToolCallDelta, ...])
        assert_type(deltas.response, Response)


async def awaited() -> None:
    assert_type(await acall("gpt-6.1-sol", "Hi"), Response)
    assert_type(await acall_many("gpt-6.1-sol", ["a"]), Results[Response | LLMError])
    assert_type(await acall_many("gpt-6.1-sol", ["a"], on_error="raise"), Results[Response])
    assert_type(await aestimate("gpt-6.1-sol", ["a"]), Estimate)
    assert_type(await aestimate(["gpt-6.1-sol"], ["a"]), Estimates)
    assert_type(await asubmit_many("gpt-6.1-sol", ["a"]), Batch)
    assert_type(aiter_many("gpt-6.1-sol", ["a"]), AsyncIterator[tuple[int, Response | LLMError]])
    async with astream("gpt-6.1-sol", "Hi") as deltas:
        assert_type(deltas, AsyncStream)
        async for delta in deltas:
            assert_type(delta, Delta)


def tools() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    class Person:
        name: str

    own = {"type": "function", "function": {"name": "own"}}
    response = call("gpt-6.1-sol", "Hi", tools=[add, Person, own, "web_search"], max_tool_rounds=3)
    assert_type(response.rounds, tuple[Response, ...])
    assert_type(response.messages, list[Message])
    assert_type(response.tool_results, tuple[ToolResult, ...])
    assert_type(response.tool_results[0].error, BaseException | None)
    try:
        print(response.tool_calls[0].parsed_arguments)
    except ToolArgumentsError as error:
        call("gpt-6.1-sol", [*response.messages, error.tool_message()])


class Shared:
    def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {}

    def put_many(self, values: Mapping[str, bytes]) -> None: ...

    def stats(self) -> Mapping[str, int]:
        return {}

    def export(self) -> Iterable[tuple[str, bytes]]:
        return ()

    def close(self) -> None: ...


def second_level() -> None:
    Client(cache="valkey://cache.lab:6379/0").close()
    Client(cache=Shared()).close()
    Client(cache=SecondLevel(Shared(), wait_for_writes=True, mode="refresh")).close()


def client() -> None:
    with Client(max_concurrent=4, cache_dir="answers", keys={"openai": "key"}, transport="http2") as own:
        assert_type(own, Client)
        Client(keys={"openai": ["a", ("b", "c"), ["d"]], "xai": "e"}).close()
        assert_type(own.call("gpt-6.1-sol", "Hi"), Response)
        assert_type(own.statistics(), list[ScopeStatistics])
        assert_type(own.call("gpt-6.1-sol", "Hi", timeout=Timeouts(idle=30), deadline=60), Response)
        assert_type(own.cache.stats(), CacheStatistics)
        assert_type(own.cache.stats().second_level, SecondLevelStatistics | None)
        assert_type(own.explain_miss("gpt-6.1-sol", "Hi", draw=2), Explanation | None)


def parameters() -> None:
    answer = call("gpt-5.5", "Hi", service_tier="flex", verbosity="low", user="u", logit_bias={5: -1})
    assert_type(answer.dropped, tuple[str, ...])
    call("gpt-5.6", "Hi", reasoning_context="all_turns")
    call("gemini-2.5-flash", "Hi", thinking_budget="adaptive", cached_content="cachedContents/abc")
    call("gemini-2.5-flash", "Hi", thinking_budget=0, safety_settings={"a": "b"}, modalities=["text"])
    with Client(api_key="key", base_url="http://localhost", temperature=0, unsupported="drop") as own:
        assert_type(own.with_options(max_tokens=5, cache="off", timeout=3), Client)
    shared: BatchParameters = {"top_k": 3, "max_concurrent": 5}
    call_many("gpt-5.5", ["a"], **shared)


def estimates() -> None:
    expected = estimate("gpt-6.1-sol", ["a", "b"], max_tokens=5, max_concurrent=4)
    assert_type(expected, Estimate)
    assert_type(estimate("text-embedding-3-small", ["a"], dimensions=256, kind="embedding"), Estimate)
    assert_type(Client().estimate("gpt-6.1-sol", ["a"]), Estimate)
    assert_type(expected.cost, Range | None)
    assert_type(expected.input_tokens.likely, float)
    assert_type(expected.invalid, tuple[tuple[int, LLMError], ...])


def listed(own: Client) -> None:
    assert_type(models("openai"), list[Model])
    assert_type(own.models()[0].input_price, float | None)
    assert_type(models()[0].kind, Literal["chat", "embedding"])
    assert_type(count_tokens("gpt-6.1-sol", "Hi", exact=False, temperature=0), TokenCount)
    assert_type(own.count_tokens("gpt-6.1-sol", "Hi").exact, bool)
    assert_type(own.count_tokens("gpt-6.1-sol", "Hi").method, Literal["provider", "tiktoken", "estimate"])


def budgets() -> None:
    budget = Budget(5.00, path="run.budget")
    assert_type(budget.left, Decimal)
    with Client(budget=5) as own:
        assert_type(own.budget, Budget | None)
        own.call("gpt-6.1-sol", "Hi", budget=Decimal("0.1"))
    call_many("gpt-6.1-sol", ["a"], budget=budget)
    try:
        call("gpt-6.1-sol", "Hi", budget=0.01)
    except BudgetExceededError as error:
        assert_type(error.needed, Decimal)


def failures() -> None:
    try:
        call_many("gpt-6.1-sol", ["a"], on_error="raise")
    except RateLimitError as error:
        assert_type(error.retry_after, float | None)
        assert_type(error.status, int | None)
    except APITimeoutError as error:
        assert_type(error.limit, float | None)
        assert_type(error.phase, Literal["connect", "first_byte", "idle", "total", "deadline"] | None)
    except BatchError as error:
        assert_type(error.errors, dict[int, LLMError])


def structured(answer: Response[int], answers: list[Response[list[str]]]) -> None:
    assert_type(answer.parsed, int)
    assert_type(answer.all_parsed, list[int])
    for each in answers:
        assert_type(each.parsed, list[str])
    wider: list[Response[int | str]] = [answer]
    assert_type(wider[0].parsed, int | str)
    plain: Response = answer
    assert_type(plain.parsed, Any)
    shared: Parameters = {"response_format": list[int], "max_repairs": 2}
    assert_type(call("gpt-6.1-sol", "Hi", **shared), Response)
    assert_type(call("gpt-6.1-sol", "Hi", response_format=None), Response)
    with Client(response_format=City) as own:
        assert_type(own.call("gpt-6.1-sol", "Hi"), Response)
        assert_type(own.call("gpt-6.1-sol", "Hi", response_format=None), Response)
    try:
        call("gpt-6.1-sol", "Hi", response_format=int | None, max_repairs=0)
    except SchemaMismatchError as error:
        assert_type(error.text, str)
        assert_type(error.validation_error, str)
        assert_type(error.cost, float | None)


@dataclass
class City:
    name: str
    population: int


class Movie(TypedDict):
    title: str


class Mood(Enum):
    GOOD = "good"


def pass_on(form: type[T], **options: Any) -> Response[T]:
    assert_type(call("gpt-6.1-sol", "Hi", **options), Response)
    return call("gpt-6.1-sol", "Hi", response_format=form, **options)


def typed_by_their_format(own: Client, form: type[City], schema: dict[str, Any], any_form: Any) -> None:
    assert_type(pass_on(City, temperature=0), Response[City])
    assert_type(call("gpt-6.1-sol", "Hi", response_format=any_form), Response)
    maybe = form if schema else None
    assert_type(call("gpt-6.1-sol", "Hi", response_format=maybe), Response[City] | Response)
    assert_type(call("gpt-6.1-sol", "Hi", response_format=City), Response[City])
    assert_type(call("gpt-6.1-sol", "Hi", response_format=City).parsed, City)
    assert_type(call("gpt-6.1-sol", "Hi", response_format=City, n=2).all_parsed, list[City])
    assert_type(own.call("gpt-6.1-sol", "Hi", response_format=form, temperature=0).parsed, City)
    assert_type(call("gpt-6.1-sol", "Hi", response_format=list[City]).parsed, list[City])
    assert_type(call("gpt-6.1-sol", "Hi", response_format=dict[str, int]).parsed, dict[str, int])
    assert_type(call("gpt-6.1-sol", "Hi", response_format=Movie).parsed, Movie)
    assert_type(call("gpt-6.1-sol", "Hi", response_format=Mood).parsed, Mood)
    assert_type(call("gpt-6.1-sol", "Hi", response_format=City | None).parsed, City | None)
    assert_type(call("gpt-6.1-sol", "Hi", response_format=Literal["a", "b"]).parsed, Literal["a", "b"])
    assert_type(call("gpt-6.1-sol", "Hi", response_format=schema).parsed, Any)
    assert_type(call("gpt-6.1-sol", "Hi", response_format={"type": "object"}).parsed, Any)
    with own.stream("gpt-6.1-sol", "Hi", response_format=City) as deltas:
        assert_type(deltas, Stream[City])
        assert_type(deltas.response.parsed, City)


def batches_typed_by_their_format(own: Client) -> None:
    cities = call_many("gpt-6.1-sol", ["a"], response_format=City)
    assert_type(cities, Results[Response[City] | LLMError])
    assert_type(cities.ok, Results[Response[City]])
    assert_type([answer.parsed for answer in cities.ok], list[City])
    assert_type(cities.raise_for_errors()[0].parsed, City)
    # An error in place raises itself here.
    assert_type(cities[0].parsed, City)
    raising = own.call_many("gpt-6.1-sol", ["a"], on_error="raise", response_format=list[City])
    assert_type(raising, Results[Response[list[City]]])
    assert_type(raising.ok[0].parsed, list[City])
    assert_type(estimate("gpt-6.1-sol", ["a"], response_format=City), Estimate)
    assert_type(submit_many("gpt-6.1-sol", ["a"], response_format=City), Batch)
    assert_type(call_many("gpt-6.1-sol", ["a"], response_format=None), Results[Response | LLMError])
    shared: BatchParameters = {"response_format": City, "metadata": [{"id": 1}]}
    assert_type(call_many("gpt-6.1-sol", ["a"], **shared), Results[Response | LLMError])
    labels = own.call_many("gpt-6.1-sol", ["a"], response_format=City, metadata=[{"id": 1}])
    assert_type(labels, Results[Response[City] | LLMError])
    sweep = call_many(["gpt-6.1-sol"], ["a"], response_format=City)
    assert_type(sweep, dict[str, Results[Response[City] | LLMError]])
    each = iter_many("gpt-6.1-sol", ["a"], response_format=City)
    assert_type(each, Iterator[tuple[int, Response[City] | LLMError]])


async def awaited_and_typed_by_their_format(own: Client) -> None:
    assert_type((await acall("gpt-6.1-sol", "Hi", response_format=City)).parsed, City)
    assert_type(await own.acall("gpt-6.1-sol", "Hi", response_format=list[int]), Response[list[int]])
    many = await own.acall_many("gpt-6.1-sol", ["a"], response_format=City)
    assert_type(many, Results[Response[City] | LLMError])
    async for _, result in aiter_many("gpt-6.1-sol", ["a"], response_format=City):
        assert_type(result, Response[City] | LLMError)
    async with astream("gpt-6.1-sol", "Hi", response_format=City) as deltas:
        assert_type(deltas, AsyncStream[City])


def mistakes() -> None:
    call("gpt-6.1-sol", "Hi", service_tier="slow")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    Client(temprature=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Client().with_options(keys={})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    call("gpt-6.1-sol", "Hi", temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    call("gpt-6.1-sol", "Hi", response_format=City, temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    stream("gpt-6.1-sol", "Hi", temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    call_many("gpt-6.1-sol", ["a"], temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    iter_many("gpt-6.1-sol", ["a"], temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    call("gpt-6.1-sol", "Hi", metadata=[1])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    call("gpt-6.1-sol", 3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    call("gpt-6.1-sol", "Hi", cache="never")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    call_many("gpt-6.1-sol", ["a"], wait=False)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    call_many("gpt-6.1-sol", ["a"], on_error="skip")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    Usage(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    call("gpt-6.1-sol", "Hi").text = ""  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    print(call("gpt-6.1-sol", "Hi", response_format=City).parsed.nothing)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
