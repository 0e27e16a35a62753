"""Batches against a provider that refuses a fixed share of requests at random, whatever their rate.

The table compares the time until the last answer with that of AIMD and of the bare SDK at the same number in
flight, and counts the calls that are lost at the default number of retries. `__main__` prints and writes it.
"""

from __future__ import annotations

import statistics
from functools import partial

from llm_provider._core.pace.failures import DEFAULT_MAX_RETRIES

from .baselines import AIMD, BareSDK, Ours
from .simulation import Provider, Scenario, Shedding, Simulation

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
KINDS = {
    "429": (429, None),
    "429, Retry-After": (429, 1.0),
    "529": (529, None),
    "529, Retry-After": (529, 1.0),
}
BATCHES = ((300, 32), (2000, 32), (2000, 256))
"""Calls, and requests in flight at most."""
LATENCY = 0.2


def scenario(share: float, kind: str, calls: int, max_in_flight: int) -> Scenario:
    """A finite batch."""
    status, retry_after = KINDS[kind]
    shedding = Shedding(((0.0, share),), status, retry_after)
    return Scenario(
        f"{share:.0%} {kind}, {calls} calls, {max_in_flight} in flight",
        lambda chance: Provider([], latency=LATENCY, shedding=shedding),
        duration=600.0,
        calls=calls,
        max_in_flight=max_in_flight,
        at_once=max_in_flight,
    )


def cell(batch: Scenario, seeds: range) -> tuple[float, str]:
    """The ratio of our mean time to the better baseline's, and the text of the cell."""
    means = []
    lost = 0
    for policy in (Ours, AIMD, BareSDK):
        outcomes = [Simulation(batch, policy, seed).run() for seed in seeds]
        whole = all(sum(outcome.done) == batch.calls for outcome in outcomes)
        means.append(statistics.fmean(outcome.last_done for outcome in outcomes) if whole else batch.duration)
        if policy is Ours:
            lost = sum(
                attempts > DEFAULT_MAX_RETRIES + 1 for outcome in outcomes for attempts in outcome.attempts
            )
    ratio = means[0] / min(means[1:])
    times = " / ".join(f"{mean:.1f}" for mean in means)
    return ratio, f"{ratio:.2f} ({times})" + (f", {lost} lost" if lost else "")


def table(seeds: range) -> list[str]:
    """The rows of the table."""
    lines = [f"| calls, in flight | refused | {' | '.join(KINDS)} |", "|---|---|" + "---|" * len(KINDS)]
    print("\n".join(lines), flush=True)
    for calls, max_in_flight in BATCHES:
        for share in SHARES:
            cells = [cell(scenario(share, kind, calls, max_in_flight), seeds)[1] for kind in KINDS]
            lines.append(f"| {calls:,}, {max_in_flight} | {share:.0%} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def _refuse_all(shedding: Shedding, chance: object) -> Provider:
    return Provider([], latency=LATENCY, shedding=shedding)


HOPELESS = [
    Scenario(
        f"every request refused, {kind}",
        partial(_refuse_all, Shedding(((0.0, 1.0),), status, retry_after)),
        3000, calls=12, max_in_flight=32, at_once=32, max_retries=2,
    )
    for kind, (status, retry_after) in KINDS.items()
]  # fmt: skip


def hopeless(seeds: range) -> str:
    """The time until 12 calls have failed where every request is refused."""
    times = [
        f"{kind}: {max(Simulation(batch, Ours, seed).run().last_done for seed in seeds):.0f} s"
        for kind, batch in zip(KINDS, HOPELESS, strict=True)
    ]
    return f"Every request refused, 12 calls with `max_retries=2`, until all have failed: {'; '.join(times)}."
