"""The public types, as users' type checkers see them. `make types` checks them with mypy and basedpyright."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, assert_type

import PIL.Image

import llm_provider as llm

T = TypeVar("T")


def costs(client: llm.Client) -> None:
    with llm.track("name") as sums:
        assert_type(sums, llm.Ledger)
    assert_type(llm.usage(), llm.Ledger)
    assert_type(client.usage, llm.Ledger)
    assert_type(llm.Ledger.read("calls.jsonl"), llm.Ledger)
    assert_type(sums.rows("model", "tag"), list[llm.LedgerRow])
    llm.Client(ledger="calls.jsonl", strict_model=True).call("gpt-6.1-sol", "Hi", strict_model=False)


def one_call() -> None:
    moved = llm.call("gpt-6.1-sol", "Hi", fallback=["claude-haiku-5-5"])
    assert_type(moved.passed_over, tuple[llm.PassedOver, ...])
    answer = llm.call("gpt-6.1-sol", "Hi", max_tokens=5, temperature=0, stop=["a", "b"], cache="off")
    assert_type(answer, llm.Response)
    assert_type(answer.finish_reason, llm.FinishReason)
    assert_type(answer.parsed, Any)
    assert_type(answer.parsed_from, Literal["text", "fence", "prose"] | None)
    assert_type(answer.all_parsed, list[Any])
    assert_type(llm.price("gpt-6.1-sol", answer.usage), Decimal | None)


def servers() -> None:
    clock = llm.mcp("uvx mcp-server-time", prefix="time", allowed_tools=["now"], env={"A": "b"}, cwd=Path())
    llm.call("gpt-6.1-sol", "Hi", tools=[clock, llm.mcp(["python", "a.py"]), len], max_tool_rounds=3)
    llm.mcp("https://example.com/mcp", headers={"A": "b"}, timeout=5)


def conversation() -> None:
    messages: list[llm.Message] = [{"role": "user", "content": "Hi"}]
    messages.append(llm.call("gpt-6.1-sol", messages).message)
    prompts: list[llm.Prompt] = ["one", messages]
    llm.call_many("gpt-6.1-sol", prompts)
    llm.call("gpt-6.1-sol", [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    shared: llm.Parameters = {"max_tokens": 5, "seed": 1}
    llm.call("gpt-6.1-sol", "Hi", **shared)


def media(picture: PIL.Image.Image) -> None:
    llm.call("gpt-6.1-sol", ["What is this?", Path("a.png")])
    llm.call("gpt-6.1-sol", ["And this?", picture, b"%PDF-1.7", {"type": "text", "text": "Hi"}])
    llm.call("gpt-6.1-sol", [{"role": "user", "content": ["What is this?", Path("a.png")]}])
    llm.call("gpt-6.1-sol", "Draw it")
    contents: list[llm.Content] = ["What is this?", Path("a.png"), picture]
    llm.call_many("gpt-6.1-sol", [contents, "Hi"])
    llm.call("gpt-6.1-sol", ["What?", 5])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]  # a number is no content


def many() -> None:
    assert_type(llm.call_many("gpt-6.1-sol", ["a", "b"]), llm.Results[llm.Response | llm.LLMError])
    assert_type(llm.call_many("gpt-6.1-sol", ["a"], on_error="raise"), llm.Results[llm.Response])
    assert_type(llm.Client().call_many("gpt-6.1-sol", ["a"], on_error="raise"), llm.Results[llm.Response])
    for index, result in llm.iter_many("gpt-6.1-sol", (str(number) for number in range(3)), progress=False):
        assert_type(index, int)
        if isinstance(result, llm.LLMError):
            assert_type(result.retryable, bool)
        else:
            assert_type(result, llm.Response)
    assert_type(llm.iter_many("gpt-6.1-sol", ["a"]), Iterator[tuple[int, llm.Response | llm.LLMError]])


def delivered() -> None:
    assert_type(
        llm.call_many("gpt-6.1-sol", ["a"], delivery="batch"), llm.Results[llm.Response | llm.LLMError]
    )
    batch = llm.submit_many("gpt-6.1-sol", ["a"], resend="live")
    assert_type(batch, llm.Batch)
    assert_type(llm.batches(), list[llm.Batch])
    assert_type(llm.Client().batches(), list[llm.Batch])


def results(on_error: Literal["return", "raise"]) -> None:
    results_of_texts = llm.call_many("gpt-6.1-sol", ["a", "b"])
    as_list: list[llm.Response | llm.LLMError] = results_of_texts
    assert_type(as_list[0], llm.Response | llm.LLMError)
    assert_type(results_of_texts[0], llm.Response | llm.LLMError)
    assert_type(results_of_texts[1:], llm.Results[llm.Response | llm.LLMError])
    assert_type(results_of_texts.ok, llm.Results[llm.Response])
    assert_type([answer.text for answer in results_of_texts.ok], list[str])
    assert_type(results_of_texts.raise_for_errors(), llm.Results[llm.Response])
    total: float = sum(part.cost for part in (results_of_texts, results_of_texts))
    print(f"{total:.4f}")
    # An error in place raises itself here, so the text is a text.
    assert_type([result.text for result in results_of_texts], list[str])
    assert_type(llm.Results.from_jsonl("results.jsonl"), llm.Results[llm.Response | llm.LLMError])
    assert_type(results_of_texts[0].to_dict(), dict[str, Any])
    assert_type(llm.Response.from_dict({}), llm.Response)
    assert_type(llm.LLMError.from_dict({}), llm.LLMError)
    # A pandas DataFrame or any iterable of mappings; the function gets a dict for each row.
    rows = [{"question": "Why?"}]
    assert_type(
        llm.call_many(
            "gpt-6.1-sol", lambda row: str(row["question"]), rows=rows, metadata=lambda row: row["id"]
        ),
        llm.Results[llm.Response | llm.LLMError],
    )
    llm.call_many("gpt-6.1-sol", "{question}", rows=rows, metadata=[{"id": 1}])
    sweep = llm.call_many(["gpt-6.1-sol", "claude-sonnet-5-5"], ["a"])
    assert_type(sweep, dict[str, llm.Results[llm.Response | llm.LLMError]])
    joined: llm.Results[Any] | int = sum(sweep.values())
    assert joined
    raising = llm.call_many(("gpt-6.1-sol",), ["a"], on_error="raise")
    assert_type(raising["gpt-6.1-sol"].raise_for_errors(), llm.Results[llm.Response])
    assert_type(llm.Client().estimate(["gpt-6.1-sol"], ["a"]), llm.Estimates)
    either = llm.call_many("gpt-6.1-sol", ["a"], on_error=on_error)
    assert_type(either, llm.Results[llm.Response | llm.LLMError] | llm.Results[llm.Response])


def streamed() -> None:
    with llm.stream("gpt-6.1-sol", "Hi") as deltas:
        assert_type(deltas, llm.Stream)
        for delta in deltas:
            assert_type(delta, llm.Delta)
            assert_type(delta.partial, Any)
            assert_type(delta.partial_with_text, Any)
        assert_type(deltas.response, llm.Response)


async def awaited() -> None:
    assert_type(await llm.acall("gpt-6.1-sol", "Hi"), llm.Response)
    assert_type(await llm.acall_many("gpt-6.1-sol", ["a"]), llm.Results[llm.Response | llm.LLMError])
    assert_type(await llm.acall_many("gpt-6.1-sol", ["a"], on_error="raise"), llm.Results[llm.Response])
    assert_type(await llm.aestimate("gpt-6.1-sol", ["a"]), llm.Estimate)
    assert_type(await llm.aestimate(["gpt-6.1-sol"], ["a"]), llm.Estimates)
    assert_type(await llm.asubmit_many("gpt-6.1-sol", ["a"]), llm.Batch)
    assert_type(llm.aiter_many("gpt-6.1-sol", ["a"]), AsyncIterator[tuple[int, llm.Response | llm.LLMError]])
    async with llm.astream("gpt-6.1-sol", "Hi") as deltas:
        assert_type(deltas, llm.AsyncStream)
        async for delta in deltas:
            assert_type(delta, llm.Delta)


def tools() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    class Person:
        name: str

    own = {"type": "function", "function": {"name": "own"}}
    response = llm.call("gpt-6.1-sol", "Hi", tools=[add, Person, own, "web_search"], max_tool_rounds=3)
    try:
        print(response.tool_calls[0].parsed_arguments)
    except llm.ToolArgumentsError as error:
        llm.call("gpt-6.1-sol", [*response.messages, error.tool_message()])


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
    llm.Client(cache="valkey://cache.lab:6379/0").close()
    llm.Client(cache=Shared(), hosts=[llm.Host("lab", "http://a/v1", "vllm", lacks=["n"])]).close()
    llm.Client(limits={"gpt-6.1-sol": llm.Limit(rpm=500, tpm=200_000, concurrent=20)}, max_age=60).close()
    llm.Client(limits="limits.toml", max_age=timedelta(days=1)).close()
    llm.Client(cache=llm.SecondLevel(Shared(), wait_for_writes=True, mode="refresh")).close()


def client() -> None:
    with llm.Client(max_concurrent=4, cache_dir="answers", keys={"openai": "key"}, transport="http2") as own:
        assert_type(own, llm.Client)
        llm.Client(keys={"openai": ["a", ("b", "c"), ["d"]], "xai": "e"}).close()
        assert_type(own.call("gpt-6.1-sol", "Hi"), llm.Response)
        assert_type(own.statistics(), list[llm.ScopeStatistics])
        assert_type(llm.RequestTimeline(own).rows[0].outcome, str)
        assert_type(own.call("gpt-6.1-sol", "Hi", timeout=llm.Timeouts(idle=30), deadline=60), llm.Response)
        assert_type(own.cache.stats(), llm.CacheStatistics)
        assert_type(own.explain_miss("gpt-6.1-sol", "Hi", draw=2), llm.Explanation | None)


def parameters() -> None:
    llm.call("gpt-5.5", "Hi", service_tier="flex", verbosity="low", user="u", logit_bias={5: -1})
    llm.call("gpt-5.6", "Hi", reasoning_context="all_turns")
    llm.call("gemini-2.5-flash", "Hi", thinking_budget="adaptive", cached_content="cachedContents/abc")
    llm.call("gemini-3.8-flash", "Hi", prompt_caching="explicit")
    llm.call("gemini-2.5-flash", "Hi", thinking_budget=0, safety_settings={"a": "b"}, modalities=["text"])
    with llm.Client(api_key="key", base_url="http://localhost", temperature=0, unsupported="drop") as own:
        assert_type(own.with_options(max_tokens=5, cache="off", timeout=3), llm.Client)
    shared: llm.BatchParameters = {"top_k": 3, "max_concurrent": 5}
    llm.call_many("gpt-5.5", ["a"], **shared)


def estimates() -> None:
    expected = llm.estimate("gpt-6.1-sol", ["a", "b"], max_tokens=5, max_concurrent=4)
    assert_type(expected, llm.Estimate)
    assert_type(llm.estimate("text-embedding-3-small", ["a"], dimensions=256, kind="embedding"), llm.Estimate)
    assert_type(llm.Client().estimate("gpt-6.1-sol", ["a"]), llm.Estimate)


def scores(own: llm.Client) -> None:
    found = own.score("lab/m", "a", [" b"], method="echo", check_order=True)
    assert_type(found, llm.Scores)
    assert_type(found.best.token_ids, tuple[int, ...] | None)
    assert_type(own.score_many("lab/m", ["a"], [[" b"]])[0], llm.Scores | llm.LLMError)
    assert_type(own.estimate("lab/m", [("a", [" b"])], kind="score"), llm.Estimate)


class Verdict:
    polite: bool


async def decisions(own: llm.Client) -> None:
    questions = {
        "a": llm.predicate("A."),
        "b": llm.choice("B?", Mood),
        "c": llm.score_levels("C?", ["0", "1"]),
    }
    judged = llm.decide("gpt-6-luna", "Hi", questions, pack=False, budget=1.0)
    assert_type(judged, llm.Decisions)
    assert_type(judged["a"].probability, float | None)
    assert_type(judged[0], llm.Decision)
    assert_type(await own.adecide("m", "Hi", [llm.predicate("A.")], method="sampled", draws=5), llm.Decisions)
    assert_type(own.decide_many("m", ["Hi"], Verdict)[0], llm.Decisions | llm.LLMError)
    assert_type((await llm.adecide_many("m", ["Hi"], questions))[0], llm.Decisions | llm.LLMError)
    assert_type(own.estimate("m", [("Hi", questions)], kind="decision", pack=5), llm.Estimate)
    assert_type(llm.brier_score([0.5, None], [True, False]), float)
    assert_type(llm.reliability([0.5], [True]).error, float)
    assert_type(llm.cohen_kappa(["a"], ["b"]).interval, tuple[float, float])


def given_scores(answers: llm.Results[llm.Response | llm.LLMError]) -> None:
    scored = answers.score(lambda sample: sample.text == sample.metadata, failed=0, on_error="return")
    assert_type(scored, llm.Results[llm.Response | llm.LLMError])
    assert_type(answers.score(scores=[1, None, {"correct": True}])[0], llm.Response | llm.LLMError)
    assert_type(scored.summarize_scores(["level"], cluster="text"), llm.ScoreTable)
    assert_type(scored.summarize_scores().to_latex(), str)
    compared = llm.compare(scored, answers, score="correct")
    assert_type(compared, llm.Comparison)
    assert_type(compared.p_value, float | None)
    assert_type(compared.count_questions(0.03, power=0.9), int)


def evidence(own: llm.Client, results: llm.Results[llm.Response]) -> None:
    assert_type(results.export("a.zip", client=own), llm.Evidence)
    assert_type(llm.verify("a.zip").manifest, dict[str, Any])


def rechecks(own: llm.Client) -> None:
    assert_type(llm.recheck("gpt-6.1-sol", ["a"], floor=0.01, budget=0.5, max_tokens=5), llm.Recheck)
    assert_type(own.recheck("gpt-6.1-sol", history="h.jsonl", persistence=2, dry_run=True), llm.Recheck)
    assert_type(own.recheck("gpt-6.1-sol", tag="study", ledger="costs.jsonl"), llm.Recheck)


def listed(own: llm.Client) -> None:
    assert_type(llm.models("openai"), list[llm.Model])
    assert_type(llm.count_tokens("gpt-6.1-sol", "Hi", exact=False, temperature=0), llm.TokenCount)


def budgets() -> None:
    budget = llm.Budget(5.00, path="run.budget")
    with llm.Client(budget=5) as own:
        own.call("gpt-6.1-sol", "Hi", budget=Decimal("0.1"))
    llm.call_many("gpt-6.1-sol", ["a"], budget=budget)
    tokens = llm.Budget(2_000_000, unit="tokens", allow_unknown=True)
    with llm.Client(token_budget=2_000_000) as own:
        own.embed("text-embedding-3-small", ["a"], token_budget=tokens)
        assert_type(own.token_budget, llm.Budget | None)
    try:
        llm.call("gpt-6.1-sol", "Hi", budget=0.01)
    except llm.BudgetExceededError as error:
        assert_type(error.needed, Decimal)
        assert_type(error.unit, str)


def failures() -> None:
    try:
        llm.call_many("gpt-6.1-sol", ["a"], on_error="raise", max_errors=0.05)
    except llm.TooManyErrorsError as error:
        assert_type(error.failed, int)
    except llm.RateLimitError as error:
        assert_type(error.retry_after, float | None)
    except llm.APITimeoutError as error:
        assert_type(error.phase, Literal["connect", "first_byte", "idle", "total", "deadline"] | None)
    except llm.BatchError as error:
        assert_type(error.errors, dict[int, llm.LLMError])


def structured(answer: llm.Response[int], answers: list[llm.Response[list[str]]]) -> None:
    assert_type(answer.parsed, int)
    assert_type(answer.all_parsed, list[int])
    for each in answers:
        assert_type(each.parsed, list[str])
    wider: list[llm.Response[int | str]] = [answer]
    assert_type(wider[0].parsed, int | str)
    plain: llm.Response = answer
    assert_type(plain.parsed, Any)
    shared: llm.Parameters = {"response_format": list[int], "max_repairs": 2}
    assert_type(llm.call("gpt-6.1-sol", "Hi", **shared), llm.Response)
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=None), llm.Response)
    with llm.Client(response_format=City) as own:
        assert_type(own.call("gpt-6.1-sol", "Hi"), llm.Response)
        assert_type(own.call("gpt-6.1-sol", "Hi", response_format=None), llm.Response)
    try:
        llm.call("gpt-6.1-sol", "Hi", response_format=int | None, max_repairs=0)
    except llm.SchemaMismatchError as error:
        assert_type(error.text, str)


@dataclass
class City:
    name: str
    population: int


class Movie(TypedDict):
    title: str


class Mood(Enum):
    GOOD = "good"


def pass_on(form: type[T], **options: Any) -> llm.Response[T]:
    assert_type(llm.call("gpt-6.1-sol", "Hi", **options), llm.Response)
    return llm.call("gpt-6.1-sol", "Hi", response_format=form, **options)


def typed_by_their_format(own: llm.Client, form: type[City], schema: dict[str, Any], any_form: Any) -> None:
    assert_type(pass_on(City, temperature=0), llm.Response[City])
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=any_form), llm.Response)
    maybe = form if schema else None
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=maybe), llm.Response[City] | llm.Response)
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=City), llm.Response[City])
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=City).parsed, City)
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=City, n=2).all_parsed, list[City])
    assert_type(own.call("gpt-6.1-sol", "Hi", response_format=form, temperature=0).parsed, City)
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=list[City]).parsed, list[City])
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=dict[str, int]).parsed, dict[str, int])
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=Movie).parsed, Movie)
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=Mood).parsed, Mood)
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=City | None).parsed, City | None)
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=Literal["a", "b"]).parsed, Literal["a", "b"])
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format=schema).parsed, Any)
    assert_type(llm.call("gpt-6.1-sol", "Hi", response_format={"type": "object"}).parsed, Any)
    with own.stream("gpt-6.1-sol", "Hi", response_format=City) as deltas:
        assert_type(deltas, llm.Stream[City])
        assert_type(deltas.response.parsed, City)


def batches_typed_by_their_format(own: llm.Client) -> None:
    cities = llm.call_many("gpt-6.1-sol", ["a"], response_format=City)
    assert_type(cities, llm.Results[llm.Response[City] | llm.LLMError])
    assert_type(cities.ok, llm.Results[llm.Response[City]])
    assert_type([answer.parsed for answer in cities.ok], list[City])
    assert_type(cities.raise_for_errors()[0].parsed, City)
    # An error in place raises itself here.
    assert_type(cities[0].parsed, City)
    raising = own.call_many("gpt-6.1-sol", ["a"], on_error="raise", response_format=list[City])
    assert_type(raising, llm.Results[llm.Response[list[City]]])
    assert_type(raising.ok[0].parsed, list[City])
    assert_type(llm.estimate("gpt-6.1-sol", ["a"], response_format=City), llm.Estimate)
    assert_type(llm.submit_many("gpt-6.1-sol", ["a"], response_format=City), llm.Batch)
    assert_type(
        llm.call_many("gpt-6.1-sol", ["a"], response_format=None), llm.Results[llm.Response | llm.LLMError]
    )
    shared: llm.BatchParameters = {"response_format": City, "metadata": [{"id": 1}]}
    assert_type(llm.call_many("gpt-6.1-sol", ["a"], **shared), llm.Results[llm.Response | llm.LLMError])
    labels = own.call_many("gpt-6.1-sol", ["a"], response_format=City, metadata=[{"id": 1}])
    assert_type(labels, llm.Results[llm.Response[City] | llm.LLMError])
    sweep = llm.call_many(["gpt-6.1-sol"], ["a"], response_format=City)
    assert_type(sweep, dict[str, llm.Results[llm.Response[City] | llm.LLMError]])
    each = llm.iter_many("gpt-6.1-sol", ["a"], response_format=City)
    assert_type(each, Iterator[tuple[int, llm.Response[City] | llm.LLMError]])


async def awaited_and_typed_by_their_format(own: llm.Client) -> None:
    assert_type((await llm.acall("gpt-6.1-sol", "Hi", response_format=City)).parsed, City)
    assert_type(await own.acall("gpt-6.1-sol", "Hi", response_format=list[int]), llm.Response[list[int]])
    many = await own.acall_many("gpt-6.1-sol", ["a"], response_format=City)
    assert_type(many, llm.Results[llm.Response[City] | llm.LLMError])
    async for _, result in llm.aiter_many("gpt-6.1-sol", ["a"], response_format=City):
        assert_type(result, llm.Response[City] | llm.LLMError)
    async with llm.astream("gpt-6.1-sol", "Hi", response_format=City) as deltas:
        assert_type(deltas, llm.AsyncStream[City])


def mistakes() -> None:
    llm.call("gpt-6.1-sol", "Hi", service_tier="slow")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    llm.Client(temprature=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    llm.Client().with_options(keys={})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    llm.call("gpt-6.1-sol", "Hi", temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    llm.call("gpt-6.1-sol", "Hi", response_format=City, temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    llm.stream("gpt-6.1-sol", "Hi", temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    llm.call_many("gpt-6.1-sol", ["a"], temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    llm.iter_many("gpt-6.1-sol", ["a"], temprature=0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    llm.call("gpt-6.1-sol", "Hi", metadata=[1])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    llm.call("gpt-6.1-sol", 3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    llm.call("gpt-6.1-sol", "Hi", cache="never")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    llm.call_many("gpt-6.1-sol", ["a"], wait=False)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    llm.call_many("gpt-6.1-sol", ["a"], on_error="skip")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    llm.Usage(1, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    llm.call("gpt-6.1-sol", "Hi").text = ""  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    print(llm.call("gpt-6.1-sol", "Hi", response_format=City).parsed.nothing)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
