"""What must be true after a soak, computed from what its parts saw independently of each other."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from .faults import BROKEN, KINDS
from .proxy import Sent
from .run import FIRST, Record, Sample, lines_of
from .worker import WARM_BATCHES

ERRORS_OF = {kind.name: kind.errors for kind in KINDS}
SHOWN = 5
"""Examples of each problem."""


@dataclass
class Found:
    """The figures of a run, and everything that was not as it must be."""

    prompts: int = 0
    right: int = 0
    wrong: int = 0
    missing: int = 0
    """Prompts that the cache does not answer in the end."""
    rerun_errors: Counter[str] = field(default_factory=Counter)
    """Errors that a batch ended with for a prompt; the batch was run again."""
    warnings: Counter[str] = field(default_factory=Counter)
    duplicates: Counter[str] = field(default_factory=Counter)
    """Billed requests beyond the first for a prompt, by the reason why it was sent again."""
    billed: Decimal = Decimal(0)
    spent: Decimal = Decimal(0)
    lost: dict[str, tuple[int, Decimal]] = field(default_factory=dict)
    """Billed requests that no ledger line shows as answered: number and USD, by reason."""
    difference: Decimal = Decimal(0)
    """USD of the bill that neither the ledger nor a reason explains."""
    unknown_at_most: Decimal = Decimal(0)
    rss: tuple[float, float] | None = None
    """MB in the first and in the last quarter: medians. None if the run was too short."""
    descriptors: tuple[float, float] | None = None
    problems: list[str] = field(default_factory=list)

    def problem(self, what: str, examples: Sequence[object] = ()) -> None:
        """Note a violation with some examples."""
        shown = "; ".join(str(one) for one in examples[:SHOWN])
        self.problems.append(f"{what}: {shown}" if examples else what)


def check(record: Record) -> Found:
    """Check a run."""
    found = Found(problems=list(record.problems))
    lines = list(lines_of(record.folder))
    checked = list(lines_of(record.folder, checked=True))
    _answers(found, lines, checked)
    _errors(found, record, lines)
    causes = _causes(record)
    _duplicates(found, record, causes)
    _money(found, record, causes)
    _flat(found, record, lines)
    return found


def _answers(found: Found, lines: Sequence[Mapping[str, Any]], checked: Sequence[Mapping[str, Any]]) -> None:
    asked = {line["tag"] for line in lines if line["what"] in ("right", "wrong", "error")}
    wrong = [line for line in [*lines, *checked] if line["what"] == "wrong"]
    stored = Counter(line["tag"] for line in checked if line["what"] == "right")
    missing = sorted(asked - stored.keys())
    unanswered = sorted(asked - {line["tag"] for line in lines if line["what"] == "right"})
    found.prompts, found.right, found.wrong, found.missing = len(asked), len(stored), len(wrong), len(missing)
    if not asked:
        found.problem("no prompt was asked")
    if wrong:
        found.problem("wrong answers", [f"{line['tag']}: {line['text']}" for line in wrong])
    if unanswered:
        found.problem("prompts without an answer", unanswered)
    if missing:
        found.problem("answers that the cache has lost", missing)
    if any(times != 1 for times in stored.values()):
        found.problem("prompts that the cache answered more than once")


def _errors(found: Found, record: Record, lines: Sequence[Mapping[str, Any]]) -> None:
    """Every error must be one that a fault of its prompt, or the cut network, explains."""
    met: defaultdict[str, set[str]] = defaultdict(set)
    for one in record.sent:
        met[one.tag].update(ERRORS_OF.get(one.kind, ()))
        if not one.delivered:
            met[one.tag].update(BROKEN)
    began, ended = record.cut or (0.0, 0.0)
    strange, warned = [], []
    for line in lines:
        if line["what"] == "error":
            found.rerun_errors[line["error"]] += 1
            # A call that failed in the cut may have waited for its retries since.
            cut = began <= line["at"] <= ended + 60 and line["error"] in BROKEN
            if line["error"] not in met[line["tag"]] and not cut:
                strange.append(f"{line['tag']}: {line['error']}: {line['message']}")
        elif line["what"] == "warning":
            found.warnings[line["category"]] += 1
            full = record.full is not None and record.full[0] <= line["at"] <= record.full[1] + 60
            if not full or line["category"] != "CacheWarning":
                warned.append(f"{line['worker']}: {line['category']}: {line['message']}")
    if strange:
        found.problem(f"{len(strange)} errors that no fault explains", strange)
    if warned:
        found.problem(f"{len(warned)} warnings that no disturbance explains", warned)


def _causes(record: Record) -> dict[Sent, str]:
    """Why the answer of a request that was billed can have been lost, where there is a reason."""
    causes = {}
    killed = {one for kill in record.kills for one in kill.in_flight}
    for one in record.sent:
        if not one.billed:
            continue
        if one in killed:
            causes[one] = "in flight at a kill"
        elif one.kind:
            causes[one] = f"broken: {one.kind}"
        elif record.cut is not None and one.began <= record.cut[1] and _ended(one) >= record.cut[0]:
            causes[one] = "in flight at the cut"
        elif not one.delivered:
            causes[one] = "the client's time limit"
    return causes


def _ended(one: Sent) -> float:
    return float("inf") if one.ended is None else one.ended


def _duplicates(found: Found, record: Record, causes: Mapping[Sent, str]) -> None:
    billed: defaultdict[str, list[Sent]] = defaultdict(list)
    for one in record.sent:
        if one.billed:
            billed[one.tag].append(one)
    unexplained = []
    for tag, requests in billed.items():
        for one in requests[:-1]:
            cause = causes.get(one)
            full = record.full
            if cause is None and full and tag.startswith("all-") and full[0] <= _ended(one) <= full[1] + 30:
                # The answer is in the memory of one process, and other processes cannot read it there.
                cause = "answered while the disk was full, and asked by another process"
            found.duplicates[cause or "no reason"] += 1
            if cause is None:
                times = [
                    f"{again.began - record.began:.1f}-{_ended(again) - record.began:.1f}"
                    for again in requests
                ]
                unexplained.append(f"{tag}, billed at {', '.join(times)} s")
    if unexplained:
        found.problem(f"{len(unexplained)} prompts were paid for again without a reason", unexplained)


def _money(found: Found, record: Record, causes: Mapping[Sent, str]) -> None:
    """The ledger file against the simulator's bill, request by request."""
    bill = record.bill
    if bill is None or bill.billed is None:
        found.problem("the simulator has no bill")
        return
    billed = {one.identifier: one for one in record.sent if one.billed}
    if bill.answered != len(billed):
        found.problem(f"the simulator billed {bill.answered} requests, the proxy saw {len(billed)}")
    answered: Counter[str] = Counter()
    prices: defaultdict[str, set[Decimal]] = defaultdict(set)
    failed = 0
    for line in _ledger(record):
        identifier = str(line.get("id", "")).rpartition("-")[2].rpartition("_")[2]
        one = billed.get(identifier)
        if line["outcome"] == "failed":
            failed += 1
            found.unknown_at_most += Decimal(line.get("at_most") or 0)
        elif one is None or line["usd"] is None:
            found.problem("a ledger line without a billed request", [json.dumps(line)])
        else:
            prices[one.tag].add(Decimal(line["usd"]))
            if line["outcome"] == "answered":
                answered[identifier] += 1
                found.spent += Decimal(line["usd"])
    if any(times > 1 for times in answered.values()):
        found.problem("requests that the ledger counts twice")
    if any(len(amounts) > 1 for amounts in prices.values()):
        found.problem("equal requests with different prices in the ledger")
    unfinished = sum((entry.unfinished_billed or Decimal(0) for entry in bill.models), Decimal(0))
    found.billed = bill.billed
    _compare(found, [one for key, one in billed.items() if key not in answered], prices, causes, unfinished)
    kept = sum(number for cause, (number, _) in found.lost.items() if cause != "in flight at a kill")
    if failed < kept:
        found.problem(f"{kept} billed answers were lost in running processes, but only {failed} lines say so")


def _compare(
    found: Found,
    lost: Iterable[Sent],
    prices: Mapping[str, set[Decimal]],
    causes: Mapping[Sent, str],
    unfinished: Decimal,
) -> None:
    explained, unexplained, killed = Decimal(0), [], Decimal(0)
    lost_by: defaultdict[str, list[Decimal]] = defaultdict(list)
    for one in lost:
        cause = causes.get(one)
        if cause is None:
            unexplained.append(one.tag)
            continue
        # The price of an answer that did not reach its end is in `unfinished`.
        amount = min(prices[one.tag], default=Decimal(0)) if one.finished else Decimal(0)
        lost_by[cause].append(amount)
        explained += amount
        killed += amount if cause == "in flight at a kill" else 0
    found.lost = {cause: (len(amounts), sum(amounts, Decimal(0))) for cause, amounts in lost_by.items()}
    found.difference = found.billed - found.spent - explained - unfinished
    if unexplained:
        found.problem(f"{len(unexplained)} billed answers are not in the ledger", unexplained)
    if found.difference:
        found.problem(f"{found.difference} USD of the bill are neither in the ledger nor explained")
    if explained - killed + unfinished > found.unknown_at_most + killed:
        found.problem("the bill of lost answers is above the ledger's bound for unknown costs")


def _ledger(record: Record) -> list[dict[str, Any]]:
    path = record.folder / "ledger.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _flat(found: Found, record: Record, lines: Sequence[Mapping[str, Any]]) -> None:
    """Compare quarters of the time after the first process has used every route twice."""
    warm = [
        line["at"]
        for line in lines
        if line["what"] == "batch" and line["worker"] == FIRST and line["batch"] == WARM_BATCHES
    ]
    if not warm or warm[0] >= record.ended:
        return
    length = (record.ended - warm[0]) / 4
    first = [one for one in record.samples if warm[0] <= one.at <= warm[0] + length]
    last = [one for one in record.samples if record.ended - length <= one.at <= record.ended]
    if first and last:
        found.rss = _medians(first, last, "rss")
        found.descriptors = _medians(first, last, "descriptors")


def _medians(first: Sequence[Sample], last: Sequence[Sample], name: str) -> tuple[float, float]:
    before, after = (statistics.median(getattr(one, name) for one in part) for part in (first, last))
    return before, after
