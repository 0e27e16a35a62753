"""Streamed tokens a second by model, 8 to 64 streams at a time, against litellm; `--live` for real providers.

python -m benchmarks models
python -m benchmarks models --model gpt-6.1-sol --model claude-sonnet-5-5 --live
"""

from __future__ import annotations

from collections.abc import Mapping

from ..clients import describe
from ..figures import tabulate
from ..fleet import Cell, Job, Measurement, closed
from ..live import target_of, workers
from ..provider import Provider, text_of_tokens
from ..report import Result, Table
from . import Options

MODELS = ("gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-3.8-flash", "together_ai/zai-org/GLM-5.3")
CLIENTS = ("litellm", "ours")
LEVELS = (8, 16, 32, 64)
REQUESTS = 64
TOKENS = 64
THINKING, BETWEEN = 0.300, 0.005
LIVE_QUESTION = "Call number {n}. In about a hundred words: why is the sea salty?"
CHARACTERS_PER_TOKEN = 4

FIRST_VERSION = (
    ("OpenAI", 32, 2456, 1674),
    ("OpenAI", 64, 4096, 1783),
    ("Gemini", 64, 4209, 2692),
    ("Together", 32, 2010, 1597),
    ("Together", 64, 1145, 1720),
    ("Anthropic", 32, 1543, 1861),
    ("Anthropic", 64, 1587, 1972),
)
"""Tokens a second of the first version of this library with real providers: directly, and through litellm."""

Key = tuple[str, int, str]
"""Model, streams at a time, client."""


def run(options: Options) -> Result:
    """Measure every model at every level.

    Raises:
        SystemExit: `--live` without the API keys.
    """
    models = options.models or MODELS
    with workers(options, models) as (provider, fleet):
        cells = {
            (model, level, client): _cell(model, level, client, provider, options)
            for model in models
            for level in LEVELS
            for client in options.chosen(CLIENTS)
        }
        taken = fleet.measure(cells, options.rounds_or(1 if options.live else 2))
    if options.live:
        text = "Real providers, each asked for about a hundred words."
    else:
        text = "Simulated: 300 ms to the first of 64 tokens, then 5 ms for each, over TLS."
    return Result(
        title="Streams by model" + (", live" if options.live else ""),
        text=f"{text} {REQUESTS} streams at each level; four characters count as a token for every client.",
        tables=[_table(model, taken) for model in models] + [_first_version()],
        **fleet.facts,
    )


def _cell(model: str, level: int, client: str, provider: Provider | None, options: Options) -> Cell:
    settings: dict[str, float] = {}
    if provider is not None:
        settings = {"output_tokens": TOKENS, "chunks": TOKENS}
        settings |= {"latency": options.seconds(THINKING), "chunk_interval": options.seconds(BETWEEN)}
    job = Job(
        target=target_of(model, provider),
        load=closed(level, stream=True),
        count=options.count(REQUESTS),
        warm=0 if provider is None else level,
        question=LIVE_QUESTION,
        answer=None if provider is None else text_of_tokens(TOKENS),
    )
    return Cell(client=client, job=job, settings=settings)


def _table(model: str, taken: Mapping[Key, Measurement]) -> Table:
    rows = {(level, describe(client)): one for (own, level, client), one in taken.items() if own == model}
    tokens = ("tokens/s", lambda one: one.characters_rate / CHARACTERS_PER_TOKEN)
    columns = ("first token p50 ms", "first token p95 ms", "wall s", "CPU ms per stream", "provider's core")
    return tabulate(model, ("at a time", "client"), rows, (tokens, *columns, "failed"))


def _first_version() -> Table:
    columns = ("provider", "at a time", "direct tokens/s", "through litellm")
    return Table(
        title="The first version, real providers",
        columns=columns,
        rows=FIRST_VERSION,
        notes=("64 streams each, on another day and network.",),
    )
