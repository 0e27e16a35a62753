"""`llm-provider export`, `verify` and `cache export`: files of answers, and parts of the cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_provider import Client, Evidence, RequestError, track, verify
from llm_provider._cache.response_cache import ResponseCache
from llm_provider.simulator import Fault, Simulator
from support import RunCommand

MODEL, OTHER = "gpt-6.1-sol", "groq/openai/gpt-oss-120b"


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
        client.embed("text-embedding-3-small", ["a"])
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
    cache = ResponseCache(own_cache)
    cache.export(tmp_path / "r.jsonl", results=results)
    assert ResponseCache(tmp_path / "other").load(tmp_path / "r.jsonl").added == 2
    results.to_jsonl(tmp_path / "results.jsonl")
    written = run("cache", "export", str(tmp_path / "r2.jsonl"), "--results", str(tmp_path / "results.jsonl"))
    assert written.out == "2 answers written\n"
    with pytest.raises(RequestError, match="there is none"):
        cache.export(tmp_path / "t.jsonl", tag="study")


def test_what_selects_nothing_is_refused(run: RunCommand, simulator: Simulator, tmp_path: Path) -> None:
    out = str(tmp_path / "a.zip")
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    for arguments, message in {
        (): "give --results",
        ("--model", MODEL): "nothing to export",
        ("--tag", "study"): "there is none",
        ("--results", str(tmp_path / "other.jsonl")): "line 1",
        ("--results", str(tmp_path / "other.jsonl"), "--model", MODEL): "give --results",
    }.items():
        ended = run("export", out, *arguments)
        assert ended.code == 2, arguments
        assert message in ended.err
    assert not Path(out).exists()
