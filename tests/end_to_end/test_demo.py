"""The demo: the first thing that a new user runs."""

import os
import pty
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from llm_provider.simulator import Fault, Simulator

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


class Line(NamedTuple):
    """A line of the table, as printed."""

    provider: str
    model: str
    accuracy: str
    input_tokens: str
    output_tokens: str
    cost: str
    latency_p50: str
    latency_p95: str
    requests: str
    refused: str


def table(out: str) -> dict[str, Line]:
    """The lines of the table by provider."""
    _, _, below = out.partition("p50 s")
    lines = below.partition("\n\n")[0].splitlines()[1:]
    return {line.provider: line for line in (Line(*text.split()) for text in lines)}


def run_in_a_pipe(warm_python: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*warm_python, str(DEMO), *arguments], capture_output=True, text=True, check=False, timeout=100
    )


def run_on_a_terminal(warm_python: list[str], *arguments: str) -> tuple[int, str]:
    """Exit code, and everything that the terminal showed."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen([*warm_python, str(DEMO), *arguments], stdout=terminal, stderr=terminal)
    os.close(terminal)
    output = b""
    try:
        # Read while it runs: a terminal that is full makes the program wait.
        while piece := os.read(controller, 65536):
            output += piece
    except OSError:
        pass  # how Linux reports that the other side has gone
    finally:
        os.close(controller)
    return process.wait(100), output.decode().replace("\r\n", "\n")


def test_it_evaluates_four_providers_and_then_the_cache(warm_python: list[str]) -> None:
    ended = run_in_a_pipe(warm_python)
    # On a slow machine it tells of calls that wait for the rate limit.
    assert ended.returncode == 0, ended.stderr
    assert all(line.startswith("llm_provider: ") for line in ended.stderr.splitlines()), ended.stderr
    lines = table(ended.stdout)
    assert list(lines) == ["openai", "anthropic", "gemini", "together_ai"]
    for line in lines.values():
        assert 80 <= float(line.accuracy.rstrip("%")) < 100
        assert int(line.input_tokens) > int(line.output_tokens) >= 200
        assert float(line.cost) > 0
        assert 0.05 <= float(line.latency_p50) <= float(line.latency_p95)
        assert int(line.requests) == 200 + int(line.refused)
    assert len({line.accuracy for line in lines.values()}) == 4
    # Its headers tell how much of its limit is left, so few requests are refused, or none.
    assert int(lines["together_ai"].refused) < 50
    second = re.search(r"^Second run: the same questions\n  took [\d.]+ s, (.*)$", ended.stdout, re.MULTILINE)
    assert second is not None
    assert second[1] == "0 requests, $0.00, 800 of 800 answers from the cache"
    assert re.search(r"first token after \d+\.\d+ s, all after \d+\.\d+ s", ended.stdout)
    amounts = re.search(r"Cost of all calls: (\S+)\. The simulator would have billed (\S+)\.\n", ended.stdout)
    assert amounts is not None
    assert amounts[1] == amounts[2]


def test_one_model_on_a_terminal_shows_the_bar(simulator: Simulator, warm_python: list[str]) -> None:
    code, output = run_on_a_terminal(warm_python, "--model", "gpt-6.1-sol", "--questions", "7")
    assert code == 0
    assert "7/7" in output
    assert "cached=7 $0.00" in output
    assert "0 requests, $0.00, 7 of 7 answers from the cache" in output
    # Seven questions and the streamed answer; what refused and billed is not asked in this mode.
    assert simulator.ledger().requests == 8
    assert table(output)["openai"].refused == "-"


def test_what_goes_wrong_is_reported(simulator: Simulator, warm_python: list[str]) -> None:
    simulator.inject(Fault(status=400, message="no such field"))
    ended = run_in_a_pipe(warm_python, "--model", "gpt-6.1-sol", "--questions", "3")
    assert ended.returncode == 1
    failed, sent_again = ended.stderr.splitlines()
    assert failed.startswith("demo: calls that failed: 1; the first: no such field")
    assert sent_again == "demo: the second run was not answered by the cache alone"
