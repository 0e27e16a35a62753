"""What docs/security.md says: its tests exist, files have their modes, and nothing is followed."""

import ast
import logging
import os
import re
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from llm_provider import Budget, Client, LLMError
from llm_provider.simulator import Fault, Simulator
from support import RunScript, wait_until

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
CANARY = "sk-canary-4e1d"
MODELS = ("gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(path: Path) -> set[str]:
    """The names of a file's tests, those in classes with the name of their class before them."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{child.name}" for child in node.body if isinstance(child, ast.FunctionDef)
            }
    return names


def test_every_test_that_the_page_names_exists_and_every_threat_has_one() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", page)
    assert len(named) > 30
    assert [f"{path}::{name}" for path, name in named if name not in names_in(ROOT / path)] == []
    _, _, table = page.partition("## Threats")
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| threat")]
    assert len(rows) > 20
    assert [row for row in rows if "`tests/" not in row.split("|")[3]] == []


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_files_have_the_modes_of_the_page(tmp_path: Path, simulator: Simulator) -> None:
    cache, ledger, export = tmp_path / "cache", tmp_path / "ledger.jsonl", tmp_path / "answers.jsonl"
    budget = tmp_path / "run.budget"
    with Client(
        cache_dir=cache, ledger=ledger, budget=Budget(5, path=budget), rate_control="shared"
    ) as client:
        client.call(MODELS[0], "Hi", max_tokens=50)
        client.cache.export(export)
        assert {path.name for path in cache.iterdir()} == {"v2", "leases", "limits"}
        for folder in (cache, cache / "v2", cache / "leases", cache / "limits", Path(f"{budget}-leases")):
            assert mode(folder) == 0o700, folder
        for private in (*(cache / "leases").glob("*"), *(cache / "limits").glob("rate-control.sqlite*")):
            assert private.is_dir() or mode(private) == 0o600, private
        # Those that the user names have the mode that the umask gives.
        assert [mode(path) for path in (ledger, export, budget)] == [0o644] * 3
    # While a budget is open, SQLite's own files lie beside it.
    names = {path.name for path in tmp_path.iterdir()} - {"run.budget-wal", "run.budget-shm"}
    assert names == {"cache", "ledger.jsonl", "answers.jsonl", "run.budget", "run.budget-leases"}


@pytest.mark.parametrize("model", MODELS)
def test_files_hold_no_key_and_only_the_cache_holds_prompts(
    tmp_path: Path, simulator: Simulator, model: str
) -> None:
    cache, ledger = tmp_path / "cache", tmp_path / "ledger.jsonl"
    with Client(
        cache_dir=cache, ledger=ledger, budget=Budget(5, path=tmp_path / "run.budget"), rate_control="shared"
    ) as client:
        client.call(model, "the secret of the prompt", max_tokens=50, api_key=CANARY)
        simulator.inject(Fault(status=500, message=f"the key {CANARY} failed"))
        with pytest.raises(LLMError):
            client.call(model, "another secret of the prompt", max_tokens=50, api_key=CANARY, max_retries=0)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert [path for path, content in files.items() if CANARY.encode() in content] == []
    paths = {path for path, content in files.items() if b"secret of the prompt" in content}
    assert paths
    assert all(path.is_relative_to(cache / "v2") for path in paths)


@pytest.mark.parametrize("model", MODELS)
def test_no_log_holds_a_key_and_prompts_are_logged_by_sdks_alone(
    simulator: Simulator, own_cache: Path, caplog: pytest.LogCaptureFixture, model: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with Client(cache="off") as client:
        client.call(model, "the secret of the prompt", max_tokens=50, api_key=CANARY)
        with client.stream(model, "the secret of the prompt", max_tokens=50, api_key=CANARY) as deltas:
            assert "".join(delta.text for delta in deltas)
    records = [(record.name, record.getMessage()) for record in caplog.records]
    assert [text for _, text in records if CANARY in text] == []
    loggers = {name.partition(".")[0] for name, text in records if "secret of the prompt" in text}
    assert loggers <= {"openai", "anthropic", "google_genai"}


def test_no_export_is_csv(client: Client, tmp_path: Path) -> None:
    """A spreadsheet runs a cell that begins with "=", so nothing is written in a form that it opens."""
    client.call(MODELS[0], '=HYPERLINK("http://example.com")')
    client.cache.export(tmp_path / "answers")
    client.usage.to_jsonl(tmp_path / "ledger")
    lines = [line for name in ("answers", "ledger") for line in (tmp_path / name).read_text().splitlines()]
    assert len(lines) == 3
    assert all(isinstance(orjson.loads(line), dict) for line in lines)
    exported = {name for kind in map(type, (client, client.cache, client.usage)) for name in dir(kind)}
    assert {"export", "to_jsonl"} <= exported
    assert [name for name in exported if "csv" in name.lower() or "excel" in name.lower()] == []


@pytest.fixture
def trap() -> Iterator[tuple[str, list[Any]]]:
    """An address, and the connections that were made to it."""
    visits: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, address = server.accept()
                except OSError:
                    return
                visits.append(address)
                connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        yield f"http://127.0.0.1:{port}", visits
        count = len(visits)
        # The trap works: it sees a connection that is made.
        socket.create_connection(("127.0.0.1", port)).close()
        assert wait_until(lambda: len(visits) > count)
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize("model", MODELS)
def test_no_path_and_no_address_in_a_prompt_is_followed(
    client: Client, simulator: Simulator, tmp_path: Path, trap: tuple[str, list[Any]], model: str
) -> None:
    address, visits = trap
    secret = tmp_path / "secret.txt"
    secret.write_text(CANARY)
    text = f"{secret} file://{secret} @{secret} {address}/x.png ![x]({address}/x.png)"
    assert client.call(model, text, max_tokens=500).text
    for url in (f"file://{secret}", f"{address}/x.png"):
        image = {"type": "image_url", "image_url": {"url": url}}
        messages = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]
        (result,) = client.call_many(model, [messages], max_tokens=500)
        assert CANARY not in str(result)
    assert visits == []
    assert all(CANARY not in str(request.body) for request in simulator.requests())


PLANTED = """
import gc, os, pickle, sqlite3, sys, warnings
from pathlib import Path
import diskcache
from llm_provider import CacheMissError, Client, SecondLevel

folder, ran = Path(sys.argv[1]), Path(sys.argv[2])

class Planted:
    def __reduce__(self):
        return Path.write_text, (ran, "ran")

class Store:
    def get_many(self, keys):
        return dict.fromkeys(keys, pickle.dumps(Planted(), 4))
    def put_many(self, values):
        pass
    def stats(self):
        return {}
    def export(self):
        yield "0" * 64, pickle.dumps(Planted(), 4)
    def close(self):
        pass

keys = {}
with Client(cache_dir=folder) as client:
    for prompt in ("value", "file", "text"):
        keys[prompt] = client.call("gpt-6.1-sol", prompt).cache_keys[0]
    client.call("gpt-6.1-sol", "intact")
with diskcache.FanoutCache(str(folder / "v2"), shards=8, disk_min_file_size=512) as planted:
    planted[keys["value"]] = Planted()
    planted[keys["file"]] = (Planted(), "x" * 1000)
    planted[(Planted(), 1)] = b"bytes below a key that is a pickle"
    assert planted.get(keys["value"]) is not None
    ran.unlink()  # diskcache itself runs it
assert list((folder / "v2").rglob("*.val")), "a value in a file of its own"

unpickled = []
sys.addaudithook(lambda event, arguments: event == "pickle.find_class" and unpickled.append(arguments))
with Client(cache_dir=folder, cache=SecondLevel(Store())) as client:
    for prompt in ("value", "file"):
        try:
            client.call("gpt-6.1-sol", prompt, cache="only")
        except CacheMissError as missing:
            assert missing.key == keys[prompt]
        else:
            raise AssertionError("answered")
    answers = client.call_many("gpt-6.1-sol", ["value", "file", "text", "intact"], cache="only")
    assert [isinstance(answer, CacheMissError) for answer in answers] == [True, True, False, False]
    cache = client.cache
    assert (cache.verify().entries, cache.prune(model="gpt-6.1-sol", dry_run=True)) == (2, 2)
    assert cache.export(folder / "exported.jsonl") == 2
    assert set(cache.find_keys(model="gpt-6.1-sol")) == {keys["text"], answers[3].cache_keys[0]}
    cache.stats(), client.explain_miss("gpt-6.1-sol", "other")
    client.estimate("gpt-6.1-sol", ["value", "other"])
    cache.push(), cache.pull()
# A damaged database is replaced by one with the rows that can be read.
for path in (folder / "v2").glob("*/cache.db"):
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("DROP TABLE Settings")
    database.close()
with warnings.catch_warnings(), Client(cache_dir=folder) as client:
    warnings.simplefilter("ignore")
    assert not client.call("gpt-6.1-sol", "value").cached
    assert client.call("gpt-6.1-sol", "text").cached
    client.cache.verify()
assert (unpickled, ran.exists()) == ([], False), unpickled
"""


def test_no_way_to_read_the_cache_unpickles(
    simulator: Simulator, tmp_path: Path, run_script: RunScript
) -> None:
    """diskcache's CVE-2025-69872: rows that diskcache itself would unpickle, in every place of its layout."""
    program = PLANTED.replace("sys.argv[1]", repr(str(tmp_path / "planted")))
    run_script(program.replace("sys.argv[2]", repr(str(tmp_path / "ran"))))
