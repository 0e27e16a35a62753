"""Calls a second and CPU per call at 1, 10, 32, 64, 100 and 256 calls at a time, on every route."""

from __future__ import annotations

from collections.abc import Mapping

from ..clients import describe
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

EARLIER = {
    ("openai", "aiohttp"): {32: (616, 152), 64: (1222, 140), 256: (4633, 132)},
    ("openai", "openai2"): {32: (466, 1821), 64: (171, 5765), 256: (174, 5659)},
    ("openai", "openai2_http2"): {32: (365, 1555), 64: (546, 1502), 256: (614, 1539)},
    ("openai", "openai3"): {32: (478, 1253), 64: (705, 1277), 256: (539, 1854)},
    ("openai", "openai3_http2"): {32: (378, 1463), 64: (562, 1357), 256: (655, 1378)},
    ("openai", "openai3_best"): {32: (550, 1000), 64: (860, 900), 256: (1040, 900)},
    ("openai", "litellm"): {32: (352, 2381), 64: (404, 2305), 256: (369, 2690)},
    ("anthropic", "anthropic"): {32: (538, 952), 64: (848, 998), 256: (622, 1619)},
    ("anthropic", "anthropic_best"): {32: (578, 761), 64: (1037, 601), 256: (1622, 577)},
    ("anthropic", "litellm"): {32: (361, 2048), 64: (471, 1999), 256: (441, 2262)},
}
"""Calls a second and CPU µs per call in the measurements on which the goals are based."""

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
        versions, problems = fleet.versions, fleet.problems
    return Result(
        title="Concurrency from 1 to 256",
        text="The provider answers in 50 ms, over TLS. Connections are warm. Cache off unless stated.",
        tables=[_table(route, taken) for route in OF_ROUTE],
        charts=[_chart(taken)],
        measured=_measured(taken),
        versions=versions,
        problems=problems,
        rounds=options.rounds_or(3),
        data={f"{route} / {client} / {level}": one.samples for (route, client, level), one in taken.items()},
    )


def _table(route: str, taken: Taken) -> Table:
    rows = []
    for (own, client, level), one in taken.items():
        if own == route:
            rate, cpu = EARLIER.get((route, client), {}).get(level, (None, None))
            row = [describe(client), level, one.rate, one.cpu, one.p50 * 1e3, one.p99 * 1e3]
            rows.append([*row, rate, cpu, one.server_share, one.failed])
    columns = ("client", "at a time", "calls/s", "CPU µs per call", "p50 ms", "p99 ms")
    columns += ("earlier calls/s", "earlier µs", "provider's core", "failed")
    return Table(
        title=ROUTES[route],
        columns=columns,
        rows=rows,
        notes=("*earlier*: the measurements on which the goals are based, on another day.",),
    )


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


def _measured(taken: Taken) -> dict[str, float]:
    found = {}
    ours = taken.get(("openai", "ours", 256))
    for name, other in (("rate_of_litellm", "litellm"), ("rate_of_sdk", "openai3")):
        one = taken.get(("openai", other, 256))
        if ours is not None and one is not None:
            found[name] = ours.figure("rate") / one.figure("rate")
    return found
