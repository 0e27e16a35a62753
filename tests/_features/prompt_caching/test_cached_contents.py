"""Gemini's explicit cache: stored once, used by all, paid once, and no answer is lost or changed by it."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contents_server import ContentsServer, error, flat
from llm_provider import Budget, Client, Response
from llm_provider._features.prompt_caching import cached_contents, gemini
from llm_provider._features.prompt_caching.settings import PrefixMark
from loop_support import run_threads

MODEL = "gemini-3.8-flash"
DOCUMENT = "The tenant pays the rent on the first day of each month. " * 400
QUESTIONS = ["Who pays?", "When?", "How often?", "To whom?"]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
EXPLICIT: dict[str, Any] = {"system": DOCUMENT, "prompt_caching": "explicit", "max_tokens": 100}
KEY = "a-key-of-the-tests-0123456789"


@pytest.fixture
def server() -> Iterator[ContentsServer]:
    with ContentsServer() as serving:
        yield serving


Open = Callable[..., Client]


@pytest.fixture
def open_client(server: ContentsServer, tmp_path: Path) -> Iterator[Open]:
    """Opens clients, which share their cache unless a folder is named."""
    opened = []

    def open_one(folder: str = "cache", rent: str = "12", **settings: Any) -> Client:
        prices = tmp_path / f"prices{rent}.csv"
        prices.write_text(
            "provider,model,input,cache_read,output,cache_storage\n" + f"gemini,{MODEL},1,0.1,10,{rent}\n"
        )
        made = Client(
            cache_dir=tmp_path / folder, base_url=f"{server.root}/v1beta", keys={"gemini": [KEY]},
            prices=prices, **settings,
        )  # fmt: skip
        opened.append(made)
        return made

    yield open_one
    for client in opened:
        client.close()


def bill(server: ContentsServer) -> Decimal:
    """USD for all that the server did, by the prices above."""
    answers = len(server.asked) * 3
    tokens = server.billed_tokens + Decimal("0.1") * server.read_tokens + 10 * answers
    rent = sum(each["tokens"] * Decimal(each["seconds"]) / 3600 * 12 for each in server.contents.values())
    return (tokens + rent) / 1_000_000


PROMPTS: dict[str, tuple[dict[str, Any], Callable[[str], Any]]] = {
    "system": ({"system": DOCUMENT}, lambda question: question),
    "part": ({}, lambda question: [{"role": "user", "content": [DOCUMENT, question]}]),
    "tools": ({"system": DOCUMENT, "tools": [TOOL], "tool_choice": "auto"}, lambda question: question),
    "turns": (
        {"system": "Be brief."},
        lambda question: [
            {"role": "user", "content": DOCUMENT}, {"role": "assistant", "content": "I have read it."},
            {"role": "user", "content": question},
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", PROMPTS)
def test_a_batch_stores_its_document_once_and_its_answers_are_those_of_whole_prompts(
    server: ContentsServer, open_client: Open, shape: str
) -> None:
    parameters, prompt = PROMPTS[shape]
    parameters, prompts = {**parameters, "max_tokens": 100}, [prompt(question) for question in QUESTIONS]
    plain = open_client("plain").call_many(MODEL, prompts, **parameters)
    client = open_client()
    results = client.call_many(MODEL, prompts, prompt_caching="explicit", **parameters)
    assert [response.text for response in results] == [response.text for response in plain]
    assert [response.cache_keys for response in results] == [response.cache_keys for response in plain]
    assert {name for name, _ in server.asked[len(QUESTIONS) :]} == {"cachedContents/c1"}
    assert all(response.prompt_cache_miss is None for response in results)
    assert all(response.cached for response in client.call_many(MODEL, prompts, **parameters))
    assert server.created == 1


TEXT = st.builds(lambda words: {"text": "word " * words}, st.sampled_from([1, 4000]))
PART = st.one_of(TEXT, st.just({"functionResponse": {"name": "f", "response": {}}}))
CONTENT = st.builds(
    lambda role, parts: {"role": role, "parts": parts},
    st.sampled_from(["user", "model"]),
    st.lists(PART, min_size=1, max_size=3),
)


@settings(max_examples=40)
@given(
    st.lists(CONTENT, min_size=1, max_size=4), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 9)
)
def test_a_divided_prompt_is_the_whole_prompt(
    contents: list[Any], has_system: bool, has_tools: bool, of_batch: bool, length: int
) -> None:
    payload: dict[str, Any] = {"contents": contents, "generationConfig": {"seed": 1}}
    payload |= {"systemInstruction": {"parts": [{"text": "word " * 4000}]}} if has_system else {}
    payload |= {"tools": [{"functionDeclarations": []}], "toolConfig": {}} if has_tools else {}
    units = gemini.units(payload)
    mark = PrefixMark(gemini, min(length, len(units) - 1), of_batch, None, is_stored=True)
    divided = cached_contents.divide(payload, mark, MODEL)
    if isinstance(divided, str):
        assert divided in ("not_shared", "below_minimum")
        return
    beginning, rest = divided
    assert flat({**beginning, "contents": [*beginning.get("contents", ()), *rest["contents"]]}) == flat(
        payload
    )
    assert not {"systemInstruction", "tools", "toolConfig"} & set(rest)
    assert rest["generationConfig"] == {"seed": 1}
    if "contents" in beginning:
        assert rest["contents"][0]["role"] == "user"
        assert "functionResponse" not in rest["contents"][0]["parts"][0]
    assert sum(unit.tokens for unit in gemini.units(beginning)) >= gemini.minimum(MODEL)
    if of_batch:
        assert len(gemini.units(beginning)) <= mark.length
    elif len(contents) > 1:
        other = cached_contents.divide({**payload, "contents": contents[:1]}, mark, MODEL)
        assert other[0] == beginning, "it stays the same while a conversation grows"


async def ask(client: Client, way: str, question: str, **parameters: Any) -> Response:
    parameters = EXPLICIT | parameters
    if way == "call":
        return await asyncio.to_thread(client.call, MODEL, question, **parameters)
    if way == "acall":
        return await client.acall(MODEL, question, **parameters)
    if way == "astream":
        stream = client.astream(MODEL, question, **parameters)
        async for _ in stream:
            pass
        return stream.response
    results = await client.acall_many(MODEL, [question, f"{question}?"], **parameters)
    return results[0]


WAYS = ["call", "acall", "astream", "acall_many"]


@pytest.mark.parametrize("way", WAYS)
async def test_later_clients_use_what_is_stored_and_what_the_provider_lost_is_stored_anew(
    server: ContentsServer, open_client: Open, way: str
) -> None:
    for number, lost in itertools.product(range(2), (False, True)):
        if lost:
            server.contents.clear()
        client = open_client()
        answer = await ask(client, way, f"{number} {lost}")
        assert answer.usage.cache_read_input_tokens
        assert answer.prompt_cache_miss is None
    assert server.created == 3
    questions = [whole[-1][-1][1]["text"] for _, whole in server.asked]
    assert len(questions) == len(set(questions))


@pytest.mark.parametrize("way", WAYS)
async def test_cost_ledger_and_budget_are_the_bill(
    server: ContentsServer, open_client: Open, tmp_path: Path, way: str
) -> None:
    budget = Budget(1)
    client = open_client(budget=budget, ledger=tmp_path / "ledger.jsonl")
    for question in "ab":
        await ask(client, way, question)
    assert budget.spent == bill(server)
    lines = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert sum(Decimal(str(line["usd"])) for line in lines) == bill(server)
    assert [line["id"] for line in lines if str(line.get("id")).startswith("cached")] == ["cachedContents/c1"]


def test_the_first_answer_has_the_cost_of_storing(server: ContentsServer, open_client: Open) -> None:
    first, second = (open_client().call(MODEL, question, **EXPLICIT) for question in "ab")
    assert first.cost is not None
    assert second.cost is not None
    stored = server.contents["cachedContents/c1"]["tokens"]
    assert (first.usage.cache_write_input_tokens, second.usage.cache_write_input_tokens) == (stored, 0)
    assert first.cost + second.cost == pytest.approx(float(bill(server)))


def test_a_content_is_kept_for_longer_while_it_is_used(server: ContentsServer, open_client: Open) -> None:
    client, server.life = open_client(budget=(budget := Budget(1))), 140.0
    client.call(MODEL, "a", **EXPLICIT)
    server.life = 300.0
    for question in "bc":
        assert client.call(MODEL, question, **EXPLICIT).usage.cache_read_input_tokens
    assert (server.created, server.extended) == (1, 1)
    # Google adds to what is left, and rent is counted by whole seconds.
    assert abs(budget.spent - bill(server) + Decimal(140 * 5705 * 12) / 3600 / 10**6) < Decimal("0.0001")


def test_tokens_that_are_kept_for_longer_are_not_read_again(
    server: ContentsServer, open_client: Open
) -> None:
    client, server.life = open_client(token_budget=(budget := Budget(10**6, unit="tokens"))), 140.0
    client.call(MODEL, "a", **EXPLICIT)
    server.life, before = 300.0, budget.spent
    answer = client.call(MODEL, "b", **EXPLICIT)
    assert server.extended == 1
    assert budget.spent - before == answer.usage.total_tokens


async def test_the_rounds_of_tools_read_one_content(server: ContentsServer, open_client: Open) -> None:
    called = {"functionCall": {"name": "add", "args": {"a": 2, "b": 3}}}
    reply = server.fault

    def call_first(path: str, body: Any) -> Any:
        if "generateContent" not in path or any("functionResponse" in str(each) for each in body["contents"]):
            return reply(path, body)
        content = {"role": "model", "parts": [called]}
        counts = {"promptTokenCount": 9000, "candidatesTokenCount": 3, "totalTokenCount": 9003}
        return (
            200,
            {},
            {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": counts},
        )

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    server.fault = call_first
    for question in ("a", "b"):
        answer = await open_client().acall(MODEL, question, tools=[add], max_tool_rounds=3, **EXPLICIT)
        assert [result.content for result in answer.tool_results] == ["5"]
    assert server.created == 1
    assert [name for name, _ in server.asked] == ["cachedContents/c1"] * 2


def test_a_content_that_is_lost_when_it_is_extended_is_stored_anew(
    server: ContentsServer, open_client: Open
) -> None:
    client, server.life = open_client(), 140.0
    client.call(MODEL, "a", **EXPLICIT)
    server.contents.clear()
    assert client.call(MODEL, "b", **EXPLICIT).prompt_cache_miss is None
    assert server.created == 2


def test_an_unknown_rent_makes_the_cost_unknown(server: ContentsServer, open_client: Open) -> None:
    answer = open_client(rent="").call(MODEL, "a", **EXPLICIT)
    assert answer.cost is None
    assert answer.cost_unknown == f"gemini/{MODEL} (standard): no price for cache_storage"
    assert answer.cost_bounds is not None
    assert answer.cost_bounds[0] > 0
    estimate = open_client("other", rent="").estimate(MODEL, QUESTIONS, **EXPLICIT)
    assert estimate.cost is None
    assert any("rent is not known" in text for text in estimate.assumptions)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"budget": 0.05}, "budget"),
        ({"rent": "", "budget": 1}, "budget"),
        ({"token_budget": 40_000}, "budget"),
        ({"rent": "", "budget": Budget(1, allow_unknown=True)}, None),
    ],
    ids=["too small", "unknown rent", "too few tokens", "allowed"],
)
def test_a_budget_is_never_exceeded_for_a_content(
    server: ContentsServer, open_client: Open, settings: dict[str, Any], reason: str | None
) -> None:
    answer = open_client(**settings).call(MODEL, "a", **EXPLICIT)
    miss = answer.prompt_cache_miss
    assert (None if miss is None else miss.reason) == reason
    assert server.created == (reason is None)


def test_too_short_a_beginning_is_not_stored_and_every_answer_says_why(
    server: ContentsServer, open_client: Open
) -> None:
    client = open_client()
    for answer in client.call_many(MODEL, QUESTIONS * 2, **EXPLICIT | {"system": "Be brief."}):
        assert answer.prompt_cache_miss is not None
        assert answer.prompt_cache_miss.reason in ("below_minimum", "not_shared")
    answer = client.call(MODEL, "alone", **EXPLICIT | {"system": "Be brief."})
    assert answer.prompt_cache_miss is not None
    assert answer.prompt_cache_miss.reason == "below_minimum"
    again = client.call(MODEL, "alone", max_tokens=100, system="Be brief.")
    assert again.cached
    assert again.prompt_cache_miss == answer.prompt_cache_miss
    assert not server.created


@pytest.mark.parametrize("way", WAYS)
async def test_a_content_that_is_refused_again_and_again_is_left_out(
    server: ContentsServer, open_client: Open, way: str
) -> None:
    refused = error(400, "CachedContent is not for this model")
    server.fault = lambda path, body: refused if "cachedContent" in (body or ()) else None
    client = open_client()
    for question in "ab":
        answer = await ask(client, way, question)
        assert answer.prompt_cache_miss is not None
        assert answer.prompt_cache_miss.reason == "not_stored: CachedContent is not for this model"
    assert server.created == 2


@pytest.mark.parametrize("status", [400, 403, 404, 429, 500])
def test_what_cannot_be_stored_is_sent_whole(server: ContentsServer, open_client: Open, status: int) -> None:
    tried = 0

    def refuse(path: str, body: Any) -> Any:
        nonlocal tried
        tried += path.endswith("/cachedContents")
        return error(status, f"no, says {KEY}") if path.endswith("/cachedContents") else None

    client, server.fault = open_client(), refuse
    results = client.call_many(MODEL, QUESTIONS, **EXPLICIT)
    reasons = {answer.prompt_cache_miss.reason for answer in results if answer.prompt_cache_miss is not None}
    assert len(reasons) == 1
    assert reasons.pop().startswith("not_stored: ")
    assert KEY not in str([answer.prompt_cache_miss for answer in results])
    assert tried == 1
    assert all(name is None for name, _ in server.asked)


def test_clients_that_begin_together_store_a_document_once(server: ContentsServer, open_client: Open) -> None:
    clients = [open_client() for _ in range(3)]
    run_threads(
        *(lambda client=client: client.call(MODEL, str(id(client)), **EXPLICIT) for client in clients)
    )
    assert server.created == 1
    assert len(server.asked) == 3


async def test_what_a_cancelled_call_has_stored_is_used(server: ContentsServer, open_client: Open) -> None:
    client, began = open_client(), list[str]()
    server.fault = lambda path, body: began.append(path) if path.endswith("/cachedContents") else None
    task = asyncio.create_task(client.acall(MODEL, "a", **EXPLICIT))
    while not began:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    answer = await client.acall(MODEL, "b", **EXPLICIT)
    assert answer.prompt_cache_miss is None
    assert server.created == 1


def test_an_estimate_has_the_rent(server: ContentsServer, open_client: Open) -> None:
    client = open_client()
    estimate = client.estimate(MODEL, QUESTIONS, **EXPLICIT)
    results = client.call_many(MODEL, QUESTIONS, **EXPLICIT)
    assert estimate.cost is not None
    assert results.cost is not None
    assert estimate.cost.low <= results.cost <= estimate.cost.high
    assert estimate.cost.likely > client.estimate(MODEL, ["x"], max_tokens=100, system=DOCUMENT).cost.likely
