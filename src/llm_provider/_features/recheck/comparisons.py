"""The two tests of a recheck: stored answers beside new ones, and border prompts.

The first token of the answer to a border prompt varies, although the temperature is 0. A small change of a
model shifts the probabilities of all tokens, and here few answers show it. The first answer is left out: a
server whose prefix cache is cold may compute it otherwise. The history has a line of JSON for each recheck.
"""

import functools
import itertools
import math
import string
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject
from ..._core.runtime import files
from ..._core.runtime.randomness import Random
from ..._core.types.messages import Prompt
from ..._core.types.response import Response
from ..._core.types.results import Results
from ..._core.words import format_usd
from .report import (
    USUAL_FLOOR,
    Recheck,
    compare_triples,
    compare_within,
    find_border_power,
    find_detectable,
    find_power,
    find_size,
    list_served,
    sum_tail,
)

Ask: TypeAlias = Callable[..., Results[Any]]
"""Asks prompts, like `call_many`."""

_PROMPTS, _ANSWERS = 20, 30
"""20 border prompts, with 30 answers before and 30 after, see a shift of 0.2 with a power of 0.99."""
_GROUP, _TRIES = 100, 3
"""A search asks groups of prompts three times each, until enough of them vary."""
_LATEST = 1e11
"""Unix time of the year 5138, which `gmtime` can still read."""
_SUPPOSED = [0.7] * _PROMPTS
"""The shares of the commonest first tokens while no border prompts are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswers:
    """Compares stored answers with new ones; `RecheckParameters` has the options."""

    pairs: Sequence[tuple[Prompt, Response]]
    share: float
    floor: float | None
    detect: float
    compare: Callable[[Response], object]

    def plan(self, base: Recheck, left: float | None) -> Recheck:
        """What can be seen with so many USD; `RequestError` if that is nothing."""
        available, answers = len(self.pairs), 2 if self.floor is None else 1
        prices = [answer.price for _, answer in self.pairs if answer.price is not None]
        price = answers * math.fsum(prices) / len(prices) if prices else None
        most = math.ceil(available * self.share)
        affordable = most if left is None or not price else int(left / price)
        size = min(find_size(self.floor, self.detect), most, affordable)
        detectable = self._find_detectable(size)
        if detectable is None:
            enough = find_size(self.floor, 1.0)
            cost = f", for {format_usd(price * enough)}: raise the budget" if price and size < most else ""
            problem = f"{size} of {available} questions may be asked; {enough} can show a change{cost}"
            raise RequestError(problem)
        expected = None if price is None else price * size
        plan = replace(base, available=available, questions=size, answers=answers, floor=self.floor)
        return replace(plan, detectable=detectable, expected_cost=expected)

    def ask(self, plan: Recheck, ask: Ask) -> Recheck:
        """Ask, and compare; `LLMError` if all calls failed."""
        selected = Random(plan.draw).sample(self.pairs, plan.questions)
        # Before anything is sent: a function that fails must not cost anything.
        known = [self.compare(answer) for _, answer in selected]
        prompts = [prompt for prompt, _ in selected]
        # All first answers before the second ones: a repeated prompt may be answered otherwise.
        rounds = [ask(prompts, draw=plan.draw + number) for number in range(plan.answers)]
        groups = [
            [before, *map(self.compare, new)]
            for before, *new in zip(known, *rounds, strict=True)
            if all(isinstance(answer, Response) for answer in new)
        ]
        if groups:
            size, differing = len(groups), sum(before != after for before, after, *_ in groups)
            plan = replace(plan, answered=size, estimate=differing / size)
        if groups and self.floor is not None:
            p_value = sum_tail(differing, size, self.floor)
            plan = replace(plan, p_value=p_value, detectable=self._find_detectable(size))
        elif groups:
            noisy = sum(first != second for _, first, second in groups)
            detectable = self._find_detectable(size, (noisy + 0.5) / (size + 1))
            p_value = compare_triples(groups)
            plan = replace(plan, noise=noisy / size, p_value=p_value, detectable=detectable)
        served = list_served(Results(answer for _, answer in selected))
        return plan.conclude(served, Results(itertools.chain(*rounds)))

    def _find_detectable(self, size: int, usual: float = USUAL_FLOOR) -> float | None:
        least = usual if self.floor is None else self.floor
        return find_detectable(lambda share: find_power(size, self.floor, share, usual), least)


def read_content(response: Response) -> object:
    """What is compared of an answer by default: its text and its tool calls."""
    return response.text, tuple((call.name, call.arguments) for call in response.tool_calls)


class BorderPrompts:
    """Compares the first tokens of border prompts with those in a history, which the first recheck asks.

    `target` names the model, its server and its parameters. `price` is the USD of an answer.
    """

    def __init__(self, path: Path, target: str, price: float | None) -> None:
        self._path, self._target, self._price = path, target, price
        self._lines = read_history(path, target)
        self._reference: JSONObject = next((line for line in self._lines if "border" in line), {})
        self._known: dict[str, list[str]] = self._reference.get("border", {})
        self._results: Results[Any] = Results()

    def plan(self, base: Recheck, left: float | None) -> Recheck:
        self._left = left
        shares = _find_shares(self._known.values()) if self._known else _SUPPOSED
        least = len(shares) * (_ANSWERS + 1) + (0 if self._known else _GROUP * _TRIES)
        cost = None if self._price is None else self._price * least
        if cost is not None and left is not None and left < cost:
            price = format_usd(cost)
            raise RequestError(f"budget: border prompts cost about {price}, and {format_usd(left)} are left")
        power = functools.partial(find_border_power, shares, _ANSWERS)
        prompts = self._known or _list_candidates(0)
        plan = replace(base, available=len(prompts), questions=len(shares), answers=_ANSWERS)
        return replace(plan, detectable=find_detectable(power), expected_cost=cost)

    def ask(self, plan: Recheck, ask: Ask) -> Recheck:
        """Ask, and compare; without a reference, search for border prompts, and ask the reference."""
        prompts, days_off = list(self._known), None
        if not self._known:
            prompts, plan = self._search(plan, ask)
        self._ask(ask, prompts, plan.draw + _TRIES, 1)
        pairs = zip(prompts, self._ask(ask, prompts, plan.draw + _TRIES + 1, _ANSWERS), strict=True)
        # Prompts most of whose answers failed are left out.
        answers = {prompt: tokens for prompt, tokens in pairs if len(tokens) > _ANSWERS / 2}
        plan = replace(plan, answered=len(answers))
        if self._known and answers:
            plan = _compare(plan, [(self._known[prompt], answers[prompt]) for prompt in answers])
            days_off = count_days_off(self._lines, plan.time, is_off=plan.is_off)
        report = plan.conclude(self._reference.get("after", {}), self._results, days_off)
        if answers:
            report = report if self._known else replace(report, outcome="reference")
            # The first recheck of a target compares nothing, so it is no day of the row.
            more = {"off": report.is_off} if self._known else {"border": answers}
            line = files.encode_line({"target": self._target, **report.to_dict(), **more})
            files.append_line(self._path, line)
        return report

    def _search(self, plan: Recheck, ask: Ask) -> tuple[list[str], Recheck]:
        """The prompts whose first tokens vary, and the plan with the number of those that do not."""
        prompts, varying, start = _list_candidates(plan.draw), list[str](), 0
        while start < len(prompts) and len(varying) < _PROMPTS:
            if self._left is not None and self._results.cost + (plan.expected_cost or 0) > self._left:
                break
            group = prompts[start : start + _GROUP]
            answers = self._ask(ask, group, plan.draw, _TRIES)
            varying += [prompt for prompt, tokens in zip(group, answers, strict=True) if len(set(tokens)) > 1]
            start += len(group)
        return varying[:_PROMPTS], replace(plan, left_out=start - len(varying))

    def _ask(self, ask: Ask, prompts: Sequence[str], draw: int, rounds: int) -> list[list[str]]:
        """The first tokens of new answers to each prompt, without those that failed."""
        received = [ask(prompts, draw=draw + number) for number in range(rounds if prompts else 0)]
        self._results += itertools.chain(*received)
        answers = zip(*received, strict=True)
        return [[each.text for each in own if isinstance(each, Response)] for own in answers]


def _compare(plan: Recheck, pairs: list[tuple[list[str], list[str]]]) -> Recheck:
    """Compare as many answers to each prompt before and after as all of them have."""
    size = min(len(tokens) for pair in pairs for tokens in pair)
    pairs = [(before[:size], after[:size]) for before, after in pairs]
    estimate, p_value = compare_within(pairs)
    shares = _find_shares(before + after for before, after in pairs)
    detectable = find_detectable(functools.partial(find_border_power, shares, size))
    return replace(plan, p_value=p_value, estimate=estimate, detectable=detectable)


def _find_shares(answers: Iterable[Sequence[str]]) -> list[float]:
    """The share of the commonest first token of each prompt."""
    return [max(Counter(tokens).values()) / len(tokens) for tokens in answers]


def _list_candidates(seed: int) -> list[str]:
    """Short texts, most of them of one token, in an order that a seed makes."""
    letters = string.ascii_lowercase
    texts = [*map(str, range(1000)), *letters, *map("".join, itertools.product(letters, repeat=2))]
    Random(seed).shuffle(texts)
    return texts


def read_history(path: Path, target: str) -> list[JSONObject]:
    """The lines of a target, oldest first; `RequestError` if the file cannot be read."""
    try:
        texts = [line.strip() for line in files.read_lines(path)] if path.exists() else []
        # The last line may be cut.
        lines: list[Any] = [orjson.loads(text) for text in texts if text[:1] + text[-1:] == b"{}"]
    except (OSError, ValueError) as error:
        raise RequestError(f"history: {error}{files.file_remedy(path)}") from None
    # The types on which `BorderPrompts` and `count_days_off` rely.
    if (texts[1:] and not lines) or not all(
        isinstance(line.get("target"), str)
        and isinstance(moment := line.get("time"), int | float)
        and 0 <= moment < _LATEST
        and isinstance(line.get("off", False), bool)
        and _has_texts(border := line.get("border", {}))
        and all(border.values())
        and _has_texts(line.get("after", {}))
        for line in lines
    ):
        raise RequestError(f"history: {path} has lines that no recheck has written")
    return [line for line in lines if line.get("target") == target]


def _has_texts(value: Any) -> bool:
    lists = value.values() if isinstance(value, dict) else [None]
    return all(
        isinstance(each, list) and all(isinstance(text, str | None) for text in each) for each in lists
    )


def count_days_off(lines: Iterable[JSONObject], moment: float, *, is_off: bool) -> int:
    """The days in a row up to the day of a moment, in UTC, whose last recheck was off."""
    ends = {line["time"]: line["off"] for line in lines if "off" in line} | {moment: is_off}
    days = {time.strftime("%Y-%m-%d", time.gmtime(end)): ends[end] for end in ends}
    return [*(days[day] for day in sorted(days, reverse=True)), False].index(False)
