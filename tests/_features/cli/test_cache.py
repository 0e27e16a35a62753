"""`llm-provider cache`: what it prints, and its exit codes."""

import contextlib
import json
import time
from functools import partial
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider._core.store.response_cache import Entry, Question, ResponseCache
from llm_provider.simulator import Simulator
from support import RunCommand

MODEL = "gpt-6.1-sol"


@pytest.fixture
def run(run: RunCommand) -> RunCommand:
    return partial(run, "cache")


@pytest.fixture
def filled(client: Client) -> Client:
    for prompt in ("1+1?", "2+2?", "3+3?"):
        client.call(MODEL, prompt)
    client.cache.close()
    return client


def test_an_empty_cache_where_the_environment_says_is_no_error(run: RunCommand, own_cache: Path) -> None:
    assert run("path") == (0, f"{own_cache}\n", "")
    assert run("verify") == (0, "0 answers whole, 0 damaged\n", "")
    assert json.loads(run("stats", "--json").out) == {"path": str(own_cache), "entries": 0, "bytes": 0}
    assert not own_cache.exists()


def test_stats_and_verify(run: RunCommand, filled: Client, own_cache: Path) -> None:
    statistics = json.loads(run("stats", "--json").out)
    assert (statistics["path"], statistics["entries"]) == (str(own_cache), 3)
    assert statistics["bytes"] == sum(path.stat().st_size for path in own_cache.glob("v2/*/cache.db"))
    code, out, err = run("stats")
    assert (code, err) == (0, "")
    assert "answers  3\n" in out
    assert run("verify") == (0, "3 answers whole, 0 damaged\n", "")
    for path in own_cache.glob("v2/*/cache.db"):
        path.write_bytes(b"not a database")
    code, out, err = run("verify")
    assert (code, out) == (1, "0 answers whole, 0 damaged\n")
    assert "file is not a database" in err


def test_what_is_exported_here_answers_there_unless_it_was_changed(
    run: RunCommand, filled: Client, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "answers.jsonl"
    assert run("export", str(file)) == (0, "3 answers written\n", "")
    assert run("import", str(file)) == (0, "0 answers added, 3 here already\n", "")
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(tmp_path / "there"))
    assert run("import", str(file)) == (0, "3 answers added, 0 here already\n", "")
    sent = simulator.ledger().requests
    with Client(cache="only") as there:
        assert there.call(MODEL, "2+2?").text == "4"
    assert simulator.ledger().requests == sent
    file.write_text(file.read_text().replace("gpt-6.1-sol", "gpt-7"))
    code, out, err = run("import", str(file))
    assert (code, out) == (2, "")
    assert "line 2" in err
    assert run("import", str(tmp_path / "nothing")).code == 2


def test_prune(run: RunCommand, own_cache: Path) -> None:
    with contextlib.closing(ResponseCache(own_cache)) as cache:
        for number in range(3):
            request = Question("openai", None, "chat", b"{}", {}, number, MODEL)
            cache.put(f"key-{number}", Entry(b"{}", 1.0, time.time(), None, request))
    assert run("prune", "--older-than", "30d") == (0, "0 answers removed\n", "")
    assert run("prune", "--model", MODEL, "--dry-run") == (0, "3 answers to be removed\n", "")
    assert run("prune", "--model", MODEL, "--older-than", "0s") == (0, "3 answers removed\n", "")
    code, _, err = run("prune")
    assert code == 2
    assert "name one of them" in err
