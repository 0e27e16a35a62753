"""Streamed answers: CPU per stream and per chunk, and the time to the first token."""

from __future__ import annotations

from collections.abc import Mapping

from ..clients import describe
from ..figures import ratios, tabulate
from ..fleet import Fleet, Measurement, closed
from ..provider import Provider, text_of_tokens
from ..report import Chart, Result, Table
from . import Options

COUNTS = {30: 160, 300: 40}
"""The number of streams, by their number of chunks."""
THINKING = 0.050

OF_ROUTE = {
    "openai": (
        "aiohttp",
        "httpx2",
        "openai2",
        "openai3",
        "openai3_best",
        "openai3_post",
        "any_llm",
        "litellm",
        "ours2",
        "ours",
    ),
    "anthropic": ("aiohttp", "anthropic", "anthropic_best", "litellm", "ours"),
    "gemini": ("aiohttp", "genai", "genai_best", "litellm", "ours"),
}
LONG = {
    "openai": ("aiohttp", "openai3", "openai3_post", "litellm", "ours"),
    "anthropic": ("aiohttp", "anthropic", "ours"),
    "gemini": ("aiohttp", "genai", "ours"),
}
"""The clients whose streams of 300 chunks are measured too."""
ROUTES = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Gemini"}

Taken = Mapping[tuple[str, str, int, float], Measurement]


def run(options: Options) -> Result:
    """Measure streams without latency, and the first token of streams that begin after 50 ms."""
    with Provider() as provider, Fleet(provider, here=options.here) as fleet:
        cells = {}
        for route, clients in OF_ROUTE.items():
            for client in options.chosen(clients):
                for chunks, latency in ((30, 0.0), (300, 0.0), (30, THINKING)):
                    if (chunks == 300 and client not in LONG[route]) or (latency and route != "openai"):
                        continue
                    # The chunks differ, because litellm takes a hundred equal ones for a model in a loop.
                    settings = {"output_tokens": chunks, "chunks": chunks, "latency": latency}
                    cells[route, client, chunks, latency] = fleet.cell(
                        client,
                        route,
                        closed(32, stream=True),
                        options.count(COUNTS[chunks]),
                        warm=32,
                        answer=text_of_tokens(chunks),
                        settings=settings,
                    )
        taken = fleet.measure(cells, options.rounds_or(3))
    return Result(
        title="Streams",
        text="32 streams at a time over TLS, connections warm, cache off. The provider sends chunks of four "
        "characters, as fast as it can.",
        tables=[*(_table(route, taken) for route in OF_ROUTE), _first_tokens(taken)],
        charts=[_chart(taken)],
        measured=ratios(
            taken,
            "cpu",
            {
                name: (("openai", "ours", chunks, 0.0), ("openai", other, chunks, 0.0))
                for name, other, chunks in (
                    ("stream_of_litellm", "litellm", 30),
                    ("stream_of_sdk", "openai3", 30),
                    ("stream_of_floor", "aiohttp", 30),
                    ("long_stream_of_floor", "aiohttp", 300),
                )
            },
        ),
        **fleet.facts,
    )


def _table(route: str, taken: Taken) -> Table:
    rows = {
        (describe(client), chunks, one.cpu / chunks): one
        for (own, client, chunks, latency), one in taken.items()
        if own == route and not latency
    }
    return tabulate(
        ROUTES[route],
        ("client", "chunks", "CPU µs per chunk"),
        rows,
        ("CPU µs per stream", "streams/s", "provider's core", "failed"),
        ("Where the provider's core is near 1, it limits the streams a second, but not their CPU time.",),
    )


def _first_tokens(taken: Taken) -> Table:
    rows = {(describe(client),): one for (_, client, _, latency), one in taken.items() if latency}
    title = "Time to the first token, OpenAI, with 50 ms of latency"
    return tabulate(title, ("client",), rows, ("first token p50 ms", "first token p95 ms", "failed"))


def _chart(taken: Taken) -> Chart:
    openai = {
        client: one
        for (route, client, chunks, latency), one in taken.items()
        if (route, chunks, latency) == ("openai", 30, 0.0)
    }
    return Chart(
        title="OpenAI: CPU per stream of 30 chunks",
        x=[describe(client) for client in openai],
        y_label="µs",
        series={"CPU µs per stream": [one.cpu for one in openai.values()]},
    )
