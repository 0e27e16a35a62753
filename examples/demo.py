"""Evaluate models on sums, twice: over the network, then from the cache.

    python examples/demo.py                        four simulated providers; needs no API key
    python examples/demo.py --model gpt-6.1-sol    a real model; its API key is in the environment

Without `--model` every request goes through the provider's real SDK to a simulator on this machine. The
simulator makes mistakes, refuses requests that come too fast with HTTP 429, and adds up the bill.
"""

import argparse
import os
import random
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from operator import add, mul, sub
from pathlib import Path
from typing import Any

from llm_provider import Client, LLMError, Response, Usage
from llm_provider.simulator import Simulator

PRICES = Path(__file__).parents[1] / "prices.csv"
TASK = "Answer with the number alone."
OPERATIONS = {"+": add, "-": sub, "*": mul}

RATE_LIMIT = {"requests_per_minute": 6000, "burst": 20}
# The settings of each simulated provider; all of them answer after 50 ms.
SIMULATED: dict[str, dict[str, Any]] = {
    "gpt-6.1-sol": {"provider": "openai", "error_rate": 0.02},
    "claude-sonnet-5-5": {"provider": "anthropic", "error_rate": 0.03, "max_concurrent": 12},
    "gemini/gemini-3.8-flash": {"provider": "gemini", "error_rate": 0.08},
    "together_ai/zai-org/GLM-5.3": {"provider": "together_ai", "error_rate": 0.12, **RATE_LIMIT},
}


@dataclass
class Score:
    """The answers of one model, and the requests they took."""

    model: str
    results: list[Response | LLMError]
    accuracy: float
    requests: int
    refused: int | None  # requests answered with 429; None for a real provider

    @property
    def answers(self) -> list[Response]:
        """The results without the errors."""
        return [result for result in self.results if isinstance(result, Response)]

    @property
    def cost(self) -> float:
        """USD of all answers."""
        return sum(answer.cost or 0.0 for answer in self.answers)


def questions(number: int) -> list[tuple[str, int]]:
    """Different sums with their values; the same sums in every run."""
    source = random.Random(2026)
    sums = []
    for pair in source.sample(range(1_000_000), number):
        left, right = divmod(pair, 1000)
        sign = source.choice(list(OPERATIONS))
        sums.append((f"What is {left} {sign} {right}? {TASK}", OPERATIONS[sign](left, right)))
    return sums


def is_correct(result: Response | LLMError, expected: int) -> bool:
    """Whether the last number of an answer is the expected one."""
    numbers = re.findall(r"-?\d+", str(result).replace(",", "").replace("\N{MINUS SIGN}", "-"))
    return isinstance(result, Response) and numbers[-1:] == [str(expected)]


def evaluate(client: Client, model: str, sums: list[tuple[str, int]], simulator: Simulator | None) -> Score:
    """Ask one model all questions in one batch; `call_many` shows its progress on a terminal."""
    before = simulator.ledger() if simulator else None
    results = client.call_many(model, [question for question, _ in sums])
    errors = [result for result in results if isinstance(result, LLMError)]
    if len(errors) == len(results):
        raise errors[0]
    correct = [is_correct(result, expected) for result, (_, expected) in zip(results, sums, strict=True)]
    requests = sum(one.timing.attempts if isinstance(one, Response) else one.attempts for one in results)
    refused = None
    if simulator and before:
        after = simulator.ledger()
        requests = after.requests - before.requests
        refused = after.rate_limited - before.rate_limited
    return Score(model, results, sum(correct) / len(correct), requests, refused)


def print_table(scores: list[Score]) -> None:
    """Print one line per model. Latency is the provider's, without the wait for a slot and our own work."""
    columns = "{:<12} {:<18} {:>8} {:>7} {:>7} {:>9} {:>8} {:>8} {:>9} {:>8}"
    head = "provider,model,accuracy,tokens,tokens,cost,latency,latency,requests,refused"
    unit = ",,,in,out,USD,p50 s,p95 s,sent,429"
    print(columns.format(*head.split(",")), columns.format(*unit.split(",")), sep="\n")
    for score in scores:
        usage = sum((answer.usage for answer in score.answers), Usage())
        times = [answer.timing for answer in score.answers]
        latencies = sorted(timing.total - timing.queue - timing.overhead for timing in times)
        cells = (
            score.answers[0].provider,
            score.model.rpartition("/")[2],
            f"{score.accuracy:.1%}",
            usage.input_tokens,
            usage.output_tokens,
            f"{score.cost:.6f}",
            f"{latencies[len(latencies) // 2]:.3f}",
            f"{latencies[int(len(latencies) * 0.95)]:.3f}",
            score.requests,
            "-" if score.refused is None else score.refused,
        )
        print(columns.format(*cells))


def print_stream(client: Client, model: str) -> Response:
    """Print one answer while it arrives."""
    with client.stream(model, "Say in one sentence why the sky is blue, then stop.") as deltas:
        for delta in deltas:
            print(delta.text, end="", flush=True)
    timing = deltas.response.timing
    print(f"\n  first token after {timing.first_token or 0:.3f} s, all after {timing.total:.3f} s")
    return deltas.response


def demonstrate(models: list[str], number: int, simulator: Simulator | None) -> int:
    """Run the evaluation twice and stream one answer. Returns the exit code."""
    sums = questions(number)
    with tempfile.TemporaryDirectory() as directory, Client(cache_dir=directory) as client:
        print(f"First run: {number} questions to each model", flush=True)
        started = time.perf_counter()
        first = []
        for model in models:
            print(f"  {model}", flush=True)
            first.append(evaluate(client, model, sums, simulator))
        print(f"  took {time.perf_counter() - started:.2f} s\n", flush=True)
        print_table(first)

        print("\nSecond run: the same questions", flush=True)
        started = time.perf_counter()
        second = [evaluate(client, model, sums, simulator) for model in models]
        seconds = time.perf_counter() - started
        cached = sum(answer.cached for score in second for answer in score.answers)
        requests, cost = sum(score.requests for score in second), sum(score.cost for score in second)
        hits = f"{cached} of {number * len(models)} answers from the cache"
        print(f"  took {seconds:.2f} s, {requests} requests, ${cost:.2f}, {hits}\n", flush=True)

        print(f"One answer of {models[0]}, streamed:")
        streamed = print_stream(client, models[0])
    paid = sum(score.cost for score in first) + (streamed.cost or 0.0)
    return 0 if check(first, second, paid, simulator) else 1


def check(first: list[Score], second: list[Score], paid: float, simulator: Simulator | None) -> bool:
    """Print every problem; True if there is none."""
    failures = [result for score in first for result in score.results if isinstance(result, LLMError)]
    problems = [f"calls that failed: {len(failures)}; the first: {failures[0]}"] if failures else []
    if any(score.requests or score.cost for score in second):
        problems.append("the second run was not answered by the cache alone")
    if simulator:
        billed = float(simulator.ledger().billed or 0)
        print(f"\nCost of all calls: ${paid:.6f}. The simulator would have billed ${billed:.6f}.")
        if abs(paid - billed) > 1e-9:
            problems.append("the two amounts differ")
    for problem in problems:
        print(f"demo: {problem}", file=sys.stderr)
    return not problems


def main() -> int:
    """Read the command line. An error of the library or a missing extra ends the script with its message."""
    parser = argparse.ArgumentParser(description="Evaluate models twice; the second time from the cache.")
    parser.add_argument("--model", action="append", help="a real model, with its API key in the environment")
    parser.add_argument("--questions", type=int, default=200, help="how many (default %(default)s)")
    arguments = parser.parse_args()
    if not 1 <= arguments.questions <= 1_000_000:
        parser.error("--questions is a number from 1 to 1000000")
    try:
        return run(arguments.model, arguments.questions)
    except (LLMError, ImportError) as error:
        sys.exit(f"demo: {error}")


def run(models: list[str] | None, number: int) -> int:
    """Run the demonstration with real models, or with a simulator in place of the providers."""
    if models:
        return demonstrate(models, number, None)
    with Simulator(latency=0.05, chunk_interval=0.03, prices=str(PRICES)) as simulator:
        for settings in SIMULATED.values():
            simulator.configure(**settings)
        os.environ.update(simulator.environment("together_ai"))
        return demonstrate(list(SIMULATED), number, simulator)


if __name__ == "__main__":
    sys.exit(main())
