"""Partials in streams, of all routes and ways of calling, from a server that writes piece by piece."""

import asyncio
import copy
import dataclasses
import itertools
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from counting_server import CountingServer
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import (
    AsyncStream,
    Client,
    Delta,
    LengthFinishReasonError,
    LLMError,
    SchemaMismatchError,
    astream,
    stream,
)
from llm_provider._core.schemas.structure import structure_of
from llm_provider._features.partial.deltas import StructuredDeltas
from loop_support import run_threads
from partial_support import cut, is_prefix
from piecewise_server import Answer, PiecewiseServer

ROUTES: list[Any] = ["gpt-4.1", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash", "local/m"]
ROUTES += [
    pytest.param(name, marks=[needs_litellm, *IGNORED_WARNINGS])
    for name in ("litellm/openai/gpt-6.1-sol", "litellm/anthropic/claude-sonnet-5-5")
]


class City(BaseModel):
    name: str
    people: int


class Trip(BaseModel):
    title: str
    cities: list[City]
    days: int = 1


TRIP = {
    "title": "Öst 😀",
    "cities": [{"name": "Bern", "people": 134}, {"name": "Ulm", "people": 12}],
    "days": 3,
}


def run(way: str, model: str, client: Client, **parameters: Any) -> tuple[list[Delta], Any]:
    """The deltas and the response of a stream, in one of four ways."""
    if way in ("stream", "Client.stream"):
        function = client.stream if way == "Client.stream" else stream
        with function(model, "Hi", **parameters) as deltas:
            found = [delta for delta in deltas if (delta.partial, delta.partial_with_text)]
        return found, deltas.response

    async def read() -> tuple[list[Delta], Any]:
        function: Callable[..., AsyncStream] = client.astream if way == "Client.astream" else astream
        async with function(model, "Hi", **parameters) as deltas:
            found = [delta async for delta in deltas]
        return found, deltas.response

    return asyncio.run(read())


def serving(*answers: Answer) -> PiecewiseServer:
    return PiecewiseServer(lambda number, _: answers[min(number, len(answers) - 1)])


WAYS = ["stream", "astream", "Client.stream", "Client.astream"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", ROUTES)
def test_every_route_has_partials_and_so_has_a_hit(model: str, way: str, tmp_path: Path) -> None:
    with serving(Answer(json.dumps(TRIP))) as server, Client(cache_dir=tmp_path) as client:
        own = {"base_url": server.url(model), "response_format": Trip, "api_key": "k"}
        deltas, response = run(way, model, client, **own)
        partials = [delta.partial for delta in deltas if delta.text]
        assert partials[-1] == response.parsed == Trip.model_validate(TRIP)
        assert all(is_prefix(*pair) for pair in itertools.pairwise(partials))
        shown = [vars(partial) for partial in partials if partial is not None]
        assert {len(fields.get("cities", "none")) for fields in shown} == {0, 1, 2, 4}
        texts = {getattr(delta.partial_with_text, "title", "") for delta in deltas}
        assert all("Öst 😀".startswith(text) for text in texts)
        assert len(texts) > 2
        (hit,), again = run(way, model, client, **own)
        assert hit.partial == hit.partial_with_text == response.parsed
        assert (again.cached, server.requests) == (True, 1)


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash"])
@pytest.mark.parametrize("way", WAYS[2:])
def test_samples_have_partials_of_their_own(model: str, way: str) -> None:
    def write(number: int, body: Any) -> Answer:
        count = body.get("n") or body.get("generationConfig", {}).get("candidateCount") or 1
        return Answer(*[json.dumps({**TRIP, "title": f"{number} {index}"}) for index in range(count)])

    with PiecewiseServer(write) as server, Client() as client:
        own = {"base_url": server.url(model), "response_format": Trip, "api_key": "k"}
        for samples in (1, 3):  # the first of three is stored then
            deltas, response = run(way, model, client, n=samples, **own)
            assert len({trip.title for trip in response.all_parsed}) == samples
            for index in range(samples):
                partials = [delta.partial for delta in deltas if delta.index == index and delta.text]
                assert partials[-1] == response.all_parsed[index]
                assert all(is_prefix(*pair) for pair in itertools.pairwise(partials))


@pytest.mark.parametrize("model", ["gpt-4.1", "claude-sonnet-5-5", "gemini-3.8-flash"])
def test_reasoning_is_no_part_of_a_partial(model: str) -> None:
    with serving(Answer(json.dumps(TRIP), reasoning='Think: {"title": "No"}')) as server, Client() as client:
        own = {"base_url": server.url(model), "response_format": Trip, "api_key": "k"}
        deltas, response = run("stream", model, client, **own)
        assert response.reasoning.startswith("Think")
        assert all(delta.partial is None for delta in deltas if delta.reasoning)
        assert deltas[-1].partial == response.parsed


@pytest.mark.parametrize("max_tool_rounds", [None, 2])
@pytest.mark.parametrize("before", ["", "I look. ", '{"title": "Half'])
def test_tool_calls_are_no_partials_and_each_round_begins_anew(
    before: str, max_tool_rounds: int | None
) -> None:
    def find(x: int) -> str:
        """Find it."""
        return str(x)

    answers = Answer(before, tool="find"), Answer(json.dumps(TRIP))
    with serving(*answers) as server, Client() as client:
        own = {"base_url": server.url("gpt-4.1"), "api_key": "k", "tools": [find], "response_format": Trip}
        for way in WAYS[2:]:
            deltas, response = run(way, "gpt-4.1", client, max_tool_rounds=max_tool_rounds, **own)
            titles = [getattr(delta.partial, "title", None) for delta in deltas]
            assert [delta.partial for delta in deltas if delta.tool_results] == [None] * bool(max_tool_rounds)
            if max_tool_rounds:
                assert deltas[-1].partial == response.parsed
            else:
                assert titles == [None] * len(titles)


@pytest.mark.parametrize(
    ("answer", "last", "error"),
    [
        (Answer("", refusal="I {cannot}."), None, LLMError),
        (
            Answer('{"title": "A", "cities": [{"name": "B", "peo', end="length"),
            ["title", "cities"],
            LengthFinishReasonError,
        ),
        (Answer('{"title": 7, "days": 2, "cities": []}'), ["days", "cities"], SchemaMismatchError),
        (Answer('{"title": "A", "days": 1'), ["title"], SchemaMismatchError),
        (Answer("No JSON."), None, SchemaMismatchError),
        (
            Answer('{"title": "A", "cities": []} or {"title": "B", "cities": []}'),
            ["title", "cities", "days"],
            SchemaMismatchError,
        ),
    ],
)
def test_an_answer_that_does_not_match_leaves_the_fields_that_do(
    answer: Answer, last: list[str] | None, error: type[Exception]
) -> None:
    with serving(answer) as server, Client() as client:
        own = {"base_url": server.url("gpt-4.1"), "response_format": Trip, "api_key": "k", "max_repairs": 2}
        deltas, response = run("stream", "gpt-4.1", client, **own)
        partial = deltas[-1].partial
        assert last == (None if partial is None else list(vars(partial)))
        with pytest.raises(error):
            _ = response.parsed
        assert server.requests == 1


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_the_partials_of_a_broken_stream_stay(way: str) -> None:
    with serving(Answer(json.dumps(TRIP), breaks=True)) as server, Client(max_retries=0) as client:
        found: list[Delta] = []
        own: Any = {"base_url": server.url("gpt-4.1"), "response_format": Trip, "api_key": "k"}

        async def read() -> None:
            async for delta in client.astream("gpt-4.1", "Hi", **own):
                found.append(delta)  # noqa: PERF401 -- the stream raises

        with pytest.raises(LLMError):
            if way == "astream":
                asyncio.run(read())
            for delta in client.stream("gpt-4.1", "Hi", **own):
                found.append(delta)  # noqa: PERF402 -- the stream raises
        assert found[-1].partial.title == "Öst 😀"


@pytest.mark.parametrize("way", WAYS)
def test_commentary_is_no_part_of_the_answer(way: str, tmp_path: Path) -> None:
    answer = Answer(json.dumps(TRIP), commentary='I think {"title": "No", "cities": []} would be wrong. ')
    model = "gpt-5.5-pro"
    with serving(answer) as server, Client(cache_dir=tmp_path) as client:
        own = {"base_url": server.url(model), "api_key": "k"}
        for _ in range(2):
            deltas, response = run(way, model, client, response_format=Trip, **own)
            assert deltas[-1].partial == response.parsed == Trip.model_validate(TRIP)
            titles = {getattr(delta.partial, "title", None) for delta in deltas}
            assert titles <= {None, "Öst 😀"}
            assert "".join(delta.text for delta in deltas) == response.text
            assert response.text.startswith("I think")
            assert {type(delta.text) for delta in deltas} == {str}
        deltas, _ = run(way, model, client, **own)
        assert {type(delta.text) for delta in deltas} == {str}


def test_equal_streams_of_other_types_have_their_own_partials() -> None:
    class Other(BaseModel):
        title: str
        cities: list[City]
        days: int = 1

    Other.__name__ = "Trip"
    Other.model_config["title"] = "Trip"
    Other.model_rebuild(force=True)
    with serving(Answer(json.dumps(TRIP), reasoning="why")) as server, Client() as client:
        own: Any = {"base_url": server.url("gpt-4.1"), "api_key": "k"}
        forms = (Trip, Other, Trip, Other)
        streams = [client.stream("gpt-4.1", "Hi", response_format=form, **own) for form in forms]
        for form, deltas in zip(forms, streams, strict=True):
            found = list(deltas)
            assert type(found[-1].partial) is form
            assert found[-1].partial == deltas.response.parsed


@pytest.mark.parametrize("way", WAYS[2:])
def test_a_fallback_has_partials(way: str) -> None:
    def write(_: int, body: Any) -> Answer:
        return Answer(json.dumps(TRIP), status=503 if body["model"] == "gpt-4.1" else 200)

    with PiecewiseServer(write) as server, Client(max_retries=0) as client:
        own = {"base_url": server.url("gpt-4.1"), "response_format": Trip, "api_key": "k"}
        deltas, response = run(way, "gpt-4.1", client, fallback=["gpt-4.1-mini"], **own)
        assert len(response.passed_over) == 1
        assert deltas[-1].partial == response.parsed


def test_a_delta_is_a_value_without_its_partial() -> None:
    with serving(Answer(json.dumps(TRIP))) as server, Client() as client:
        own = {"base_url": server.url("gpt-4.1"), "response_format": Trip, "api_key": "k"}
        delta = run("stream", "gpt-4.1", client, **own)[0][-1]
    plain = Delta(text=delta.text)
    assert (delta, hash(delta), repr(delta)) == (plain, hash(plain), repr(plain))
    assert pickle.dumps(delta) == pickle.dumps(plain)
    for other in (plain, copy.copy(delta), pickle.loads(pickle.dumps(delta)), dataclasses.replace(delta)):
        assert other.partial is other.partial_with_text is None
    partial = delta.partial
    assert pickle.loads(pickle.dumps(partial)) == copy.deepcopy(partial) == partial


def test_a_stream_without_a_format_has_none() -> None:
    with serving(Answer(json.dumps(TRIP))) as server, Client() as client:
        for form in (None, {"type": "text"}):
            own = {"base_url": server.url("gpt-4.1"), "response_format": form, "api_key": "k"}
            deltas, _ = run("stream", "gpt-4.1", client, **own)
            assert (
                {delta.partial for delta in deltas} == {delta.partial_with_text for delta in deltas} == {None}
            )


def test_threads_may_read_partials_at_once() -> None:
    text = json.dumps({"title": "T" * 500, "cities": [{"name": "x", "people": n} for n in range(100)]})
    make = StructuredDeltas(structure_of(Trip))  # type: ignore[arg-type]
    deltas = [make(piece) for piece in cut(text, [3])]
    expected = [delta.partial for delta in map(StructuredDeltas(structure_of(Trip)), cut(text, [3]))]  # type: ignore[arg-type]
    wrong: list[int] = []

    def read(step: int) -> None:
        wrong.extend(
            number for number in range(0, len(deltas), step) if deltas[number].partial != expected[number]
        )

    run_threads(*(lambda step=step: read(step) for step in (1, 2, 3, 5)))
    assert not wrong


def test_a_stream_that_nobody_asks_for_partials_parses_nothing(run_script: Any) -> None:
    completed = run_script("""
        import json, sys
        from llm_provider._core.schemas.structure import structure_of
        from llm_provider._features.partial.deltas import StructuredDeltas

        structure = structure_of({"type": "object", "properties": {"a": {"type": "integer"}}})
        deltas = list(map(StructuredDeltas(structure), ['{"a"', ": 1}"]))
        loaded = [name for name in sys.modules if "partial.reader" in name or name.startswith("pydantic")]
        assert not loaded, loaded
        assert deltas[-1].partial == {"a": 1}
        assert not [name for name in sys.modules if name.startswith("pydantic")]
    """)
    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize("way", WAYS[2:])
@pytest.mark.parametrize("cache", ["use", "refresh", "off", "only"])
def test_every_mode_of_the_cache_has_partials(cache: str, way: str) -> None:
    with serving(Answer(json.dumps(TRIP))) as server, Client() as client:
        own = {"base_url": server.url("gpt-4.1"), "response_format": Trip, "api_key": "k"}
        first = [] if cache == "only" else [cache]
        for mode in ("use", *first, cache):
            deltas, response = run(way, "gpt-4.1", client, cache=mode, **own)
            assert deltas[-1].partial == response.parsed
        assert server.requests == {"use": 1, "refresh": 3, "off": 3, "only": 1}[cache]


@pytest.mark.parametrize("way", WAYS[2:])
def test_a_reply_that_comes_whole_has_its_partial(way: str) -> None:
    message = {"role": "assistant", "content": f"```json\n{json.dumps(TRIP)}\n```"}
    reply = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
    }  # fmt: skip
    with CountingServer(lambda *_: (200, {}, reply)) as server, Client() as client:
        own = {"base_url": f"{server.root}/v1", "response_format": Trip, "api_key": "k"}
        deltas, response = run(way, "gpt-4.1", client, **own)
        assert [delta.partial for delta in deltas] == [response.parsed]


def test_partials_stay_after_a_stream_is_closed() -> None:
    with serving(Answer(json.dumps(TRIP))) as server, Client() as client:
        own: Any = {"base_url": server.url("gpt-4.1"), "response_format": Trip, "api_key": "k"}
        with client.stream("gpt-4.1", "Hi", **own) as deltas:
            found = [delta for delta, _ in zip(deltas, range(9), strict=False)]
        assert vars(found[-1].partial) == {"title": "Öst 😀"}
