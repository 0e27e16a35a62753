"""Encoding a request and decoding its answer, of one message and of 40, on every direct route; CPU time.

No request is sent: the answers come from the simulator before the measurement.
"""

from __future__ import annotations

import importlib.metadata
import statistics
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import orjson

from llm_provider import Message
from llm_provider._core.formats.registry import load
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import canonical
from llm_provider.simulator import Simulator

from ..provider import MODELS
from ..report import Cell, Result, Table
from . import Options

ROUNDS = 11
SECONDS = 0.05
"""CPU time of one sample."""

LENGTHS = (1, 40)
HEADERS = {"content-type": "application/json", "x-api-key": "any", "x-goog-api-key": "any"}
TEXT = "The quick brown fox jumps over the lazy dog. " * 4
ROUTES: dict[str, tuple[str, dict[str, Any], str]] = {
    "Chat Completions": (MODELS["openai"], {"endpoint": "chat"}, "chat/completions"),
    "Responses": (MODELS["openai"], {"endpoint": "responses"}, "responses"),
    "Anthropic": (MODELS["anthropic"], {}, "v1/messages"),
    "Gemini": (MODELS["gemini"], {}, f"v1/models/{MODELS['gemini']}:generateContent"),
}
"""The model of each route, its parameters, and the path of its endpoint."""

STEPS = ("build", "encode", "to JSON", "from JSON", "decode")
COUNTED = STEPS[1:]
"""The steps of the goals. `build` checks the arguments, which is the same for all routes."""


def run(options: Options) -> Result:
    """Measure every step of every case in turn, round after round."""
    rounds = options.rounds_or(ROUNDS)
    work: dict[tuple[str, int, str], Callable[[], object]] = {}
    with Simulator(answer=TEXT) as simulator:
        for route in ROUTES:
            question: Message = {"role": "user", "content": TEXT}
            short = _call(route, [question], simulator)
            answer: Any = short["decode"]()
            earlier = [question, answer.choices[0].message] * (LENGTHS[1] // 2 - 1)
            long = _call(route, [{"role": "system", "content": TEXT}, *earlier, question], simulator)
            for length, steps in zip(LENGTHS, (short, long), strict=True):
                work.update({(route, length, name): step for name, step in steps.items()})
    repeats = {key: _repeats(step, options.seconds(SECONDS)) for key, step in work.items()}
    samples: dict[tuple[str, int, str], list[float]] = {key: [] for key in work}
    for _ in range(rounds):
        for key, step in work.items():
            samples[key].append(_microseconds(step, repeats[key]))
    totals = {
        (route, length): [
            sum(one) for one in zip(*(samples[route, length, step] for step in COUNTED), strict=True)
        ]
        for route in ROUTES
        for length in LENGTHS
    }
    worst = {length: max(statistics.median(totals[route, length]) for route in ROUTES) for length in LENGTHS}
    return Result(
        title="Encoding and decoding",
        text="CPU µs of the library's own work on a request and its answer, without the network and the SDK. "
        "A conversation of 40 messages is a system message and the earlier answers of the same route, as "
        "`response.message` gives them; each text has 180 characters.",
        tables=[_steps(samples), _all_samples(totals)],
        measured={f"format_{length}": worst[length] for length in LENGTHS},
        versions={
            "this library": {
                name: importlib.metadata.version(name) for name in ("llm-provider-call", "orjson")
            }
        },
        rounds=rounds,
        data={f"{route}, {length}": found for (route, length), found in totals.items()},
    )


def _call(route: str, messages: list[Message], simulator: Simulator) -> dict[str, Callable[[], object]]:
    """The steps of a call; the simulator gives its answer now."""
    model, parameters, path = ROUTES[route]
    target = resolve(model)
    adapter = load(target.route.adapter)
    request = Request.build(model, messages, dict(parameters))
    payload = adapter.encode(request, target).payload
    url = f"{simulator.url(target.provider)}/{path}"
    with urllib.request.urlopen(urllib.request.Request(url, canonical(payload), HEADERS)) as opened:
        body = opened.read()
    reply = orjson.loads(body)
    return {
        "build": lambda: Request.build(model, messages, dict(parameters)),
        "encode": lambda: adapter.encode(request, target),
        "to JSON": lambda: canonical(payload),
        "from JSON": lambda: orjson.loads(body),
        "decode": lambda: adapter.decode(reply),
    }


def _repeats(step: Callable[[], object], seconds: float) -> int:
    """How often a sample repeats a step."""
    for _ in range(10):
        step()
    started = time.process_time()
    for _ in range(100):
        step()
    return max(10, round(100 * seconds / max(time.process_time() - started, 1e-6)))


def _microseconds(step: Callable[[], object], repeats: int) -> float:
    started = time.process_time()
    for _ in range(repeats):
        step()
    return (time.process_time() - started) / repeats * 1e6


def _steps(samples: dict[tuple[str, int, str], list[float]]) -> Table:
    rows: list[list[Cell]] = []
    for route in ROUTES:
        for length in LENGTHS:
            medians = [statistics.median(samples[route, length, step]) for step in STEPS]
            rows.append([route, length, *medians])
    return Table(
        title="By step",
        columns=("route", "messages", *STEPS),
        rows=rows,
        notes=["Medians in CPU µs. *build* checks the arguments; the goals count the other steps."],
    )


def _all_samples(totals: dict[tuple[str, int], list[float]]) -> Table:
    rows: list[list[Cell]] = [
        [route, length, statistics.median(found), " ".join(f"{one:.1f}" for one in found)]
        for (route, length), found in totals.items()
    ]
    return Table(
        title="Encoding and decoding together",
        columns=("route", "messages", "median µs", "every sample"),
        rows=rows,
    )
