"""Calls a second and CPU per call at 1, 10, 32, 64, 100 and 256 calls at a time, on every route."""

from __future__ import annotations

from collections.abc import Mapping

from ..clients import describe
from ..figures import ratios, tabulate
from ..fleet import Fleet, Measurement, closed
from ..provider import Provider
from ..report import Chart, Result, Table
from . import Options

COUNTS = {1: 12, 10: 100, 32: 256, 64: 384, 100: 400, 256: 768}
"""The number of calls at each level."""
ELSEWHERE = (32, 256)
"""The levels of the other routes, whose transports are the same as on the OpenAI route."""

OF_ROUTE = {
    "openai": (
        "aiohttp",
        "openai2",
        "openai2_http2",
        "openai3",
        "openai3_http2",
        "openai3_best",
        "litellm",
        "ours",
        "ours_write",
    ),
    "anthropic": ("anthropic", "anthropic_best", "litellm", "ours"),
    "gemini": ("genai", "genai_best", "litellm", "ours"),
}
ROUTES = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Gemini"}

Taken = Mapping[tuple[str, str, int], Measurement]


def run(options: Options) -> Result:
    """Measure every level."""
    with Provider() as provider, Fleet(provider, here=options.here) as fleet:
        cells = {}
        for route, clients in OF_ROUTE.items():
            for client in options.chosen(clients):
                for level in COUNTS if route == "openai" else ELSEWHERE:
                    count = options.count(COUNTS[level])
                    how = {"warm": level, "settings": {"latency": 0.050}}
                    cells[route, client, level] = fleet.cell(client, route, closed(level), count, **how)
        taken = fleet.measure(cells, options.rounds_or(3))
    return Result(
        title="Concurrency from 1 to 256",
        text="The provider answers in 50 ms, over TLS. Connections are warm. Cache off unless stated.",
        tables=[_table(route, taken) for route in OF_ROUTE],
        charts=[_chart(taken)],
        measured=ratios(
            taken,
            "rate",
            {
                name: (("openai", "ours", 256), ("openai", other, 256))
                for name, other in (("rate_of_litellm", "litellm"), ("rate_of_sdk", "openai3"))
            },
        ),
        **fleet.facts,
    )


def _table(route: str, taken: Taken) -> Table:
    rows = {(describe(client), level): one for (own, client, level), one in taken.items() if own == route}
    columns = ("calls/s", "CPU µs per call", "p50 ms", "p99 ms", "provider's core", "failed")
    return tabulate(ROUTES[route], ("client", "at a time"), rows, columns)


def _chart(taken: Taken) -> Chart:
    clients = dict.fromkeys(client for route, client, _ in taken if route == "openai")
    series = {
        describe(client): [taken["openai", client, level].rate for level in COUNTS] for client in clients
    }
    return Chart(
        title="OpenAI: calls a second",
        x=list(COUNTS),
        x_label="calls at a time",
        y_label="calls/s",
        series=series,
        kind="lines",
    )
