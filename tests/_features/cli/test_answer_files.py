"""Files that commands read: one sentence says what is wrong with them, and no command waits for ever."""

import copy
import hashlib
import json
import os
import sys
import webbrowser
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from llm_provider import (
    Client,
    Evidence,
    EvidenceError,
    LLMError,
    RateLimitError,
    RequestError,
    Results,
    call_many,
    embed,
    track,
    verify,
)
from llm_provider._core.runtime import files
from llm_provider._core.store.response_cache import ResponseCache
from llm_provider._core.types.results_table import columns
from llm_provider._features.cli.answer_files import read_answers
from llm_provider._features.evidence.container import write_json, write_parts
from llm_provider.simulator import Fault, Simulator
from support import RunCommand, response

WRONG: list[Any] = [
    None, True, float("nan"), 10**400, "abc", [], [None], {}, {"a": [None]},
    [{"text": None, "tool_calls": [1]}], ...,
]  # fmt: skip
"""Values in the place of another one. `...` leaves it out."""

OF_MAP = {
    "index": 0, "input": {"prompt": "x"}, "text": "4", "finish_reason": "stop", "model": "m", "cost": 0.5,
    "usage": {"input_tokens": 1, "output_tokens": 2}, "served_by": {"model": "m", "fingerprint": "f"},
    "price": 0.5, "prompt": "x", "cached": False, "cache_keys": ["ab"], "error": None, "request": "ab",
    "parsed": None,
}  # fmt: skip
LINES: dict[str, Any] = {
    "response": response().to_dict(),
    "error": RateLimitError("slow", provider="p", status=429, retry_after=2.0).to_dict(),
    "map": OF_MAP,
    "error of map": {
        **OF_MAP, "text": None, "finish_reason": None, "usage": None, "served_by": None,
        "error": {"type": "RateLimitError", "message": "slow", "status": 429},
    },
}  # fmt: skip


def changes(value: Any) -> Iterator[Any]:
    """The value with a wrong one in each place of it."""
    yield from (wrong for wrong in WRONG if wrong is not ...)
    parts: Any = value.items() if isinstance(value, dict) else ()
    parts = enumerate(value[:1]) if isinstance(value, list) else parts
    for place, part in list(parts):
        for changed in changes(part):
            whole = copy.copy(value)
            whole[place] = changed
            yield whole
        if isinstance(value, dict):
            yield {name: each for name, each in value.items() if name != place}


@pytest.mark.parametrize("name", LINES)
def test_a_wrong_value_is_an_error_of_the_line(name: str, tmp_path: Path) -> None:
    path, page = tmp_path / "answers.jsonl", tmp_path / "page.html"
    path.write_text(json.dumps(LINES[name]) + "\n")
    assert len(list(read_answers(path))) == 1
    refused = 0
    for changed in changes(LINES[name]):
        path.write_text(json.dumps(changed) + "\n")
        try:
            results = Results(read_answers(path))
            results.to_html(page)
            repr(results)
        except LLMError:
            refused += 1
        try:
            repr(Results.from_jsonl(path))
        except LLMError:
            refused += 1
    assert refused > len(WRONG)


def test_the_lines_of_map_are_results_in_python_too(
    run: RunCommand, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.inject(Fault(status=400), match="ships")
    rows, out = tmp_path / "rows.jsonl", tmp_path / "map-output.jsonl"
    rows.write_text("".join(json.dumps({"id": text, "prompt": text}) + "\n" for text in ("birds", "ships")))
    run("map", "gpt-6.1-sol", str(rows), str(out), "--max-tokens", "50")
    results = Results.from_jsonl(out)
    assert [type(each).__name__ for each in results] == [type(each).__name__ for each in read_answers(out)]
    assert sorted(each.metadata["id"] for each in results) == ["birds", "ships"]
    assert (len(results.ok), len(results.errors)) == (1, 1)
    results.to_jsonl(tmp_path / "results.jsonl")
    assert Results.from_jsonl(tmp_path / "results.jsonl").ok == results.ok


@pytest.mark.parametrize(
    "more", [[], ["--n", "2"], ["--schema", '{"type": "integer"}']], ids=["text", "samples", "schema"]
)
def test_a_table_of_map_has_what_its_lines_have(
    more: list[str], run: RunCommand, simulator: Simulator, tmp_path: Path
) -> None:
    """A text that is JSON is no parsed answer, and the provider is known."""
    simulator.inject(Fault(status=400), match="fails", times=None)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in ("1+1?", "2+2?", "fails")))
    read = []
    for end in ("jsonl", "csv", "tsv"):
        out = tmp_path / f"out.{end}"
        run("map", "gpt-6.1-sol", str(rows), str(out), "--max-tokens", "50", "--cache", "off", *more)
        table = columns(sorted(read_answers(out), key=lambda each: str(each.metadata)))
        names = ("provider", "error", "text", "metadata_prompt", "model", "finish_reason", "parsed")
        read.append({name: cells for name, cells in table.items() if name.partition(".")[0] in names})
        assert {*table["provider"]} == {"openai"}
        assert any("parsed" in name for name in table) == ("--schema" in more)
    assert read[0] == read[1] == read[2]


@pytest.mark.parametrize("names", [(1, 2), (1.5, "b"), (None, True), ("a", "b")])
def test_the_id_of_a_row_may_be_any_value(
    run: RunCommand, simulator: Simulator, tmp_path: Path, names: tuple[Any, Any]
) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text("".join(json.dumps({"name": name, "prompt": f"{name}?"}) + "\n" for name in names))
    done = run("map", "gpt-6.1-sol", str(rows), str(out), "--id", "name", "--skip-invalid")
    known = [name for name in names if name is not None]  # a row without an id is not valid
    assert (done.code, len(list(read_answers(out)))) == (0, len(known))
    assert [each.metadata["id"] for each in Results.from_jsonl(out)] == known
    assert run("view", str(out), "--output", str(tmp_path / "page.html")).code == 0


def test_a_line_says_which_models_were_passed_over(
    run: RunCommand, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.inject(Fault(status=503), provider="openai", times=None)
    rows, out = tmp_path / "rows.txt", tmp_path / "out.jsonl"
    rows.write_text("1+1?\n")
    done = run(
        "map",
        "gpt-6.1-sol",
        str(rows),
        str(out),
        "--fallback",
        "claude-haiku-5-5",
        "--param",
        "max_retries=0",
    )
    assert done.code == 0, done.err
    (line,) = map(json.loads, out.read_text().splitlines())
    assert (line["provider"], line["text"]) == ("anthropic", "2")
    assert [(each["model"], each["status"]) for each in line["passed_over"]] == [("gpt-6.1-sol", 503)]
    assert "1 by a fallback" in done.out
    (answer,) = Results.from_jsonl(out)
    assert [each.model for each in answer.passed_over] == ["gpt-6.1-sol"]


FILES = {
    "NUL bytes": b"\0" * 5000, "NUL bytes in a line": b"\0" * 5000 + b"\n", "deep": b"[" * 100_000 + b"\n",
    "deep objects": b'{"a":' * 100_000 + b"\n", "NaN": b"NaN\n", "a list": b"[]\n", "text": b"words\n",
    "no end": b"words", "Latin": b"\xe9\n", "digits": b"1" * 100_000 + b"\n",
}  # fmt: skip
COMMANDS = {
    "view": ("view", "{}", "--output", os.devnull), "verify": ("verify", "{}"), "usage": ("usage", "{}"),
    "reconcile": ("reconcile", "{}"), "reconcile of a report": ("reconcile", "{ledger}", "--report", "{}"),
}  # fmt: skip
LEDGER = (
    b'{"time":1790000000.0,"outcome":"answered","provider":"openai","model":"gpt-6.1-sol","served":"m","key":"ab",'
    b'"tag":"","usd":"0.1","usage":{"input_tokens":1}}\n'
)


def run_on(run: RunCommand, command: str, path: Path | str, tmp_path: Path) -> Any:
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_bytes(LEDGER)
    return run(*(part.format(path, ledger=ledger) for part in COMMANDS[command]))


@pytest.mark.filterwarnings("ignore:.*invalid lines are left out")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", FILES)
def test_a_file_of_anything_else_is_one_sentence(
    run: RunCommand, tmp_path: Path, command: str, content: str
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(FILES[content])
    ended = run_on(run, command, path, tmp_path)
    # `verify` ends with 1 for a file that is none of its own.
    assert ended.code == (1 if command == "verify" else 2)
    assert "error: " in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["/dev/zero", "/dev/urandom", "fifo", "folder"])
def test_what_has_no_end_is_refused(
    run: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, kind: str
) -> None:
    monkeypatch.setattr(files, "_WRITER_SECONDS", 0)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    ended = run_on(run, command, tmp_path / kind, tmp_path)
    assert ended.code == 2
    assert ended.err.count("error: ") == 1


MODEL, OTHER, EMBEDDER = "gpt-6.1-sol", "groq/openai/gpt-oss-120b", "text-embedding-3-small"


def read_figures(evidence: Evidence) -> tuple[int, int, int]:
    total = evidence.manifest["figures"]["total"]
    return evidence.rows, total.get("responses", 0), total.get("errors", 0)


def test_files_of_answers_are_exported_with_what_the_cache_holds(
    run: RunCommand, simulator: Simulator, client: Client, tmp_path: Path
) -> None:
    prompts, answers, results = tmp_path / "p.txt", tmp_path / "a.jsonl", tmp_path / "r.jsonl"
    prompts.write_text("one\ntwo\nfails\nthree\n")
    simulator.inject(Fault(status=400), match="fails")
    simulator.inject(Fault(finish="length"), match="three")
    run("map", MODEL, str(prompts), str(answers), "--max-tokens", "9")
    client.call_many(MODEL, ["one", "four"], max_tokens=9, metadata=[1, 2]).to_jsonl(results)
    for file, expected in ((answers, (4, 3, 1)), (results, (2, 2, 0))):
        out = tmp_path / f"{file.stem}.zip"
        ended = run("export", str(out), "--results", str(file), "--json")
        assert ended.code == 0, ended.err
        checked = run("verify", str(out), "--json")
        assert (checked.code, checked.err) == (0, "")
        assert json.loads(checked.out) == json.loads(ended.out)
        assert read_figures(verify(out)) == expected
    missing = verify(tmp_path / "a.zip").not_computed
    assert missing["answers"] == {"its reply is not stored": 1}, "the cut answer"
    out.with_name("r.zip.intoto.json").unlink()
    assert "there is no r.zip.intoto.json" in run("verify", str(out)).err
    out.write_bytes(out.read_bytes()[:-1])
    ended = run("verify", str(out))
    assert (ended.code, ended.out) == (1, "")
    assert "directory" in ended.err


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv"])
def test_each_form_of_map_keeps_all_that_evidence_has(
    run: RunCommand, simulator: Simulator, tmp_path: Path, suffix: str
) -> None:
    prompts, answers, out = tmp_path / "p.jsonl", tmp_path / f"a.{suffix}", tmp_path / "a.zip"
    texts = ["one", "-5", "'=1", 'a "quoted"\ttab\nline', "é\u2028😀", "refused", "fails"]
    prompts.write_text("".join(json.dumps({"prompt": text, "number": 1}) + "\n" for text in texts))
    (tmp_path / "s.json").write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    simulator.inject(Fault(status=400), match="fails")
    simulator.inject(Fault(finish="content_filter"), match="refused")
    ended = run("map", MODEL, str(prompts), str(answers), "--schema", str(tmp_path / "s.json"))
    assert ended.code == 1, ended.err
    run("cache", "export", str(tmp_path / "c.jsonl"), "--results", str(answers))
    scores = tmp_path / "scores.csv"
    scores.write_text("index,score\n0,1\n")
    assert run("export", str(out), "--results", str(answers), "--scores", str(scores)).code == 0
    assert read_figures(verify(out)) == (7, 6, 1)
    with zipfile.ZipFile(out) as archive:
        rows = [json.loads(line) for line in archive.read("rows.jsonl").splitlines()]
    for row, text in zip(rows, texts, strict=True):
        result = row["result"]
        assert result["prompt"] == text
        if text not in ("refused", "fails"):
            assert row["not_computed"] == {}, text
            assert result["parsed"] == json.loads(result["text"])
            assert len(result["choices"]) == len(row["requests"]) == 1


def test_a_part_of_the_cache_is_exported_by_results_model_or_tag(
    run: RunCommand, simulator: Simulator, tmp_path: Path, own_cache: Path
) -> None:
    ledger = tmp_path / "costs.jsonl"
    with Client(cache_dir=own_cache, ledger=ledger) as client:
        with track("study"):
            client.call_many(MODEL, ["a", "b"], n=2)
            with track("pilot"):
                client.call_many(OTHER, ["b", "c"])
        with track("study2"):
            results = client.call_many(MODEL, ["a", "d"])
        client.embed(EMBEDDER, ["a"])
    selections = {
        ("--tag", "study", "--ledger", str(ledger)): 6,
        ("--tag", "study/pilot", "--ledger", str(ledger)): 2,
        ("--tag", "study2", "--ledger", str(ledger)): 2,
        ("--tag", "study", "--ledger", str(ledger), "--model", OTHER): 2,
        ("--model", MODEL): 5,
    }
    for selection, count in selections.items():
        out, archive = tmp_path / "a.zip", tmp_path / "a.jsonl"
        assert run("export", str(out), *selection).code == 0, selection
        assert read_figures(verify(out)) == (count, count, 0), selection
        assert run("cache", "export", str(archive), *selection).out == f"{count} answers written\n"
    results.to_jsonl(tmp_path / "results.jsonl")
    written = run("cache", "export", str(tmp_path / "r2.jsonl"), "--results", str(tmp_path / "results.jsonl"))
    assert written.out == "2 answers written\n"
    with closing(ResponseCache(own_cache)) as cache, closing(ResponseCache(tmp_path / "other")) as other:
        cache.export(tmp_path / "r.jsonl", results=results)
        assert other.load(tmp_path / "r.jsonl").added == 2
        with pytest.raises(RequestError, match="there is none"):
            cache.export(tmp_path / "t.jsonl", tag="study")


def test_scores_are_in_the_rows_and_in_records_of_every_eval_ever(
    run: RunCommand, simulator: Simulator, client: Client, tmp_path: Path
) -> None:
    results = Results(
        [*client.call_many(MODEL, ["1", "2"]), *client.call_many(OTHER, ["1", "2", "3"], system="Count.")]
    )
    results.to_jsonl(tmp_path / "r.jsonl")
    (tmp_path / "sums.csv").write_text("index,score\n0,1\n1,0\n3,0.25\n4,1\n")
    (tmp_path / "sums.jsonl").write_text('{"index": 9, "score": 1}\n')
    out, given = tmp_path / "a.zip", ("--results", str(tmp_path / "r.jsonl"), "--scores")
    assert "score 1" in run("export", str(out), *given, str(tmp_path / "sums.jsonl")).err
    assert run("export", str(out), *given, str(tmp_path / "sums.csv")).code == 0
    assert verify(out).manifest["figures"]["total"]["score_sum"] == "2.25"
    for scores in ([1.0, False, None, 0.25, True], {0: 1, 1: 0, 3: 0.25, 4: 1}):
        results.export(tmp_path / "b.zip", client=client, scores=scores, evaluation="sums")
        assert verify(tmp_path / "b.zip").manifest["evaluation"] == "sums"
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
        parts = {name: archive.read(name) for name in names}
    samples = [name for name in names if name.startswith("data/") and name.endswith(".json")]
    records = {json.loads(parts[name])["model_info"]["id"]: name for name in samples}
    for model, mean in ((f"openai/{MODEL}", 0.5), (OTHER, 0.625)):
        record = json.loads(parts[records[model]])
        folder = model.replace("groq/openai/", "groq/openai_")
        assert records[model].startswith(f"data/sums/{folder}/")
        assert record["evaluation_results"][0]["score_details"]["score"] == mean
        detail = record["detailed_evaluation_results"]
        assert detail["file_path"] == records[model].replace(".json", "_samples.jsonl")
        assert detail["checksum"] == hashlib.sha256(parts[detail["file_path"]]).hexdigest()
        lines = [json.loads(line) for line in parts[detail["file_path"]].splitlines()]
        assert len(lines) == detail["total_rows"] == 2
        assert {line["evaluation"]["is_correct"] for line in lines} == {True, False}
    for name in names:
        if name.startswith("data/"):
            changed = {**parts, name: parts[name].replace(b"sums", b"SUMS", 1)}
            assert name in refuse(changed, tmp_path / "c.zip"), "another value"
            assert name in refuse({**parts, name: parts[name] + b"{}\n"}, tmp_path / "c.zip"), "another line"
            del changed[name]
            assert refuse(changed, tmp_path / "c.zip"), "a part that is missing"
    for scores in ([float("nan")], {9: 1.0}, ["good"], [1.0] * 12_000):
        with pytest.raises(RequestError, match=r"scores|12,000 scores came for \d results"):
            results.export(out, client=client, scores=scores)  # type: ignore[arg-type]  # some are no numbers


def refuse(parts: dict[str, bytes], path: Path) -> str:
    """The message about a file whose digests are right."""
    manifest = json.loads(parts["manifest.json"])
    manifest["parts"] = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in parts.items()
        if name != "manifest.json"
    }
    parts["manifest.json"] = write_json(manifest) + b"\n"
    write_parts(path, [(name, [data]) for name, data in parts.items()], [])
    with pytest.raises(EvidenceError) as caught:
        verify(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("ids", "lines"),
    [
        ("aab", "id,score\na,1\na,0\nb,1\n"),
        ("abc", "id,score\na,1\na,0\n"),
        ("abc", "index,score\n0,1\n0,0\n"),
    ],
)
def test_scores_that_name_several_results_or_one_twice_are_refused(
    ids: str, lines: str, run: RunCommand, client: Client, tmp_path: Path
) -> None:
    """The last one won, and the first result had no score."""
    metadata = [{"id": name} for name in ids]
    results = client.call_many(MODEL, ["1", "2", "3"], metadata=metadata, max_tokens=20)
    results.to_jsonl(tmp_path / "r.jsonl")
    (tmp_path / "s.csv").write_text(lines)
    given = ("--results", str(tmp_path / "r.jsonl"), "--scores", str(tmp_path / "s.csv"))
    ended = run("export", str(tmp_path / "a.zip"), *given)
    assert "no `index` or `id` of one result" in ended.err or "a result has two scores" in ended.err
    (tmp_path / "s.csv").write_text("index,score\n0,1\n1,0\n2,1\n")
    assert run("export", str(tmp_path / "a.zip"), *given).code == 0


def test_the_help_of_each_command_says_what_the_others_do(run: RunCommand) -> None:
    for words, other in {
        ("export",): "`cache export` writes answers for another cache instead.",
        ("verify",): "`cache verify` checks the cache of this machine instead.",
        ("cache", "export"): "`export` writes evidence that a stranger checks instead.",
        ("cache", "verify"): "`verify` checks a file of evidence instead.",
    }.items():
        assert other in " ".join(run(*words, "--help").out.split())


def test_what_selects_nothing_is_refused(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    out = str(tmp_path / "a.zip")
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    embed(EMBEDDER, ["a"])
    for arguments, message in {
        (): "give --results",
        ("--model", MODEL): "nothing to export: no answer is selected",
        ("--model", EMBEDDER): "no selected entry is an answer or a score; `cache export` copies",
        ("--tag", "study"): "there is none",
        ("--results", str(tmp_path / "other.jsonl")): "line 1",
        ("--results", str(tmp_path / "other.jsonl"), "--model", MODEL): "give --results",
    }.items():
        ended = run("export", out, *arguments)
        assert ended.code == 2, arguments
        assert message in ended.err
    assert not Path(out).exists()


def read_rows(page: Path) -> tuple[list[str], list[list[dict[str, Any] | None]]]:
    """The state of each row of a page, and its cells by name."""
    text = page.read_text(encoding="utf-8")
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    # The rows of a state follow each other.
    states = [state for state, count in data["states"].items() for _ in range(count)]
    return states, [
        [
            side and dict(zip(run["columns"], side["cells"], strict=True))
            for run, side in zip(data["runs"], row, strict=True)
        ]
        for row in data["rows"]
    ]


@pytest.fixture
def answers(run: RunCommand, tmp_path: Path, simulator: Simulator) -> list[Path]:
    """The same answers as `map` writes them in both forms. One of three rows failed."""
    (tmp_path / "in.csv").write_text('id,prompt\na,What is 1+1?\nb,fails\nc,"{""sum"": 4}"\n')
    paths = [tmp_path / "answers.jsonl", tmp_path / "answers.csv"]
    simulator.inject(Fault(status=400), times=None, match="fails")
    for path in paths:
        run("map", "gpt-6.1-sol", str(tmp_path / "in.csv"), str(path), "--id", "id", "--no-progress")
    return paths


def test_lines_of_map_are_shown(run: RunCommand, answers: list[Path]) -> None:
    for path in answers:
        ended = run("view", str(path))
        page = path.with_suffix(".html")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith(f"{page}: 3 answers, 1.")
        states, rows = read_rows(page)
        assert states == ["failed", "ok", "ok"]
        failed, answer, _ = (row[0] for row in rows)
        assert failed is not None
        assert answer is not None
        assert (failed["id"], failed["error"], answer["text"]) == ("b", "BadRequestError", "2")
        assert failed["error_message"].count("HTTP 400") == 1
        assert answer["prompt"] is None  # it is in the list of prompts


def test_two_files_are_side_by_side(run: RunCommand, answers: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "both.html"
    assert run("view", *map(str, answers), "--output", str(page)).code == 0
    states, rows = read_rows(page)
    assert states == ["failed", "same", "same"]
    assert all(left and right and left["id"] == right["id"] for left, right in rows)


def test_evidence_is_shown(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    path = tmp_path / "study.zip"
    call_many("gpt-6.1-sol", ["1+1?", "2+2?"]).export(path)
    assert run("view", str(path)).code == 0
    _, rows = read_rows(path.with_suffix(".html"))
    assert [row[0] and row[0]["text"] for row in rows] == ["2", "4"]
    with ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "")
    assert "no evidence" in run("view", str(path)).err


def test_only_open_asks_the_browser(run: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url) and len(opened) == 1)
    path = tmp_path / "results.jsonl"
    Results([response("a", prompt="q")]).to_jsonl(path)
    with path.open("a") as file:
        file.write('{"text": "b", "cho')  # a line that is still being written
    assert ": 1 answers, " in run("view", str(path)).out
    assert opened == []
    assert run("view", str(path), "--open").code == 0
    assert opened == [path.with_suffix(".html").as_uri()]
    ended = run("view", str(path), "--open")
    assert (ended.code, "no browser was found" in ended.err) == (1, True)


def test_answers_that_the_cache_does_not_have_are_told(
    run: RunCommand, simulator: Simulator, tmp_path: Path
) -> None:
    prompts, answers, out = tmp_path / "p.txt", tmp_path / "a.jsonl", str(tmp_path / "a.zip")
    prompts.write_text("one\ntwo\n")
    for cache, is_told in (("off", True), ("use", False)):
        run("map", MODEL, str(prompts), str(answers), "--overwrite", "--cache", cache)
        for words in (
            ("export", out, "--results", str(answers)),
            ("cache", "export", str(tmp_path / "c.jsonl"), "--results", str(answers)),
            ("export", out, "--model", MODEL),
            ("cache", "export", str(tmp_path / "c.jsonl"), "--model", MODEL),
        ):
            assert ("LLM_PROVIDER_CACHE_DIR" in run(*words).err) == is_told, words
    assert run("verify", out).err == ""


def test_a_table_that_excel_has_saved_is_read_and_continued(
    run: RunCommand, simulator: Simulator, tmp_path: Path
) -> None:
    prompts, answers = tmp_path / "p.txt", tmp_path / "a.csv"
    prompts.write_text("one\ntwo\n")
    run("map", MODEL, str(prompts), str(answers), "--limit", "1")
    answers.write_bytes(b"\xef\xbb\xbf" + answers.read_bytes())
    assert [each.text for each in read_answers(answers)] == ["echo: one"]
    assert run("usage", str(answers)).code == run("map", MODEL, str(prompts), str(answers)).code == 0
    assert [each.text for each in read_answers(answers)] == ["echo: one", "echo: two"]
    assert simulator.ledger().requests == 2


@pytest.mark.parametrize("command", ["view", "report", "verify", "usage", "export out.zip --results"])
def test_an_absent_file_is_told_in_words(run: RunCommand, command: str) -> None:
    ended = run(*command.split(), "nosuch.jsonl")
    assert (ended.code, "there is no" in ended.err, "Errno" in ended.err) == (2, True, False), ended.err
    assert "nosuch.jsonl" in ended.err
