"""What all these hosts promise: each row once, whatever happens to a batch, its results and its process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    APIResponseValidationError,
    APITimeoutError,
    Budget,
    BudgetExceededError,
    Client,
    RequestError,
    Response,
    UnknownPriceError,
)
from llm_provider._core.formats.openai.batches import connect
from llm_provider._core.formats.shared.batches import BatchSpec, limits_of
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.routing import resolve
from llm_provider._features.cli.main import main
from llm_provider.simulator import Fault, Simulator

MISTRAL, XAI = "mistral/mistral-small-2603", "xai/grok-4.20"
TOGETHER, FIREWORKS = "together_ai/zai-org/GLM-5.3", "fireworks_ai/accounts/fireworks/models/gpt-oss-120b"
HOSTS = [MISTRAL, XAI, TOGETHER, FIREWORKS]
INPUTS = [f"{number}+{number}?" for number in range(10)]
SUMS = [str(2 * number) for number in range(10)]
ODD_BODIES = ("{}", "null", "[]", '{"job":null,"data":{"id":"x"}}', "<html>a proxy</html>")

pytestmark = pytest.mark.filterwarnings("ignore::llm_provider.PriceWarning")


@pytest.mark.parametrize("model", HOSTS)
@pytest.mark.parametrize(
    "behaviour",
    [
        {},
        {"batch_errored": 0.3},
        {"batch_errored": 1.0},
        {"batch_expired": 0.3},
        {"batch_results_late": 2, "batch_errors_late": 1, "batch_errored": 0.2},
        {"batch_counts": "none", "batch_errored": 0.2},
        {"batch_counts": "stale", "batch_errored": 0.2},
    ],
)
@pytest.mark.parametrize("size", [4, None])
@pytest.mark.sampled(5)
def test_every_row_is_answered_once(
    client: Client, simulator: Simulator, model: str, behaviour: dict[str, Any], size: int | None
) -> None:
    if model == XAI and behaviour.get("batch_counts") == "none":
        pytest.skip("the counts are the state of a batch")
    simulator.configure(batch_seconds=0.0, **behaviour)
    results = client.call_many(model, INPUTS, delivery="batch", batch_size=size)
    assert results.texts == SUMS
    assert simulator.ledger().answered == len(INPUTS)
    assert all(answer.cached for answer in client.call_many(model, INPUTS))


@pytest.mark.parametrize("model", HOSTS)
@pytest.mark.parametrize("fault", [Fault(abort_after=0), *(Fault(body=body) for body in ODD_BODIES)])
@pytest.mark.parametrize("listed", ODD_BODIES)
@pytest.mark.sampled(13)
def test_a_submission_whose_answer_is_lost_is_found(
    client: Client, simulator: Simulator, model: str, fault: Fault, listed: str
) -> None:
    # The list of Together is one, and that of Fireworks may be empty in this form.
    if (model, listed) in ((TOGETHER, "[]"), (FIREWORKS, "{}")):
        listed = "null"
    simulator.inject(fault, match="batches.create")
    simulator.inject(Fault(body=listed), match="batches.list")
    results = client.call_many(model, ["1+1?", "2+2?"], delivery="batch", cache="refresh")
    assert (results.texts, simulator.ledger().answered) == (["2", "4"], 2)


@pytest.mark.parametrize("model", HOSTS)
@pytest.mark.parametrize("body", ODD_BODIES)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["files.upload", "files.store", "batches.retrieve"])
def test_a_page_of_a_proxy_loses_nothing(
    client: Client, simulator: Simulator, model: str, body: str, name: str
) -> None:
    if name == "files.store" and body[0] != "<":
        pytest.skip("a store of files may answer anything but a web page")
    simulator.inject(Fault(body=body), match=name)
    results = client.call_many(model, ["1+1?", "2+2?"], delivery="batch")
    assert (results.texts, simulator.ledger().answered) == (["2", "4"], 2)


@pytest.mark.parametrize("model", [MISTRAL, XAI, FIREWORKS])
def test_a_batch_of_a_journal_that_is_gone_is_found(simulator: Simulator, tmp_path: Path, model: str) -> None:
    for name in ("first", "second"):
        with Client(cache_dir=tmp_path / name) as client:
            assert client.call_many(model, INPUTS, delivery="batch").texts == SUMS
    assert simulator.ledger().answered == len(INPUTS)


@pytest.mark.parametrize("model", HOSTS)
def test_another_process_attaches(simulator: Simulator, own_cache: Path, model: str) -> None:
    simulator.configure(batch_seconds=20_000.0)
    with Client() as client:
        submitted = client.submit_many(model, INPUTS)
    with Client() as client:
        (batch,) = client.batches()
        assert batch.id == submitted.id
        assert batch.results().texts == SUMS  # type: ignore[union-attr]  # no embeddings
        assert batch.counts.done == len(INPUTS)
    assert simulator.ledger().answered == len(INPUTS)


@pytest.mark.parametrize("model", [MISTRAL, XAI, TOGETHER])
def test_a_cancelled_batch_keeps_what_is_done(
    simulator: Simulator, own_cache: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    simulator.configure(batch_seconds=60_000.0, batch_clock=86_400.0)
    with Client() as client:
        batch = client.submit_many(model, INPUTS)
    assert main(["batches"]) == 0
    assert batch.id in capsys.readouterr().out
    assert main(["batches", "cancel", batch.id]) == 0
    with Client(max_retries=0) as client:
        results = client.call_many(model, INPUTS, delivery="batch", on_error="return")
    kept = [result for result in results if isinstance(result, Response)]
    assert len(kept) == simulator.ledger().answered < len(INPUTS)
    codes = {result.code for result in results if not isinstance(result, Response)}
    assert codes == {"batch_cancelled"}


def test_fireworks_says_that_no_batch_can_be_cancelled(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=20_000.0)
    batch = client.submit_many(FIREWORKS, INPUTS)
    with pytest.raises(RequestError, match="no way to end a batch early and keep the answers"):
        batch.cancel()
    assert batch.results().texts == SUMS  # type: ignore[union-attr]  # no embeddings


@pytest.mark.parametrize("model", HOSTS)
def test_a_batch_that_expires_keeps_what_is_done(client: Client, simulator: Simulator, model: str) -> None:
    simulator.configure(batch_seconds=180_000.0, batch_clock=864_000.0)
    results = client.call_many(model, INPUTS, delivery="batch", on_error="return", max_retries=0)
    kept = [result for result in results if isinstance(result, Response)]
    assert 0 < len(kept) == simulator.ledger().answered < len(INPUTS)
    assert all(isinstance(result, (Response, APITimeoutError)) for result in results)


@pytest.mark.parametrize("model", [MISTRAL, XAI])
def test_money_is_counted_at_the_batch_price(client: Client, simulator: Simulator, model: str) -> None:
    simulator.configure(prices="prices.csv", batch_errored=0.2)
    client.call_many(model, INPUTS, delivery="batch")
    assert client.usage.spent == simulator.ledger().billed
    before = len(simulator.requests())
    with pytest.raises(BudgetExceededError):
        client.call_many(model, ["another"], delivery="batch", budget=Budget(0.000_000_1), max_tokens=100)
    assert len(simulator.requests()) == before


@pytest.mark.parametrize("model", [TOGETHER, FIREWORKS])
def test_without_a_batch_price_the_cost_is_unknown(client: Client, model: str) -> None:
    assert [result.cost for result in client.call_many(model, ["1+1?"], delivery="batch")] == [None]
    with pytest.raises(UnknownPriceError, match="variant 'batch'"):
        client.call_many(model, ["2+2?"], delivery="batch", budget=Budget(1), max_tokens=100)


@pytest.mark.parametrize(("model", "is_batch"), [(MISTRAL, True), (XAI, True), (TOGETHER, False)])
def test_auto_takes_a_batch_where_one_costs_less(client: Client, model: str, is_batch: bool) -> None:
    client.call_many(model, ["1+1?"], delivery="auto")
    assert bool(client.batches()) is is_batch


@pytest.mark.parametrize(
    ("model", "operation", "served"),
    [
        (MISTRAL, "chat/completions", (100_000, 512_000_000)),
        (MISTRAL, "embeddings", (100_000, 512_000_000)),
        (MISTRAL, "responses", None),
        (XAI, "responses", (100_000, 200_000_000)),
        (XAI, "embeddings", None),
        (TOGETHER, "chat/completions", (50_000, 100_000_000)),
        (TOGETHER, "embeddings", None),
        (FIREWORKS, "chat/completions", (1_000_000, 150_000_000)),
        (FIREWORKS, "responses", None),
    ],
)
def test_each_host_has_endpoints_and_limits(
    model: str, operation: str, served: tuple[int, int] | None
) -> None:
    limits = limits_of(resolve(model), operation)
    assert served == (None if limits is None else (limits.rows, limits.bytes))


@pytest.mark.parametrize(
    ("model", "names_model"), [(MISTRAL, False), (XAI, True), (TOGETHER, True), (FIREWORKS, False)]
)
def test_a_row_has_what_its_host_reads(model: str, names_model: bool) -> None:
    spec = BatchSpec(operation="chat/completions", label="l", content="c")
    connection = connect(resolve(model), APIKey("sk-test"))
    line = connection.line(spec, "id", b'{"model":"m","seed":18446744073709551616}')
    asyncio.run(connection.close())
    assert (b'"model"' in line) is names_model
    assert b'"seed":18446744073709551616}}' in line
    assert (b'"url":"/v1/chat/completions"' in line) is (model == XAI)


@pytest.mark.parametrize("place", ["http://storage.example/x", "file:///etc/passwd", "gopher://x"])
def test_a_file_goes_to_an_address_with_https_alone(place: str, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"{}\n")
    connection: Any = connect(resolve(TOGETHER, base_url="https://api.together.ai/v1"), APIKey("sk-test"))

    async def put() -> None:
        try:
            await connection.put(place, path)
        finally:
            await connection.close()

    with pytest.raises(APIResponseValidationError, match="without https"):
        asyncio.run(put())


FEATURES: list[dict[str, Any]] = [
    {"n": 3},
    {"n": 2, "temperature": 0.5, "max_tokens": 50, "seed": 7},
    {"response_format": {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}},
    {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]},
    {"draw": 2},
    {"extra_headers": {"x-mine": "1"}},
    {"extra_body": {"deep": {"model": "kept", "big": 2**63}}},
]


@pytest.mark.parametrize("model", HOSTS)
@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.sampled(3)
def test_a_batch_has_the_keys_and_the_bodies_of_live_calls(
    client: Client, simulator: Simulator, tmp_path: Path, model: str, features: dict[str, Any]
) -> None:
    inputs: list[Any] = [
        "1+1?",
        [{"role": "system", "content": "Sum up."}, {"role": "user", "content": "2+2?"}],
    ]
    with Client(cache_dir=tmp_path / "live") as other:
        live = other.call_many(model, inputs, on_error="return", **features)
    answers = client.call_many(model, inputs, delivery="batch", on_error="return", **features)
    for answer, expected in zip(answers, live, strict=True):
        assert type(answer) is type(expected)
        if isinstance(answer, Response) and isinstance(expected, Response):
            assert [choice.text for choice in answer.choices] == [choice.text for choice in expected.choices]
            assert client.call_many(model, inputs, **features)[0].cached


@pytest.mark.parametrize("texts", [["a"], ["a", "b", "a"]])
def test_mistral_embeds_texts(client: Client, tmp_path: Path, texts: list[str]) -> None:
    embeddings = client.embed("mistral/mistral-embed", texts, delivery="batch")
    with Client(cache_dir=tmp_path / "live") as other:
        assert other.embed("mistral/mistral-embed", texts).vectors == embeddings.vectors
    assert client.embed("mistral/mistral-embed", texts).cached


@pytest.mark.parametrize(("model", "path"), [(TOGETHER, "/storage"), (FIREWORKS, "/content")])
def test_a_token_of_a_function_does_not_go_to_signed_addresses(
    simulator: Simulator, tmp_path: Path, model: str, path: str
) -> None:
    provider = model.partition("/")[0]
    with Client(cache_dir=tmp_path, keys={provider: lambda: "a-token"}) as client:
        # The simulator refuses a second credential, as the stores of files do.
        assert client.call_many(model, ["1+1?"], delivery="batch").texts == ["2"]
    (signed,) = [each for each in simulator.requests() if path in each.path]
    assert "authorization" not in signed.headers


OPERATIONS = ["files.upload", "files.store", "batches.create", "batches.retrieve", "files.download"]
PASSING = [
    Fault(status=429, retry_after="0.1"),
    Fault(status=503),
    Fault(cut_after=1),
    Fault(abort_after=0),
    Fault(stall_after=0, delay=0.1),
]


@pytest.mark.parametrize("model", HOSTS)
@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("name", [*OPERATIONS, "batches.results"])
@pytest.mark.sampled(7)
def test_a_failure_that_passes_costs_nothing(
    client: Client, simulator: Simulator, model: str, fault: Fault, name: str
) -> None:
    simulator.inject(fault, match=name)
    results = client.call_many(model, ["1+1?", "2+2?", "3+3?"], delivery="batch")
    assert (results.texts, simulator.ledger().answered) == (["2", "4", "6"], 3)
