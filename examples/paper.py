"""A paper's evaluation: from a file of questions to the table, the picture and the page of its answers.

    python examples/paper.py                      three simulated models; needs no API key
    python examples/paper.py --model gpt-6.1-sol --model claude-haiku-5-5    real models, with their keys

Ctrl-C loses nothing: the same command asks the rest. With the simulator the script interrupts itself once. It
writes table.tex, answers.html, scores.pdf (with matplotlib) and study.evidence.zip for `llm-provider verify`.
"""

import argparse
import csv
import itertools
import os
import signal
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from llm_provider import Client, LLMError, MissingDependencyError, Results, compare, verify
from llm_provider.simulator import Simulator

SIMULATED = ["gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash"]


def ask(client: Client, models: list[str], questions: Path) -> dict[str, Results[Any]]:
    """Ask each model each question three times. Each answer is stored before it counts as done."""
    with questions.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    task = "{question} Answer with the number alone."
    return client.call_many(models, task, rows=rows, metadata=rows, n=3, max_tokens=500, budget=5.00)


def is_correct(sample: Any) -> bool:
    """The score of a sample, whose metadata are the row of its question."""
    return bool(sample.text.strip() == sample.metadata["expected"])


def write(client: Client, sweep: dict[str, Results[Any]], folder: Path) -> None:
    """Score the answers, and write what the paper needs. A failed call counts as wrong."""
    scored = {model: results.score(is_correct, failed=0) for model, results in sweep.items()}
    everything: Results[Any] = sum(scored.values(), Results())
    print(everything.summarize_scores(), table := everything.summarize_scores(by="kind"), sep="\n\n")
    print(f"\nthe answers cost {everything.price}; this run paid {everything.cost}\n")
    first, *others = scored.values()
    print(*(compare(first, other) for other in others), sep="\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.tex").write_text(table.to_latex(), encoding="utf-8")
    first.to_html(folder / "answers.html", beside=others[0] if others else None)
    with suppress(MissingDependencyError):
        everything.plot(by="kind").savefig(folder / "scores.pdf")
    print(f"\n{everything.export(folder / 'study.evidence.zip', client=client)}")
    assert verify(folder / "study.evidence.zip").rows == len(everything)
    if failed := everything.errors:
        sys.exit(f"paper: {len(failed)} calls failed, and the same command asks them again: {failed[0]}")


def main() -> None:
    """Read the command line. An error of the library ends the script with its message."""
    parser = argparse.ArgumentParser(description="Evaluate models on a file of questions.")
    parser.add_argument("--model", action="append", help="a real model, with its API key in the environment")
    parser.add_argument("--questions", type=Path, default=Path(__file__).with_name("questions.csv"))
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go (default: here)")
    given, counter, settings = parser.parse_args(), itertools.count(1), {}
    models = given.model or SIMULATED
    with ExitStack() as stack:
        if not given.model:
            simulator = stack.enter_context(Simulator(latency=0.05, error_rate=0.2, noise=0.1))
            os.environ.update(simulator.environment())
            settings = {"cache_dir": stack.enter_context(tempfile.TemporaryDirectory()), "max_concurrent": 10}

            def interrupt(_result: object) -> None:
                if next(counter) == 100:
                    signal.raise_signal(signal.SIGINT)

            try:
                with Client(**settings, on_result=interrupt) as client:
                    ask(client, models, given.questions)
            except KeyboardInterrupt as ended:
                print("Ctrl-C:", *ended.__notes__, "\n")
        try:
            with Client(**settings) as client:
                write(client, ask(client, models, given.questions), given.folder)
        except LLMError as error:
            sys.exit(f"paper: {error}")


if __name__ == "__main__":
    main()
