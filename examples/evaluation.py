"""Evaluate models with three samples for each question: interrupt it, go on, and write what a paper needs.

    python examples/evaluation.py                     a simulator answers; needs no API key, but pandas
    python examples/evaluation.py --model gpt-6.1-sol --model claude-haiku-5-5    real models, with their keys

Ctrl-C loses nothing: the same command asks the rest. With the simulator the script interrupts itself once. It
writes table.csv, table.tex and study.evidence.zip, which `llm-provider verify` checks without keys.
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

from llm_provider import Client, LLMError, Results, verify
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


def score(sweep: dict[str, Results[Any]]) -> pd.DataFrame:
    """A row for each sample, and for each call that failed, which counts as wrong."""
    table = pd.concat({model: results.to_pandas() for model, results in sweep.items()}, names=["asked"])
    table["correct"] = table["text"].str.strip() == table["expected"]
    return table.reset_index("asked")


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each model. Samples of a question depend on each other, so the error is that of the means."""
    means = table.groupby(["asked", "id"], sort=False)["correct"].mean().groupby("asked", sort=False)
    half = 1.96 * means.sem()
    rows = pd.DataFrame(
        {
            "accuracy": means.mean(),
            "low": (means.mean() - half).clip(0),
            "high": (means.mean() + half).clip(upper=1),
        }
    )
    models = table.groupby("asked", sort=False)
    rows["failed"] = models["error"].count()
    # `price` is what the answers cost when they were bought, in this run or before.
    rows[["input_tokens", "output_tokens", "USD"]] = models[["input_tokens", "output_tokens", "price"]].sum()
    # Not every provider tells a fingerprint.
    who = table.reindex(columns=["asked", "model", "served_by.fingerprint"]).fillna("-").groupby("asked")
    rows[["served", "fingerprint"]] = who.agg(lambda names: " ".join(sorted(set(names))))
    return rows.round({"accuracy": 3, "low": 3, "high": 3}).reset_index(names="model")


def write_latex(rows: pd.DataFrame, path: Path) -> None:
    """Write the body of a `tabular`. `rows.to_latex` writes more, with the package jinja2."""
    cells = [rows.columns, *rows.to_numpy()]
    lines = [" & ".join(map(str, row)).replace("_", r"\_") + r" \\" for row in cells]
    path.write_text("\n".join([lines[0], r"\midrule", *lines[1:], ""]), encoding="utf-8")


def interrupt_after(number: int) -> Any:
    """A function for `on_result` that presses Ctrl-C at one result."""
    counter = itertools.count(1)
    return lambda _result: next(counter) == number and signal.raise_signal(signal.SIGINT)


def evaluate(client: Client, models: list[str], folder: Path) -> None:
    """Ask, score, and write the table and the evidence."""
    sweep = ask(client, models)
    price, paid = (sum(getattr(results, name) for results in sweep.values()) for name in ("price", "cost"))
    print(f"the answers cost {price}; this run paid {paid}")
    table = score(sweep)
    rows = summarize(table)
    print(rows.to_string(index=False))
    folder.mkdir(parents=True, exist_ok=True)
    rows.to_csv(folder / "table.csv", index=False)
    write_latex(rows, folder / "table.tex")
    # One file for all models, with the mean of its samples as the score of each question.
    everything: Results[Any] = sum(sweep.values(), Results())
    means = table.groupby(["asked", "input_index"], sort=False)["correct"].mean()
    print(everything.export(folder / "study.evidence.zip", scores=means.tolist(), client=client))
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
