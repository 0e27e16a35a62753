"""The benchmark suite with a handful of requests: that it works and counts, not how fast anything is."""

import asyncio
import doctest
import importlib
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import loads, report
from benchmarks.__main__ import command, descriptions
from benchmarks.clients import Client, Target, offers
from benchmarks.environments import OURS, REQUIREMENTS
from benchmarks.goals import GOALS, Goal
from benchmarks.scenarios import Options
from llm_provider._core.tokens.tokenizer import encoding_counter

ROOT = Path(__file__).parents[2]
SCENARIOS = {
    "bursts": ("aiohttp",),
    "calls": ("aiohttp", "ours"),
    "clouds": (),
    "levels": ("aiohttp",),
    "models": ("ours",),
    "observability": ("ours_user", "ours_metered", "ours_observed"),
    "open_loop": ("aiohttp",),
    "pythons": (),
    "streams": ("ours",),
    "sweep": ("aiohttp",),
    "telemetry": ("ours_untraced", "ours_traced"),
    "threads": ("ours_default",),
    "transports": ("ours_http2",),
}
"""Each with as few clients as show that it works: to start one takes longer than to ask it."""


class Parrot(Client):
    """Says what it is asked, "wrong" and "broken" excepted."""

    async def call(self, prepared: Any) -> str:
        if prepared == "broken":
            raise ConnectionError("cut")
        return "something else" if prepared == "wrong" else prepared

    async def stream(self, prepared: Any) -> AsyncIterator[str]:
        for word in (await self.call(prepared)).split():
            yield word

    def call_blocking(self, prepared: Any) -> str:
        return asyncio.run(self.call(prepared))


def put(name: str, questions: Sequence[str], **how: Any) -> loads.Notes:
    notes = loads.Notes()
    notes.start()
    prompts = [loads.Prompt(question, question) for question in questions]
    with asyncio.Runner() as runner:
        loads.run(name, Parrot(Target(route="openai", model="any")), prompts, notes, runner, **how)
    return notes


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_measures_and_every_answer_is_right(scenario: str) -> None:
    models = ("gpt-6.1-sol",) if scenario in ("models", "transports") else ()
    options = Options(quick=True, here=True, clients=SCENARIOS[scenario], models=models)
    result = importlib.import_module(f"benchmarks.scenarios.{scenario}").run(options)
    document = report.document(result, command(scenario, options))
    page = report.markdown(scenario, json.loads(json.dumps(document)))
    assert page.startswith(f"# {result.title}\n")
    assert result.versions
    shown = {"failed", "right", "direct tokens/s", "instructions"}
    assert all(set(table.columns) & shown for table in result.tables)
    for table in result.tables:
        for row in table.rows:
            row_by_name = dict(zip(table.columns, row, strict=True))
            assert row_by_name.get("failed") in (None, 0), row
            assert row_by_name.get("right", "100 %") == "100 %", row


@pytest.mark.long
def test_the_simulator_is_measured_too() -> None:
    result = importlib.import_module("benchmarks.scenarios.simulator").run(Options(quick=True))
    assert len(result.tables[0].rows) == 8


def test_estimated_tokens_are_compared_with_counted_ones() -> None:
    if encoding_counter("o200k_base") is None:
        pytest.skip("the encoding is not on this machine")
    result = importlib.import_module("benchmarks.scenarios.tokens").run(Options(quick=True))
    assert [len(table.rows) for table in result.tables] == [36, 2, 2]


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("closed", {"concurrency": 2, "stream": False}),
        ("closed", {"concurrency": 2, "stream": True}),
        ("arrivals", {"rate": 1000.0, "seed": 1}),
        ("threads", {"concurrency": 2}),
    ],
)
def test_a_load_counts_what_was_right_and_keeps_the_first_error(name: str, how: dict[str, Any]) -> None:
    notes = put(name, ["one", "wrong", "two", "broken", "three"], **how)
    assert notes.right == 3
    assert notes.error is not None
    assert len(notes.latencies) == 3


def test_every_client_has_an_environment_of_exact_versions() -> None:
    for offer in offers().values():
        assert offer.environment in OURS or (REQUIREMENTS / f"{offer.environment}.txt").exists()
    for pins in REQUIREMENTS.glob("*.txt"):
        text = pins.read_text()
        assert "://" not in text
        named = re.findall(r"^[a-z0-9].*$", text, re.MULTILINE)
        assert named
        assert all("==" in line and line.endswith("\\") for line in named)
        assert pins.with_suffix(".in").exists()


def test_goals_belong_to_scenarios_and_a_committed_result_measured_all_of_its_own() -> None:
    names = [goal.name for goal in GOALS]
    assert len(set(names)) == len(names)
    assert {goal.scenario for goal in GOALS} <= set(descriptions())
    for path in report.RESULTS.glob("*.json"):
        own = {goal.name for goal in GOALS if goal.scenario == path.stem}
        assert own <= set(json.loads(path.read_text()).get("measured", {})), path.name


def test_a_missed_goal_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (Goal("fast", "calls", "it is fast", 2, "ms"), Goal("much", "calls", "it is much", 3, "", True))
    monkeypatch.setattr(report, "GOALS", rows)
    table = report.goals_table("calls", {"fast": 2.5, "much": 3.0})
    assert "| it is fast | ≤ 2 ms | 2.5 ms | **missed** |" in table
    assert "| it is much | ≥ 3 | 3 |  |" in table


def test_results_are_written_and_make_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(report, "DOCS", tmp_path)
    table = report.Table(title="Some", columns=("client", "µs"), rows=[["ours", 1.5]])
    result = report.Result(
        title="A scenario", text="How.", tables=[table], measured={"observed": 1.0}, rounds=3
    )
    page = report.write_results("observability", result, "python -m benchmarks observability --write")
    assert "Medians of 3 interleaved rounds." in page.read_text()
    summary, data = (path.read_text() for path in report.write_pages())
    assert "| ours | 1.5 |" in page.read_text()
    assert "[A scenario](../benchmarks/results/observability.md)" in data
    assert "| 1 % |  |" in data
    assert f"1 of {len(GOALS)} are met" in summary
    assert "<!--" not in summary + data


def test_committed_pages_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(report, "DOCS", tmp_path)
    for page in report.write_pages():
        assert page.read_text() == (ROOT / "docs" / page.name).read_text(), "run python -m benchmarks report"
    assert len((tmp_path / "performance.md").read_text().splitlines()) < 90


MODULES = """__main__ clients clients._wire fleet goals hot_path journeys provider report scenarios
scenarios.profiles worker"""


@pytest.mark.parametrize("module", MODULES.split())
def test_the_examples_in_the_docstrings_are_true(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(f"benchmarks.{module}"))
    assert outcome.attempted
    assert not outcome.failed


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
    )


def test_the_command_line_lists_scenarios_and_refuses_what_makes_no_sense() -> None:
    listed = run("--help")
    assert listed.returncode == 0
    assert "calls" in listed.stdout
    refused = run("calls", "--quick", "--write")
    assert refused.returncode == 2
    assert "mean nothing" in refused.stderr


@pytest.mark.parametrize("scenario", ["models", "transports"])
def test_nothing_is_sent_to_real_providers_without_keys(scenario: str) -> None:
    refused = run(scenario, "--model", "gpt-6.1-sol", "--live")
    assert refused.returncode == 1
    assert "OPENAI_API_KEY" in refused.stderr
    assert refused.stdout == ""
