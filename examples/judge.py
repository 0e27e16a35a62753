"""A judge with calibration: a model grades answers by probabilities, and people check some of its grades.

    python examples/judge.py                          a simulator answers; needs no API key
    python examples/judge.py --model gpt-6.1-sol      a real model, with its key

Writes answers.csv. People write 1 or 0 into its column `correct`; then the same command tells how good the
judge is. With matplotlib it draws calibration.pdf. The people of the simulator are drawn by a seed.
"""

import argparse
import csv
import os
import random
import sys
from contextlib import suppress
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from llm_provider import Client, LLMError, MissingDependencyError, cohen_kappa, predicate, reliability
from llm_provider.simulator import Simulator

QUESTIONS, ANSWERS = Path(__file__).with_name("questions.csv"), Path("answers.csv")
JUDGE, RUBRIC = "gpt-6-luna", {"correct": predicate("The answer to the question is correct.")}


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def grade(client: Client, model: str) -> list[dict[str, Any]]:
    """The questions with the answers of a model, and the probability by the judge that each is correct."""
    rows = read(QUESTIONS)
    answers = client.call_many(model, "{question}", rows=rows, max_tokens=500, budget=1).raise_for_errors()
    texts = [f"Question: {answer.prompt}\nAnswer: {answer.text}" for answer in answers]
    grades = client.decide_many(JUDGE, texts, RUBRIC, budget=1).raise_for_errors()
    print(f"answers {answers.price}, grades {grades.price}; this run paid {answers.cost + grades.cost}\n")
    for row, answer, decisions in zip(rows, answers, grades, strict=True):
        row |= {"answer": answer.text, "probability": decisions["correct"].probability, "correct": ""}
    return rows


def report(rows: list[dict[str, Any]]) -> None:
    """Print how good the judge is, and the share of correct answers that follows."""
    grades = [float(row["probability"]) for row in rows if row["probability"]]  # a judge may refuse
    people = [row for row in rows if row["probability"] and row["correct"]]
    chances, labels = [float(row["probability"]) for row in people], [row["correct"] == "1" for row in people]
    measured, kappa = reliability(chances, labels, bins=5), cohen_kappa([p > 0.5 for p in chances], labels)
    print(f"people checked {len(labels)} of {len(rows)} answers\n\nprobability  answers  correct by people")
    for each in measured.bins:
        low, high = each.interval
        print(f"{each.low:.1f} to {each.high:.1f} {each.count:9}  {each.share:.2f} [{low:.2f}, {high:.2f}]")
    low, high = kappa.interval
    print(f"\ncalibration error {measured.error:.3f}, kappa {kappa.kappa:.3f} [{low:.3f}, {high:.3f}]")
    # The mean of all grades, moved by the mean error of the grades that people have checked.
    errors = [label - chance for chance, label in zip(chances, labels, strict=True)]
    half = 1.96 * (variance(grades) / len(grades) + variance(errors) / len(errors)) ** 0.5
    mean = f"{fmean(grades) + fmean(errors):.3f} ± {half:.3f}"
    print(f"correct: {fmean(grades):.3f} by the judge, {mean} by judge and people")
    with suppress(MissingDependencyError):
        measured.plot().savefig("calibration.pdf")


def main() -> None:
    """Read the command line. An error of the library ends the script with its message."""
    parser = argparse.ArgumentParser(description="Grade answers by a judge, and check the judge.")
    parser.add_argument("--model", help="a real model, with its API key in the environment")
    given = parser.parse_args()
    if not given.model:
        os.environ.update(Simulator(error_rate=0.3).start().environment())  # it ends with this process
    try:
        with Client(cache="use" if given.model else "off") as client:
            rows = grade(client, given.model or "gpt-6.1-sol")
    except LLMError as error:
        sys.exit(f"judge: {error}")
    if not ANSWERS.exists():
        for row in rows[: 0 if given.model else 60]:
            row["correct"] = int(random.Random(row["id"]).random() < 0.2 + 0.6 * row["probability"])
        with ANSWERS.open("w", newline="", encoding="utf-8") as file:
            (writer := csv.DictWriter(file, rows[0])).writeheader()
            writer.writerows(rows)
    if not any(row["correct"] for row in read(ANSWERS)):
        sys.exit(f"write 1 or 0 into the column `correct` of {ANSWERS}, then run this command again")
    report(read(ANSWERS))


if __name__ == "__main__":
    main()
