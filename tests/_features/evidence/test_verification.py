"""Evidence end to end: generated results of real SDKs over sockets, exported, checked, and tampered with."""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from llm_provider import Client, EvidenceError, LLMError, Response, Results, predicate, verify
from llm_provider._core.types.score_values import with_scores
from llm_provider._features.cli.answer_files import read_answers
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
    results = results.score(lambda sample: [len(sample.text) % 2, None][sample.text == ""], failed=0)
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
    places = [
        (number, place)
        for number, row in enumerate(rows)
        for place in list_places(row)
        if not SAID_ONCE.fullmatch(name_place(place))
        and not (row["not_computed"] or row["result"].get("error"))
        and not (place[0] == "requests" and "why" in row["requests"][place[1]])
    ]
    scores = [(number, ("result", "score_values", 0)) for number in range(len(rows))]
    for number, place in source.sample(scores, k=6) + source.sample(places, k=50):
        changed = [json.loads(json.dumps(row)) for row in rows]
        change(changed[number], place)
        rewrite(path, tmp_path / "b.zip", changed)
        try:
            verify(tmp_path / "b.zip")
        except EvidenceError as error:
            assert str(error).startswith(("rows.jsonl, line", "manifest.json", "data/", "inspect/"))  # noqa: PT017 - else `place` is not shown
        else:
            pytest.fail(f"{name_place(place)} of {kinds[number]} was changed")


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


SAID_ONCE = re.compile(
    r"(priced|others|requests\.\d+\.(model|headers|payload|created)|result\.(tool_rounds\.(messages|results)|(tool_rounds\."
    r"responses\.\d+\.)?(metadata|prompt|timing|failures|passed_over|origins|row_label|provider|"
    r"schema_in_prompt|response_format|stored_price|cost_source|parsed|tool_rounds|(choices\.\d+\.)?tool_calls\.\d+"
    r"\.tool)))(\..*)?"
)
"""What nothing else in a file tells, or what only says where a value comes from."""


def list_places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value of JSON that holds no others."""
    if isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from list_places(each, (*place, key))
    else:
        yield place


def name_place(place: tuple[Any, ...]) -> str:
    return ".".join(map(str, place))


def change(row: dict[str, Any], place: tuple[Any, ...]) -> None:
    """Change one value of a row."""
    *way, last = place
    holder: Any = row
    for key in way:
        holder = holder[key]
    value = holder[last]
    if value is None or isinstance(value, bool):
        holder[last] = not value
    else:
        holder[last] = value + ("x" if isinstance(value, str) else 1)


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


@pytest.mark.parametrize("kind", ["call", "decide"])
@pytest.mark.parametrize("models", [MODELS[:1], MODELS[:2]], ids=len)
@pytest.mark.parametrize("n", [1, 3])
def test_all_that_a_file_says_of_scores_agrees_with_their_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, models: tuple[str, ...], n: int
) -> None:
    """Failed calls, whose model has the name that was asked for, and repeated questions too."""
    prompts = [*(f"What is {number} + 1?" for number in range(5)), "What is 1 + 1?", "secret 1", "secret 2"]
    with Simulator(snapshot_suffix="-2026-10-21") as simulator:
        simulator.inject(Fault(status=400), match="secret", times=None)
        for name, address in simulator.environment().items():
            monkeypatch.setenv(name, address)
        with Client(cache_dir=tmp_path / "cache") as client:
            results: Results[Any] = Results()
            for model in models:
                if kind == "call":
                    results += client.call_many(model, prompts, n=n, max_tokens=50)
                else:
                    questions = {"ok": predicate("It is right.")}
                    results += client.decide_many(model, prompts, questions, method="sampled")
            for failed in (0, 1, None):
                scored = results.score(lambda sample: len(str(sample)) % 2, failed=failed)
                scored.export(tmp_path / "a.zip", client=client)
                check_scores(tmp_path / "a.zip", scored, failed)
                # Other scores than those that the results have.
                values = [
                    failed if isinstance(each, LLMError) else place % 2 for place, each in enumerate(results)
                ]
                scored.export(tmp_path / "b.zip", client=client, scores=values)
                pairs = zip(results, values, strict=True)
                given = Results(with_scores(each, [value]) for each, value in pairs)
                check_scores(tmp_path / "b.zip", given, failed)


def check_scores(path: Path, results: Results[Any], failed: float | None) -> None:
    table = results.summarize_scores()
    manifest = verify(path).manifest
    expected = {row["model"]: (row["mean"], row["questions"], row["samples"]) for row in table.rows}
    assert {row[1] for row in expected.values()} == {5 + 2 * (failed is not None)}
    read = Results(read_answers(path)).summarize_scores()
    assert read.rows == table.rows
    records, logs = list[Any](), list[Any]()
    with ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith(("data/", "inspect/")) and name.endswith(".json"):
                (records if name.startswith("data/") else logs).append(json.loads(archive.read(name)))
    assert {
        record["model_info"]["name"]: (
            result["score_details"]["score"], result["score_details"]["uncertainty"]["num_samples"],
            record["detailed_evaluation_results"]["total_rows"],
        )
        for record in records for result in record["evaluation_results"]
    } == expected  # fmt: skip
    for log in logs:
        mean, _, samples = expected[log["eval"]["model"].partition("/")[2]]
        assert log["results"]["scores"][0]["metrics"]["mean"]["value"] == mean
        assert len(log["samples"]) == log["results"]["total_samples"] == samples
        errors = [sample["scores"]["scores"]["value"] for sample in log["samples"] if sample["error"]]
        assert errors == [failed] * (2 if failed is not None else 0)
        assert log["results"]["completed_samples"] == samples - len(errors)
    figures = manifest["figures"]["models"]
    assert {name.partition("/")[2]: figures[name]["errors"] for name in figures} == dict.fromkeys(expected, 2)


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


@pytest.mark.parametrize("kind", ["call", "decide", "score"])
def test_what_another_client_has_is_told_in_one_line_that_names_it(
    client: Client, simulator: Simulator, tmp_path: Path, kind: str
) -> None:
    model, texts = MODELS[0], ["1", "2", "3"]
    own = tmp_path / "prices.csv"
    own.write_text(
        "provider,model,input,output,effective_from,source\nopenai,gpt-6.1-sol,77,99,2020-01-01,me\n"
    )
    with Client(cache_dir=tmp_path / "other") as other, Client(prices=own) as dear:
        if kind == "call":
            made: Results[Any] = other.call_many(model, texts, max_tokens=50)
            priced = dear.call_many(model, ["4", "5", "6"], max_tokens=50)
            said = str(priced.export(tmp_path / "b.zip", client=client))
            assert "price of 3: this client has another price list: export(path, client=client)" in said
        elif kind == "decide":
            made = other.decide_many(model, texts, {"ok": predicate("It is right.")}, method="sampled")
        else:
            hosted = "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo"
            made = other.score_many(hosted, texts, [[" 4", " 5"]] * 3)
        said = str(made.export(tmp_path / "a.zip", client=client))
        verify(tmp_path / "a.zip")
        assert "export(path, client=client)" in said
        assert "b'" not in said
        assert len(said.splitlines()) <= 5
        assert made.export(tmp_path / "a.zip", client=other).not_computed == {}


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
