"""Draws the pictures of docs/images that the library makes, from simulated providers: `make pictures`.

Questions, answers and prices are the same in each run. Times are not, so the files differ a little.
"""

import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from llm_provider import Client, LLMError, RequestTimeline, Results, predicate, reliability, track
from llm_provider.simulator import Fault, Simulator

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PRICES = Path(__file__).parents[1] / "prices.csv"
MODELS: dict[str, dict[str, Any]] = {
    "gpt-6.1-sol": {"provider": "openai", "error_rate": 0.15, "latency": 0.06, "latency_jitter": 0.1},
    "claude-haiku-5-5": {"provider": "anthropic", "error_rate": 0.3, "latency": 0.03, "latency_jitter": 0.05},
    "gemini-3.8-flash": {"provider": "gemini", "error_rate": 0.25, "latency": 0.02, "latency_jitter": 0.06},
    "together_ai/zai-org/GLM-5.3": {
        "provider": "together_ai",
        "error_rate": 0.4,
        "latency": 0.04,
        "latency_jitter": 0.2,
    },
}
NAMES = ("answers", "calibration", "costs", "groups", "requests", "scores", "usage", "usage-stored")


def draw(folder: Path, count: int = 120) -> None:
    """Draw every picture of `NAMES` into a folder, of so many questions to each model."""
    with (
        Simulator(prices=str(PRICES), cached_tokens=4) as simulator,
        tempfile.TemporaryDirectory() as cache,
    ):
        os.environ.update(simulator.environment("together_ai"))
        for settings in MODELS.values():
            simulator.configure(**settings)
        with Client(cache_dir=cache) as client:
            results = ask(client, count)
            pictures = {
                "scores": results.plot(),
                "groups": results.plot(by="kind"),
                "costs": results.plot("costs"),
                "usage": client.usage.plot(),
                "calibration": judge(client, count),
            }
            with track() as sums:
                ask(client, count)
            pictures["usage-stored"] = sums.plot()
            simulator.configure(answer="echo")
            pictures["answers"] = ask_for_texts(client, count).plot("answers")
        limits: dict[str, Any] = {"requests_per_minute": 3000, "burst": 50, "rate_limit_headers": False}
        simulator.configure(latency=0.2, latency_jitter=0.2, **limits)
        simulator.inject(Fault(status=500), times=None, share=0.01)
        with Client(cache="off") as client, RequestTimeline(client) as timeline:
            client.call_many("gpt-6.1-sol", [f"What is {number} + 1?" for number in range(5 * count)])
            pictures["requests"] = timeline.plot()
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        pictures[name].savefig(folder / f"{name}.png", metadata={"Software": None})


def ask(client: Client, count: int) -> Results[Any]:
    """The scored answers of all models to sums and products."""
    numbers = random.Random(7)
    rows = []
    for _ in range(count):
        left, right = numbers.randrange(10, 1000), numbers.randrange(10, 1000)
        kind, value = numbers.choice([("sum", left + right), ("product", left * right)])
        rows.append(
            {
                "left": left,
                "mark": "+" if kind == "sum" else "*",
                "right": right,
                "kind": kind,
                "value": value,
            }
        )
    sweep = client.call_many(list(MODELS), "What is {left} {mark} {right}?", rows=rows, metadata=rows)
    return sum(sweep.values(), Results()).score(lambda sample: sample.text == str(sample.metadata["value"]))


def ask_for_texts(client: Client, count: int) -> Results[Any]:
    """Answers of different lengths, which are the prompts."""
    numbers, results = random.Random(7), Results[Any]()
    for place, model in enumerate(MODELS):
        lengths = [int(numbers.lognormvariate(1.6 + 0.2 * place, 0.6)) for _ in range(count)]
        results += client.call_many(model, ["word " * (1 + length) for length in lengths])
    return results


def judge(client: Client, count: int) -> Any:
    """The calibration of a judge who is too sure: what is true is drawn from the probabilities."""
    polite = {"polite": predicate("The text is polite.")}
    judged = client.decide_many(
        "gpt-6-luna", [f"Text number {number}." for number in range(4 * count)], polite
    )
    verdicts = [decisions for decisions in judged if not isinstance(decisions, LLMError)]
    probabilities = [decisions[0].probability or 0.0 for decisions in verdicts]
    numbers = random.Random(7)
    return reliability(probabilities, [numbers.random() < 0.2 + 0.6 * each for each in probabilities]).plot()


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
