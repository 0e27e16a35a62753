"""CPU of a call at a cloud, with a token or a signature, beside that of the same call to the maker."""

from __future__ import annotations

import statistics

from ..clients import Target
from ..fleet import Cell, Fleet, Job, closed
from ..provider import MODELS, Provider
from ..report import Result, Table
from . import Options

_OPENAI, _CLAUDE, _GEMINI = MODELS.values()
CLOUDS = {
    ("azure", _OPENAI): "openai",
    ("vertex_ai", _CLAUDE): "anthropic",
    ("vertex_ai", _GEMINI): "gemini",
    ("bedrock_mantle", f"openai.{_OPENAI}"): "openai",
    ("bedrock_mantle", f"anthropic.{_CLAUDE}"): "anthropic",
    ("bedrock", f"anthropic.{_CLAUDE}"): "anthropic",
}
"""Cloud and model → the maker's own route."""

_COLUMNS = (
    "model", "sent with", "at the maker, CPU µs per call", "at the cloud", "ratio",
    "botocore's signature, µs", "ratio without it", "lowest", "highest", "failed",
)  # fmt: skip


def run(options: Options) -> Result:
    """Measure each model at its maker, then at its cloud, in reversed order in every second round."""
    count = options.count(320)

    def cell(client: str, route: str, model: str) -> Cell:
        job = Job(target=Target(route=route, model=model), load=closed(32), count=count, warm=min(32, count))
        return Cell(client=client, job=job, settings={"latency": 0.020})

    with Provider() as provider, Fleet(provider, here=options.here) as fleet:
        cells = {}
        for maker in MODELS:
            # What is compared is measured together, because the machine may be busy.
            for client in ("ours_direct", "ours_signing"):
                cells[client, maker] = cell(client, maker, MODELS[maker])
            for at in (at for at, of in CLOUDS.items() if of == maker):
                cells["/".join(at), maker] = cell("ours_cloud", *at)
        taken = fleet.measure(cells, options.rounds_or(20), alternate=True)
    rows: list[list[object]] = []
    measured: dict[str, float] = {}
    cpu = {key: [one["cpu"] for one in measurement.samples] for key, measurement in taken.items()}
    for (cloud, model), maker in CLOUDS.items():
        name, signed = f"{cloud}/{model}", "bedrock" in cloud
        at, direct = cpu[name, maker], cpu["ours_direct", maker]
        signing = cpu["ours_signing" if signed else "ours_direct", maker]
        ratios = [(a - (s - d)) / d for a, d, s in zip(at, direct, signing, strict=True)]
        alone = statistics.median(s - d for s, d in zip(signing, direct, strict=True)) if signed else None
        row = [name, "a signature" if signed else "a token", taken["ours_direct", maker].cpu]
        row += [taken[name, maker].cpu, statistics.median(a / d for a, d in zip(at, direct, strict=True))]
        row += [alone, statistics.median(ratios), min(ratios), max(ratios)]
        rows.append([*row, taken[name, maker].failed])
        goal = "signed_of_direct" if signed else "bearer_of_direct"
        measured[goal] = max(measured.get(goal, 0.0), statistics.median(ratios))
    return Result(
        title="Clouds",
        text="32 calls at a time, an answer after 20 ms, TLS, connections warm, cache off. Ratios are those "
        "of the rounds: the median, and without the signature also the lowest and the highest. The time of "
        "botocore's signature (SigV4) is what a call to the maker takes longer where botocore signs a "
        "request of the same length before it.",
        tables=[Table(title="At a cloud and at the maker", columns=_COLUMNS, rows=rows)],
        measured=measured,
        **fleet.facts,
    )
