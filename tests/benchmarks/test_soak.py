"""The soak for some seconds, its parts one by one, and that each of its checks finds what it is there for."""

import json
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.__main__ import command, main
from benchmarks.scenarios import Options
from benchmarks.scenarios.soak import result
from benchmarks.soak.checks import check
from benchmarks.soak.faults import KINDS, SHARE
from benchmarks.soak.proxy import Sent
from benchmarks.soak.run import Record, Soak
from benchmarks.soak.worker import expected, prompt, route_of, tags
from llm_provider import LLMError
from llm_provider._core import errors as _errors
from llm_provider.simulator import Fault, Ledger, ModelLedger

MODEL = "gpt-5.5"


@pytest.mark.long
def test_some_seconds_of_it(tmp_path: Path) -> None:
    record = Soak(tmp_path, 0.08, 0.01).run()
    outcome = check(record)
    assert outcome.problems == []
    assert (outcome.wrong, outcome.missing, outcome.difference) == (0, 0, 0)
    assert outcome.prompts == outcome.right > 20
    assert outcome.billed >= outcome.spent > 0
    assert record.kills
    assert record.cut is not None
    document = report.document(result(record, outcome, 0.08), command("soak", Options(minutes=0.08)))
    page = report.markdown("soak", json.loads(json.dumps(document)))
    assert "`python -m benchmarks soak --minutes 0.08 --write`" in page
    assert "| answers wrong, missing or lost | ≤ 0 | 0 |  |" in page


@pytest.mark.parametrize("words", [("calls", "--minutes", "3"), ("soak", "--minutes", "0")])
def test_minutes_are_for_the_soak(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
    with pytest.raises(SystemExit):
        main()


def test_prompts_and_answers_of_all_batches_differ() -> None:
    names = [tag for worker in ("w0", "w1") for batch in range(20) for tag in tags(worker, batch)]
    assert len({expected(tag) for tag in names}) == len({prompt(tag) for tag in names}) == len(set(names))
    assert len({route_of(tag).name for tag in names}) == 4


def test_every_kind_of_fault_does_something_and_names_errors_of_the_library() -> None:
    assert SHARE * len(KINDS) < 1
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert kind.plain or kind.proxy_plain
        assert kind.streamed or kind.proxy_streamed
        Fault(**kind.plain or {}), Fault(**kind.streamed or {})
        assert all(issubclass(getattr(_errors, name), LLMError) for name in kind.errors)


# --- the checks find what they are there for ---------------------------------------------------------------
def whole(folder: Path) -> Record:
    """A run of two prompts without any fault."""
    record = Record(folder, began=100.0, ended=200.0)
    record.sent = [
        Sent(f"w0-0-{number}", "", 110.0 + number, 111.0 + number, f"{number}", billed=True, delivered=True)
        for number in range(2)
    ]
    price = Decimal("0.5")
    model = ModelLedger(
        provider="openai", model=MODEL, requests=2, billed=2 * price, unfinished_billed=Decimal(0)
    )
    record.bill = Ledger(requests=2, answered=2, statuses={200: 2}, requests_by_provider={}, models=(model,))
    write(folder / "w0.jsonl", *(line("right", sent.tag) for sent in record.sent))
    write(folder / "check.jsonl", *(line("right", sent.tag) for sent in record.sent))
    write(folder / "ledger.jsonl", answered(0), answered(1))
    return record


def line(what: str, tag: str = "", **fields: object) -> dict[str, object]:
    return {"at": 150.0, "what": what, "tag": tag, **fields}


def error(tag: str, kind: str) -> dict[str, object]:
    return line("error", tag, error=kind, message="")


def answered(number: int, usd: str = "0.5") -> dict[str, object]:
    return {"outcome": "answered", "usd": usd, "id": f"c-{number}"}


def write(path: Path, *lines: dict[str, object]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in lines)


def test_a_run_without_faults_has_no_problems_but_those_it_tells(tmp_path: Path) -> None:
    record = whole(tmp_path)
    outcome = check(record)
    assert outcome.problems == []
    assert (outcome.prompts, outcome.right, outcome.spent, outcome.difference) == (2, 2, Decimal(1), 0)
    record.problems.append("w1 ended with 1")
    assert "w1 ended with 1" in check(record).problems


PROBLEMS: dict[str, tuple[str, list[dict[str, object]], str]] = {
    "a wrong answer": ("w0", [line("wrong", "w0-0-0", text="no")], "wrong answers"),
    "no answer": ("w0", [error("w0-0-7", "RateLimitError")], "prompts without an answer"),
    "a lost answer": ("w0", [line("right", "w0-0-7")], "the cache has lost"),
    "a strange error": ("w0", [error("w0-0-0", "QuotaExceededError")], "errors that no fault explains"),
    "a warning": (
        "w0",
        [line("warning", category="CacheWarning", message="it broke")],
        "warnings that no disturbance explains",
    ),
    "in the ledger and not billed": ("ledger", [answered(7)], "a ledger line without a billed request"),
    "twice in the ledger": ("ledger", [answered(1)], "the ledger counts twice"),
    "another price": ("ledger", [answered(0, "0.4"), answered(1, "0.4")], "USD of the bill are neither"),
}
"""The file that has other lines, these lines, and what is found."""


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_found(name: str, tmp_path: Path) -> None:
    record = whole(tmp_path)
    file, lines, message = PROBLEMS[name]
    if name == "another price":
        (tmp_path / "ledger.jsonl").unlink()
    write(tmp_path / f"{file}.jsonl", *lines)
    assert any(message in problem for problem in check(record).problems)
