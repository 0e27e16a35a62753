"""Extract a table from texts, with types, and write it as CSV. It needs pandas.

    python examples/extraction.py                        a simulator answers; needs no API key
    python examples/extraction.py --model gpt-6.1-sol    a real model; its API key is in the environment

The simulator cannot read, so its answers are prepared below.
"""

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from datetime import date

import pandas as pd
from pydantic import BaseModel, Field

from llm_provider import Client, LLMError
from llm_provider.simulator import Fault, Simulator

TEXTS = pd.DataFrame(
    {
        "file": ["a.txt", "b.txt", "c.txt"],
        "text": [
            "ACME Tools, 3 March 2026. Two drills, 259.80 EUR including tax.",
            "Bolt & Sons thank you for your order of 2026-04-11. To pay: 80 USD.",
            "Reminder: the meeting is on Tuesday.",
        ],
    }
)


class Invoice(BaseModel):
    """A row of the table. A value that a text may lack can be None; else the model has to invent one."""

    vendor: str | None
    day: date | None
    total: float | None = Field(description="with tax, in the currency of the invoice")
    currency: str | None = Field(description="ISO code")


def prepare(simulator: Simulator) -> None:
    """Direct every provider to the simulator, and prepare its answers."""
    os.environ.update(simulator.environment())
    for word, invoice in {
        "ACME": Invoice(vendor="ACME Tools", day=date(2026, 3, 3), total=259.8, currency="EUR"),
        "Bolt": Invoice(vendor="Bolt & Sons", day=date(2026, 4, 11), total=80, currency="USD"),
        "Reminder": Invoice(vendor=None, day=None, total=None, currency=None),
    }.items():
        simulator.inject(Fault(text=invoice.model_dump_json()), match=word, times=None)


def extract(client: Client, model: str, texts: pd.DataFrame) -> pd.DataFrame:
    """One row for each text that was read; errors go to standard error."""
    results = client.call_many(
        model,
        "Extract the invoice. Use null for what the text does not say.\n\n{text}",
        rows=texts,
        metadata=texts["file"],
        response_format=Invoice,
        max_tokens=1000,
        budget=0.10,
    )
    for error in results.errors:
        print(f"{error.metadata}: {error}", file=sys.stderr)
    print(f"{len(results.ok)} of {len(results)} texts, {results.cost}\n")
    return pd.DataFrame([{"file": result.metadata, **result.parsed.model_dump()} for result in results.ok])


def main() -> None:
    """Read the command line. An error of the library or a missing extra ends the script with its message."""
    parser = argparse.ArgumentParser(description="Extract a table from texts.")
    parser.add_argument("--model", help="a real model, with its API key in the environment")
    arguments = parser.parse_args()
    try:
        with ExitStack() as stack:
            if not arguments.model:
                prepare(stack.enter_context(Simulator()))
            cache = stack.enter_context(tempfile.TemporaryDirectory())
            client = stack.enter_context(Client(cache_dir=cache))
            table = extract(client, arguments.model or "gpt-6.1-sol", TEXTS)
    except (LLMError, ImportError) as error:
        sys.exit(f"extraction: {error}")
    print(table.to_csv(index=False), end="")


if __name__ == "__main__":
    main()
