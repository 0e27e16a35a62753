"""The cache lookup of a batch: stored prompts are found, in their order, in groups and one by one.

What a batch loads before its first request, and processes that have few file descriptors left.
"""

import asyncio
import json
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import Client, LLMError, ModelDriftError, ModelDriftWarning, Response, track
from llm_provider._core.batches.lookup import _GROUP
from llm_provider._core.types.messages import Prompt
from llm_provider.simulator import Fault, Simulator
from support import RunScript

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


MODELS = ("gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-4-argon")

LATE = """
    import sys

    loaded = []

    def watch(event, arguments):
        if event == "socket.connect" and isinstance(arguments[1], tuple) and not loaded:
            loaded.extend(sys.modules)

    sys.addaudithook(watch)
    import asyncio
    from llm_provider import acall_many, call_many

    def weather(city: str) -> str:
        "The weather of a city."
        return "sunny"

    City = {{"type": "object", "properties": {{"city": {{"type": "string"}}}}, "required": ["city"]}}
    questions = [f"Question {{number}}?" for number in range(6)]
    if {awaited}:
        outcome = asyncio.run(acall_many({model!r}, questions, max_retries=2, **{parameters}))
    else:
        outcome = call_many({model!r}, questions, max_retries=2, **{parameters})
    print(len(outcome), sorted(set(sys.modules).difference(loaded)))
"""
"""The audit event of a connection comes before any answer."""


FAILURES = ("{}", ("429", "500", "html", "cut", "400"))
REPAIRS = ("{'response_format': City, 'max_repairs': 1}", ("mismatch",))
TOOLS = ("{'tools': [weather], 'max_tool_rounds': 2}", ())
SAMPLE = tuple(zip(MODELS, (FAILURES, REPAIRS, TOOLS), strict=True))


@pytest.mark.parametrize(
    ("model", "parameters", "faults"),
    [
        pytest.param(model, *kind, marks=() if (model, kind) in SAMPLE else pytest.mark.long)
        for model in MODELS
        for kind in (FAILURES, REPAIRS, TOOLS)
    ],
)
def test_nothing_is_imported_after_the_first_connection(
    simulator: Simulator, run_script: RunScript, model: str, parameters: str, faults: tuple[str, ...]
) -> None:
    kinds = {
        "429": Fault(status=429, retry_after="0.01"),
        "500": Fault(status=500),
        "400": Fault(status=400),
        "html": Fault(body="<html>"),
        "cut": Fault(abort_after=1),
        "mismatch": Fault(text="no JSON"),
    }
    for fault in faults:
        simulator.inject(kinds[fault])
    awaited = MODELS.index(model) == 1
    done = run_script(LATE.format(model=model, parameters=parameters, awaited=awaited))
    assert done.stdout == "6 []\n"


FEW = """
    import asyncio, json, os, resource
    from llm_provider import LLMError, acall_many, call, call_many

    {before}
    opened = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 150, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    for _ in range({left}):
        os.close(held.pop())
    try:
        {ask}
    except LLMError as error:
        outcome = [type(error).__name__, "ulimit -n" in str(error)]
    for descriptor in held:
        os.close(descriptor)
    print(json.dumps([outcome, len(call_many({model!r}, ["a", "b"]).ok)]))
"""

ASK = {
    "call_many": "outcome = len(call_many({model!r}, ['one', 'two'], max_retries=2).ok)",
    "acall_many": "outcome = len(asyncio.run(acall_many({model!r}, ['one', 'two'], max_retries=2)).ok)",
    "call": "outcome = [call({model!r}, 'one', max_retries=0).text]",
}


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_NOFILE"), reason="the platform has no such limit")
@pytest.mark.parametrize(
    ("left", "ask"),
    [
        (0, "call_many"),
        (20, "call_many"),
        (0, "call"),
        (5, "acall_many"),  # asyncio.run needs some for itself
        (100, "call_many"),
        (20, "call"),
        (100, "call"),
        (100, "acall_many"),
    ],
)
@pytest.mark.parametrize("before", ["", "call({model!r}, 'before')"], ids=["first", "after a call"])
@pytest.mark.sampled(7)
def test_a_process_without_descriptors_gets_a_typed_error(
    simulator: Simulator, run_warm_script: RunScript, left: int, before: str, ask: str
) -> None:
    model = MODELS[(left + len(before) + len(ask)) % len(MODELS)]
    program = FEW.format(
        model=model, left=left, ask=ASK[ask].format(model=model), before=before.format(model=model)
    )
    error, later = json.loads(run_warm_script(program).stdout)
    if left == 100:
        assert error == (["echo: one"] if ask == "call" else 2)
    elif ask != "call":
        assert error == (["APIConnectionError", True])
    assert later == 2


MANY = """
    import os, resource, threading

    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    from llm_provider import Client

    most, opened, ended = 0, 0, threading.Event()

    def work_with_files():
        global most, opened
        while not ended.wait(0.01):
            files = [open(os.devnull) for _ in range(10)]
            most, opened = max(most, len(os.listdir("/dev/fd"))), opened + 10
            for file in files:
                file.close()

    thread = threading.Thread(target=work_with_files, daemon=True)
    thread.start()
    prompts = [f"Question {{number}}?" for number in range(300)]
    with Client({settings}) as client:
        for models in {models}:
            several = client.call_many(models, prompts, {parameters})
            for results in several.values() if isinstance(several, dict) else [several]:
                results.raise_for_errors()
                assert not any(result.failures for result in results)
    ended.set()
    thread.join()
    print(opened > 0, most < 256)
"""


@pytest.mark.parametrize(
    ("models", "settings", "parameters"),
    [
        (["gpt-6.1-sol"], "", ""),
        (["gpt-6.1-sol"], "", "max_concurrent=1000"),
        (["gpt-6.1-sol"], "max_concurrent=1000, transport='http1'", ""),
        ([["gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash"]], "max_concurrent=500", ""),
        # The connections of one server are idle while those of the next are made.
        (["gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash"], "max_concurrent=500", ""),
    ],
)
def test_a_batch_leaves_files_to_the_rest_of_the_program(
    simulator: Simulator, run_warm_script: RunScript, models: object, settings: str, parameters: str
) -> None:
    simulator.configure(latency=0.2)
    ended = run_warm_script(MANY.format(models=repr(models), settings=settings, parameters=parameters))
    assert ended.stdout.strip() == "True True", ended.stderr
    assert "down" not in ended.stderr
