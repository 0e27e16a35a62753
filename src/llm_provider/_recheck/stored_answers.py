"""Stored answers that are compared with new ones to the same questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from .._errors import RequestError
from .._runtime import clock
from .._runtime.randomness import Random
from .._types.messages import Prompt
from .._types.response import Response, Result
from .._words import format_usd
from .report import Ask, Recheck, list_served
from .statistics import USUAL_FLOOR, compare_triples, find_detectable, find_power, find_size, sum_tail


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswers:
    """Compares stored answers with new ones; the options are those of `RecheckParameters`."""

    pairs: Sequence[tuple[Prompt, Response]]
    share: float
    floor: float | None
    detect: float
    compare: Callable[[Response], Hashable]

    def plan(self, model: str, draw: int, left: float | None) -> Recheck:
        """What can be seen with so many USD; `RequestError` if that is nothing."""
        available, answers = len(self.pairs), 2 if self.floor is None else 1
        prices = [answer.price for _, answer in self.pairs if answer.price is not None]
        price = answers * math.fsum(prices) / len(prices) if prices else None
        most = math.ceil(available * self.share)
        affordable = most if left is None or not price else int(left / price)
        size = min(find_size(self.floor, self.detect), most, affordable)
        detectable = self._find_detectable(size)
        if detectable is None:
            enough = next(number for number in range(1, 1000) if self._find_detectable(number))
            cost = "" if price is None else f", for {format_usd(price * enough)}"
            problem = f"{size} of {available} questions may be asked; {enough} can show a change{cost}"
            raise RequestError(f"budget: {problem}" if affordable < most else problem)
        return Recheck(
            model=model,
            kind="stored",
            draw=draw,
            time=clock.time(),
            available=available,
            questions=size,
            answers=answers,
            floor=self.floor,
            detectable=detectable,
            expected_cost=None if price is None else price * size,
        )

    def ask(self, plan: Recheck, ask: Ask) -> Recheck:
        """Ask, and compare; `LLMError` if all calls failed."""
        selected = Random(plan.draw).sample(self.pairs, plan.questions)
        prompts = [prompt for prompt, _ in selected]
        # All first answers before the second ones: a repeated prompt may be answered otherwise.
        rounds = [ask(prompts, draw=plan.draw + number) for number in range(plan.answers)]
        groups = [
            [self.compare(answer) for answer in (known, *new) if isinstance(answer, Response)]
            for (_, known), *new in zip(selected, *rounds, strict=True)
        ]
        groups = [group for group in groups if len(group) == plan.answers + 1]
        results: list[Result] = [result for received in rounds for result in received]
        report = self._compare_groups(plan, groups) if groups else plan
        return report.conclude(list_served([known for _, known in selected]), results)

    def _compare_groups(self, plan: Recheck, groups: list[list[Hashable]]) -> Recheck:
        size, differing = len(groups), sum(before != after for before, after, *_ in groups)
        plan = replace(plan, answered=size, estimate=differing / size)
        if self.floor is not None:
            p_value = sum_tail(differing, size, self.floor)
            return replace(plan, p_value=p_value, detectable=self._find_detectable(size))
        noisy = sum(first != second for _, first, second in groups)
        detectable = self._find_detectable(size, (noisy + 0.5) / (size + 1))
        return replace(plan, noise=noisy / size, p_value=compare_triples(groups), detectable=detectable)

    def _find_detectable(self, size: int, usual: float = USUAL_FLOOR) -> float | None:
        least = usual if self.floor is None else self.floor
        return find_detectable(lambda share: find_power(size, self.floor, share, usual), least)


def read_content(response: Response) -> Hashable:
    """What is compared of an answer by default: its text and its tool calls."""
    return response.text, tuple((call.name, call.arguments) for call in response.tool_calls)
