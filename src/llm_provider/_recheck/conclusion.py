"""From the comparisons of a recheck to its report, which the history keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from .._types.response import Response, Result
from .._types.results import Cost
from .levels import BorderLevel, StoredLevel
from .report import Comparison, Outcome, Recheck


def conclude(
    plan: Recheck, levels: Sequence[BorderLevel | StoredLevel], comparisons: tuple[Comparison, ...]
) -> Recheck:
    """The report; `OSError` if the history cannot be written."""
    border = next((level for level in levels if isinstance(level, BorderLevel)), None)
    results = [result for level in levels for result in level.results]
    before, after = count_served([each for level in levels for each in level.before]), count_served(results)
    if border is not None and border.reference is not None:
        for name, counts in border.reference["after"].items():
            before[name] = dict(Counter(before.get(name, {})) + Counter(counts))
    is_off = any(comparison.is_off for comparison in comparisons)
    days_off = int(is_off)
    if border is not None:
        days_off = border.history.count_days_off(plan.time, is_off=is_off)
    report = replace(
        plan,
        before=before,
        after=after,
        comparisons=comparisons,
        days_off=days_off,
        cost=Cost.of(result.cost for result in results),
    )
    outcome: Outcome = "undecided"
    if report.is_other_model or (is_off and days_off >= plan.persistence):
        outcome = "changed"
    elif is_off:
        outcome = "suspected"
    elif any(each.p_value is not None and each.detectable is not None for each in comparisons):
        outcome = "same"
    report = replace(report, outcome=outcome)
    if border is not None and (border.reference or border.asked_prompts):
        # The first recheck of a target compares nothing, so it is no day of the row.
        reference = {"prompts": border.asked_prompts, "answers": border.tokens}
        border.history.append({**report.to_dict(), **({"off": is_off} if border.reference else reference)})
    return report


def count_served(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    """How many answers had each value of a field of `served_by`."""
    counts: dict[str, dict[str, int]] = {}
    for result in results:
        for sample in result.samples if isinstance(result, Response) else ():
            for name, value in sample.served_by.to_dict().items() if sample.served_by else ():
                if name != "request_id":
                    values = counts.setdefault(name, {})
                    values[value] = values.get(value, 0) + 1
    return counts
