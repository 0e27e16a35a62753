"""`llm-provider map`: what it sends, writes and says, and how it continues after an interruption."""

import csv
import gzip
import io
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import openai
import pytest

from llm_provider import Cost, Ledger
from llm_provider._features.cli.main import main
from llm_provider.simulator import Fault, Simulator
from support import Program, RunCommand, errors_of, wait_until

MODEL = "gpt-6.1-sol"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    rows = [{"name": f"n{number}", "a": number} for number in range(12)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def lines(path: Path) -> list[Any]:
    return [json.loads(text) for text in path.read_text().splitlines()]


TEMPLATE = ("--template", "What is {a} + 1?")


def test_every_answer_is_in_order(run: RunCommand, simulator: Simulator, source: Path, target: Path) -> None:
    ended = run("map", MODEL, str(source), str(target), *TEMPLATE, "--id", "name", "--system", "Brief.")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"12 of 12 rows answered in {target}: $0.0")
    answers = lines(target)
    assert [line["text"] for line in answers] == [str(number + 1) for number in range(12)]
    assert answers[3]["input"] == {"name": "n3", "a": 3}
    assert (answers[3]["index"], answers[3]["id"], answers[3]["error"]) == (3, "n3", None)
    assert answers[3]["price"] == answers[3]["cost"] > 0
    assert simulator.requests()[0].body["messages"][0]["content"] == "Brief."


@pytest.mark.parametrize(
    ("suffix", "by_id"), [(".jsonl", ()), (".jsonl", ("--id", "name")), (".csv", ("--id", "name"))]
)
def test_a_second_run_sends_nothing(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path, suffix: str, by_id: tuple[str, ...]
) -> None:
    target = tmp_path / f"out{suffix}"
    words = ("map", MODEL, str(source), str(target), *TEMPLATE, *by_id)
    run(*words)
    before = target.read_bytes()
    ended = run(*words, "--cache", "off", "--max-concurrent", "3", "--budget", "1")
    assert (ended.code, "12 before this run, $0.00" in ended.out) == (0, True)
    rows = source.read_text().splitlines()
    rows.insert(5 if by_id else 12, '{"a": 40, "name": "n40"}')
    source.write_text("\n".join(rows))
    assert "13 of 13 rows answered" in run(*words).out
    assert simulator.ledger().requests == 13
    assert by_id or target.read_bytes().startswith(before)
    assert [int(record["index"]) for record in records(target)] == list(range(13))
    assert [int(record["text"]) - 1 for record in records(target)] == [json.loads(row)["a"] for row in rows]
    sent = target.read_bytes()
    assert run(*words).code == 0
    assert target.read_bytes() == sent
    again = run(*words, "--overwrite")
    assert "13 of 13 rows answered" in again.out
    assert "13 from the cache" in again.out
    assert (simulator.ledger().requests, str(records(target)[0]["cached"]).lower()) == (13, "true")
    os.link(source, twin := tmp_path / "twin.jsonl")
    assert run("map", MODEL, str(source), str(twin), "--overwrite").code == 2
    assert source.read_text() == "\n".join(rows)


@pytest.mark.parametrize(
    "change",
    [("--max-tokens", "99"), ("--param", "seed=1"), ("--template", "Is {a} odd?"), ("--id", "name"), "model"],
)
def test_an_output_of_another_request_is_refused(
    run: RunCommand, simulator: Simulator, source: Path, target: Path, change: Any
) -> None:
    run("map", MODEL, str(source), str(target), *TEMPLATE)
    before, sent = target.read_bytes(), simulator.ledger().requests
    model, more = ("gpt-5.5", ()) if change == "model" else (MODEL, change)
    ended = run("map", model, str(source), str(target), *TEMPLATE, *more)
    assert (ended.code, ended.out) == (2, "")
    assert f"{target} line 1 answers another request" in ended.err
    assert "--overwrite" in ended.err
    assert (target.read_bytes(), simulator.ledger().requests) == (before, sent)


class Endless(io.RawIOBase):
    """Rows for ever, as of `yes`. It counts what was read."""

    def __init__(self) -> None:
        self.lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        line = b'{"a": %d, "name": "n%d"}\n' % (self.lines, self.lines)
        self.lines += 1
        buffer[: len(line)] = line
        return len(line)


@pytest.mark.parametrize("by_id", [False, True])
def test_an_endless_input_with_a_limit_ends(
    run: RunCommand, simulator: Simulator, target: Path, by_id: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger limit asks more rows, and a smaller one loses none that the output has."""
    for limit, rows in ((3, 3), (5, 5), (2, 5)):
        endless = Endless()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(endless)))
        words = ["map", MODEL, "-", str(target), "--format", "jsonl", *TEMPLATE, "--limit", str(limit)]
        assert main([*words, *(["--id", "name"] if by_id else [])]) == 0
        assert len(records(target)) == rows
        assert endless.lines < 1000
    assert simulator.ledger().requests == 5


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("value", [r'"a\ud83d"', "NaN"])
def test_a_row_that_no_request_can_hold_is_found_before_anything_is_sent(
    run: RunCommand, simulator: Simulator, tmp_path: Path, target: Path, skip: bool, value: str
) -> None:
    source = tmp_path / "in.jsonl"
    content = value if value.startswith('"') else f'[{{"type": "text", "text": "a", "x": {value}}}]'
    bad = f'{{"messages": [{{"role": "user", "content": {content}}}]}}\n'
    source.write_text('{"prompt": "1+1?"}\n' + bad + '{"prompt": "2+2?"}\n')
    ended = run("map", MODEL, str(source), str(target), *(["--skip-invalid"] if skip else []))
    assert ended.code == (0 if skip else 2)
    assert "in.jsonl row 2 (line 2): " in ended.err
    assert simulator.ledger().requests == (2 if skip else 0)
    if skip:
        assert "2 of 2 rows answered" in ended.out
        assert [line["index"] for line in lines(target)] == [0, 2]


def test_failed_rows_are_reported_and_asked_again(
    run: RunCommand, simulator: Simulator, source: Path, target: Path
) -> None:
    simulator.inject(Fault(status=400, message="no such field"), match="5 + 1", times=None)
    words = ("map", MODEL, str(source), str(target), *TEMPLATE)
    ended = run(*words)
    assert (ended.code, ended.out) == (1, ended.out)
    assert "1 of 12 rows failed (1 BadRequestError); the first is row 6: no such field" in ended.err
    assert "asks them again" in ended.err
    error, text = (lines(target)[5][name] for name in ("error", "text"))
    assert (error["type"], error["status"], text) == ("BadRequestError", 400, None)
    simulator.drop_faults()
    sent = simulator.ledger().requests
    assert run(*words).code == 0
    assert simulator.ledger().requests == sent + 1
    assert [line["text"] for line in lines(target)] == [str(number + 1) for number in range(12)]


def test_answers_that_are_not_whole_are_reported(
    run: RunCommand, simulator: Simulator, tmp_path: Path, target: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("please refuse\ntell a story of several words\n")
    ended = run("map", MODEL, str(source), str(target), "--max-tokens", "2")
    assert ended.code == 3
    assert "2 of 2 answers are not whole (" in ended.err
    assert sorted(line["finish_reason"] for line in lines(target)) == ["length", "refusal"]


def test_standard_input_and_output(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    ended = run("map", MODEL, "-", "-", "--format", "csv", stdin="prompt,id\n1+1?,é\n2+2?,b\n".encode())
    assert (ended.code, ended.err) == (0, "")
    answers = [json.loads(text) for text in ended.out.splitlines()]
    assert {line["input"]["id"]: line["text"] for line in answers} == {"é": "2", "b": "4"}
    assert ended.out.isascii()


def test_a_schema_fills_parsed(run: RunCommand, simulator: Simulator, tmp_path: Path, target: Path) -> None:
    source, schema = tmp_path / "in.txt", tmp_path / "city.json"
    source.write_text("A city?\n")
    properties = {"city": {"type": "string"}}
    schema.write_text(json.dumps({"type": "object", "properties": properties, "required": ["city"]}))
    assert run("map", MODEL, str(source), str(target), "--schema", str(schema)).code == 0
    (line,) = lines(target)
    assert line["parsed"] == json.loads(line["text"])


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_keeps_whole_lines_and_the_rest_is_sent_next_time(
    run: RunCommand,
    program: Program,
    simulator: Simulator,
    source: Path,
    target: Path,
    number: int,
    status: int,
) -> None:
    simulator.inject(Fault(hang=True), match="7 + 1", times=None)
    words = ("map", MODEL, str(source), str(target), *TEMPLATE)
    with program(*words) as process:
        assert wait_until(lambda: target.exists() and target.read_text().count("\n") == 11, 60)
        process.send_signal(number)
        assert process.wait(30) == status
        said = errors_of(process)
    assert said == (
        f"llm-provider: interrupted: 11 of 12 rows are answered in {target}; the same command asks the rest\n"
    )
    assert len(lines(target)) == 11
    assert wait_until(lambda: simulator.ledger().in_flight == 0)
    simulator.drop_faults()
    sent = simulator.ledger().requests
    assert run(*words).code == 0
    assert simulator.ledger().requests == sent + 1
    assert [line["index"] for line in lines(target)] == list(range(12))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("samples", [1, 2])
def test_the_answers_that_were_bought_before_an_interrupt_have_their_rows(
    run: RunCommand,
    program: Program,
    simulator: Simulator,
    tmp_path: Path,
    number: int,
    suffix: str,
    samples: int,
) -> None:
    source, target, ledger = tmp_path / "in.txt", tmp_path / f"out{suffix}", tmp_path / "costs.jsonl"
    # Each tenth row asks what the row before it asks, and shares its answer.
    source.write_text("\n".join(f"What is {row - (row % 10 == 9)} + 1?" for row in range(150)))
    simulator.configure(None, latency=0.05, latency_jitter=0.1)
    words = ("map", MODEL, str(source), str(target), "--max-concurrent", "30", "--param", f"n={samples}")
    with program(*words, LLM_PROVIDER_LEDGER=str(ledger)) as process:
        assert wait_until(lambda: target.exists() and target.read_text().count("\n") > 60, 60)
        process.send_signal(number)
        process.wait(60)
    rows, bought = records(target), Ledger.read(ledger)
    paid = [row for row in rows if row["cached"] not in (True, "true")]
    assert len(paid) == bought.requests > 50
    of_rows, of_ledger = (
        json.loads(run("usage", str(path), "--json").out)["total"] for path in (target, ledger)
    )
    for name in ("requests", "spent", "output_tokens"):
        assert of_rows[name] == pytest.approx(of_ledger[name], abs=1e-12), name
    simulator.configure(None)
    assert run(*words).code == 0
    hits = [int(row["index"]) for row in records(target) if row["cached"] in (True, "true")]
    assert all(index % 10 in (8, 9) for index in hits)


def test_an_interrupt_takes_no_answer_that_is_too_old(
    run: RunCommand, program: Program, simulator: Simulator, source: Path, target: Path
) -> None:
    words = ("map", MODEL, str(source), str(target), *TEMPLATE)
    assert run(*words).code == 0
    stored = time.monotonic()
    assert wait_until(lambda: time.monotonic() > stored + 1.1)
    simulator.inject(Fault(hang=True), times=None)
    with program(*words, "--overwrite", "--max-age", "1s") as process:
        assert wait_until(lambda: simulator.ledger().in_flight == 12, 60)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        assert f"0 of 12 rows are answered in {target}; " in errors_of(process)
    assert target.read_bytes() == b""


def test_an_interrupt_within_a_table_says_one_line(
    program: Program, simulator: Simulator, tmp_path: Path, target: Path
) -> None:
    """The rows that were not read yet had an exception of their own, as their file was closed before them."""
    table = tmp_path / "table.csv"
    table.write_text("number\n" + "".join(f"{number}\n" for number in range(200)))
    simulator.inject(Fault(hang=True), match="3 + 1", times=None)
    words = ("map", MODEL, str(table), str(target), "--template", "What is {number} + 1?")
    with program(*words, "--max-concurrent", "1") as process:
        assert wait_until(lambda: target.exists() and target.read_text().count("\n") == 3, 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
        said = errors_of(process)
    assert said.startswith("llm-provider: interrupted: 3 of 200 rows are answered")
    assert said.count("\n") == 1


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of an output, whose cells are text in a table."""
    if path.suffix != ".csv":
        return lines(path)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("samples", [1, 4])
@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("form", ["txt", "jsonl", "csv"])
@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.sampled(5)
def test_a_row_is_asked_once_and_the_last_line_has_the_bill(
    run: RunCommand,
    simulator: Simulator,
    tmp_path: Path,
    suffix: str,
    form: str,
    packed: str,
    samples: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = tmp_path / "costs.jsonl"
    monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(ledger))
    texts = [f"Say =1+{number}, please" for number in range(6)]
    content = {
        "txt": "\n".join(texts),
        "jsonl": "\n".join(
            [*map(json.dumps, texts[:3]), "{", *(json.dumps({"text": text}) for text in texts[3:])]
        ),
        "csv": "\n".join(
            ["text,n", *(f'"{text}",1' for text in texts[:3]), "cut", *(f'"{text}",1' for text in texts[3:])]
        ),
    }[form].encode()
    source, target = tmp_path / f"in.{form}{packed}", tmp_path / f"out{suffix}"
    source.write_bytes(gzip.compress(content) if packed else content)
    words = ("map", MODEL, str(source), str(target), "--param", f"n={samples}", "--skip-invalid")
    simulator.inject(Fault(status=400), match="=1+1,", times=None)
    first = run(*words, "--limit", "2")
    assert (first.code, "1 of 2 rows answered" in first.out) == (1, True), first.err
    # The kill cuts the last line, of the failed row or not.
    with target.open("ab") as file:
        file.write(b'2,"Say' if suffix == ".csv" else b'{"index":2,"inp')
    simulator.drop_faults()
    second = run(*words)
    assert (second.code, "6 of 6 rows answered" in second.out) == (0, True), second.err
    assert second.err.count("llm-provider: skipped: ") == (form != "txt")
    answers = records(target)
    indexes = [0, 1, 2, 3, 4, 5] if form == "txt" else [0, 1, 2, 4, 5, 6]
    assert [int(record["index"]) for record in answers] == indexes
    assert len({record["request"] for record in answers}) == 6
    bill = Cost(json.loads(run("usage", str(ledger), "--json").out)["total"]["cost"])
    assert "1 before this run, $" in second.out
    assert second.out.endswith(f"in this run, {bill} for all answers of the file\n")
    assert run(*words).out.endswith(f"{Cost()} in this run, {bill} for all answers of the file\n")
    assert run(*words, "--limit", "3").code == 0
    assert records(target) == answers


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_names_rows_and_remedy(run: RunCommand, simulator: Simulator, source: Path) -> None:
    ended = run("map", MODEL, str(source), "/dev/full", *TEMPLATE)
    assert ended.code == 1
    assert ended.err == (
        "llm-provider: error: the disk of /dev/full is full (No space left on device): 0 of 12 rows "
        "are answered in /dev/full; the same command asks the rest; free space on this disk\n"
    )


def test_batches_have_a_size(run: RunCommand, simulator: Simulator, source: Path, target: Path) -> None:
    words = ("map", MODEL, str(source), str(target), *TEMPLATE)
    simulator.inject(Fault(status=403), match="batches.create", times=None)
    refused = run(*words, "--delivery", "batch")
    assert (refused.code, "12 PermissionDeniedError" in refused.err) == (1, True)
    simulator.clear()
    assert run(*words, "--delivery", "batch", "--batch-size", "5").code == 0
    with openai.OpenAI() as sdk:
        counts = [batch.request_counts for batch in sdk.batches.list()]
    assert [count.total for count in counts if count] == [2, 5, 5]
    assert run(*words, "--overwrite", "--batch-size", "5").code == 2


def test_the_sum_says_what_failed_requests_may_have_cost(
    run: RunCommand, simulator: Simulator, source: Path, target: Path
) -> None:
    simulator.inject(Fault(status=500), times=2)
    words = ("map", MODEL, str(source), str(target), *TEMPLATE, "--max-tokens", "20")
    first, second = run(*words), run(*words)
    assert re.search(r"\$0\.\d+ \+ at most \$0\.\d+ \(2 costs unknown\)\n", first.out)
    assert re.search(
        r"\$0\.00 in this run, \$0\.\d+ \+ at most \$0\.\d+ \(2 costs unknown\) for all", second.out
    )
    sums = run("usage", str(target)).out
    assert re.search(r"\$0\.\d+ \+ at most \$0\.\d+ \(2 costs unknown\)", sums)


@pytest.mark.parametrize("limit", ["2", "0.15"])
def test_max_errors_ends_a_run_and_the_same_command_asks_the_rest(
    run: RunCommand, simulator: Simulator, source: Path, target: Path, limit: str
) -> None:
    simulator.inject(Fault(status=400), times=None)
    words = (
        "map",
        MODEL,
        str(source),
        str(target),
        *TEMPLATE,
        "--max-concurrent",
        "1",
        "--max-errors",
        limit,
    )
    ended = run(*words)
    assert ended.code == 1
    assert "12 of 12 rows failed (10 TooManyErrorsError, 2 BadRequestError)" in ended.err
    assert "2 rows of this batch failed (max_errors=2)" in lines(target)[5]["error"]["message"]
    assert simulator.ledger().requests == 2
    kinds = [line["error"]["type"] for line in lines(target)]
    assert (kinds.count("BadRequestError"), kinds.count("TooManyErrorsError")) == (2, 10)
    simulator.drop_faults()
    assert run(*words).out.startswith("12 of 12 rows answered")
    assert simulator.ledger().requests == 14


def test_a_token_budget_ends_a_run_and_the_same_command_asks_the_rest(
    run: RunCommand, simulator: Simulator, source: Path, target: Path
) -> None:
    words = ("map", MODEL, str(source), str(target), *TEMPLATE, "--max-tokens", "20", "--max-concurrent", "1")
    simulator.configure(output_tokens=20)
    ended = run(*words, "--token-budget", "2300")
    assert ended.code == 1
    assert "BudgetExceededError" in ended.err
    answered = [line for line in lines(target) if line["error"] is None]
    assert 0 < len(answered) < 12
    errors = [line["error"]["message"] for line in lines(target) if line["error"] is not None]
    assert re.search(
        r"may take up to 2,\d+ tokens, and 2,\d+ tokens of the budget of 2,300 tokens are left", errors[0]
    )
    assert run(*words, "--token-budget", "100000").out.startswith("12 of 12 rows answered")
    assert simulator.ledger().requests == 12
    assert run(*words, "--overwrite", "--token-budget", "0.5").code == 2


def test_a_wrong_max_errors_is_refused(run: RunCommand, source: Path, target: Path) -> None:
    for wrong in ("0", "1.5", "many"):
        assert run("map", MODEL, str(source), str(target), *TEMPLATE, "--max-errors", wrong).code == 2
    assert not target.exists()


def test_a_run_that_no_row_could_be_asked_by_is_wrong_usage(
    run: RunCommand, simulator: Simulator, source: Path, target: Path
) -> None:
    simulator.inject(Fault(status=400), times=None)
    words = ("map", MODEL, str(source), str(target), *TEMPLATE)
    assert run(*words).code == 2
    simulator.clear()
    simulator.inject(Fault(status=400), match="5 + 1", times=None)
    assert run(*words).code == 1
    assert run(*words).code == 1


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("kept", [(0, 1), (0, 2), (1, 2), ()])
def test_rows_that_were_removed_are_named_and_their_answers_stay(
    run: RunCommand, simulator: Simulator, tmp_path: Path, suffix: str, by_id: bool, kept: tuple[int, ...]
) -> None:
    source, target = tmp_path / "in.csv", tmp_path / f"out{suffix}"
    lines = [f"{number}+1,n{number}\n" for number in range(3)]
    command = ["map", MODEL, str(source), str(target), *(["--id", "name"] if by_id else [])]
    source.write_text("".join(["prompt,name\n", *lines]))
    assert run(*command).code == 0
    before = target.read_bytes()
    source.write_text("".join(["prompt,name\n", *(lines[number] for number in kept)]))
    ended = run(*command)
    assert (ended.code, target.read_bytes(), simulator.ledger().requests) == (2, before, 3)
    gone = next(number for number in range(3) if number not in kept)
    assert "It keeps all its answers" in ended.err
    if by_id:
        assert f"answers the row 'n{gone}', which {source} does not have: rows were removed" in ended.err
    elif kept in ((), (0, 1)):
        assert f"answers row {len(kept) + 1}, which {source} does not have: rows were removed" in ended.err
    else:
        assert "answers another request" in ended.err
    assert run(*command, "--overwrite").code == (0 if kept else 2)
    assert simulator.ledger().requests == 3


def test_failed_rows_behind_a_limit_are_not_reported(
    run: RunCommand, simulator: Simulator, source: Path, target: Path
) -> None:
    simulator.inject(Fault(status=400), match="9 + 1", times=None)
    words = ("map", MODEL, str(source), str(target), *TEMPLATE)
    assert run(*words).code == 1
    ended = run(*words, "--limit", "5")
    assert (ended.code, ended.err) == (0, "")
    assert run(*words).code == 1
