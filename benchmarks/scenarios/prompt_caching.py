"""The bill of many questions about one long document, with the provider's prompt cache and without it."""

from __future__ import annotations

import csv
import tempfile
from decimal import Decimal
from pathlib import Path

from llm_provider import Client
from llm_provider.simulator import Simulator

from ..report import Result, Table
from . import Options

PRICES = Path(__file__).parents[2] / "prices.csv"
QUESTIONS, TOKENS, ANSWER = 500, 20_000, 20
ROUTES = (
    ("anthropic", "claude-sonnet-5-5", "ANTHROPIC"),
    ("openai", "gpt-6.1-sol", "OPENAI"),
    ("openai", "gpt-5.5", "OPENAI"),
    ("gemini", "gemini-3.8-flash", "GOOGLE_GEMINI"),
)
"""Provider, model, and the beginning of the names of its environment variables."""

DOCUMENT = "".join(f"Paragraph {number} of a long document. " for number in range(3000))[: 4 * TOKENS]


def run(options: Options) -> Result:
    """Ask all questions with and without `prompt_caching`, and compare the simulator's bills."""
    questions = [f"What is {number}+{number}?" for number in range(options.count(QUESTIONS))]
    rows, measured, problems = [], {"prompt_cache_of_bound": 0.0, "prompt_cache_of_plain": 0.0}, []
    with Simulator(prompt_cache=True, prices=str(PRICES), output_tokens=ANSWER, latency=0.05) as simulator:
        addresses = simulator.environment()
        for provider, model, names in ROUTES:
            bills: list[Decimal] = []
            estimates: list[float] = []
            for caching in (False, True):
                simulator.clear()
                with (
                    tempfile.TemporaryDirectory() as directory,
                    Client(
                        cache_dir=directory, base_url=addresses[f"{names}_BASE_URL"], api_key="k"
                    ) as client,
                ):
                    parameters = {"system": DOCUMENT, "max_tokens": ANSWER, "prompt_caching": caching}
                    estimate = client.estimate(model, questions, **parameters)  # type: ignore[arg-type]
                    results = client.call_many(model, questions, progress=False, **parameters)  # type: ignore[call-overload]
                problems += [f"{model}: {error!r}" for error in results.errors]
                counts = simulator.ledger().model(provider, model)
                assert counts.billed is not None
                assert estimate.cost is not None
                bills.append(counts.billed)
                estimates.append(estimate.cost.likely)
            bound = _bound(provider, model, counts.input_tokens - TOKENS * len(questions), len(questions))
            plain, cached = bills
            measured["prompt_cache_of_bound"] = max(measured["prompt_cache_of_bound"], float(cached / bound))
            measured["prompt_cache_of_plain"] = max(measured["prompt_cache_of_plain"], float(cached / plain))
            rows.append(
                [
                    model,
                    f"${plain:.4f}",
                    f"${cached:.4f}",
                    f"${bound:.4f}",
                    float(cached / bound),
                    float(cached / plain),
                    f"{counts.cache_write_input_tokens:,}",
                    f"{counts.cache_read_input_tokens:,}",
                    estimates[1] / estimates[0],
                ]
            )
    columns = (
        "model", "without", "with", "bound", "with, of bound", "with, of without", "tokens written",
        "tokens read", "estimate: with, of without",
    )  # fmt: skip
    return Result(
        title="Prompt caching",
        text=f"{len(questions)} questions about one document of {TOKENS:,} tokens in `call_many`, answered "
        f"by the simulator after 50 ms with {ANSWER} tokens each. It models the prompt cache of each "
        "provider, and its bill is in USD. The bound pays for writing the document once and for reading it "
        "in every other call, in full. Without `prompt_caching`, gpt-6.1-sol writes every prompt at 1.25 "
        "times the price, as OpenAI does by itself from GPT-5.6 on. gpt-5.5 and gemini-3.8-flash find "
        "common prefixes by themselves, but not those of calls that are under way at the same time. OpenAI's "
        "older models read steps of 128 tokens.",
        tables=[Table(title="The bill", columns=columns, rows=rows)],
        measured=measured,
        problems=problems,
    )


def _bound(provider: str, model: str, rest: int, calls: int) -> Decimal:
    """The least USD: the document is written once and then read, and the rest has its price."""
    written = _price(provider, model, "cache_write") or _price(provider, model, "input")
    tokens = TOKENS * (written + (calls - 1) * _price(provider, model, "cache_read"))
    tokens += rest * _price(provider, model, "input") + calls * ANSWER * _price(provider, model, "output")
    return tokens / 1_000_000


def _price(provider: str, model: str, column: str) -> Decimal:
    with PRICES.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if (line["provider"], line["model"], line["variant"]) == (provider, model, "standard"):
                return Decimal(line[column] or 0)
    raise LookupError(model)
