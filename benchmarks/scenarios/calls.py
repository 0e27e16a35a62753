"""CPU and time of one call: every client on every route, the cache, long conversations, batches.

The provider answers in 20 ms, over TLS, to 32 calls at a time, unless a table says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..clients import describe
from ..figures import ratios, tabulate
from ..fleet import Cell, Fleet, Measurement, closed
from ..provider import Provider
from ..report import Cell as Shown
from ..report import Chart, Result, Table
from . import Options

ROUTES = {"openai": "OpenAI", "anthropic": "Anthropic", "gemini": "Gemini"}
RAW = ("aiohttp", "httpx", "httpx2", "httpx2_http2")
OPENAI = ("openai2", "openai2_http2", "openai2_best", "openai2_post")
OPENAI += ("openai3", "openai3_http2", "openai3_best", "openai3_post")
OURS = ("ours", "ours_write", "ours_http1", "ours_http2")
OF_ROUTE = {
    "openai": (*RAW, *OPENAI, "any_llm", "litellm", "ours2", *OURS),
    "anthropic": ("aiohttp", "anthropic", "anthropic_best", "any_llm", "litellm", *OURS),
    "gemini": ("aiohttp", "genai", "genai_best", "litellm", *OURS),
}
DOCUMENTED = {"openai": "openai3", "anthropic": "anthropic", "gemini": "genai"}
LATENCY = {"latency": 0.020}
WAYS = {
    ("closed", "ours"): ("`acall`", "off"),
    ("closed", "ours_write"): ("`acall`", "stored"),
    ("many", "ours"): ("`call_many`", "off"),
    ("many", "ours_write"): ("`call_many`", "stored"),
    ("threads", "ours"): ("`call` in threads", "off"),
    ("threads", "ours_write"): ("`call` in threads", "stored"),
    ("hit", "ours_write"): ("`acall`, a hit", "hit"),
}
"""The ways to call this library, and their use of the cache, by load and client."""
LONG = 41
"""Messages of the long conversation: 40 and the question."""

CPU_AND_RATE = ("CPU µs per call", "calls/s", "failed")

Key = tuple[str, ...]
"""The table, the route and the client."""
Taken = Mapping[Key, Measurement]


def run(options: Options) -> Result:
    """Measure and compare."""
    with Provider() as provider, Provider(tls=False) as plain, Fleet(provider, here=options.here) as fleet:
        cells = {
            key: cell
            for key, cell in _cells(fleet, plain, options)
            if options.clients is None or cell.client in options.clients
        }
        taken = fleet.measure(cells, options.rounds_or(5))
    routes = [route for route in ROUTES if any(key[:2] == ("many at once", route) for key in taken)]
    return Result(
        title="One call",
        text="CPU per call is that of the client's whole process, including the load generator. Unless a "
        "table says otherwise: 32 calls at a time, an answer after 20 ms, TLS, connections warm, cache off.",
        tables=[
            *(_headline(route, taken) for route in routes),
            tabulate(
                "One at a time, a provider that answers at once",
                ("route", "client"),
                _rows(taken, "alone"),
                ("p50 ms", "p99 ms", "CPU µs per call", "failed"),
            ),
            tabulate(
                "A conversation of 41 messages", ("route", "client"), _rows(taken, "long"), CPU_AND_RATE
            ),
            tabulate(
                "This library's ways, OpenAI",
                ("way", "cache", "at a time"),
                {(*WAYS[key[1], key[3]], int(key[2])): one for key, one in taken.items() if key[0] == "ways"},
                CPU_AND_RATE,
            ),
            tabulate("Without TLS, 32 at a time", ("route", "client"), _rows(taken, "plain"), CPU_AND_RATE),
        ],
        charts=[_chart(route, taken) for route in routes],
        measured=_measured(taken),
        **fleet.facts,
    )


def _cells(fleet: Fleet, plain: Provider, options: Options) -> Iterator[tuple[Key, Cell]]:
    at_32, count = closed(32), options.count(320)
    for route, clients in OF_ROUTE.items():
        for client in clients:
            cell = fleet.cell(client, route, at_32, count, warm=32, settings=LATENCY)
            yield ("many at once", route, client), cell
        for client in ("aiohttp", DOCUMENTED[route], "litellm", "ours"):
            alone = fleet.cell(client, route, closed(1), options.count(200), warm=4)
            yield ("alone", route, client), alone
            how = {"messages": LONG, "warm": 32, "settings": LATENCY}
            yield ("long", route, client), fleet.cell(client, route, at_32, options.count(96), **how)
    for client in ("aiohttp", "openai3", "litellm", "ours"):
        how = {"warm": 32, "settings": LATENCY, "provider": plain}
        yield ("plain", "openai", client), fleet.cell(client, "openai", at_32, count, **how)
    yield from cells_of_ours(fleet, options)


def cells_of_ours(fleet: Fleet, options: Options) -> Iterator[tuple[Key, Cell]]:
    """The cells of every way to call this library on the OpenAI route: cache off, stored writes, hits."""
    for client in ("ours", "ours_write"):
        for width in (32, 256):
            how = {"warm": width, "settings": LATENCY}
            count = options.count(4 * width + 512)
            for name in ("closed", "many"):
                load = closed(width) if name == "closed" else {"name": "many", "concurrency": width}
                yield ("ways", name, str(width), client), fleet.cell(client, "openai", load, count, **how)
        threads = {"name": "threads", "concurrency": 32}
        cell = fleet.cell(client, "openai", threads, options.count(640), warm=32, settings=LATENCY)
        yield ("ways", "threads", "32", client), cell
    again = {"question": "What is 1+1?", "answer": "2", "warm": 1}
    cell = fleet.cell("ours_write", "openai", closed(32), options.count(5000), **again)
    yield ("ways", "hit", "32", "ours_write"), cell


def _rows(taken: Taken, table: str) -> dict[tuple[Shown, ...], Measurement]:
    return {(ROUTES[key[1]], describe(key[2])): one for key, one in taken.items() if key[0] == table}


def _headline(route: str, taken: Taken) -> Table:
    rows = {(describe(key[2]),): one for key, one in taken.items() if key[:2] == ("many at once", route)}
    floor = taken.get(("many at once", route, "aiohttp"))
    share = ("of raw aiohttp", lambda one: None if floor is None else one.cpu / floor.cpu)
    columns = ("CPU µs per call", share, "calls/s", "provider's core", "failed")
    return tabulate(f"{ROUTES[route]}: 32 at a time", ("client",), rows, columns)


def _chart(route: str, taken: Taken) -> Chart:
    shown = {describe(key[2]): one.cpu for key, one in taken.items() if key[:2] == ("many at once", route)}
    return Chart(
        title=f"{ROUTES[route]}: CPU per call, 32 at a time",
        x=list(shown),
        y_label="µs",
        series={"CPU µs per call": list(shown.values())},
    )


def _measured(taken: Taken) -> dict[str, float]:
    openai = ("many at once", "openai", "ours")
    pairs: dict[str, tuple[Key, Key]] = {
        "openai_of_best_sdk": (openai, ("many at once", "openai", "openai2_best")),
        "many_of_acall": (("ways", "many", "32", "ours"), ("ways", "closed", "32", "ours")),
    }
    for route, documented in DOCUMENTED.items():
        ours = ("many at once", route, "ours")
        pairs[f"{route}_of_floor"] = ours, ("many at once", route, "aiohttp")
        pairs[f"{route}_of_litellm"] = ours, ("many at once", route, "litellm")
        pairs[f"{route}_of_sdk"] = ours, ("many at once", route, documented)
        pairs[f"long_{route}_of_sdk"] = ("long", route, "ours"), ("long", route, documented)
    alone = {
        f"latency_of_{name}": (("alone", "openai", "ours"), ("alone", "openai", other))
        for name, other in (("sdk", "openai3"), ("litellm", "litellm"))
    }
    found = ratios(taken, "cpu", pairs) | ratios(taken, "p50", alone)
    for width in ("32", "256"):
        off, stored = (("ways", "closed", width, client) for client in ("ours", "ours_write"))
        if off in taken and stored in taken:
            found[f"write_at_{width}"] = taken[stored].figure("cpu") - taken[off].figure("cpu")
    return found
