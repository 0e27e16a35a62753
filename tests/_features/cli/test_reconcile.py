"""`llm-provider reconcile`: the ledger of real calls beside the simulator's reports of what it billed."""

from __future__ import annotations

import json
import urllib.request
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from cloud_support import FakeCloud
from llm_provider import Client
from llm_provider._core.money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator
from llm_provider.simulator._records.books import name_key
from support import RunCommand

KEYS = {
    "OPENAI_ADMIN_KEY": "sk-admin-of-the-test", "ANTHROPIC_ADMIN_KEY": "sk-ant-admin-of-the-test",
    "OPENROUTER_PROVISIONING_KEY": "sk-or-provisioning-of-the-test",
}  # fmt: skip
MODELS = ("gpt-6.1-sol", "claude-haiku-5-5", "openrouter/openai/gpt-6.1-sol")


@pytest.fixture
def ledger(simulator: Simulator, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ledger of calls, streams, embeddings and failures at three providers."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    simulator.configure(prices=default_prices_path(), snapshot_suffix="-2026-10-21", batch_seconds=0.0)
    simulator.configure("anthropic", cache_write_tokens=2)
    path = tmp_path / "calls.jsonl"
    with Client(cache_dir=own_cache, ledger=path, max_retries=1) as client:
        for model in MODELS:
            client.call_many(model, [f"What is {number} + 1?" for number in range(3)], max_tokens=50)
            with client.stream(model, "Tell me a story.", max_tokens=50) as deltas:
                list(deltas)
            simulator.inject(Fault(abort_after=1), match="broken")
            client.call(model, "broken?", max_tokens=50)
        simulator.configure("anthropic", web_searches=1)
        client.call(MODELS[1], "Search the web.", max_tokens=50)
        client.embed("text-embedding-3-small", ["a", "b"])
    return str(path)


def test_the_ledger_agrees_with_the_reports_of_three_providers(
    run: RunCommand, ledger: str, simulator: Simulator, own_cache: Path
) -> None:
    simulator.configure("anthropic", web_searches=0)
    with Client(cache_dir=own_cache, ledger=ledger) as client:
        for model in MODELS[:2]:
            client.call_many(model, ["one", "two"], max_tokens=50, delivery="batch")
    ended = run("reconcile", ledger, "--json")
    assert (ended.code, ended.err) == (0, ""), ended
    found = json.loads(ended.out)
    assert found["cost"]["unexplained"] == pytest.approx(0, abs=1e-9)
    assert found["cost"]["report"] == pytest.approx(float(simulator.ledger().billed or 0))
    assert {(row["measure"], row["provider"], row["delivery"]) for row in found["rows"]} >= {
        ("usage", "openai", "batch"), ("usage", "anthropic", "batch"), ("usage", "openrouter", ""),
        ("cost", "openai", ""), ("cost", "anthropic", "batch"), ("cost", "openrouter", ""),
    }  # fmt: skip
    tokens = {name for row in found["rows"] for name in row["tokens"]}
    assert {"input_tokens", "output_tokens", "cache_write_input_tokens"} <= tokens
    broken = [row for row in found["rows"] if row["explained"].get("unknown cost")]
    assert {row["candidates"][0]["error"] for row in broken} == {"APIConnectionError"}
    assert {row["provider"] for row in broken} == {"openai", "anthropic", "openrouter"}
    table = run("reconcile", ledger)
    assert (table.code, "unknown cost" in table.out, f"{ledger}:" in table.out) == (0, True, True)
    assert run("reconcile", ledger, "--provider", "openai", "--json").out.count('"anthropic"') == 0


def test_another_program_is_found_and_named(run: RunCommand, ledger: str, simulator: Simulator) -> None:
    body = {"model": "gpt-6.1-sol", "messages": [{"role": "user", "content": "I am another program. " * 50}]}
    url, data = f"{simulator.url('openai')}/chat/completions", json.dumps(body).encode()
    headers = {"authorization": "Bearer sk-other", "content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url, data, headers)).close()
    ended = run("reconcile", ledger)
    assert (ended.code, "1 requests without a line" in ended.out) == (1, True), ended
    assert run("reconcile", ledger, "--tolerance", "100").code == 0
    # Under a key of its own it is not compared.
    fingerprint = json.loads(Path(ledger).read_text().splitlines()[0])["account"]
    own = f"{name_key('simulator-key')}={fingerprint}"
    ended = run("reconcile", ledger, "--provider", "openai", "--key", own, "--json")
    found = json.loads(ended.out)
    assert (ended.code, {row["account"] for row in found["rows"]}) == (0, {fingerprint})
    ended = run("reconcile", ledger, "--key", f"{name_key('sk-other')}=0123456789abcdef")
    assert (ended.code, "no billed line" in ended.err) == (2, True)
    assert run("reconcile", ledger, "--key", "key_1").code == 2


def test_saved_reports_take_the_place_of_the_network(
    run: RunCommand, ledger: str, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = json.loads(run("reconcile", ledger, "--provider", "openai", "--json").out)
    paths, query = [], "?start_time=1795000000&limit=31&group_by[]=api_key_id&group_by[]="
    groups = "completions=model&group_by[]=batch", "embeddings=model", "costs=line_item"
    url, headers = f"{simulator.url('openai')}/organization", {"authorization": "Bearer sk-admin"}
    for name, _, group in (group.partition("=") for group in groups):
        path = tmp_path / f"{name}.json"
        address = f"{url}/{'' if name == 'costs' else 'usage/'}{name}{query}{group}"
        request = urllib.request.Request(address, headers=headers)
        with urllib.request.urlopen(request) as answer:
            path.write_bytes(answer.read())
        paths += ["--report", str(path)]
    for name in KEYS:
        monkeypatch.delenv(name)
    ended = run("reconcile", ledger, *paths, "--json")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == fetched
    # Without the report of embeddings only what it has is compared.
    ended = run("reconcile", ledger, *paths[:2], "--json")
    assert {row["measure"] for row in json.loads(ended.out)["rows"]} == {"usage"}


def test_what_cannot_be_compared_is_an_error_with_a_remedy(
    run: RunCommand, ledger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = run("reconcile", ledger, "--since", "2030-01-01")
    assert (ended.code, "no billed line" in ended.err) == (2, True)
    (empty := tmp_path / "empty.jsonl").touch()
    assert run("reconcile", str(empty)).code == 2
    ended = run("reconcile", str(tmp_path / "missing"))
    assert (ended.code, "name the file of Client(ledger=FILE)" in ended.err) == (2, True), ended
    assert run("reconcile").code == 2
    text = Path(ledger).read_text().replace('"time":17', '"time":16')
    (old := tmp_path / "old.jsonl").write_text(text)
    ended = run("reconcile", str(old), "--provider", "openai")
    assert (ended.code, "the report has nothing from" in ended.err) == (2, True), ended
    for provider, variable in zip(("openai", "anthropic", "openrouter"), KEYS, strict=True):
        monkeypatch.setenv(variable, "sk-plain-key-of-a-user")
        ended = run("reconcile", ledger, "--provider", provider)
        assert (ended.code, f"{variable} must be the key of an administrator" in ended.err) == (1, True)
        assert "sk-plain" not in ended.err
        monkeypatch.delenv(variable)
        ended = run("reconcile", ledger, "--provider", provider)
        assert (ended.code, variable in ended.err, "--report" in ended.err) == (2, True, True), ended


def test_calls_at_midnight_may_count_a_day_later(run: RunCommand, ledger: str, simulator: Simulator) -> None:
    simulator.configure(billing_clock=86_400.0)
    with Client(ledger=ledger, cache="refresh") as client:
        client.call("gpt-6.1-sol", "late " * 50, max_tokens=50)
        simulator.configure(billing_clock=-4 * 86_400.0)
        client.call_many("gpt-6.1-sol", ["collected days later"], max_tokens=50, delivery="batch")
    ended = run("reconcile", ledger, "--provider", "openai", "--border", "1d", "--json")
    assert ended.code == 0
    words = [row["explained"] for row in json.loads(ended.out)["rows"] if row["model"] == "gpt-6.1-sol"]
    assert any(word.get("another day", 0) < 0 for word in words)


def test_a_provider_whose_report_is_empty_is_compared(
    run: RunCommand, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "calls.jsonl"
    simulator.configure(prices=default_prices_path())
    with Client(ledger=path, cache="off") as client:
        client.call(MODELS[0], "1 + 1 = ?", max_tokens=50)
    line = path.read_text()
    other = line.replace('"openai"', '"anthropic"').replace("/openai/v1", "/anthropic")
    path.write_text(
        line + other + line.replace("/openai", "/elsewhere") + line.replace('"openai"', '"gemini"')
    )
    # OpenRouter reports no day before it has ended.
    simulator.configure(billing_clock=-86_400.0)
    with Client(ledger=path, cache="off") as client:
        client.call(MODELS[2], "1 + 1 = ?", max_tokens=50)
    ended = run("reconcile", str(path))
    assert "2 rows are not compared" in ended.err
    told = ["1 lines of other" in ended.err, "1 lines of gemini" in ended.err]
    assert (ended.code, ended.out.count("nothing in the report"), *told) == (1, 2, True, True)
    monkeypatch.delenv("ANTHROPIC_ADMIN_KEY")
    path.write_text(line + other.replace('"time":17', '"time":16'))
    assert run("reconcile", str(path), "--since", "1d").code == 0


LINE = """{"time":1795170000,"outcome":"answered","provider":"openai","model":"m","served":"m","tag":"",
 "usd":"0.1"}""".replace("\n", "")


def bucket(*costs: tuple[str | None, Any], **others: Any) -> str:
    amounts = [(name, {"value": usd, "currency": "usd"}) for name, usd in costs]
    kind = "organization.costs.result"
    rows = [{"object": kind, "line_item": name, "amount": amount} for name, amount in amounts]
    return json.dumps({"data": [{"start_time": 1795132800, "results": [*rows, *others.values()]}]})


def analytics(measure: str, kind: str, **counts: Any) -> str:
    """A page of Anthropic's `analytics/cost` or `analytics/usage`."""
    group = {"model": "m" if kind == "tokens" else None, "cost_type": kind, "service_tier": "standard"}
    return json.dumps({"data": [{"starting_at": "2026-11-20T00:00:00Z", "group": group, measure: counts}]})


@pytest.mark.parametrize(
    ("report", "options", "code", "message"),
    [
        (bucket(("m, input", 0.1)), "", 0, "usage: not compared for openai"),
        (f"[{bucket(('m', 0.1))}, {bucket(('m', 0.1))}]", "", 2, "rows that another page or file has too"),
        (bucket(("m", 0.1), ("Credit\x1b", -0.01)), "", 1, "a credit or a refund"),
        (bucket(("m", 0.1), (None, 0.01)), "", 1, "no line_item: "),
        (bucket((None, 0.1)), "", 2, "group_by[]=line_item"),
        ('{"has_more": true}', "", 2, "goes on"),
        (bucket(("m", 0.1)), "--report no", 2, "there is no"),
        (bucket(("m", float("nan"))), "", 2, "is no report"),
        (bucket(("m", "1e999999999")), "", 2, "is no report"),
        (bucket(row={"object": "", "model": "m", "input_tokens": 1.5}), "", 2, "is no report"),
        (bucket(("m", 0.1), row={"object": "", "num_sessions": 1}), "", 0, "usage: not compared"),
        (
            bucket(("flex | m, output, long", 0.06), ("m audio, input", "0.04"), ("a b", None)),
            "",
            0,
            "0 (0.0",
        ),
        (bucket(("m, input", 0.05), ("m, output", 0.1 + 0.2 - 0.25)), "", 0, "$0.00 (0.0"),
        (bucket(("m, input", 0.05), ("m, output", 0.06)), "", 1, "$0.01 (9.0909%) unexplained"),
        (analytics("cost", "tokens", amount="10.0", currency="USD"), "", 0, "cost: $0.10 in"),
        (analytics("cost", "session_usage", amount="1"), "", 1, "session_usage"),
        (analytics("usage", "tokens", output_tokens=1.0), "--project default", 0, "tokens 0 and 1"),
        ("[" * 100_000, "", 2, "is no JSON"),
        (bucket(("m", 0.1)), "--tolerance nan", 2, "percentage"),
        (bucket(("m", 0.1)), "--since 999999d", 2, "expected a day"),
        (bucket(("m", 0.1)), f"--border {'9' * 400}w", 2, "expected a number"),
    ],
)
def test_saved_reports_of_every_kind(
    run: RunCommand, tmp_path: Path, report: str, options: str, code: int, message: str
) -> None:
    line = LINE.replace('"openai"', '"anthropic"') if "starting_at" in report else LINE
    for name, text in ("calls", line), ("report", report):
        (tmp_path / name).write_text(text)
    ended = run("reconcile", f"{tmp_path}/calls", "--report", f"{tmp_path}/report", *options.split())
    assert (ended.code, message in ended.out + ended.err, "\x1b" in ended.out) == (code, True, False), ended


@pytest.mark.parametrize("endless", [False, True])
def test_newer_reports_alone_and_reports_without_an_end(
    run: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endless: bool
) -> None:
    paths: list[str] = []

    def answer(path: str) -> tuple[int, Any]:
        paths.append(path)
        if "/analytics/" not in path and not endless:
            return 404, {"type": "error", "error": {"type": "not_found_error", "message": "gone"}}
        text = analytics("cost", "tokens", amount="10") if "/cost" in path else analytics("usage", "tokens")
        first, page = "page=" not in path, {"next_page": f"page-{len(paths)}", "data": []}
        return 200, page | {"has_more": endless or first} | (json.loads(text) if first else {})

    (tmp_path / "calls").write_text(LINE.replace('"openai"', '"anthropic"'))
    monkeypatch.setenv("ANTHROPIC_ADMIN_KEY", "sk-ant-admin-of-the-test")
    with FakeCloud() as cloud:
        monkeypatch.setattr(cloud, "answer", answer)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://{cloud.address}")
        ended = run("reconcile", f"{tmp_path}/calls")
    message = "names no further page" if endless else "cost: $0.10 in"
    assert (ended.code, message in ended.out + ended.err) == (endless, True), ended
    assert len(paths) == 5 or (endless and len(paths) < 20)


@pytest.mark.parametrize("left", [each for size in range(4) for each in combinations(KEYS, size)])
@pytest.mark.sampled(2)
def test_a_provider_without_an_admin_key_is_left_out_and_named(
    run: RunCommand, ledger: str, monkeypatch: pytest.MonkeyPatch, left: tuple[str, ...]
) -> None:
    for name in KEYS.keys() - set(left):
        monkeypatch.delenv(name)
    ended = run("reconcile", ledger, "--json")
    if not left:
        assert (ended.code, ended.out, "no key of an administrator: set " in ended.err) == (2, "", True)
        return
    names = dict(zip(KEYS, ("openai", "anthropic", "openrouter"), strict=True))
    for variable, provider in names.items():
        assert (f"{provider} is not compared: no key" in ended.err) == (variable not in left)
    found = json.loads(ended.out)
    assert {row["provider"] for row in found["rows"]} == {names[each] for each in left}
    assert ended.code == 0, ended.err
