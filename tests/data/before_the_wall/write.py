"""Writes `written.zip`: every kind of file that users keep, and what reading each gives, in `values.json`.

    git worktree add /tmp/before 847e12cf
    cp -r tests/data/before_the_wall /tmp/before/tests/data/
    cd /tmp/before && make setup && .venv/bin/python tests/data/before_the_wall/write.py

The commit is the last one before the modules moved. `tests/end_to_end/test_written_before.py` reads the files
with the code of today, and asks the same questions with it. So this program uses public names alone. The
simulator answers without chance, on a fixed port, because keys contain the server. Times and random names
differ from run to run, and nothing else.
"""

import base64
import dataclasses
import json
import os
import pickle
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import llm_provider
from llm_provider import (
    AskedCall,
    BatchCounts,
    Budget,
    Citation,
    Client,
    FailedAttempt,
    GeneratedAudio,
    GeneratedImage,
    Host,
    Ledger,
    LLMError,
    PassedOver,
    Response,
    Results,
    SecondLevel,
    ServerToolCall,
    Timeouts,
    TokenLogprob,
)
from llm_provider.simulator import Fault, Simulator

HERE = Path(__file__).parent
PORT = 18_049
"""Below the ports that systems give to clients."""
MODELS = {
    "openai_chat": ("gpt-5.5", {"endpoint": "chat"}),
    "openai_responses": ("gpt-5.5", {"endpoint": "responses"}),
    "anthropic": ("claude-sonnet-5-5", {}),
    "gemini": ("gemini-3.8-flash", {"seed": 7, "stop": "END"}),
    "host": (
        "groq/openai/gpt-oss-120b",
        {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END", "FIN"]},
    ),
    "litellm": ("litellm/openai/gpt-4o", {}),
}
"""Each wire format, a host with a row of its own, and litellm."""
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "area": {"type": "number"}},
    "required": ["name", "area"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
RED = b"".join(
    struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    for kind, data in (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(b"\0\xff\0\0")),
        (b"IEND", b""),
    )
)
IMAGE = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + RED).decode()
TALK = [
    {"role": "user", "content": "What is the weather in Rome?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city":"Rome"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
]
CHATS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": ("What is 2+2?", {"max_tokens": 60}),
    "system": ([{"role": "user", "content": "Who? ä"}], {"system": "Be brief.", "max_tokens": 60}),
    "samples": ("Say something.", {"n": 2, "max_tokens": 60}),
    "long": ("long " * 900, {"max_tokens": 60}),
    "schema": ("Name a city.", {"response_format": SCHEMA, "max_tokens": 60}),
    "tools": ("What is the weather in Rome? Use the tool.", {"tools": [TOOL], "max_tokens": 60}),
    "talk": (TALK, {"tools": [TOOL], "max_tokens": 60}),
    "reasoning": ("What is 3+4?", {"reasoning_effort": "low"}),
    "image": ([{"role": "user", "content": [
        {"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": IMAGE}}
    ]}], {"max_tokens": 60}),
    "fields": ("What is 5+5?", {
        "max_tokens": 60, "extra_body": {"metadata": {"a": "b"}}, "extra_headers": {"x-lab": "one"}
    }),
    "stream": ("Count to three.", {"max_tokens": 60}),
}  # fmt: skip
"""Name → the messages and the parameters of a chat."""
EMBEDDINGS = {"openai": "text-embedding-3-small", "gemini": "gemini-embedding-001"}
SCORES = {"vllm": "vllm/toy", "sglang": "sglang/toy", "tgi": "tgi/toy", "llama_cpp": "llama_cpp/toy"}
DIALECTS = {"vllm": "vllm", "sglang": "sglang", "tgi": "tgi", "llama_cpp": "llama.cpp"}
KINDS = (*MODELS, "embed", "score")
BATCHES = {name: MODELS[name][0] for name in ("openai_chat", "anthropic", "gemini", "host")}
UPLOADS = ("openai_chat", "anthropic", "gemini")
RECHECKED = "mistral/mistral-small-latest"
LIMITED = "groq/openai/gpt-oss-20b"
"""The model whose refusals teach the shared rate control."""


def make_client(folder: Path, **settings: Any) -> Client:
    """The client of every file: a host of each dialect, a ledger and a shared budget."""
    root = f"http://127.0.0.1:{PORT}"
    prices = {"*": {"input": 1.0, "output": 2.0}}
    hosts = [Host(name, f"{root}/{name}/v1", dialect, prices=prices) for name, dialect in DIALECTS.items()]  # type: ignore[arg-type]  # by name
    return Client(
        **{"cache_dir": folder / "cache", "hosts": hosts, "max_retries": 0, "max_concurrent": 1, **settings}
    )


def ask(client: Client, kind: str) -> Iterator[tuple[str, Any]]:
    """The questions of a kind with their names, and their answers: `Response`, `Embeddings` or `Scores`."""
    for name, (messages, parameters) in CHATS.items() if kind in MODELS else ():
        model, own = MODELS[kind]
        given = {**parameters, **own}
        if kind == "litellm":
            given.pop("reasoning_effort", None)
        if name == "stream":
            with client.stream(model, messages, **given) as stream:
                list(stream)
            yield f"{kind} {name}", stream.response
        else:
            yield f"{kind} {name}", client.call(model, messages, **given)
    for name, model in EMBEDDINGS.items() if kind == "embed" else ():
        yield f"embed {name}", client.embed(model, ["one", "two", "ä"], dimensions=8)
    for name, model in SCORES.items() if kind == "score" else ():
        yield f"score {name}", client.score(model, "Paris is the capital of", [" France"])


def read_entries(folder: Path) -> dict[str, tuple[bytes, str | None]]:
    """Value and tag of every row of a cache, by key."""
    rows: dict[str, tuple[bytes, str | None]] = {}
    for path in sorted((folder / "cache" / "v2").glob("*/cache.db")):
        with sqlite3.connect(path) as database:
            rows |= {
                key: (value, tag) for key, value, tag in database.execute("SELECT key, value, tag FROM Cache")
            }
        database.close()
    return rows


def write_files(folder: Path) -> None:
    """Write every kind of file into a folder. Only batches stay under way."""
    settings: dict[str, Any] = {
        "ledger": folder / "ledger.jsonl",
        "budget": Budget(100, path=folder / "run.budget"),
    }
    answers: dict[str, Any] = {}
    keys: dict[str, list[str]] = {}
    for kind in KINDS:
        # A new simulator counts its ids from the first one on.
        with Simulator(port=PORT), make_client(folder, **settings) as client:
            known = set(read_entries(folder))
            answers |= ask(client, kind)
            client.cache.flush()
            keys[kind] = sorted(read_entries(folder).keys() - known)
    (folder / "keys.json").write_text(json.dumps(keys))
    with Simulator(port=PORT), make_client(folder, **settings) as client:
        client.cache.export(folder / "cassette.jsonl")
        chats = Results(each for each in answers.values() if isinstance(each, Response))
        chats.export(folder / "evidence.zip", client=client)
        chats.to_jsonl(folder / "answers.jsonl")
        pickles = {**answers, **make_values(client, answers)}
    with Simulator(port=PORT), make_client(folder) as client:
        for kind in UPLOADS:
            ask_about_a_file(client, kind, "What is it?")
    for model in BATCHES.values():
        with Simulator(port=PORT), make_client(folder) as client:
            submit(client, model)
    with Simulator(port=PORT) as simulator:
        simulator.configure("mistral", border=0.5)
        with make_client(folder) as client:
            pickles["recheck"] = client.recheck(RECHECKED, history=folder / "history.jsonl", **RECHECK)
        learn_limits(folder, simulator)
        run_command(folder, "ask", "gpt-5.5", "What is 2+2?")
        run_command(folder, "ask", "--continue", "What is 3+3?")
        run_command(folder, "map", *map_words(folder))
    with zipfile.ZipFile(folder / "pickles.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in pickles.items():
            archive.writestr(f"{name}.pickle", pickle.dumps(value, 4))


def map_words(folder: Path) -> tuple[object, ...]:
    """The arguments of `map`, whose rows are in a file."""
    rows = folder / "rows.jsonl"
    rows.write_text('{"id": 1, "prompt": "What is 2+2?"}\n{"id": 2, "prompt": "Who?"}\n')
    return "gpt-5.5", rows, folder / "mapped.jsonl", "--column", "prompt", "--id", "id"


RECHECK: dict[str, Any] = {"system": "Be brief.", "budget": 1.0, "persistence": 1}


def ask_about_a_file(client: Client, kind: str, question: str) -> Response:
    """Ask about a document that is too large for a request, so that it is uploaded."""
    document = client.cache.directory.parent / "document.pdf"
    with document.open("wb") as file:
        file.write(b"%PDF-1.7 ")
        file.truncate(22_500_000)
    try:
        return client.call(MODELS[kind][0], [question, document], max_tokens=60)
    finally:
        document.unlink()


def submit(client: Client, model: str) -> None:
    """Submit a batch whose answers come later."""
    prompts = [f"{number}+1?" for number in range(3)]
    client.submit_many(model, prompts, metadata=[{"row": row} for row in "abc"])


def learn_limits(folder: Path, simulator: Simulator) -> None:
    """Let the shared rate control learn a limit from refusals."""
    simulator.configure("groq", requests_per_minute=1200, burst=5, rate_limit_headers=False)
    with make_client(folder, max_retries=8, max_concurrent=16) as client:
        client.call_many(LIMITED, [f"Row {number}" for number in range(60)], cache="off", max_tokens=60)


def run_command(folder: Path, *words: object) -> str:
    """What a command of `llm-provider` prints."""
    paths = {"LLM_PROVIDER_CACHE_DIR": str(folder / "cache"), "LLM_PROVIDER_LOGS": str(folder / "logs.db")}
    command = [sys.executable, "-m", "llm_provider", *map(str, words)]
    done = subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


CONTEXT: dict[str, Any] = {
    "provider": "openai", "model": "gpt-5.5", "status": 429, "code": "slow_down", "request_id": "req_1",
    "attempts": 3, "retry_after": 1.5, "retryable": False, "maybe_billed": True,
}  # fmt: skip
OF_ERRORS: dict[str, dict[str, Any]] = {
    "UnsupportedParameterError": {"parameter": "seed"},
    "CacheMissError": {"key": "0" * 64},
    "ModelDriftError": {"served": "gpt-5.5-2026-11-19", "served_before": "gpt-5.5-2026-10-21"},
    "BudgetExceededError": {"budget": Decimal(5), "spent": Decimal("4.5"), "needed": Decimal(1)},
    "ToolArgumentsError": {"tool_call_id": "1", "tool_name": "add", "arguments": "{}"},
    "SchemaMismatchError": {"text": "{", "validation_error": "it is not JSON"},
    "PendingBatchError": {"batch": "b1"},
    "ScoreCheckError": {"check": "count"},
    "UncertainBatchError": {"batch": "b1", "candidates": ("batch_1",)},
    "BatchError": {"results": [llm_provider.RateLimitError("slow"), 1]},
}
"""The arguments that an error takes beside its message."""


def make_values(client: Client, answers: dict[str, Any]) -> dict[str, Any]:
    """Every other value that users may pickle, by its name."""
    answer = answers["anthropic reasoning"]
    values: dict[str, Any] = {}
    for name in llm_provider.__all__:
        kind = getattr(llm_provider, name)
        if isinstance(kind, type) and issubclass(kind, LLMError):
            own = {"response": answer} if name == "ToolRoundsExceededError" else OF_ERRORS.get(name, {})
            error = kind("It failed.", **own, **CONTEXT)
            error.failures = (
                FailedAttempt(error="RateLimitError", status=429, waited=1.0, seconds=0.5, maybe_billed=True),
            )
            error.usage, error.metadata, error.prompt, error.cost = answer.usage, {"id": 1}, "Hi", 0.25
            error.samples = (answer.choices[0],)
            values[f"error {name}"] = error
    many = client.call_many(
        MODELS["anthropic"][0], ["What is 2+2?", "What is 3+3?", 7], metadata=[1, 2, 3], max_tokens=60
    )  # type: ignore[list-item]  # the last one is an error
    portable = Client(cache_dir="/nonexistent/before", temperature=0, max_concurrent=3)
    return values | {
        "results": many,
        "count": client.count_tokens("claude-sonnet-5-5", "Hello there"),
        "estimate": client.estimate("gpt-5.5", ["What is 2+2?"], max_tokens=60),
        "models": client.models("anthropic"),
        "statistics": client.cache.stats(),
        "verification": client.cache.verify(),
        "scopes": client.statistics(),
        "explanation": client.explain_miss("gpt-5.5", "What is 2+9?", max_tokens=60),
        "rows": client.usage.rows("model"),
        "host": Host("lab", "http://127.0.0.1:1/v1", "vllm"),
        "timeouts": Timeouts(connect=1.0, total=2.0),
        "client": portable,
        "variant": portable.with_options(max_tokens=5),
        "level": SecondLevel("valkey://cache.lab"),
        "parts": [
            PassedOver(model="gpt-5.5", error="OverloadedError", message="It failed."),
            TokenLogprob(token="a", logprob=-0.5),
            Citation(start=1, end=2, url="https://a.lab", title="A"),
            GeneratedImage(data=RED, media_type="image/png"),
            GeneratedAudio(data=b"RIFF", transcript="a"),
            ServerToolCall(name="web_search", arguments={"query": "a"}),
            AskedCall(operation="chat", provider="openai", model="gpt-5.5"),
            BatchCounts(3, 1, 0),
        ],
        "logprobs": client.call(
            "gpt-5.5", "What is 8+8?", logprobs=True, endpoint="chat", reasoning_effort="none"
        ),
    }


def repr_of_fields(value: Any) -> str:
    """What a dataclass shows without a `repr` of its own."""
    shown = (each.name for each in dataclasses.fields(value) if each.repr)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in shown)})"


def describe(value: Any) -> Any:
    """A value as JSON: its class, what `repr` shows, and its fields."""
    if isinstance(value, Client):
        return {"class": "Client", "cache": str(value.cache.directory)}
    if isinstance(value, (list, tuple)):
        return {"class": type(value).__name__, "values": [describe(each) for each in value]}
    fields = value.to_dict() if hasattr(type(value), "to_dict") else {}
    return {
        "class": type(value).__name__,
        "repr": repr_of_fields(value) if type(value).__name__ == "Estimate" else repr(value),
        "fields": json.loads(json.dumps(fields, default=repr)),
    }


def read_hits(folder: Path) -> Any:
    """Every answer, without the times of the hit."""
    hits: dict[str, Any] = {}
    with make_client(folder, cache="only") as client:
        for kind in KINDS:
            for name, answer in ask(client, kind):
                hits[name] = {"cached": answer.cached, **describe(answer)}
                for time_of_hit in ("overhead", "total"):
                    hits[name]["fields"].get("timing", {}).pop(time_of_hit, None)
    return hits


def read_care(folder: Path) -> Any:
    """What the commands that care for a cache say of it."""
    with make_client(folder, cache="only") as client:
        stats = client.cache.stats()
        explained = client.explain_miss("gpt-5.5", "What is 2+9?", max_tokens=60)
        return {
            "entries": stats.entries,
            "intact": bool(client.cache.verify()),
            "pruned": client.cache.prune(model="gpt-5.5", dry_run=True),
            # Advice behind the differences is of a version.
            "explained": str(explained).partition("; an answer")[0],
        }


def read_cassette(folder: Path) -> Any:
    """The same lines, once they are in another cache and out again."""
    with Client(cache_dir=folder / "loaded") as client:
        loaded = client.cache.load(folder / "cassette.jsonl")
        client.cache.export(folder / "again.jsonl")
    lines = (folder / "cassette.jsonl").read_bytes()
    return [loaded.added, loaded.kept, (folder / "again.jsonl").read_bytes() == lines]


def read_money(folder: Path) -> Any:
    ledger = Ledger.read(folder / "ledger.jsonl")
    budget = Budget(100, path=folder / "run.budget")
    keys = ("provider", "model", "served", "tag", "delivery")
    return {
        "ledger": {key: [repr(row) for row in ledger.rows(key)] for key in keys},
        "budget": [str(budget.spent), str(budget.reserved), str(budget.uncertain), str(budget.left)],
        "usage": run_command(folder, "usage", folder / "ledger.jsonl"),
    }


def read_evidence(folder: Path) -> Any:
    evidence = llm_provider.verify(folder / "evidence.zip")
    return [evidence.rows, evidence.sha256, evidence.has_statement, evidence.manifest]


def read_answers(folder: Path) -> Any:
    return describe(Results.from_jsonl(folder / "answers.jsonl"))


def read_commands(folder: Path) -> Any:
    """The log of `ask`, and the file of `map`, which goes on without asking again."""
    run_command(folder, "map", *map_words(folder), "--cache", "only")
    return [run_command(folder, "logs", "--json"), (folder / "mapped.jsonl").read_text()]


def read_pickles(folder: Path) -> Any:
    with zipfile.ZipFile(folder / "pickles.zip") as archive:
        return {name: describe(pickle.loads(archive.read(name))) for name in archive.namelist()}


def read_history(folder: Path) -> Any:
    """The plan of a recheck, whose questions are those of the history."""
    with make_client(folder) as client:
        plan = client.recheck(RECHECKED, history=folder / "history.jsonl", dry_run=True, **RECHECK)
    return {**plan.to_dict(), "draw": 0, "time": 0}


def list_batches(folder: Path) -> Any:
    with make_client(folder) as client:
        return [
            [batch.model, batch.id, batch.batch_ids, batch.last_status, repr(batch)]
            for batch in client.batches()
        ]


READ = {
    read.__name__: read
    for read in (
        read_hits, read_care, read_cassette, read_money, read_evidence, read_answers, read_commands,
        read_pickles, read_history, list_batches,
    )
}  # fmt: skip
"""What reads the files without a provider."""


def refresh(folder: Path) -> None:
    """Move the times of files that grow too old as much as they are old."""
    age = time.time() - float((folder / "written").read_text())
    for path in (folder / "cache" / "batches").glob("*.jsonl"):
        path.write_text(
            re.sub(
                r'"(created|at)":([\d.]+)',
                lambda match: f'"{match[1]}":{float(match[2]) + age}',
                path.read_text(),
            )
        )
    for path in (folder / "cache" / "uploads").glob("*.json"):
        fields = json.loads(path.read_bytes())
        path.write_text(json.dumps({**fields, "expires": fields["expires"] and fields["expires"] + age}))
    with closing(sqlite3.connect(folder / "cache" / "limits" / "rate-control.sqlite")) as database, database:
        database.execute("UPDATE scope_v2 SET used = ?, claimed_by = NULL", (time.monotonic(),))


def continue_batch(kind: str, folder: Path) -> Any:
    """The results of a batch, which is not submitted again."""
    model = BATCHES[kind]
    with Simulator(port=PORT) as simulator:
        with tempfile.TemporaryDirectory() as other, make_client(Path(other)) as client:
            submit(client, model)  # it gets the id that the batch of the files has
        before = len(simulator.requests())
        with make_client(folder) as client:
            (batch,) = (each for each in client.batches() if each.model == model)
            rows = batch.results(timeout=60)
            posts = [each.path for each in simulator.requests()[before:] if each.body]
    with make_client(folder, cache="only") as client:
        stored = client.call_many(model, [f"{number}+1?" for number in range(3)])
    return {
        "rows": [[row.text, row.metadata] for row in rows],
        "status": batch.last_status,
        "posts": posts,
        "stored": [row.cached for row in stored],
    }


def continue_uploads(folder: Path) -> Any:
    """The requests for another question about a document that is uploaded."""
    with Simulator(port=PORT) as simulator:
        with tempfile.TemporaryDirectory() as other, make_client(Path(other)) as client:
            for kind in UPLOADS:
                ask_about_a_file(client, kind, "What is it?")
        before = len(simulator.requests())
        with make_client(folder) as client:
            texts = [ask_about_a_file(client, kind, "Why?").text for kind in UPLOADS]
        return [texts, [request.path for request in simulator.requests()[before:]]]


def continue_limits(folder: Path) -> Any:
    """Whether the first refusal gives a new process the rate that was learnt."""
    path = folder / "cache" / "limits" / "rate-control.sqlite"
    query = "SELECT name, revision FROM scope_v2"
    with closing(sqlite3.connect(path)) as database:
        stored = dict(database.execute(query))
    with Simulator(port=PORT) as simulator, make_client(folder, max_retries=2) as client:
        simulator.inject(Fault(status=429), provider="groq", times=1)
        client.call(LIMITED, "Row", cache="off", max_tokens=60)
        (scope,) = client.statistics()
    with closing(sqlite3.connect(path)) as database:
        now = dict(database.execute(query))
    same = sorted(stored) == sorted(now) and all(now[name] > stored[name] for name in now)
    return {"same scope": same, "known rate": scope.rate is not None and 5 < scope.rate < 60}


CONTINUE: dict[str, Callable[[Path], Any]] = {
    **{f"continue_batch {kind}": partial(continue_batch, kind) for kind in BATCHES},
    **{read.__name__: read for read in (continue_uploads, continue_limits)},
}
"""What goes on with the files at a simulator."""


def pack(folder: Path) -> None:
    """Write all files of a folder into `written.zip`, without dates."""
    with closing(sqlite3.connect(folder / "run.budget")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with zipfile.ZipFile(HERE / "written.zip", "w") as archive:
        for path in sorted(folder.rglob("*")):
            # A lease is a lock on an empty file.
            if (
                path.is_file()
                and not path.parent.name.endswith("leases")
                and not path.name.endswith(("-wal", "-shm"))
            ):
                name = zipfile.ZipInfo(path.relative_to(folder).as_posix())
                archive.writestr(name, path.read_bytes(), zipfile.ZIP_LZMA)


def unpack(folder: Path) -> Path:
    """A copy of the files in a new folder that only this user can change."""
    folder.mkdir(mode=0o700)
    with zipfile.ZipFile(HERE / "written.zip") as archive:
        archive.extractall(folder)
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder


def read_all(folder: Path) -> dict[str, Any]:
    """What the files give, by the names of the functions that read them."""
    values = {}
    for name, read in {**READ, **CONTINUE}.items():
        copy = unpack(folder / name)
        if name in CONTINUE:
            refresh(copy)
        values[name] = read(copy)
    return values


def main() -> None:
    """Write the files, read them, and write what they give."""
    os.environ.update(Simulator(port=PORT).environment("mistral"))
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "written"
        written.mkdir(mode=0o700)
        write_files(written)
        (written / "written").write_text(str(time.time()))
        pack(written)
        values = json.dumps(read_all(Path(folder)), sort_keys=True, default=repr)
    with zipfile.ZipFile(HERE / "written.zip", "a") as archive:
        archive.writestr(zipfile.ZipInfo("values.json"), values, zipfile.ZIP_LZMA)


if __name__ == "__main__":
    main()
