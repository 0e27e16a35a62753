"""Border prompts: the first token of their answers varies, although the temperature is 0.

A small change of a model shifts the probabilities of all tokens, and here few answers show it. The first
answer to a prompt is left out: a server whose prefix cache is cold may compute it otherwise, and then the
others are no repetitions of it.
"""

from __future__ import annotations

import functools
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .._errors import RequestError
from .._json_values import JSONObject
from .._runtime import clock
from .._runtime.randomness import Random
from .._types.response import Response, Result
from .._types.results import Cost
from .._words import format_usd
from .history import append_line, count_days_off, read_history
from .report import Ask, Recheck
from .statistics import compare_within, estimate_shift, find_border_power, find_detectable

_PROMPTS, _ANSWERS = 20, 30
"""20 border prompts, with 30 answers before and 30 after, see a shift of 0.2 with a power of 0.99."""
_GROUP, _TRIES = 100, 3
"""A search asks groups of prompts three times each, until enough of them vary."""
_SUPPOSED = [0.7] * _PROMPTS
"""The shares of the commonest first tokens while no border prompts are known."""


@dataclass(slots=True, kw_only=True)
class BorderPrompts:
    """Compares the first tokens of border prompts with those in a history, which the first recheck asks.

    `target` names the model, its server and its parameters. `price` is that of an answer, `left` is in USD.
    """

    path: Path
    target: str
    price: float | None
    left: float | None
    lines: list[JSONObject]
    reference: JSONObject | None
    results: list[Result]

    @classmethod
    def read(cls, path: Path, target: str, price: float | None, left: float | None) -> BorderPrompts:
        """Read the history; `RequestError` if that fails."""
        lines = read_history(path, target)
        reference = next((line for line in lines if "prompts" in line), None)
        return cls(
            path=path, target=target, price=price, left=left, lines=lines, reference=reference, results=[]
        )

    def plan(self, model: str, draw: int, persistence: int) -> Recheck:
        """What can be seen; `RequestError` if the budget is too small."""
        prompts = self.reference["prompts"] if self.reference else _list_candidates(draw)
        count = min(_PROMPTS, len(prompts))
        shares = _find_shares(self.reference["answers"]) if self.reference else _SUPPOSED
        least = count * (_ANSWERS + 1) + (0 if self.reference else _GROUP * _TRIES)
        needed = None if self.price is None else self.price * least
        if needed is not None and self.left is not None and self.left < needed:
            left = format_usd(self.left)
            raise RequestError(f"budget: border prompts cost about {format_usd(needed)}, and {left} are left")
        return Recheck(
            model=model,
            kind="border",
            draw=draw,
            time=clock.time(),
            available=len(prompts),
            questions=count,
            answers=_ANSWERS,
            detectable=find_detectable(functools.partial(find_border_power, shares, _ANSWERS)),
            expected_cost=needed,
            persistence=persistence,
        )

    def ask(self, plan: Recheck, ask: Ask) -> Recheck:
        """Ask, and compare; without a reference, search for border prompts, and ask the reference.

        Raises:
            LLMError: all calls failed.
            OSError: the history cannot be written.
        """
        reference, days_off = self.reference, None
        if reference is None:
            prompts, plan = self._search(plan, ask)
        else:
            prompts = reference["prompts"]
        self._ask(ask, prompts, plan.draw + _TRIES, 1)
        answers = self._ask(ask, prompts, plan.draw + _TRIES + 1, _ANSWERS)
        # Prompts most of whose answers failed are left out.
        whole = [index for index, tokens in enumerate(answers) if len(tokens) > _ANSWERS / 2]
        plan = replace(plan, answered=len(whole))
        if reference and whole:
            plan = _compare(plan, [(reference["answers"][index], answers[index]) for index in whole])
            days_off = count_days_off(self.lines, plan.time, is_off=plan.is_off)
        report = plan.conclude(reference["after"] if reference else {}, self.results, days_off)
        if whole:
            # The first recheck of a target compares nothing, so it is no day of the row.
            kept = {
                "prompts": [prompts[index] for index in whole],
                "answers": [answers[index] for index in whole],
            }
            line = {
                "target": self.target,
                **report.to_dict(),
                **({"off": report.is_off} if reference else kept),
            }
            append_line(self.path, line)
        return report

    def _search(self, plan: Recheck, ask: Ask) -> tuple[list[str], Recheck]:
        """The prompts whose first tokens vary, and the plan with the number of those that do not."""
        prompts, varying, start = _list_candidates(plan.draw), list[str](), 0
        while start < len(prompts) and len(varying) < _PROMPTS:
            spent = Cost.of(result.cost for result in self.results)
            if start and self.left is not None and spent + (plan.expected_cost or 0) > self.left:
                break
            group = prompts[start : start + _GROUP]
            answers = self._ask(ask, group, plan.draw, _TRIES)
            varying += [prompt for prompt, tokens in zip(group, answers, strict=True) if len(set(tokens)) > 1]
            start += len(group)
        return varying[:_PROMPTS], replace(plan, left_out=start - len(varying))

    def _ask(self, ask: Ask, prompts: Sequence[str], draw: int, rounds: int) -> list[list[str]]:
        """The first tokens of new answers to each prompt, without those that failed."""
        tokens: list[list[str]] = [[] for _ in prompts]
        for number in range(rounds if prompts else 0):
            for each, result in zip(tokens, ask(prompts, draw=draw + number), strict=True):
                self.results.append(result)
                if isinstance(result, Response):
                    each.append(result.text)
        return tokens


def _compare(plan: Recheck, pairs: list[tuple[list[str], list[str]]]) -> Recheck:
    """Compare as many answers to each prompt before and after as all of them have."""
    size = min(len(tokens) for pair in pairs for tokens in pair)
    pairs = [(before[:size], after[:size]) for before, after in pairs]
    variation, p_value = compare_within(pairs)
    shares = _find_shares([before + after for before, after in pairs])
    detectable = find_detectable(functools.partial(find_border_power, shares, size))
    return replace(
        plan, p_value=p_value, estimate=estimate_shift(shares, size, variation), detectable=detectable
    )


def _find_shares(answers: Sequence[Sequence[str]]) -> list[float]:
    """The share of the commonest first token of each prompt."""
    return [max(Counter(tokens).values()) / len(tokens) for tokens in answers]


def _list_candidates(seed: int) -> list[str]:
    """Short texts, most of them of one token, in an order that a seed makes."""
    pairs = [first + second for first in string.ascii_lowercase for second in string.ascii_lowercase]
    texts = [*string.ascii_letters, *map(str, range(1000)), *pairs]
    Random(seed).shuffle(texts)
    return texts
