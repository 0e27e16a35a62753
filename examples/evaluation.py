"""Evaluate models with three samples for each question: interrupt it, go on, and write what a paper needs.

    python examples/evaluation.py                     a simulator answers; needs no API key, but pandas
    python examples/evaluation.py --model gpt-6.1-sol --model claude-haiku-5-5    real models, with their keys

Ctrl-C loses nothing: the same command asks the rest. With the simulator the script interrupts itself once. It
writes table.csv, table.tex, answers.html with two models beside each other, and study.evidence.zip, which
`llm-provider verify` checks without keys.
"""

import argparse
import itertools
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from llm_provider import Client, LLMError, Results, compare, verify
from llm_provider.simulator import Simulator

QUESTIONS = pd.DataFrame(
    [
        {"id": f"{left}*{right}", "question": f"What is {left} * {right}?", "expected": str(left * right)}
        for left, right in itertools.product(range(11, 51), (7, 48))
    ]
)
SIMULATED = {"gpt-6.1-sol": "openai", "claude-haiku-5-5": "anthropic", "gemini-3.8-flash": "gemini"}
"""Model → its simulated provider, which errs in a fifth of the questions and in a tenth of the samples."""


def ask(client: Client, models: list[str]) -> dict[str, Results[Any]]:
    """Ask each model each question three times. Each answer is stored before it counts as done."""
    return client.call_many(
        models,
        "{question} Answer with the number alone.",
        rows=QUESTIONS,
        metadata=QUESTIONS[["id", "expected"]],
        n=3,
        max_tokens=500,
        budget=5.00,
    )


def score(sweep: dict[str, Results[Any]]) -> dict[str, Results[Any]]:
    """A score for each sample. A failed call counts as wrong."""
    return {
        model: results.score(lambda sample: sample.text.strip() == sample.metadata["expected"], failed=0)
        for model, results in sweep.items()
    }


def summarize(scored: dict[str, Results[Any]]) -> pd.DataFrame:
    """A row for each model: its accuracy, by questions, and what it served and cost."""
    rows = []
    for model, results in scored.items():
        (row,) = results.summarize_scores().rows
        low, high = row["interval"]
        # `price` is what the answers cost when they were bought, in this run or before.
        counts = {"input_tokens": results.usage.input_tokens, "output_tokens": results.usage.output_tokens}
        rows.append({
            "model": model, "accuracy": row["mean"], "low": low, "high": high, "failed": len(results.errors),
            **counts, "USD": float(results.price),
        })  # fmt: skip
    # Not every provider tells a fingerprint.
    tables = {model: results.to_pandas() for model, results in scored.items()}
    table = pd.concat(tables, names=["asked"]).reset_index("asked")
    who = table.reindex(columns=["asked", "model", "served_by.fingerprint"]).fillna("-").groupby("asked")
    served = who.agg(lambda names: " ".join(sorted(set(names))))
    frame = pd.DataFrame(rows).set_index("model", drop=False)
    frame[["served", "fingerprint"]] = served[["model", "served_by.fingerprint"]]
    return frame.round({"accuracy": 3, "low": 3, "high": 3})


def interrupt_after(number: int) -> Any:
    """A function for `on_result` that presses Ctrl-C at one result."""
    counter = itertools.count(1)
    return lambda _result: next(counter) == number and signal.raise_signal(signal.SIGINT)


def evaluate(client: Client, models: list[str], folder: Path) -> None:
    """Ask, score, and write the table and the evidence."""
    sweep = ask(client, models)
    price, paid = (sum(getattr(results, name) for results in sweep.values()) for name in ("price", "cost"))
    print(f"the answers cost {price}; this run paid {paid}")
    scored = score(sweep)
    rows = summarize(scored)
    print(rows.to_string(index=False))
    first, *others = scored
    for model in others:
        print(compare(scored[first], scored[model]))
    folder.mkdir(parents=True, exist_ok=True)
    scored[first].to_html(folder / "answers.html", beside=scored[others[0]] if others else None)
    rows.to_csv(folder / "table.csv", index=False)
    # One list of all models, for the table of a paper, and for one file of evidence.
    everything: Results[Any] = sum(scored.values(), Results())
    (folder / "table.tex").write_text(everything.summarize_scores().to_latex(), encoding="utf-8")
    print(everything.export(folder / "study.evidence.zip", client=client))
    assert verify(folder / "study.evidence.zip").rows == len(everything)
    if failed := everything.errors:
        sys.exit(f"evaluation: {len(failed)} calls failed, and the same command asks them again: {failed[0]}")


def main() -> None:
    """Read the command line. An error of the library or a missing extra ends the script with its message."""
    parser = argparse.ArgumentParser(description="Evaluate models with three samples for each question.")
    parser.add_argument("--model", action="append", help="a real model, with its API key in the environment")
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go (default: here)")
    arguments = parser.parse_args()
    try:
        if arguments.model:
            with Client() as client:
                evaluate(client, arguments.model, arguments.folder)
            return
        with ExitStack() as stack:
            simulator = stack.enter_context(Simulator(latency=0.05, error_rate=0.2, noise=0.1))
            os.environ.update(simulator.environment())
            cache = stack.enter_context(tempfile.TemporaryDirectory())
            try:
                with Client(cache_dir=cache, on_result=interrupt_after(100)) as client:
                    ask(client, list(SIMULATED))
            except KeyboardInterrupt as interrupt:
                print("Ctrl-C:", *interrupt.__notes__)
            with Client(cache_dir=cache) as client:
                evaluate(client, list(SIMULATED), arguments.folder)
    except (LLMError, ImportError) as error:
        sys.exit(f"evaluation: {error}")


if __name__ == "__main__":
    main()
