"""Results as data frames: a row for each sample."""

import asyncio
import enum
from dataclasses import dataclass
from datetime import date
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, RootModel

from llm_provider import Client, LLMError, RateLimitError, Response, Results, Usage
from llm_provider._core.types.results_table import columns
from llm_provider.simulator import Fault, Simulator
from support import needs, response

SUMS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "reasoning_output_tokens")


@pytest.fixture
def results() -> Results[Response | LLMError]:
    error = RateLimitError("slow", provider="p", model="m", attempts=2)
    error.metadata, error.usage = {"id": 8}, Usage(input_tokens=2)
    metadata = {"id": 7, "text": "own", "parsed.city": "Bern"}
    return Results([response("a", "b", metadata=metadata), error, response("c", cost=None)])


def assert_same_sums(results: Results[Any], table: dict[str, list[Any]]) -> None:
    known = [cost for cost in table["cost"] if cost is not None]
    assert sum(known) == pytest.approx(float(results.cost))
    assert len(table["cost"]) - len(known) == results.cost.unknown
    for name in SUMS:
        assert sum(table[name]) == getattr(results.usage, name)


def test_a_table_has_a_row_for_each_sample_and_each_error(results: Results[Response | LLMError]) -> None:
    table = columns(results)
    own = ["id", "metadata_text", "metadata_parsed.city"]
    assert list(table)[:8] == [*own, "input_index", "sample", "text", "error", "error_message"]
    assert (table["input_index"], table["sample"]) == ([0, 0, 1, 2], [0, 1, 0, 0])
    assert table["text"] == ["a", "b", None, "c"]
    assert (table["error"], table["id"]) == ([None, None, "RateLimitError", None], [7, 7, 8, None])
    assert_same_sums(results, table)
    assert list(columns(Results())) == list(table)[3:]


def test_a_failed_call_has_rows_of_its_good_samples_too() -> None:
    error = RateLimitError("slow", maybe_billed=True)
    error.samples = tuple(response("1", "2", response_format=int).samples)
    error.cost, error.usage = 0.5, Usage(input_tokens=2)
    results = Results([error, response("3")])
    table = columns(results)
    assert (table["sample"], table["text"]) == ([0, 1, 2, 0], ["1", "2", None, "3"])
    assert table["error"] == [None, None, "RateLimitError", None]
    assert table["parsed"] == [1, 2, None, None]
    assert_same_sums(results, table)
    assert results._repr_html_().count("⚠") == 1


class Grade(enum.Enum):
    GOOD = "good"


class Place(BaseModel):
    city: str
    founded: date | None = None


@dataclass
class Visit:
    address: Place | None
    grade: Grade


class Pair(NamedTuple):
    left: int
    right: int


VISIT = '{"address": {"city": "Bern", "founded": "1191-01-01"}, "grade": "good"}'
PARSED: tuple[tuple[Any, str, dict[str, Any]], ...] = (
    (None, "4", {}),
    ({"type": "text"}, "4", {}),
    (int, "4", {"parsed": 4}),
    (Grade, '"good"', {"parsed": "good"}),
    (list[Place], '[{"city": "Bern"}]', {"parsed": [{"city": "Bern", "founded": None}]}),
    (RootModel[list[int]], "[1]", {"parsed": [1]}),
    (Place, '{"city": "Bern"}', {"parsed.city": "Bern", "parsed.founded": None}),
    (Pair, "[1, 2]", {"parsed.left": 1, "parsed.right": 2}),
    (
        Visit,
        VISIT,
        {"parsed.address.city": "Bern", "parsed.address.founded": date(1191, 1, 1), "parsed.grade": "good"},
    ),
    (dict[str, int], '{"a": 1}', {"parsed.a": 1}),
    ({"type": "json_object"}, VISIT, {
        "parsed.address.city": "Bern", "parsed.address.founded": "1191-01-01", "parsed.grade": "good",
    }),
)  # fmt: skip


@pytest.mark.parametrize(("response_format", "text", "cells"), PARSED)
def test_the_fields_of_parsed_are_columns(response_format: Any, text: str, cells: dict[str, Any]) -> None:
    # The second sample cannot be parsed where there is a type.
    results = Results([response(text, "{", response_format=response_format), RateLimitError("slow")])
    table = columns(results)
    assert {name: table[name] for name in table if name.startswith("parsed")} == {
        name: [value, None, None] for name, value in cells.items()
    }
    assert list(table)[3 : 3 + len(cells)] == list(cells)
    # An object that may be absent has no column of its own beside those of its fields.
    empty = response('{"address": null, "grade": "good"}', response_format=Visit)
    alone, beside = columns([empty]), columns([response(VISIT, response_format=Visit), empty])
    assert "parsed.address" in alone
    assert "parsed.address" not in beside


@needs("pandas")
def test_pandas_gets_numbers_where_numbers_are(results: Results[Response | LLMError]) -> None:
    for some in (results, results[1:2], results[2:], Results()):
        frame = some.to_pandas()
        assert {name: frame[name].dtype.kind for name in ("sample", "cached", "cost", "seconds", *SUMS)} == {
            "sample": "i", "cached": "b", "cost": "f", "seconds": "f", **dict.fromkeys(SUMS, "i"),
        }  # fmt: skip
        assert frame["cost"].sum() == float(some.cost)
        assert frame.index.tolist() == list(range(len(frame)))


@needs("polars")
def test_polars_gets_the_same_table(results: Results[Response | LLMError]) -> None:
    for some in (results, results[1:2], Results()):
        frame = some.to_polars()
        assert frame.columns == list(columns(some))
        assert frame["cost"].sum() == float(some.cost)


class Inner(BaseModel):
    city: str
    days: list[int]


@dataclass
class Trip:
    to: Inner
    grade: Grade


MODELS = ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash"]
FORMATS: tuple[Any, ...] = (None, int, Trip, Inner.model_json_schema())


@pytest.mark.parametrize("delivery", ["live", "batch"])
@pytest.mark.parametrize("response_format", FORMATS, ids=str)
@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.sampled(5)
def test_sums_of_tables_are_those_of_the_results(
    client: Client, simulator: Simulator, n: int, response_format: Any, delivery: Any
) -> None:
    simulator.inject(Fault(status=400), times=None, match="fails")
    rows = [{"word": "bird", "id": 1}, {"word": "fails", "id": 2}, {"word": "fish", "id": 3}]
    options: dict[str, Any] = {
        "rows": rows, "metadata": rows, "n": n, "max_tokens": 500, "response_format": response_format,
        "delivery": delivery,
    }  # fmt: skip
    called = client.call_many(MODELS, "Name a {word}.", **options)
    stored = client.call_many(MODELS, "Name a {word}.", **options)
    for results in (*called.values(), *stored.values()):
        table = columns(results)
        assert_same_sums(results, table)
        counts = [n if isinstance(result, Response) else 1 for result in results]
        samples = [
            (result.metadata["id"], sample)
            for result, count in zip(results, counts, strict=True)
            for sample in range(count)
        ]
        assert list(zip(table["id"], table["sample"], strict=True)) == samples
        texts = [result.texts if isinstance(result, Response) else [None] for result in results]
        assert table["text"] == [text for each in texts for text in each]
        read = [
            any(table[name][row] is not None for name in table if name.startswith("parsed"))
            for row in range(len(samples))
        ]
        assert read == [text is not None and response_format is not None for text in table["text"]]


INDEXES = ("default", "text", "named", "repeated", "filtered", "times", "levels", "tuples")


def frame_with(index: str) -> Any:
    import pandas

    frame = pandas.DataFrame({"word": ["bird", "fails", "fish"]})
    frame.index = {
        "default": frame.index,
        "text": pandas.Index(["a", "b", "c"]),
        "named": pandas.Index([7, 8, 9], name="id"),
        "repeated": pandas.Index(["a", "a", "c"], name="id"),
        "filtered": pandas.Index([4, 2, 9]),
        "times": pandas.DatetimeIndex(
            ["2026-01-01", "2026-02-01", "2026-02-03"], tz="Europe/Zurich", name="day"
        ),
        "levels": pandas.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["set", None]),
        "tuples": pandas.Index([("a", 1), ("a", 2), ("b", 1)], tupleize_cols=False),
    }[index]
    return frame


@needs("pandas")
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.sampled(3)
def test_the_inputs_index_survives(client: Client, simulator: Simulator, tmp_path: Path, index: str) -> None:
    import pandas

    simulator.inject(Fault(status=400), times=None, match="fails")
    frame, model = frame_with(index), MODELS[0]
    template = "Name a {word}."

    async def iterate() -> Results[Any]:
        arrived = [each async for each in client.aiter_many(model, template, rows=frame)]
        return Results(dict(sorted(arrived, key=itemgetter(0))).values())

    ways: list[Results[Any]] = [
        client.call_many(model, template, rows=frame),
        client.call_many(model, frame["word"]),
        client.call_many(MODELS, template, rows=frame)[MODELS[2]],
        asyncio.run(client.acall_many(model, template, rows=frame)),
        asyncio.run(iterate()),
        Results(dict(sorted(client.iter_many(model, template, rows=frame), key=itemgetter(0))).values()),
        client.call_many(model, template, rows=frame, delivery="batch", max_tokens=9),
        client.submit_many(model, template, rows=frame, max_tokens=8).results(),
    ]
    for results in ways:
        pandas.testing.assert_index_equal(results.to_pandas().index, frame.index, exact="equiv")
        pandas.testing.assert_index_equal(results[1:].to_pandas().index, frame.index[1:], exact="equiv")
    several = client.call_many(model, template, rows=frame.iloc[[0, 2]], n=2).to_pandas()
    pandas.testing.assert_index_equal(several.index, frame.index[[0, 0, 2, 2]], exact="equiv")
    ways[0].to_jsonl(tmp_path / "results.jsonl")
    back = Results.from_jsonl(tmp_path / "results.jsonl").to_pandas()
    assert back.index.names == frame.index.names
    if index not in ("times", "tuples"):
        assert back.index.tolist() == frame.index.tolist()
