"""The fastest transport for a model: aiohttp, HTTP/2 or HTTP/1.1; `--live` asks the real provider.

python -m benchmarks transports --model gpt-6.1-sol --live
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from ..clients import describe
from ..delay_line import DelayLine
from ..figures import tabulate
from ..fleet import Cell, Job, closed
from ..live import target_of, workers
from ..report import Result
from . import Options

MODELS = ("gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-3.8-flash")
CLIENTS = ("ours", "ours_http2", "ours_http1")
LEVELS = (1, 32, 64)
REQUESTS = {1: 8, 32: 128, 64: 256}
ROUND_TRIP = 0.020
SETTINGS = {"latency": 0.100}
QUESTION = "What is {n}+{n}? Answer with the number alone."


def run(options: Options) -> Result:
    """Measure every transport, with a new client each time.

    Raises:
        SystemExit: `--live` without the API keys.
    """
    models = options.models or MODELS
    with workers(options, models) as (provider, fleet), ExitStack() as stack:
        line = None
        if provider is not None:
            line = stack.enter_context(DelayLine("127.0.0.1", provider.simulator.port, ROUND_TRIP))
        cells = {}
        for model in models:
            target = target_of(model, provider)
            if provider is not None and line is not None:
                target = replace(target, base_url=provider.url(target.route, line.port))
            for level in LEVELS:
                for client in options.chosen(CLIENTS):
                    job = Job(
                        target=target,
                        load=closed(level),
                        count=options.count(REQUESTS[level]),
                        warm=0 if options.live else 1,
                        fresh=True,
                        question=QUESTION,
                        answer=None if options.live else "{twice}",
                    )
                    settings = {} if options.live else SETTINGS
                    cells[model, level, client] = Cell(client=client, job=job, settings=settings)
        taken = fleet.measure(cells, options.rounds_or(3))
    rows = {(model, level, describe(client)): one for (model, level, client), one in taken.items()}
    columns = ("calls/s", "p50 ms", "p95 ms", "CPU µs per call", "connections", "failed")
    if options.live:
        text = "Real providers; each transport has a new client and new connections."
    else:
        text = (
            "Simulated: answers after 100 ms over TLS and a delay line of 20 ms, with a new client each time."
        )
    return Result(
        title="Transports" + (", live" if options.live else ""),
        text=text,
        tables=[tabulate("A new client each time", ("model", "at a time", "client"), rows, columns)],
        **fleet.facts,
    )
