"""Let one model grade the answers of another.

    python examples/judge.py                                          a simulator answers; needs no API key
    python examples/judge.py --model gpt-6.1-sol --judge claude-sonnet-5-5    real models; their keys are set

The simulator solves sums and repeats every other question. Its verdicts are prepared below.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from typing import Literal

from pydantic import BaseModel, Field

from llm_provider import Client, LLMError
from llm_provider.simulator import Fault, Simulator

QUESTIONS = [
    {"question": "What is 20 + 22?", "reference": "42"},
    {"question": "What is 17 * 3?", "reference": "51"},
    {"question": "Which planet is the largest?", "reference": "Jupiter"},
]
JUDGE = "Grade the answer.\n\nQuestion: {question}\nReference: {reference}\nAnswer: {answer}"


class Verdict(BaseModel):
    """What the judge writes. The reasoning comes first, so the grade follows from it."""

    reasoning: str = Field(description="One sentence on what is right and what is wrong.")
    grade: Literal["correct", "partly", "wrong"]


def prepare(simulator: Simulator) -> None:
    """Direct every provider to the simulator, and prepare the verdicts of its judge."""
    os.environ.update(simulator.environment())
    wrong = Verdict(reasoning="The answer repeats the question.", grade="wrong")
    right = Verdict(reasoning="The answer is the reference.", grade="correct")
    simulator.inject(Fault(text=wrong.model_dump_json()), match="Answer: echo", times=None)
    simulator.inject(Fault(text=right.model_dump_json()), match="Grade the answer", times=None)


def evaluate(client: Client, model: str, judge: str) -> None:
    """Ask, grade and print."""
    questions = [row["question"] for row in QUESTIONS]
    answers = client.call_many(model, questions, max_tokens=500, budget=0.10).raise_for_errors()
    graded = [{**row, "answer": answer.text} for row, answer in zip(QUESTIONS, answers, strict=True)]
    verdicts = client.call_many(
        judge, JUDGE, rows=graded, response_format=Verdict, max_tokens=500, budget=0.10
    ).raise_for_errors()
    for row, verdict in zip(graded, verdicts, strict=True):
        print(f"{verdict.parsed.grade:8} {row['question']:30} {row['answer']:36} {verdict.parsed.reasoning}")
    grades = Counter(verdict.parsed.grade for verdict in verdicts)
    print(f"\n{model}: {grades['correct'] / len(verdicts):.0%} correct, by {judge}\n")
    print(client.usage)


def main() -> None:
    """Read the command line. An error of the library or a missing extra ends the script with its message."""
    parser = argparse.ArgumentParser(description="Let one model grade the answers of another.")
    parser.add_argument("--model", help="a real model, with its API key in the environment")
    parser.add_argument("--judge", default="claude-sonnet-5-5", help="the judge (default %(default)s)")
    arguments = parser.parse_args()
    try:
        with ExitStack() as stack:
            if not arguments.model:
                prepare(stack.enter_context(Simulator()))
            cache = stack.enter_context(tempfile.TemporaryDirectory())
            client = stack.enter_context(Client(cache_dir=cache))
            evaluate(client, arguments.model or "gpt-6.1-sol", arguments.judge)
    except (LLMError, ImportError) as error:
        sys.exit(f"judge: {error}")


if __name__ == "__main__":
    main()
