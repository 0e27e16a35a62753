"""Compare models on the same questions: quality, cost and time.

python examples/sweep.py                                              a simulator answers; needs no API key
python examples/sweep.py --model gpt-6.1-sol --model claude-sonnet-5-5    real models; their keys are set
"""

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from statistics import median

from llm_provider import Client, LLMError
from llm_provider.simulator import Simulator

SUMS = [(left, right) for left in range(11, 31) for right in (7, 48)]
SIMULATED = {
    "gpt-6.1-sol": {"provider": "openai", "error_rate": 0.05},
    "claude-haiku-5-5": {"provider": "anthropic", "error_rate": 0.1},
    "gemini-3.8-flash": {"provider": "gemini", "error_rate": 0.2},
}
"""The settings of each simulated provider; all of them answer after 20 ms."""


def sweep(client: Client, models: list[str]) -> None:
    """Print an estimate for each model, then ask all of them and print one line for each."""
    questions = [f"What is {left} * {right}? Answer with the number alone." for left, right in SUMS]
    expected = [str(left * right) for left, right in SUMS]
    for model, estimate in client.estimate(models, questions, max_tokens=500).items():
        print(f"{model:30} likely cost ${estimate.cost.likely:.4f}" if estimate.cost else model)
    found = client.call_many(models, questions, metadata=expected, max_tokens=500, budget=1.00)
    print(f"\n{'model':30} {'correct':>8} {'failed':>7} {'cost':>10} {'tokens out':>11} {'median s':>9}")
    for model, results in found.items():
        correct = sum(answer.text.strip() == answer.metadata for answer in results.ok) / len(results)
        seconds = median(answer.timing.total for answer in results.ok) if results.ok else float("nan")
        print(
            f"{model:30} {correct:>8.1%} {len(results.errors):>7} {results.cost!s:>10} "
            f"{results.usage.output_tokens:>11,} {seconds:>9.3f}"
        )


def main() -> None:
    """Read the command line. An error of the library or a missing extra ends the script with its message."""
    parser = argparse.ArgumentParser(description="Compare models on the same questions.")
    parser.add_argument("--model", action="append", help="a real model, with its API key in the environment")
    arguments = parser.parse_args()
    try:
        with ExitStack() as stack:
            if not arguments.model:
                simulator = stack.enter_context(Simulator(latency=0.02))
                for settings in SIMULATED.values():
                    simulator.configure(**settings)
                os.environ.update(simulator.environment())
            cache = stack.enter_context(tempfile.TemporaryDirectory())
            client = stack.enter_context(Client(cache_dir=cache))
            sweep(client, arguments.model or list(SIMULATED))
    except (LLMError, ImportError) as error:
        sys.exit(f"sweep: {error}")


if __name__ == "__main__":
    main()
