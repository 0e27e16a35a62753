"""Evidence end to end: generated results of real SDKs over sockets, exported, checked, and tampered with."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, EvidenceError, LLMError, Response, Results, verify
from llm_provider._features.evidence.container import read_parts, write_json, write_parts
from llm_provider.simulator import Fault, Simulator

MODELS = (
    "gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash", "groq/openai/gpt-oss-120b",
    "litellm/openai/gpt-4o",
)  # fmt: skip


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def _stream(client: Client, model: str, prompt: str) -> Any:
    with client.stream(model, prompt, max_tokens=60) as stream:
        list(stream)
    return stream.response


def _pass_over(client: Client, simulator: Simulator, model: str, prompt: str) -> Any:
    simulator.inject(Fault(finish="content_filter"), match=prompt, times=1)
    return client.call(model, prompt, fallback=["groq/openai/gpt-oss-20b"], max_tokens=60)


def _repair(client: Client, simulator: Simulator, model: str, prompt: str) -> Any:
    simulator.inject(Fault(text="no JSON"), match=prompt)
    return client.call(model, prompt, response_format=FORM, max_tokens=60)


FORM = {"type": "object", "properties": {"a": {"type": "integer"}}}
Make = Callable[[Client, Simulator, str, str], Any]
KINDS: dict[str, Make] = {
    "plain": lambda client, _, model, prompt: client.call(model, prompt, max_tokens=60),
    "long": lambda client, _, model, prompt: client.call(model, f"{prompt} {'long ' * 900}", max_tokens=60),
    "system": lambda client, _, model, prompt: client.call(
        model, [{"role": "user", "content": prompt}], system="Be brief. " * 300, max_tokens=60
    ),
    "hit": lambda client, _, model, prompt: [client.call(model, prompt, max_tokens=60) for _ in "ab"][1],
    "samples": lambda client, _, model, prompt: client.call(model, prompt, n=3, max_tokens=60),
    "tools": lambda client, _, model, prompt: client.call(
        model, f"{prompt} Use the tool.", tools=[weather], max_tool_rounds=3, max_tokens=60
    ),
    "stream": lambda client, _, model, prompt: _stream(client, model, prompt),
    "repaired": _repair,
    "passed over": _pass_over,
    "not stored": lambda client, _, model, prompt: client.call(model, prompt, cache="off", max_tokens=60),
    "cut": lambda client, simulator, model, prompt: (
        simulator.inject(Fault(finish="length"), match=prompt),
        client.call(model, prompt, max_tokens=60),
    )[1],
    "retried": lambda client, simulator, model, prompt: (
        simulator.inject(Fault(status=500), match=prompt),
        client.call(model, prompt, max_tokens=60),
    )[1],
    "failed": lambda client, simulator, model, prompt: (
        simulator.inject(Fault(status=400), match=prompt),
        client.call_many(model, [prompt], metadata=[{"id": prompt}], max_tokens=60)[0],
    )[1],
    "parsed": lambda client, _, model, prompt: client.call(
        model, prompt, response_format=FORM, max_tokens=60
    ),
    "metadata": lambda client, _, model, prompt: client.call_many(
        model, [prompt], metadata=[{"big": 10**30, "nan": float("nan"), "text": "\ud800"}], max_tokens=60
    )[0],
    "headers": lambda client, _, model, prompt: client.call(
        model, prompt, extra_headers={"x-team": "canary-of-a-header"}, max_tokens=60
    ),
}


def make_results(client: Client, simulator: Simulator, model: str, kinds: list[str]) -> Results[Any]:
    prompts = (f"Prompt {number} of {kind}." for number, kind in enumerate(kinds))
    return Results(
        KINDS[kind](client, simulator, model, prompt) for kind, prompt in zip(kinds, prompts, strict=True)
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning:litellm")  # of its own use of pydantic
@pytest.mark.parametrize(
    "model", [*MODELS[:3], pytest.param(MODELS[3], marks=pytest.mark.long), MODELS[4]], ids=str
)
def test_generated_results_are_verified_and_each_change_of_a_row_is_named(
    client: Client, simulator: Simulator, tmp_path: Path, model: str
) -> None:
    source = random.Random(model)
    kinds = [*KINDS, *source.choices(list(KINDS), k=10)]
    results = make_results(client, simulator, model, kinds)
    path = tmp_path / "a.evidence.zip"
    written = results.export(path, client=client)
    checked = verify(path)
    assert checked == written
    assert (checked.rows, checked.has_statement) == (len(kinds), True)
    total = checked.manifest["figures"]["total"]
    assert float(total["cost"]) == pytest.approx(float(results.cost))
    assert float(total["price"]) == pytest.approx(float(results.price))
    assert total["errors"] == len(results.errors)
    rows = read_rows(path)
    for row, kind in zip(rows, kinds, strict=True):
        assert_computed(row, kind, model)
    for _ in range(30):
        changed = [json.loads(json.dumps(row)) for row in rows]
        row, kind = source.choice(list(zip(changed, kinds, strict=True)))
        where = change(row, source)
        if where is not None:
            rewrite(path, tmp_path / "b.zip", changed)
            try:
                verify(tmp_path / "b.zip")
            except EvidenceError as error:
                assert str(error).startswith(("rows.jsonl, line", "manifest.json"))  # noqa: PT017 - else `where` is not shown
            else:
                pytest.fail(f"the {where} of {kind} was changed")


def assert_computed(row: dict[str, Any], kind: str, model: str) -> None:
    """Only what the parts of a row cannot give is not computed."""
    missing = set(row["not_computed"])
    allowed = {
        "retried": {"usage", "price", "cost"}, "failed": {"keys"},
        "repaired": {"usage"}, "passed over": {"usage"},
    }.get(kind, set())  # fmt: skip
    if model.startswith("litellm"):
        allowed |= {"price", "answers", "served_by"}
    assert missing <= allowed, (kind, row["not_computed"])
    reasons = {"why" in request for request in row["requests"]}
    assert reasons <= {kind in ("not stored", "cut", "headers", "failed")}, (kind, row["requests"])


def read_rows(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [json.loads(line) for line in read_parts(file)["rows.jsonl"].read_lines(file)]


def change(row: dict[str, Any], source: random.Random) -> str | None:
    """Change one value of a row that can be computed."""
    result = row["result"]
    choices = [
        name for name in ("text", "id", "price", "usage", "body", "key") if name not in row["not_computed"]
    ]
    name = source.choice(choices)
    if result.get("error") or (name in ("price", "usage", "id", "text", "body") and row["not_computed"]):
        return None
    if name == "key":
        if not row["requests"] or "why" in row["requests"][0]:
            return None
        row["requests"][0]["payload"]["added"] = 1
    elif name == "usage":
        result["usage"]["input_tokens"] += 1
    elif name == "body":
        # Fields of a reply that nothing is made of are held by the digests alone.
        if not result["text"] or result["text"] not in result["body"]:
            return None
        result["body"] = result["body"].replace(result["text"], result["text"] + "x")
    elif not result[name]:
        return None
    else:
        result[name] = result[name] * 2
    return name


def rewrite(path: Path, goal: Path, rows: list[dict[str, Any]]) -> None:
    """A file with other rows, whose digests are right."""
    import hashlib

    with path.open("rb") as file:
        parts = {
            name: b"".join(line + b"\n" for line in part.read_lines(file))
            for name, part in read_parts(file).items()
        }
    parts["rows.jsonl"] = b"".join(write_json(row) + b"\n" for row in rows)
    manifest = json.loads(parts["manifest.json"])
    manifest["parts"]["rows.jsonl"] = {
        "bytes": len(parts["rows.jsonl"]), "sha256": hashlib.sha256(parts["rows.jsonl"]).hexdigest()
    }  # fmt: skip
    parts["manifest.json"] = write_json(manifest) + b"\n"
    write_parts(goal, [(name, [data]) for name, data in parts.items()], [])


def test_scores_and_batches_rows_are_computed(client: Client, simulator: Simulator, tmp_path: Path) -> None:
    model = "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo"
    for _ in "ab":
        scores: Results[Any] = client.score_many(model, ["2+2=", "1+1="], [[" 4", " 5"], [" 2"]])
        batch = client.call_many("gpt-6.1-sol", ["a", "b"], delivery="batch", max_tokens=60)
        written = Results([*scores, *batch]).export(tmp_path / "a.zip", client=client)
        assert written.not_computed == {}
        assert verify(tmp_path / "a.zip") == written
    rows = read_rows(tmp_path / "a.zip")
    rows[0]["result"]["scores"][0]["text"] = " 6"
    rewrite(tmp_path / "a.zip", tmp_path / "b.zip", rows)
    with pytest.raises(EvidenceError, match="line 1: scores"):
        verify(tmp_path / "b.zip")


def test_secrets_and_paths_of_the_machine_are_never_inside(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "canary-home", tmp_path / "canary-home" / "canary-work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    for name, value in {
        "HOME": str(home), "GROQ_API_KEY": "gsk-canary-of-a-key", "MY_TOKEN": "canary-of-a-token",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    keys = {"openai": ["sk-canary-of-a-client-key"]}
    with Client(cache_dir=tmp_path / "cache", keys=keys) as client:
        results = make_results(client, simulator, "groq/openai/gpt-oss-120b", list(KINDS))
        results += make_results(client, simulator, "gpt-6.1-sol", list(KINDS))
        results.append(client.call("gpt-6.1-sol", f"What is in {work}/x.py? canary-of-a-token"))
        results += client.call_many("gpt-6.1-sol", ["1"], metadata=[{f"{home}/data.csv": 10**30, "a": 1}])
        results.append(LLMError(f"no file {work}/image.png, key sk-canary-of-a-client-key"))
        path = tmp_path / "a.zip"
        results.export(path, client=client)
    assert isinstance(results[-3], Response)
    assert "answers" not in read_rows(path)[-2]["not_computed"]
    assert "was taken out of it" in read_rows(path)[-3]["not_computed"]["keys"]
    verify(path)
    for file in (path, path.with_name("a.zip.intoto.json")):
        assert b"canary" not in file.read_bytes(), file
