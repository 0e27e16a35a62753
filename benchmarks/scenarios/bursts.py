"""Bursts of 64 and 256 calls over connections that are not open yet, 20 and 80 ms away, with TLS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from ..clients import describe
from ..delay_line import DelayLine
from ..figures import ratios, tabulate
from ..fleet import Cell, Fleet, Measurement, closed
from ..provider import Provider, text_of_tokens
from ..report import Chart, Result, Table
from . import Options

NEAR, FAR = 0.020, 0.080
SIZES = (64, 256)
CHUNKS = 8
THINKING, BETWEEN = 0.300, 0.040

NEAR_CLIENTS = (
    ("openai", "aiohttp"),
    ("openai", "openai3"),
    ("openai", "openai3_http2"),
    ("openai", "openai3_best"),
    ("openai", "litellm"),
    ("openai", "ours"),
    ("openai", "ours_http2"),
    ("anthropic", "anthropic_best"),
    ("anthropic", "ours"),
    ("gemini", "ours"),
)
FAR_CLIENTS = (
    ("openai", "aiohttp"),
    ("openai", "openai3"),
    ("openai", "openai3_http2"),
    ("openai", "litellm"),
    ("openai", "ours"),
)
Key = tuple[str, str, float, int, bool]
"""Route, client, round trip, size, and whether connections are open at the start."""
Taken = Mapping[Key, Measurement]


def run(options: Options) -> Result:
    """Measure bursts over a delay line of each length."""
    with ExitStack() as stack:
        provider = stack.enter_context(Provider())
        fleet = stack.enter_context(Fleet(provider, here=options.here))
        server = ("127.0.0.1", provider.simulator.port)
        lines = {
            round_trip: stack.enter_context(DelayLine(*server, round_trip)) for round_trip in (NEAR, FAR)
        }
        cells = {
            key: _cell(fleet, key, lines[key[2]].port, options)
            for key in _keys()
            if key[1] in options.chosen([key[1]])
        }
        taken = fleet.measure(cells, options.rounds_or(3))
    return Result(
        title="Bursts",
        text="All calls start at once, over TLS through a delay line. The provider waits 300 ms and then "
        "sends eight chunks, 40 ms apart. The clock of a cold burst starts before the client is created, "
        "with the modules of its SDK already imported. Connections are counted by the provider.",
        tables=[
            _table("Cold, 20 ms round trip", taken, NEAR, warm=False),
            _table("Cold, 80 ms round trip", taken, FAR, warm=False),
            _table("Warm, 20 ms round trip", taken, NEAR, warm=True),
        ],
        charts=[_chart(taken)],
        measured=_measured(taken),
        **fleet.facts,
    )


def _keys() -> Iterator[Key]:
    for route, client in NEAR_CLIENTS:
        for size in SIZES:
            yield route, client, NEAR, size, False
        yield route, client, NEAR, SIZES[-1], True
    for route, client in FAR_CLIENTS:
        for size in SIZES:
            yield route, client, FAR, size, False


def _cell(fleet: Fleet, key: Key, port: int, options: Options) -> Cell:
    route, client, _, size, warm = key
    settings = {"output_tokens": CHUNKS, "chunks": CHUNKS}
    settings |= {"latency": options.seconds(THINKING), "chunk_interval": options.seconds(BETWEEN)}
    calls = options.count(size)
    return fleet.cell(
        client,
        route,
        closed(calls, stream=True),
        calls,
        warm=calls if warm else 1,
        fresh=not warm,
        answer=text_of_tokens(CHUNKS),
        settings=settings,
        port=port,
    )


def _table(title: str, taken: Taken, round_trip: float, *, warm: bool) -> Table:
    rows = {
        (f"{describe(client)}, {route}", one.calls): one
        for (route, client, own, _, own_warm), one in taken.items()
        if (own, own_warm) == (round_trip, warm)
    }
    columns = ("wall ms", "first token p50 ms", "first token p95 ms", "connections", "provider's core")
    return tabulate(title, ("client", "calls"), rows, (*columns, "failed"))


def _chart(taken: Taken) -> Chart:
    shown = {
        f"{describe(client)}, {route}": one.first_p50 * 1e3
        for (route, client, own, size, warm), one in taken.items()
        if (own, warm) == (NEAR, False) and size == max(key[3] for key in taken)
    }
    return Chart(
        title="Cold burst of 256, 20 ms round trip: first token p50",
        x=list(shown),
        y_label="ms",
        series={"first token p50": list(shown.values())},
    )


def _measured(taken: Taken) -> dict[str, float]:
    ours, litellm, floor = (("openai", client, NEAR, 256, False) for client in ("ours", "litellm", "aiohttp"))
    if ours not in taken:
        return {}
    pairs = {"burst_of_litellm": (ours, litellm), "burst_of_floor": (ours, floor)}
    found = {"burst_failed": taken[ours].failed, "burst_connections": taken[ours].connections}
    return found | ratios(taken, "first_p50", pairs)
