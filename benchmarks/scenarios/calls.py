"""CPU and time of one call: every client on every route, the cache, long conversations, batches.

The provider answers in 20 ms, over TLS, to 32 calls at a time, unless a table says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..clients import describe
from ..fleet import Cell, Fleet, Measurement, closed
from ..provider import Provider
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
    "gemini": ("aiohttp", "genai", "genai_best", "litellm", "ours_public", *OURS),
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

EARLIER = {
    ("openai", "aiohttp"): 172,
    ("openai", "openai2"): 3610,
    ("openai", "openai2_best"): 958,
    ("openai", "openai3"): 1364,
    ("openai", "litellm"): 2500,
    ("anthropic", "anthropic"): 903,
    ("anthropic", "litellm"): 2148,
    ("gemini", "genai"): 1032,
    ("gemini", "litellm"): 2101,
}
"""CPU per call in µs, in the measurements on which the goals are based."""

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
        versions, problems = fleet.versions, fleet.problems
    routes = [route for route in ROUTES if any(key[:2] == ("many at once", route) for key in taken)]
    return Result(
        title="One call",
        text="CPU per call is that of the client's whole process, including the load generator. Unless a "
        "table says otherwise: 32 calls at a time, an answer after 20 ms, TLS, connections warm, cache off.",
        tables=[
            *(_headline(route, taken) for route in routes),
            _alone(taken),
            _long(taken),
            _ways(taken),
            _plain(taken),
        ],
        charts=[_chart(route, taken) for route in routes],
        measured=_measured(taken),
        versions=versions,
        problems=problems,
        rounds=options.rounds_or(5),
        data={" / ".join(key): one.samples for key, one in taken.items()},
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


def _headline(route: str, taken: Taken) -> Table:
    clients = [key[2] for key in taken if key[:2] == ("many at once", route)]
    floor = taken.get(("many at once", route, "aiohttp"))
    rows = []
    for client in clients:
        one = taken["many at once", route, client]
        share = None if floor is None else one.cpu / floor.cpu
        earlier = EARLIER.get((route, client))
        rows.append([describe(client), one.cpu, share, one.rate, earlier, one.server_share, one.failed])
    return Table(
        title=f"{ROUTES[route]}: 32 at a time",
        columns=(
            "client",
            "CPU µs per call",
            "of raw aiohttp",
            "calls/s",
            "earlier µs",
            "provider's core",
            "failed",
        ),
        rows=rows,
        notes=("*earlier µs*: the measurements on which the goals are based, on another day.",),
    )


def _alone(taken: Taken) -> Table:
    rows = [
        [ROUTES[key[1]], describe(key[2]), one.p50 * 1e3, one.p99 * 1e3, one.cpu, one.failed]
        for key, one in taken.items()
        if key[0] == "alone"
    ]
    columns = ("route", "client", "p50 ms", "p99 ms", "CPU µs per call", "failed")
    return Table(title="One at a time, a provider that answers at once", columns=columns, rows=rows)


def _long(taken: Taken) -> Table:
    rows = [
        [ROUTES[key[1]], describe(key[2]), one.cpu, one.rate, one.failed]
        for key, one in taken.items()
        if key[0] == "long"
    ]
    columns = ("route", "client", "CPU µs per call", "calls/s", "failed")
    return Table(title="A conversation of 41 messages", columns=columns, rows=rows)


def _ways(taken: Taken) -> Table:
    rows = [
        [*WAYS[key[1], key[3]], int(key[2]), one.cpu, one.rate, one.failed]
        for key, one in taken.items()
        if key[0] == "ways"
    ]
    columns = ("way", "cache", "at a time", "CPU µs per call", "calls/s", "failed")
    return Table(title="This library's ways, OpenAI", columns=columns, rows=rows)


def _plain(taken: Taken) -> Table:
    rows = [
        [describe(key[2]), one.cpu, one.rate, one.failed] for key, one in taken.items() if key[0] == "plain"
    ]
    columns = ("client", "CPU µs per call", "calls/s", "failed")
    return Table(title="Without TLS, OpenAI, 32 at a time", columns=columns, rows=rows)


def _chart(route: str, taken: Taken) -> Chart:
    shown = {describe(key[2]): one.cpu for key, one in taken.items() if key[:2] == ("many at once", route)}
    return Chart(
        title=f"{ROUTES[route]}: CPU per call, 32 at a time",
        x=list(shown),
        y_label="µs",
        series={"CPU µs per call": list(shown.values())},
    )


def _measured(taken: Taken) -> dict[str, float]:
    found: dict[str, float] = {}

    def compare(name: str, ours: Key, other: Key, of: str = "cpu") -> None:
        if ours in taken and other in taken:
            found[name] = taken[ours].figure(of) / taken[other].figure(of)

    for route, documented in DOCUMENTED.items():
        ours = ("many at once", route, "ours")
        compare(f"{route}_of_litellm", ours, ("many at once", route, "litellm"))
        compare(f"{route}_of_sdk", ours, ("many at once", route, documented))
        compare(f"long_{route}_of_sdk", ("long", route, "ours"), ("long", route, documented))
    gemini = ("many at once", "gemini", "ours_public")
    compare("gemini_public_of_sdk", gemini, ("many at once", "gemini", "genai"))
    openai = ("many at once", "openai", "ours")
    compare("openai_of_best_sdk", openai, ("many at once", "openai", "openai2_best"))
    compare("openai_of_floor", openai, ("many at once", "openai", "aiohttp"))
    for name, other in (("sdk", "openai3"), ("litellm", "litellm")):
        compare(f"latency_of_{name}", ("alone", "openai", "ours"), ("alone", "openai", other), "p50")
    compare("many_of_acall", ("ways", "many", "32", "ours"), ("ways", "closed", "32", "ours"))
    for width in ("32", "256"):
        off, stored = (("ways", "closed", width, client) for client in ("ours", "ours_write"))
        if off in taken and stored in taken:
            found[f"write_at_{width}"] = taken[stored].figure("cpu") - taken[off].figure("cpu")
    return found
