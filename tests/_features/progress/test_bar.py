"""The progress bar: what it counts and where it shows.

The bar of a job shows the provider's own counts and states, and the time that has passed.
"""

import io
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest

from batch_records import MakeRecord
from llm_provider import Client
from llm_provider._core.types.usage import Cost
from llm_provider._features.progress.bar import (
    BatchProgress,
    Progress,
    describe_records,
    jupyter_bar,
    marimo_bar,
)
from llm_provider.simulator import Fault, Simulator

BATCH = "from llm_provider import call_many; call_many('gpt-6.1-sol', [f'1+{{n}}?' for n in range(8)]{})"


def test_a_cost_that_is_not_known_is_not_shown_as_nothing(
    client: Client, simulator: Simulator, capfd: pytest.CaptureFixture[str]
) -> None:
    local: dict[str, Any] = {"base_url": simulator.url("local"), "api_key": "sk-x"}
    client.call_many("local/m", ["Hi", "Hello"], progress=True, **local)
    assert "cost unknown" in capfd.readouterr().err
    with Progress(2, False, client.statistics) as progress:
        for result in (client.call("gpt-6.1-sol", "Hi"), client.call("local/m", "Hey", **local)):
            progress.update(result)
        text = progress._describe()
    assert progress.sums.unknown.unknown == 1
    assert re.match(r"≥\$0\.00\d+", text)


@pytest.mark.parametrize("total", [1, 450, 10_000])
@pytest.mark.parametrize("failed", [0, 12, 120])
@pytest.mark.parametrize("cached", [0, 350, 3500])
@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (Cost(12.3), "$12.30"), (Cost(0.02286), "$0.02286"), (Cost(0.02286, unknown=2), "≥$0.023"),
        (Cost(0.02286, unknown=20, at_most=0.03283), "$0.023\N{EN DASH}0.056"),
        (Cost(unknown=3), "cost unknown"),
        (Cost(12.3, unknown=2, at_most=2.9), "$12.30\N{EN DASH}15.20"),
        (Cost(unknown=3, at_most=0.5), "≤$0.50"),
    ],
)  # fmt: skip
@pytest.mark.sampled(5)
def test_a_line_of_80_columns_has_failures_stored_answers_and_usd(
    total: int, failed: int, cached: int, cost: Cost, words: str
) -> None:
    with Progress(total, True, list) as progress:
        progress.sums.failed, progress.sums.cached, progress.sums.unknown = failed, cached, cost
        progress._bar.set_postfix_str(progress._describe())
        told = {**progress._bar.format_dict, "ncols": 80, "n": total, "elapsed": 754.0, "rate": 148.6}
        line = progress._bar.format_meter(**told)
    counts = [f"failed={failed}"] * bool(failed) + [f"cached={cached}"] * bool(cached)
    assert line.endswith(f"148.60/s, {' '.join([*counts, words])}]")
    assert len(line) <= 80


def test_nothing_shows_in_a_pipe(simulator: Simulator, warm_python: list[str]) -> None:
    ended = subprocess.run([*warm_python, "-c", BATCH.format("")], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("", "")


@pytest.mark.parametrize("delivery", ["live", "batch"])
def test_a_pipe_gets_a_line_now_and_then(
    client: Client,
    simulator: Simulator,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    delivery: Any,
) -> None:
    monkeypatch.setattr("llm_provider._features.progress.bar._LINE_EVERY", 0.05)
    simulator.configure(batch_seconds=0.5, batch_clock=1)
    for show, expected in ((False, ""), (None, r"(llm_provider: \d of 3 calls: (failed=1 )?\$0\.0.*\n)+")):
        simulator.inject(Fault(delay=0.5), match="2+2", times=1)
        client.call_many(
            "gpt-5.5", [f"{show}: 1+1?", "2+2?", 5], progress=show, delivery=delivery, cache="refresh"
        )
        assert re.fullmatch(expected, capfd.readouterr().err)


@pytest.mark.parametrize(("arguments", "shows"), [("", True), (", progress=False", False)])
def test_terminals_show_it(simulator: Simulator, arguments: str, shows: bool, warm_python: list[str]) -> None:
    terminal, side = pty.openpty()
    subprocess.run([*warm_python, "-c", BATCH.format(arguments)], stderr=side, check=True)
    os.close(side)
    output = b""
    try:
        while piece := os.read(terminal, 65536):
            output += piece
    except OSError:
        pass  # the end of a terminal
    os.close(terminal)
    assert (b"8/8" in output) == shows


@pytest.mark.long
def test_a_bar_that_nothing_renews_tells_why(simulator: Simulator, warm_python: list[str]) -> None:
    simulator.inject(Fault(status=429, retry_after="3"), times=1)
    program = [
        *warm_python,
        "-c",
        "from llm_provider import call_many; call_many('gpt-6.1-sol', ['Hi'], progress=True)",
    ]
    ended = subprocess.run(program, capture_output=True, text=True, check=True)
    assert re.search(r"0/1 .*retrying in 3 s: rate limited \(HTTP 429\), attempt 1", ended.stderr)
    assert re.search(r"0/1 .*1 call waits for the provider's rate limit", ended.stderr)


@pytest.mark.parametrize("delivery", ["live", "batch"])
@pytest.mark.sampled(2)
def test_several_models_have_a_line_each(simulator: Simulator, delivery: str, warm_python: list[str]) -> None:
    program = [
        *warm_python,
        "-c",
        (
            "from llm_provider import call_many\n"
            "call_many(['gpt-6.1-sol', 'claude-haiku-5-5'], ['1+1?', 5, '3+3?'], progress=True, "
            f"delivery={delivery!r})"
        ),
    ]
    ended = subprocess.run(program, capture_output=True, text=True, check=True)
    last = re.findall(r"^(.*100%.*)$", ended.stderr.replace("\r", "\n"), re.MULTILINE)[-3:]
    assert "6/6" in last[0]
    for line, model in zip(last[1:], ["gpt-6.1-sol", "claude-haiku-5-5"], strict=True):
        assert line.strip().startswith(f"{model}: 100%")
        assert "3/3" in line
        assert "failed=1" in line


def test_a_kernel_without_widgets_has_one_line_without_escapes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    bar = jupyter_bar(total=60, unit="call", mininterval=0)
    assert bar.is_single
    bar.set_postfix_str("cost=$0.01 cached=20")
    bar.update(60)
    bar.close()
    captured = capsys.readouterr()
    # Outside a notebook, IPython prints what it would show.
    assert "60/60" in captured.out
    assert "cost=$0.01 cached=20" in captured.out
    assert not {"\r", "\x1b"} & {*captured.out, *captured.err}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_bar_starts_no_process(method: str, warm_python: list[str]) -> None:
    # As on systems whose processes are not forked, where a lock between processes starts one.
    program = f"""
import multiprocessing
from multiprocessing import resource_tracker
multiprocessing.set_start_method({method!r})
multiprocessing.get_all_start_methods = lambda: [{method!r}]
from llm_provider._features.progress.bar import Progress
Progress(3, True, lambda: [])
print(resource_tracker._resource_tracker._pid)
"""
    ended = subprocess.run([*warm_python, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "None\n"


def test_marimo_needs_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    bar = marimo_bar(total=None, unit="call")
    bar.update(3)
    bar.close()
    assert "3call" in capsys.readouterr().err


def test_the_bar_shows_the_providers_counts(make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    record = make_record("a", "b", "c")
    record.append("submitted", remote="batch_1", state="in_progress")
    record.counts = 1, 1
    output = io.StringIO()
    monkeypatch.setattr("sys.stderr", output)
    with BatchProgress(3, True, lambda: [record]):
        pass
    assert "openai in_progress, 2 of 3 rows done" in output.getvalue()
    assert "elapsed" in output.getvalue()


def test_equal_states_are_counted(make_record: MakeRecord) -> None:
    records = [make_record("a", id="1" * 16), make_record("b", id="2" * 16)]
    assert describe_records(records) == "2 of openai planned"
    assert describe_records(records[:1]) == "openai planned"
