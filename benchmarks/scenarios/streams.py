"""Streamed answers: CPU per stream and per chunk, and the time to the first token."""

from __future__ import annotations

from collections.abc import Mapping

from ..clients import describe
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

EARLIER = {
    ("openai", "aiohttp"): {30: 351, 300: 2520},
    ("openai", "httpx2"): {30: 1440},
    ("openai", "openai3"): {30: 5582, 300: 37821},
    ("openai", "openai3_post"): {30: 588},
    ("openai", "any_llm"): {30: 5343},
    ("openai", "litellm"): {30: 11184, 300: 113180},
    ("anthropic", "anthropic"): {30: 2500},
    ("anthropic", "anthropic_best"): {30: 1083},
    ("anthropic", "litellm"): {30: 12990},
    ("gemini", "genai"): {30: 4022, 300: 34442},
    ("gemini", "litellm"): {30: 13600},
}
"""CPU µs per stream in the measurements on which the goals are based."""

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
        versions, problems = fleet.versions, fleet.problems
    return Result(
        title="Streams",
        text="32 streams at a time over TLS, connections warm, cache off. The provider sends chunks of four "
        "characters, as fast as it can.",
        tables=[*(_table(route, taken) for route in OF_ROUTE), _first_tokens(taken)],
        charts=[_chart(taken)],
        measured=_measured(taken),
        versions=versions,
        problems=problems,
        rounds=options.rounds_or(3),
        data={" / ".join(map(str, key)): one.samples for key, one in taken.items()},
    )


def _table(route: str, taken: Taken) -> Table:
    rows = []
    for (own, client, chunks, latency), one in taken.items():
        if own == route and not latency:
            earlier = EARLIER.get((route, client), {}).get(chunks)
            row = [describe(client), chunks, one.cpu, one.cpu / chunks, one.rate, earlier]
            rows.append([*row, one.server_share, one.failed])
    columns = ("client", "chunks", "CPU µs per stream", "per chunk", "streams/s")
    columns += ("earlier µs per stream", "provider's core", "failed")
    return Table(
        title=ROUTES[route],
        columns=columns,
        rows=rows,
        notes=(
            "Where the provider's core is near 1, it limits the streams a second, but not their CPU time.",
        ),
    )


def _first_tokens(taken: Taken) -> Table:
    rows = [
        [describe(client), one.first_p50 * 1e3, one.first_p95 * 1e3, one.failed]
        for (_, client, _, latency), one in taken.items()
        if latency
    ]
    columns = ("client", "first token p50 ms", "p95 ms", "failed")
    return Table(title="Time to the first token, OpenAI, with 50 ms of latency", columns=columns, rows=rows)


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


def _measured(taken: Taken) -> dict[str, float]:
    found = {}
    for name, other, chunks in (
        ("stream_of_litellm", "litellm", 30),
        ("stream_of_sdk", "openai3", 30),
        ("stream_of_floor", "aiohttp", 30),
        ("long_stream_of_floor", "aiohttp", 300),
    ):
        ours = taken.get(("openai", "ours", chunks, 0.0))
        one = taken.get(("openai", other, chunks, 0.0))
        if ours is not None and one is not None:
            found[name] = ours.figure("cpu") / one.figure("cpu")
    return found
