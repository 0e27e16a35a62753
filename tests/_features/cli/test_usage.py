"""`llm-provider usage`: the sums of ledger files."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Ledger, LedgerWarning
from llm_provider._core.money.ledger_file import LedgerFile
from llm_provider._core.money.totals import Key, Posting
from llm_provider._core.types.usage import Usage, format_usd
from llm_provider._features.cli.main import main
from llm_provider.simulator import Fault, Simulator
from support import RunCommand

DAY = 1_795_132_800.0  # 2026-11-20, midnight in UTC


@pytest.fixture
def ledgers(tmp_path: Path) -> list[str]:
    """The ledgers of two workers."""
    paths = [tmp_path / f"worker-{number}.jsonl" for number in range(2)]
    for number, path in enumerate(paths):
        file = LedgerFile(path)
        for day, model, tag in ((0, "gpt-5.5", ""), (1, "gpt-5.5", "eval"), (1, "claude-haiku-5-5", "eval")):
            provider = "openai" if model.startswith("gpt") else "anthropic"
            key = Key(provider, model, f"{model}-2026", tag)
            usage = Usage(input_tokens=1000, output_tokens=10)
            moment = DAY + day * 86_400 + number
            file.append(Posting(moment, "answered", key, Decimal("0.25"), usage))
            file.append(Posting(moment, "hit", key, Decimal("0.01")))
        file.append(Posting(DAY, "failed", Key("openai", "gpt-5.5", "gpt-5.5", ""), None))
        file.close()
    return list(map(str, paths))


def test_files_are_summed_by_model(run: RunCommand, ledgers: list[str]) -> None:
    ended = run("usage", *ledgers, ledgers[0])
    assert (ended.code, ended.err) == (0, "")
    header, haiku, gpt, total = ended.out.splitlines()
    assert header.split()[:6] == ["provider", "model", "requests", "hits", "failed", "requests"]
    assert haiku.split()[:3] == ["anthropic", "claude-haiku-5-5", "2"]
    assert gpt.split()[:3] == ["openai", "gpt-5.5", "4"]
    assert total.split() == [
        "total",
        "6",
        "6",
        "2",
        "6,000",
        "60",
        "≥",
        "$1.50,",
        "2",
        "costs",
        "unknown",
        "$0.06",
    ]


def test_what_failed_is_rows_or_requests(run: RunCommand, ledgers: list[str], tmp_path: Path) -> None:
    line = {"model": "m", "provider": "p", "usage": None, "cost": 0.0, "cached": False, "error": None}
    (answers := tmp_path / "answers.jsonl").write_text(f"{json.dumps(line)}\n")
    own = [str(answers)]
    for files, word in ((ledgers, "requests"), (own, "rows"), (ledgers + own, "requests and rows")):
        assert f"  failed {word}  input" in run("usage", *files).out


def test_they_are_summed_by_day_and_tag(run: RunCommand, ledgers: list[str]) -> None:
    summary = json.loads(run("usage", *ledgers, "--by", "day,tag", "--json").out)
    assert [(row["day"], row["tag"], row["requests"], row["cost"]) for row in summary["rows"]] == [
        ("2026-11-20", "", 2, 0.5),
        ("2026-11-21", "eval", 4, 1.0),
    ]
    total = summary["total"]
    assert (total["cost"], total["unknown"], total["input_tokens"]) == (1.5, 2, 6000)
    by_day = run("usage", *ledgers, "--by", "day").out.splitlines()
    assert [line.split()[0] for line in by_day] == ["day", "2026-11-20", "2026-11-21", "total"]
    assert "gpt-5.5-2026" in run("usage", *ledgers, "--by", "served", "--by", "delivery").out


def test_only_what_came_since_a_day_counts(run: RunCommand, ledgers: list[str]) -> None:
    summary = json.loads(run("usage", *ledgers, "--since", "2026-11-21", "--json").out)
    assert (summary["total"]["requests"], len(summary["rows"])) == (4, 2)
    assert json.loads(run("usage", *ledgers, "--since", "2030-01-01", "--json").out)["rows"] == []


def test_variables_name_ledgers(run: RunCommand, ledgers: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run("usage")
    assert (ended.code, "LLM_PROVIDER_LEDGER" in ended.err) == (2, True)
    monkeypatch.setenv("LLM_PROVIDER_LEDGER", ledgers[0])
    assert run("usage").out.splitlines()[-1].split()[1] == "3"


@pytest.mark.filterwarnings("always::llm_provider.LedgerWarning")
def test_wrong_lines_names_and_files_are_reported(
    run: RunCommand, ledgers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = Path(ledgers[0]).read_text()
    # The second line is behind the beginning of one that a killed process left.
    Path(ledgers[0]).write_text(whole + "no ledger\n" + whole[:40] + whole)
    assert main(["usage", ledgers[0], "--json"]) == 0
    printed = capsys.readouterr()
    assert "invalid lines are left out (1, the first is line 8)" in printed.err
    with pytest.warns(LedgerWarning):
        assert json.loads(printed.out)["total"]["requests"] == Ledger.read(ledgers[0]).total.requests
    assert "not 'modle'" in run("usage", ledgers[0], "--by", "modle").err
    assert run("usage", "absent.jsonl").code == 2


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", "to_jsonl"])
def test_answers_are_summed_like_their_ledger(
    run: RunCommand, simulator: Simulator, client: Client, tmp_path: Path, suffix: str
) -> None:
    client.call("gpt-5.5", "1+1?")
    simulator.inject(Fault(status=400), match="3+3?", times=None)
    simulator.inject(Fault(status=500), match="4+4?", times=None)
    texts = ["1+1?", "2+2?", "3+3?", "4+4?"]
    if suffix == "to_jsonl":
        file = tmp_path / "results.jsonl"
        client.call_many("gpt-5.5", texts, max_retries=0).to_jsonl(file)
    else:
        file, source = tmp_path / f"answers{suffix}", tmp_path / "in.txt"
        source.write_text("\n".join(texts))
        run("map", "gpt-5.5", str(source), str(file), "--param", "max_retries=0")
    ended = run("usage", str(file), "--by", "model", "--json")
    assert "stored answers (1) cost nothing here, but in the run that bought them; a ledger" in ended.err
    (row,) = json.loads(ended.out)["rows"]
    assert (row["model"], row["requests"], row["hits"], row["failed"]) == ("gpt-5.5", 1, 1, 2)
    paid = client.call("gpt-5.5", "2+2?")
    assert (row["cost"], row["unknown"], row["output_tokens"]) == (paid.price, 1, paid.usage.output_tokens)
    assert row["saved"] == client.call("gpt-5.5", "1+1?").price
    assert "answers have no time" in run("usage", str(file), "--since", "7d").err


def test_an_answer_of_unknown_cost_is_answered(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("1+1?\n2+2?\n")
    url = simulator.url("openai")
    for suffix in (".jsonl", ".csv"):
        target = tmp_path / f"out{suffix}"
        assert (
            run("map", "local/toy", str(source), str(target), "--base-url", url, "--cache", "off").code == 0
        )
        (row,) = json.loads(run("usage", str(target), "--json").out)["rows"]
        assert (row["requests"], row["failed"], row["unknown"]) == (2, 0, 2)
        assert row["input_tokens"] > 0


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", "to_jsonl"])
@pytest.mark.parametrize(
    "way", ["refuses", "fails", "fails late", "all refuse", "refuses, the next is stored"]
)
def test_models_that_were_passed_over_have_their_own_costs(
    run: RunCommand,
    simulator: Simulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    way: str,
) -> None:
    ledger = tmp_path / "costs.jsonl"
    prompts = ["2+2?", *(f"Name number {number}." for number in range(3))]
    fault = {"fails": Fault(status=500), "fails late": Fault(hang=True)}.get(way, Fault(finish="refusal"))
    for provider in ("openai", "anthropic")[: 1 + (way == "all refuse")]:
        simulator.inject(fault, provider, match="number", times=None)
    if way == "refuses, the next is stored":
        with Client() as before:
            before.call_many("claude-haiku-5-5", prompts[2:], max_tokens=50)
    options: dict[str, Any] = {"fallback": ["claude-haiku-5-5"], "max_retries": 0, "timeout": 2.0}
    options["max_tokens"] = 50
    if suffix == "to_jsonl":
        file = tmp_path / "results.jsonl"
        with Client(ledger=ledger) as client:
            results = client.call_many("gpt-6.1-sol", prompts, **options)
            results.to_jsonl(file)
        table = results.to_pandas()
        costs = [entry.cost for result in results for entry in result.passed_over]
        assert table["passed_over_cost"].isna().sum() == 1 + costs.count(None)
        assert table["passed_over_cost"].sum() == pytest.approx(sum(cost or 0 for cost in costs))
    else:
        file, source = tmp_path / f"answers{suffix}", tmp_path / "in.txt"
        source.write_text("\n".join(prompts))
        monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(ledger))
        given = [f"--param={name}={json.dumps(value)}" for name, value in options.items()]
        run("map", "gpt-6.1-sol", str(source), str(file), *given)
    names = ("provider", "requests", "hits", "failed", "cost", "input_tokens", "output_tokens", "unknown")
    of_answers, of_ledger = (
        [[row[name] for name in names] for row in json.loads(run("usage", str(path), "--json").out)["rows"]]
        for path in (file, ledger)
    )
    assert of_answers == of_ledger
    openai = {"fails": ["openai", 1, 0, 3], "fails late": ["openai", 1, 0, 3]}
    assert of_answers[1][:4] == openai.get(way, ["openai", 2 if "stored" in way else 4, 0, 0])
    assert of_answers[0][1:3] == ([1, 2] if "stored" in way else [3, 0])


def test_rows_of_older_versions_say_that_their_sums_are_of_several_models(
    run: RunCommand, tmp_path: Path
) -> None:
    file = tmp_path / "answers.jsonl"
    passed = {"model": "gpt-6.1-sol", "error": "RefusalError", "status": 200, "message": ""}
    line = {"model": "claude-haiku-5-5", "provider": "anthropic", "usage": {"input_tokens": 20}, "cost": 0.5}
    line |= {"cached": False, "error": None, "price": 0.1}
    file.write_text("".join(f"{json.dumps(line | {'passed_over': [passed]})}\n" for _ in range(2)))
    ended = run("usage", str(file), "--json")
    (row,) = json.loads(ended.out)["rows"]
    assert (row["provider"], row["cost"], row["requests"]) == ("anthropic", 1.0, 2)
    assert "the sums of 2 rows include models that were passed over" in ended.err
    # No model was asked before this one.
    file.write_text(f"{json.dumps(line | {'passed_over': [passed | {'error': 'CacheMissError'}]})}\n")
    assert run("usage", str(file)).err == ""


EMPTY = '{"object": "chat.completion", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}'
FAILURES = {"paid": Fault(body=EMPTY), "perhaps paid": Fault(hang=True), "free": Fault(status=400)}


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize(
    "fails_before", [("paid",), ("perhaps paid", "paid"), ("free", "paid", "paid"), ("free",)]
)
@pytest.mark.parametrize("ends", ["answered", "failed", "by a fallback"])
def test_what_failed_runs_cost_stays_in_the_file(
    run: RunCommand,
    simulator: Simulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    fails_before: tuple[str, ...],
    ends: str,
) -> None:
    file, source, ledger = tmp_path / f"answers{suffix}", tmp_path / "in.txt", tmp_path / "costs.jsonl"
    source.write_text("Say one.\nName two.\nSay three.\nName four.\n")
    monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(ledger))
    arguments = ["map", "gpt-6.1-sol", str(source), str(file), "--max-tokens", "50"]
    options = {"fallback": ["claude-haiku-5-5"], "max_retries": 0, "timeout": 2.0}
    arguments += [f"--param={name}={json.dumps(value)}" for name, value in options.items()]
    for kind in fails_before:
        simulator.clear()
        for provider in ("openai", "anthropic"):
            simulator.inject(FAILURES[kind], provider, match="Say", times=None)
        assert run(*arguments)[0] == 1
    simulator.clear()
    if ends != "answered":
        end = Fault(finish="refusal") if ends == "by a fallback" else Fault(status=400)
        simulator.inject(end, "openai", match="Say", times=None)
    code, out, _ = run(*arguments)
    assert code == (ends == "failed")
    names = ("provider", "cost", "unknown", "unknown_at_most")
    of_answers, of_ledger = (
        [[row[name] for name in names] for row in json.loads(run("usage", str(path), "--json").out)["rows"]]
        for path in (file, ledger)
    )
    assert of_answers == of_ledger
    known = sum(cost for _, cost, _, _ in of_ledger)
    assert format_usd(known) in out
    # A run without news changes nothing.
    before = file.read_bytes()
    assert run(*arguments)[0] == code
    assert ends == "failed" or file.read_bytes() == before


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", "to_jsonl"])
@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-haiku-5-5"])
@pytest.mark.parametrize("stored", [0, 1, 2, 3])
@pytest.mark.parametrize("way", ["answers", "fails first", "fails once", "refuses"])
def test_rows_that_are_stored_in_part_are_summed_like_their_ledger(
    run: RunCommand,
    simulator: Simulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    model: str,
    stored: int,
    way: str,
) -> None:
    source, file, ledger = tmp_path / "in.txt", tmp_path / f"out{suffix}", tmp_path / "costs.jsonl"
    # The last row asks what the first does. A refusal that two rows share is no hit of the answers.
    prompts = ["Name one.", "Name two.", *["Name one."] * (way != "refuses")]
    source.write_text("\n".join(prompts))
    other = "claude-haiku-5-5" if model.startswith("gpt") else "gpt-6.1-sol"
    if stored:
        with Client() as before:
            before.call_many(other if way == "refuses" else model, prompts, n=stored, max_tokens=50)
    if way == "refuses":
        fault, provider = Fault(finish="refusal"), "openai" if model.startswith("gpt") else "anthropic"
        simulator.inject(fault, provider, match="Name", times=None)
    elif way == "fails once":
        # The rest of its samples may have been bought.
        simulator.inject(Fault(status=400), match="two", times=1)
    elif way == "fails first":
        simulator.inject(Fault(status=500), match="Name", times=1)
    options: dict[str, Any] = {"n": 3, "max_tokens": 50}
    options |= {"fallback": [other]} if way == "refuses" else {}
    if suffix == "to_jsonl":
        with Client(ledger=ledger) as client:
            client.call_many(model, prompts, **options).to_jsonl(file)
    else:
        monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(ledger))
        given = [f"--param={name}={json.dumps(value)}" for name, value in options.items()]
        assert run("map", model, str(source), str(file), *given).code == (way == "fails once" and stored < 3)
    names = ("provider", "hits", "input_tokens", "output_tokens", "cost", "saved", "unknown")
    of_answers, of_ledger = (
        [[row[name] for name in names] for row in json.loads(run("usage", str(path), "--json").out)["rows"]]
        for path in (file, ledger)
    )
    assert of_answers == of_ledger
    if way != "fails once":
        assert sum(row[1] for row in of_ledger) == 2 * stored + 3 * (way != "refuses")


@pytest.mark.parametrize(
    ("suffix", "is_last"),
    [(".jsonl", True), (".jsonl", False), ("ledger", True), ("ledger", False), (".csv", True)],
)
@pytest.mark.parametrize("removed", [0, 1, 9, 60])
@pytest.mark.filterwarnings("always::llm_provider.LedgerWarning")
def test_a_cut_line_is_warned_of_wherever_it_is(
    run: RunCommand,
    simulator: Simulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    removed: int,
    is_last: bool,
) -> None:
    source, ledger = tmp_path / "in.txt", tmp_path / "costs.jsonl"
    source.write_text("Name one.\nName two.\nName three.\n")
    monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(ledger))
    file = tmp_path / f"out{suffix if suffix.startswith('.') else '.jsonl'}"
    assert run("map", "gpt-6.1-sol", str(source), str(file)).code == 0
    file = ledger if suffix == "ledger" else file
    lines = file.read_bytes().splitlines(keepends=True)
    line = lines.pop()
    cut = line[: len(line) - removed]
    file.write_bytes(b"".join([*lines, cut] if is_last else [*lines[:-1], cut.rstrip() + b"\r\n", lines[-1]]))
    ended = run("usage", str(file), "--json")
    # A line of JSON is whole without its newline.
    whole = removed == 0 or (removed == 1 and suffix != ".csv")
    assert json.loads(ended.out)["total"]["requests"] == 2 + whole
    assert ("invalid lines are left out (1, the first is line" in ended.err) is not whole


def test_ledgers_beside_answers_are_noted(run: RunCommand, ledgers: list[str], tmp_path: Path) -> None:
    line = {"model": "m", "provider": "p", "usage": None, "cost": 0.0, "cached": False, "error": None}
    (answers := tmp_path / "answers.jsonl").write_text(f"{json.dumps(line)}\n")
    for files in (ledgers, [str(answers)], [*ledgers, str(answers)]):
        noted = "a request that both have counts twice" in run("usage", *files).err
        assert noted is (len(files) == 3)
