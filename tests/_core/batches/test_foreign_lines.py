"""Results with lines of a proxy, and batches with lines that their provider refuses: one row fails alone."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batch_queue import Queue, refuse
from llm_provider import BadRequestError, Client, PendingBatchError, Response
from llm_provider._core.batches.journal import Journal
from llm_provider.simulator import Fault, Simulator

PROMPTS = ["1+1?", "2+2?", "3+3?"]
TEXTS = ["2", "4", "6"]
MODELS = ["gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"]
DOWNLOAD = {"claude-haiku-5-5": "batches.results"}
ANSWERED = {
    "gpt-5.5": '{"custom_id":"%s","response":{"status_code":200,"body":%s}}\n',
    "claude-haiku-5-5": '{"custom_id":"%s","result":{"type":"succeeded","message":%s}}\n',
    "gemini/gemini-3.8-flash": '{"key":"%s","response":%s}\n',
}
FOREIGN = ["<html>502</html>\n", "null\n", '{"response": {}}\n', "[1]\n", "\0\0\0\n", '{"custom_id": 5\n']


def make_rows(model: str, folder: Path, record_names: list[str]) -> list[str]:
    """The lines of results of a batch."""
    with Client(cache_dir=folder) as live:
        bodies = [json.dumps(live.call(model, prompt).raw) for prompt in PROMPTS]
    return [ANSWERED[model] % pair for pair in zip(record_names, bodies, strict=True)]


@pytest.mark.parametrize("foreign", [*FOREIGN, "\ufeff", "<!-- a proxy -->"])
@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(6)
def test_a_foreign_line_costs_no_row(
    simulator: Simulator, tmp_path: Path, model: str, place: int, foreign: str
) -> None:
    is_warned = foreign != "\ufeff"
    if not foreign.endswith("\n"):
        # A mark is the first character, and a line without an end the last one.
        place = 3 if is_warned else 0
    with Client(cache_dir=tmp_path / "cache") as client:
        batch = client.submit_many(model, PROMPTS)
        (record,) = Journal(client.cache.directory / "batches").records()
        rows = make_rows(model, tmp_path / "live", list(record.rows))
        body = "".join([*rows[:place], foreign, *rows[place:]])
        simulator.inject(Fault(body=body.encode()), match=DOWNLOAD.get(model, "files.download"))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert batch.results().texts == TEXTS
        said = [str(each.message) for each in seen if "no row" in str(each.message)]
        assert len(said) == is_warned
        assert all("1 lines that name no row" in each for each in said)
    with Client(cache_dir=tmp_path / "cache") as again:
        results = again.call_many(model, PROMPTS, delivery="batch")
        assert [result.cached for result in results.ok] == [True] * 3
    assert simulator.ledger().answered == 6


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(4)
def test_a_row_whose_line_is_foreign_stays_in_its_batch(
    simulator: Simulator, tmp_path: Path, model: str, foreign: str
) -> None:
    """It may have been billed, so a second run asks for the results again and pays nothing."""
    with Client(cache_dir=tmp_path / "cache") as client:
        batch = client.submit_many(model, PROMPTS)
        (record,) = Journal(client.cache.directory / "batches").records()
        rows = make_rows(model, tmp_path / "live", list(record.rows))
        body = "".join([rows[0], foreign, rows[2]]).encode()
        simulator.inject(Fault(body=body), match=DOWNLOAD.get(model, "files.download"), times=6)
        with pytest.warns(UserWarning, match="name no row"):
            results = batch.results()
        assert [type(result) for result in results] == [Response, PendingBatchError, Response]
    with Client(cache_dir=tmp_path / "cache") as again, pytest.warns(UserWarning, match="name no row"):
        results = again.call_many(model, PROMPTS, delivery="batch")
        assert [result.cached for result in results.ok] == [True] * 2
        assert isinstance(results[1], PendingBatchError)
    # The provider has another body now.
    with Client(cache_dir=tmp_path / "cache") as last:
        assert last.call_many(model, PROMPTS, delivery="batch").texts == TEXTS
    assert simulator.ledger().answered == 6


Refused = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def name_lines(*prompts: str) -> Refused:
    def name(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {"code": "invalid_request", "line": number, "message": "max_tokens is too large", "param": None}
            for number, row in enumerate(rows, 1)
            if row["body"]["messages"][0]["content"] in prompts
        ]

    return name


@pytest.mark.parametrize("wrong", [[1], [0, 3], [0, 1, 2, 3], []])
@pytest.mark.parametrize("way", ["call_many", "submit_many"])
def test_a_wrong_line_fails_alone(tmp_path: Path, wrong: list[int], way: str) -> None:
    prompts = [f"question {number}" for number in range(4)]
    queue = Queue()
    queue.wrong = name_lines(*(prompts[number] for number in wrong))
    with queue.serve() as url, Client(cache_dir=tmp_path, keys={"openai": "k"}, base_url=url) as client:
        if way == "call_many":
            results = client.call_many("gpt-5.5", prompts, delivery="batch")
        else:
            results = client.submit_many("gpt-5.5", prompts).results()
        errors = results.errors_by_index
        assert list(errors) == wrong
        for number in wrong:
            assert isinstance(errors[number], BadRequestError)
            assert f"line {number + 1} of the batch is wrong: max_tokens is too large" in str(errors[number])
            assert errors[number].cost == 0
    assert dict(queue.answered) == {prompts[number]: 1 for number in range(4) if number not in wrong}
    assert len(queue.batches) == 1 + (0 < len(wrong) < 4)


def test_a_provider_that_always_names_another_line_is_given_up(tmp_path: Path) -> None:
    queue = Queue()
    queue.wrong = lambda rows: [{"code": "x", "line": 1, "message": "wrong"}]
    with queue.serve() as url, Client(cache_dir=tmp_path, keys={"openai": "k"}, base_url=url) as client:
        results = client.call_many("gpt-5.5", [str(number) for number in range(20)], delivery="batch")
    assert len(results.errors) == 20
    assert len(queue.batches) == 6
    assert {str(error).split(":")[0] for error in results.errors} == {
        "line 1 of the batch is wrong",
        "the provider refused the batch",
    }


def test_a_line_that_no_row_has_is_that_of_the_batch(tmp_path: Path) -> None:
    queue = Queue()
    queue.wrong = lambda rows: [{"code": "x", "line": 9, "message": "wrong"}]
    with queue.serve() as url, Client(cache_dir=tmp_path, keys={"openai": "k"}, base_url=url) as client:
        results = client.call_many("gpt-5.5", ["a", "b"], delivery="batch")
    assert [error.message for error in results.errors] == ["the provider refused the batch: wrong"] * 2
    assert len(queue.batches) == 1


def test_a_status_may_be_a_text(simulator: Simulator, tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path / "cache") as client:
        batch = client.submit_many("gpt-5.5", PROMPTS)
        (record,) = Journal(client.cache.directory / "batches").records()
        rows = make_rows("gpt-5.5", tmp_path / "live", list(record.rows))
        body = "".join(rows).replace('"status_code":200', '"status_code":"200"')
        simulator.inject(Fault(body=body.encode()), match="files.download")
        assert batch.results().texts == TEXTS


@pytest.mark.parametrize("created", ["2033-05-18T03:33:20Z", "2000000000", 2_000_000_000.5])
def test_a_batch_may_have_a_date_in_words(tmp_path: Path, created: object) -> None:
    queue = Queue()
    queue.created = created
    queue.refusals["batches"] = [refuse(500, "oops")]
    with queue.serve() as url, Client(cache_dir=tmp_path, keys={"openai": "k"}, base_url=url) as client:
        assert client.call_many("gpt-5.5", ["a", "b"], delivery="batch").texts == ["to a", "to b"]
    assert dict(queue.answered) == {"a": 1, "b": 1}


def test_a_list_of_batches_that_never_ends_is_read_once(tmp_path: Path) -> None:
    queue = Queue()
    queue.has_more = True
    queue.others = [1000]
    queue.refusals["batches"] = [refuse(500, "oops")]
    with queue.serve() as url, Client(cache_dir=tmp_path, keys={"openai": "k"}, base_url=url) as client:
        assert client.call_many("gpt-5.5", ["a", "b"], delivery="batch").texts == ["to a", "to b"]
    assert dict(queue.answered) == {"a": 1, "b": 1}
