"""The themes of programs: which features meet, and how their programs differ from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FAULTS: tuple[dict[str, Any], ...] = (
    {"status": 429}, {"status": 429, "retry_after": "2"}, {"status": 429, "retry_after": "20"},
    {"status": 500}, {"status": 503}, {"status": 529}, {"status": 400}, {"hang": True},
    {"delay": 3.0}, {"delay": 15.0}, {"abort_after": 1}, {"cut_after": 1}, {"error_after": 1},
    {"stall_after": 1}, {"stall_after": 1, "delay": 5.0},
    {"finish": "length"}, {"finish": "no_choices"}, {"finish": "empty"}, {"text": "{}"},
    {"text": "certainly"}, {"body": "<html>busy</html>", "content_type": "text/html"},
    {"body": "", "status": 200},
)  # fmt: skip
BAD_ANSWERS = FAULTS[-7:]


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Features that meet in a program, where the others are rare: so rare crossings are tried too."""

    features: tuple[str, ...]
    calls: tuple[str, ...] = ()
    """What its programs do, if not everything."""
    exact: float = 0.1
    """The share of its programs in which much happens just when an answer comes."""
    scales: tuple[int, ...] = (1, 1, 3, 10)
    """How many times more steps and questions a program has."""
    crowd: tuple[int, ...] = (1, 2)
    """How many questions there are, if many ask the same."""
    processes: tuple[int, ...] = (2, 2, 3, 4)
    """How many processes there are, if more than one."""
    kinds: tuple[str, ...] = ("synchronous", "asynchronous")
    """How threads take their steps."""
    others: float = 0.2
    """The share of the programs in which a feature is on that is not one of these."""
    questions: tuple[int, ...] = ()
    """How many questions there are, if not some for each step."""
    faults: tuple[dict[str, Any], ...] = FAULTS
    """What may happen to a request, if faults are on."""
    network: dict[str, tuple[float, ...]] | None = None
    """How often the network misbehaves in which ways, if not in two that the seed chooses."""
    is_at_once: bool = False
    """Whether everybody begins at the same time, and dies while the first requests are under way."""


THEMES = {
    "": Theme(features=(), others=0.5),
    "many questions": Theme(
        features=(), calls=("call_many", "call_many", "iter_many"), scales=(1,), questions=(200, 400, 800)
    ),
    "money": Theme(
        features=("budgets", "cancellation", "faults", "threads"),
        calls=("call", "call", "call_many"),
        exact=0.6,
    ),
    "money in line": Theme(
        features=("budgets", "cancellation"),
        calls=("call",),
        exact=1.0,
        scales=(10,),
        kinds=("asynchronous",),
        others=0.05,
        is_at_once=True,
    ),
    "money of several": Theme(
        features=("processes", "budgets", "deaths"),
        calls=("call", "call", "call_many", "stream"),
        scales=(3,),
        processes=(3, 4),
        others=0.05,
        is_at_once=True,
    ),
    "repeated answers": Theme(
        features=("network",),
        calls=("call", "call", "stream", "call_many"),
        scales=(3,),
        others=0.05,
        network={"repeat": (0.3, 0.6)},
    ),
    "known failures": Theme(
        features=("faults", "crowds", "deadlines", "lags"),
        calls=("call",),
        exact=1.0,
        scales=(10,),
        crowd=(4,),
        kinds=("asynchronous",),
        others=0.05,
        faults=BAD_ANSWERS[1:3],
        is_at_once=True,
    ),
    "late writes": Theme(
        features=("lags", "deaths", "cancellation", "deadlines"), calls=("call",), exact=1.0, scales=(1,)
    ),
    "broken streams": Theme(
        features=("network", "leaving"),
        calls=("stream", "stream", "call", "iter_many"),
        scales=(3, 10),
        others=0.05,
        network={"cut_answer": (0.02, 0.05, 0.1), "cut_end": (0.3,)},
    ),
    "many streams": Theme(
        features=(), calls=("stream",), exact=1.0, scales=(10,), kinds=("asynchronous",), is_at_once=True
    ),
    "shared calls": Theme(
        features=("crowds", "samples", "cancellation", "deadlines"),
        calls=("call", "call", "call_many", "stream"),
        exact=0.6,
    ),
    "slow inputs": Theme(features=("slow_inputs",), calls=("call_many", "iter_many"), exact=0.8),
    "bad answers": Theme(
        features=("faults", "crowds", "formats", "deadlines"),
        calls=("call", "call", "stream", "call_many"),
        exact=0.6,
        faults=BAD_ANSWERS,
        is_at_once=True,
    ),
    "left batches": Theme(
        features=("crowds", "leaving", "cancellation"),
        calls=("call", "iter_many", "iter_many", "call_many"),
        exact=0.6,
    ),
    "outages": Theme(
        features=("outages", "retries"), calls=("call", "call", "call_many"), scales=(3,), others=0.05
    ),
    "full disk": Theme(features=("processes", "full_disk"), calls=("call", "call_many"), scales=(1, 3)),
    "tokens": Theme(
        features=("clients", "threads", "cancellation"), calls=("call", "call_many", "stream", "iter_many")
    ),
    "refused batches": Theme(
        features=("budgets", "processes", "deadlines", "deaths"),
        calls=("call_many", "iter_many"),
        exact=0.8,
        scales=(3,),
        processes=(2, 3, 4),
        others=0.05,
        is_at_once=True,
    ),
}
