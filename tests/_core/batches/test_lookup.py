"""The cache lookup of a batch: stored prompts are found, in their order, in groups and one by one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import Client, LLMError, ModelDriftError, ModelDriftWarning, Response, track
from llm_provider._core.batches.lookup import _GROUP
from llm_provider._core.types.messages import Prompt
from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"
PROMPTS = [f"What is {number}+1?" for number in range(2 * _GROUP + 10)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache that holds the answers to every second of the prompts."""
    directory = tmp_path_factory.mktemp("filled") / "cache"
    with Simulator() as simulator, pytest.MonkeyPatch.context() as patch:
        for name, value in simulator.environment().items():
            patch.setenv(name, value)
        with Client(cache_dir=directory) as client:
            client.call_many(MODEL, PROMPTS[::2], on_error="raise")
        yield directory


@pytest.fixture
def reader(filled: Path) -> Iterator[Client]:
    """A client that finds them and sends nothing."""
    with Client(cache_dir=filled, cache="only") as client:
        yield client


def outcome_of(result: Response | LLMError) -> object:
    """What must not depend on how an answer was found."""
    if isinstance(result, Response):
        return result.text, result.usage, result.id, result.cost, result.cached, result.body
    # Why it is a miss is only told for the first few.
    return type(result), result.provider, result.model, getattr(result, "key", "")


def counted(client: Client) -> tuple[int, int, float]:
    stats = client.cache.stats()
    return stats.hits, stats.misses, stats.saved


def one_by_one(client: Client, prompts: list[Prompt]) -> list[Response | LLMError]:
    results: list[Response | LLMError] = []
    for prompt in prompts:
        try:
            results.append(client.call(MODEL, prompt))
        except LLMError as error:
            results.append(error)
    return results


inputs = st.lists(
    st.sampled_from(PROMPTS)
    | st.sampled_from(["", "a lone \ud800 surrogate", None, 7])
    | st.sampled_from(PROMPTS).map(lambda prompt: [{"role": "user", "content": prompt}]),
    max_size=20,
)


@settings(max_examples=12, deadline=None)
@given(inputs)
def test_a_batch_finds_what_single_calls_find(filled: Path, prompts: list[Prompt]) -> None:
    ways = {
        "single": one_by_one,
        "list": lambda client, prompts: client.call_many(MODEL, prompts),
        "generator": lambda client, prompts: client.call_many(MODEL, iter(prompts)),
        "loop": lambda client, prompts: asyncio.run(client.acall_many(MODEL, prompts)),
    }
    outcomes = {}
    for name, way in ways.items():
        with Client(cache_dir=filled, cache="only") as client:
            outcomes[name] = [*map(outcome_of, way(client, prompts)), counted(client)]
    assert outcomes["list"] == outcomes["generator"] == outcomes["loop"] == outcomes["single"]


def test_only_what_is_taken_is_counted(reader: Client) -> None:
    results = reader.iter_many(MODEL, PROMPTS)
    assert [next(results)[0] for _ in range(3)] == [0, 1, 2]
    assert counted(reader)[:2] == (2, 1)


def test_a_generator_is_never_read_ahead(reader: Client) -> None:
    read = 0

    def prompts() -> Iterator[str]:
        nonlocal read
        for prompt in PROMPTS:
            read += 1
            yield prompt

    results = reader.iter_many(MODEL, prompts())
    for taken_so_far in range(1, 5):
        next(results)
        assert read == taken_so_far


def test_a_closed_client_begins_nothing(reader: Client) -> None:
    results = reader.iter_many(MODEL, PROMPTS)
    next(results)
    reader.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(results)


def test_hits_count_where_their_results_are_taken(reader: Client) -> None:
    with track("made"):
        results = reader.iter_many(MODEL, PROMPTS[:6:2], progress=False)
    with track("first") as first:
        next(results)
    with track("rest") as rest:
        list(results)
    hits = [(row.tag, row.hits) for row in reader.usage.rows()]
    assert (first.hits, rest.hits) == (1, 2)
    assert sorted(hits) == [("first", 1), ("rest", 2)]
    assert first.saved > 0


def test_a_changed_model_fails_its_hit_and_no_other(own_cache: Path, simulator: Simulator) -> None:
    with Client(cache_dir=own_cache) as client, pytest.warns(ModelDriftWarning):
        for suffix, prompt in (("-2026-10-21", "a"), ("-2026-11-19", "b"), ("-2026-10-21", "c")):
            simulator.configure(snapshot_suffix=suffix)
            client.call(MODEL, prompt)
    with Client(cache_dir=own_cache, cache="only", strict_model=True) as client:
        results = client.call_many(MODEL, ["a", "b", "c"], progress=False)
        assert [type(result) for result in results] == [Response, ModelDriftError, Response]
        assert client.usage.hits == 3
