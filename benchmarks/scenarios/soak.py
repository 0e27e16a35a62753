"""Four processes under faults, `kill -9`, a cut network, a full disk and clock steps: every answer, once."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from ..report import Result, Table
from ..soak.checks import Found, check
from ..soak.faults import KINDS, SHARE
from ..soak.run import STEPS_AT, WORKERS, Record, Soak
from . import Options

MINUTES = 5.0
QUICK_MINUTES = 0.2


def run(options: Options) -> Result:
    """Run the workers for some minutes, then check everything."""
    minutes = options.minutes or (QUICK_MINUTES if options.quick else MINUTES)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    record = Soak(folder, minutes, SHARE).run()
    found = check(record)
    if found.problems:
        print(f"the files of the workers are kept in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return result(record, found, minutes)


def result(record: Record, found: Found, minutes: float) -> Result:
    """The page of a run."""
    billed = sum(one.billed for one in record.sent)
    kinds = Counter(one.kind for one in record.sent)
    in_flight = sum(one.billed for kill in record.kills for one in kill.in_flight)
    killed = found.duplicates["in flight at a kill"]
    return Result(
        title="The soak",
        text=f"{minutes:g} minutes: {WORKERS} processes run batches over four wire formats (`call_many`, "
        "`iter_many`, `aiter_many`, streams in threads) with one cache and one ledger file; every fifth "
        "batch, unless it is streamed, is the same for all. Their requests go through a proxy to the "
        "simulator, which repeats the prompt as its answer. "
        f"Each of {len(KINDS)} kinds of fault meets {record.share:.1%} of the requests, so "
        f"{record.share * len(KINDS):.1%} of them fail. All processes but one are killed with `kill -9` at "
        "random moments and started again. A prompt whose call ends in an error is asked again with its "
        "batch. In the end a new process reads every answer from the cache.",
        tables=[
            Table(title="Disturbances", columns=("", ""), rows=_disturbances(record)),
            Table(
                title="Answers",
                columns=("prompts", "answered right", "wrong", "lost by the cache", "calls that failed"),
                rows=[(found.prompts, found.right, found.wrong, found.missing, found.rerun_errors.total())],
                notes=_counted("Errors", found.rerun_errors) + _counted("Warnings", found.warnings),
            ),
            Table(
                title="Paid again for the same prompt",
                columns=("reason", "requests"),
                rows=sorted(found.duplicates.items()) or [("none", 0)],
                notes=[f"In flight at the kills: {in_flight} requests that were billed, of {billed} in all."],
            ),
            Table(
                title="The bill, USD",
                columns=("billed", "in the ledger", "unexplained", "bound of the ledger for unknown costs"),
                rows=[tuple(map(str, (found.billed, found.spent, found.difference, found.unknown_at_most)))],
            ),
            Table(
                title="Billed answers that no process received whole",
                columns=("reason", "requests", "USD, of those that the simulator sent to the end"),
                rows=[(cause, number, str(usd)) for cause, (number, usd) in sorted(found.lost.items())],
            ),
            Table(
                title="The process that is not killed",
                columns=("median", "first quarter", "last quarter"),
                rows=[
                    (name, *(values or ("too short a run", "")))
                    for name, values in (("RSS, MB", found.rss), ("descriptors", found.descriptors))
                ],
                notes=["The quarters are those of the time after it has used every route twice."],
            ),
            Table(
                title="Requests by fault",
                columns=("fault", "requests"),
                rows=[("none", kinds[""]), *((kind.name, kinds[kind.name]) for kind in KINDS)],
            ),
        ],
        problems=found.problems,
        measured={
            "soak_wrong": found.wrong + found.prompts - found.right,
            "soak_duplicates": found.duplicates["no reason"] + max(0, killed - in_flight),
            "soak_difference": float(abs(found.difference)),
            "soak_problems": len(found.problems),
            **{
                f"soak_{name}": last - first
                for name, values in (("rss", found.rss), ("descriptors", found.descriptors))
                if values is not None
                for first, last in (values,)
            },
        },
    )  # fmt: skip


def _disturbances(record: Record) -> list[tuple[str, str]]:
    rows = [("`kill -9`", f"{len(record.kills)} times")]
    for name, window in (("network cut", record.cut), ("disk full, no kills", record.full)):
        if window is not None:
            at, length = window[0] - record.began, window[1] - window[0]
            rows.append((name, f"{length:.0f} s, from {at:.0f} s on"))
    if record.steps:
        steps = (
            f"{record.steps} of {len(STEPS_AT)} steps: an hour forward, two hours back, an hour forward, by "
            "a library loaded before libc; the monotonic clock and the times of files are true"
        )
        rows.append(("wall clock of the workers", steps))
    return rows + [("left out", reason) for reason in record.skipped]


def _counted(name: str, counts: Counter[str]) -> list[str]:
    listed = ", ".join(f"{number} {what}" for what, number in counts.most_common())
    return [f"{name}: {listed}."] if counts else []
