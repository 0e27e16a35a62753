"""The two tests of a recheck: stored questions that are asked again, and border prompts.

The first token of the answer to a border prompt varies, although the temperature is 0. A small change of a
model shifts the probabilities of all tokens, and here few answers show it. The first answer to a border
prompt is left out: a server whose prefix cache is cold may compute it otherwise, and then the others are no
repetitions of it.
"""

from __future__ import annotations

import functools
import math
import string
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TypeAlias

from .._calls.call import Call
from .._errors import RequestError
from .._money.pricing import PriceTable
from .._requests.routing import price_names
from .._runtime.randomness import Random
from .._tokens.counting import likely_input_tokens
from .._types.messages import Prompt
from .._types.response import Response, Result
from .._types.usage import Usage
from .._words import format_usd
from .history import History
from .options import RecheckOptions
from .questions import Selection, at_draw
from .report import Comparison
from .statistics import (
    Variation,
    compare_within,
    find_alarm,
    find_detectable,
    find_interval,
    find_size,
    power_of_counts,
    sum_tail,
)

Send: TypeAlias = Callable[[list[Call[Response]]], list[Result]]
"""Sends calls, and returns their results in the same order."""

_PROMPTS, _ANSWERS, _SHIFT = 20, 30, 0.2
"""20 border prompts, with 30 answers before and 30 after, see a shift of 0.2 with a power of 0.99."""
_GROUP, _SURPLUS, _FURTHER = 100, 2, 6
"""A search asks groups of prompts twice, until twice as many vary as are needed, and those six times more."""
_SUPPOSED = 0.7
"""The share of the commonest first token while no border prompts are known."""


class StoredLevel:
    """Compares stored answers with new ones. `left` is in USD, and `draw` the number of the recheck.

    Raises:
        RequestError: no change could be seen with this budget, or this number of stored answers.
    """

    def __init__(
        self, selection: Selection, options: RecheckOptions, alpha: float, left: float | None, draw: int
    ) -> None:
        questions, floor = selection.questions, options.floor
        prices = [answer.price for _, known in questions for answer in known if answer.price is not None]
        new = 2 if floor is None else 1
        price = new * math.fsum(prices) / len(prices) if prices else None
        most = math.ceil(len(questions) * options.share)
        affordable = most if left is None or not price else int(left / price)
        size = min(find_size(floor, options.detect, alpha), most, affordable)
        detectable = _find_detectable(size, floor, alpha)
        if detectable is None:
            enough = next(number for number in range(1, 1000) if _find_detectable(number, floor, alpha))
            cost = "" if price is None else f", for {format_usd(price * enough)}"
            problem = f"{size} of {len(questions)} questions may be asked; {enough} can show a change{cost}"
            raise RequestError(f"budget: {problem}" if affordable < most else problem)
        self._draw, self._compare = draw, options.compare or read_content
        self._selected = Random(draw).sample(questions, size)
        self.before = [answer for _, known in self._selected for answer in known]
        self.results: list[Result] = []
        self.plan = Comparison(
            level="stored",
            available=len(questions),
            unusable=dict(selection.unusable),
            questions=size,
            before=1 if floor is not None else min(len(known) for _, known in self._selected),
            after=new,
            floor=floor,
            alpha=alpha,
            alarm_at=None if floor is None else find_alarm(size, floor, alpha),
            shift=options.detect,
            power=power_of_counts(size, floor, options.detect, alpha),
            detectable=detectable,
            expected_cost=None if price is None else price * size,
        )

    def ask(self, send: Send) -> Comparison:
        """Ask, and compare."""
        plan, calls = self.plan, [call for call, _ in self._selected]
        answers: list[list[Response]] = [[] for _ in calls]
        for number in range(plan.after):
            # All first answers before the second ones: a repeated prompt may be answered otherwise.
            received = _ask_rounds(send, calls, self._draw + number, 1, self.results)
            answers = [known + new for known, new in zip(answers, received, strict=True)]
        pairs = [
            ([self._compare(answer) for answer in known], [self._compare(answer) for answer in new])
            for (_, known), new in zip(self._selected, answers, strict=True)
            if len(new) == plan.after
        ]
        size, failed = len(pairs), sum(not isinstance(result, Response) for result in self.results)
        plan = replace(plan, answered=size, failed=failed)
        if not size:
            return plan
        differing = sum(before[0] != after[0] for before, after in pairs)
        low, high = find_interval(differing, size)
        plan = replace(plan, estimate=differing / size, low=low, high=high)
        if plan.floor is not None:
            alarm_at = find_alarm(size, plan.floor, plan.alpha)
            p_value = sum_tail(differing, size, plan.floor)
            detectable = _find_detectable(size, plan.floor, plan.alpha)
            return replace(plan, alarm_at=alarm_at, p_value=p_value, detectable=detectable)
        noisy = sum(after[0] != after[1] for _, after in pairs)
        counts = [(Counter(before[: plan.before]), Counter(after)) for before, after in pairs]
        p_value = compare_within(counts)[1]
        detectable = _find_detectable(size, None, plan.alpha, (noisy + 0.5) / (size + 1))
        return replace(plan, noise=noisy / size, p_value=p_value, detectable=detectable)


class BorderLevel:
    """Compares the first tokens of border prompts with those in a history, which the first recheck asks.

    `call_of` makes the call of a prompt.

    Raises:
        RequestError: the budget is too small for one border prompt, or the history cannot be read.
    """

    def __init__(
        self,
        call_of: Callable[[Prompt], Call[Response]],
        prices: PriceTable,
        options: RecheckOptions,
        alpha: float,
        left: float | None,
        draw: int,
    ) -> None:
        self._call_of, self._draw = call_of, draw
        first = at_draw(call_of("?"), 0)
        self.history = History.read(options.history or "", first.key(0)[:32])
        self.reference = self.history.reference
        usage = Usage(input_tokens=likely_input_tokens(first.body, first.facts), output_tokens=1)
        price = prices.cost(*price_names(first.target), usage)
        self.before: list[Response] = []
        self.results: list[Result] = []
        each = None if price is None else float(price) * (_ANSWERS + 1)
        count = _PROMPTS if left is None or not each else min(_PROMPTS, int(left / each))
        if not count:
            problem = f"a border prompt costs up to {format_usd(each)}, and {format_usd(left)} are left"
            raise RequestError(f"budget: {problem}")
        prompts = options.border_prompts or _list_candidates(draw)
        self._prompts: list[Prompt] = list(self.reference["prompts"] if self.reference else prompts)
        count = min(count, len(self._prompts))
        self._searches = self.reference is None and len(self._prompts) > _PROMPTS
        self._most_searched = 2 * len(self._prompts)
        if left is not None and each:
            self._most_searched = min(self._most_searched, int((left / each - count) * (_ANSWERS + 1)))
        variation = Variation((_SUPPOSED,) * count, _ANSWERS, _ANSWERS)
        if not self._searches:
            self._prompts = self._prompts[:count]
        if self.reference is not None:
            self._known = [Counter(tokens) for tokens in self.reference["answers"][:count]]
            variation = self._describe_variation(self._known, _ANSWERS)
        searched = self._most_searched if self._searches else 0
        self.plan = Comparison(
            level="border",
            available=len(self._prompts),
            unusable={},
            questions=count,
            before=(self.reference and self._known[0].total()) or 0,
            after=_ANSWERS,
            alpha=alpha,
            shift=_SHIFT,
            power=variation.power(_SHIFT, alpha),
            detectable=find_detectable(functools.partial(variation.power, alpha=alpha)),
            expected_cost=None if each is None else each * (count + searched / (_ANSWERS + 1)),
        )

    def ask(self, send: Send) -> Comparison:
        """Ask, and compare; without a reference, search for border prompts, and ask the reference."""
        prompts = self._search(send) if self._searches else self._prompts
        self._ask(send, prompts, 2 + _FURTHER, 1)
        answers = self._ask(send, prompts, 3 + _FURTHER, _ANSWERS)
        # Prompts most of whose answers failed are left out, and the others keep as many as each of them has.
        whole = [index for index, tokens in enumerate(answers) if len(tokens) > _ANSWERS / 2]
        size = min((len(answers[index]) for index in whole), default=0)
        self.asked_prompts, self.tokens = (
            [prompts[index] for index in whole],
            [answers[index][:size] for index in whole],
        )
        failed = sum(not isinstance(result, Response) for result in self.results)
        plan = replace(self.plan, answered=len(whole), failed=failed)
        if self.reference is None or not whole:
            return plan
        pairs = [(self._known[index], Counter(answers[index][:size])) for index in whole]
        variation, p_value = compare_within(pairs)
        expected = self._describe_variation([before + after for before, after in pairs], size)
        shift, low, high = expected.find_shift(variation)
        detectable = find_detectable(functools.partial(expected.power, alpha=plan.alpha))
        return replace(plan, p_value=p_value, estimate=shift, low=low, high=high, detectable=detectable)

    def _describe_variation(self, counts: Sequence[Counter[str]], after: int) -> Variation:
        return Variation(
            [max(each.values()) / each.total() for each in counts], self._known[0].total(), after
        )

    def _search(self, send: Send) -> list[Prompt]:
        """The prompts whose first tokens vary most."""
        varying: list[Prompt] = []
        start, most = 0, self._most_searched // 2
        while start < most and len(varying) < _SURPLUS * self.plan.questions:
            group = self._prompts[start : min(start + _GROUP, most)]
            pairs = self._ask(send, group, 0, 2)
            varying += [prompt for prompt, tokens in zip(group, pairs, strict=True) if len(set(tokens)) > 1]
            start += len(group)
        self.plan = replace(self.plan, unusable={"their first token did not vary": start - len(varying)})
        answers = self._ask(send, varying, 2, _FURTHER)
        shares = [max(Counter(tokens).values()) / len(tokens) if tokens else 1.0 for tokens in answers]
        best = sorted((share, index) for index, share in enumerate(shares) if share < 1)
        return [varying[index] for _, index in best[: self.plan.questions]]

    def _ask(self, send: Send, prompts: Sequence[Prompt], first: int, rounds: int) -> list[list[str]]:
        calls = [self._call_of(prompt) for prompt in prompts]
        answers = _ask_rounds(send, calls, self._draw + first, rounds, self.results)
        return [[read_first_token(answer) for answer in each] for each in answers]


def _ask_rounds(
    send: Send, calls: Sequence[Call[Response]], draw: int, rounds: int, results: list[Result]
) -> list[list[Response]]:
    """New samples of each call, which take turns, without those that failed. `results` gets all of them."""
    received = send([at_draw(call, draw + number) for number in range(rounds) for call in calls])
    results += received
    each = (received[index :: len(calls)] for index in range(len(calls)))
    return [[result for result in own if isinstance(result, Response)] for own in each]


def _find_detectable(size: int, floor: float | None, alpha: float, guess: float = 0.01) -> float | None:
    least = guess if floor is None else floor
    return find_detectable(lambda share: power_of_counts(size, floor, share, alpha, guess), least)


def read_content(response: Response) -> Hashable:
    """What is compared of an answer: its text and its tool calls."""
    return response.text, tuple((call.name, call.arguments) for call in response.tool_calls)


def read_first_token(response: Response) -> str:
    """The first token of an answer; the whole text where the provider does not tell tokens."""
    return response.logprobs[0].token if response.logprobs else response.text


def _list_candidates(seed: int) -> list[Prompt]:
    """Short texts, most of them of one token, in an order that a seed makes."""
    pairs = [first + second for first in string.ascii_lowercase for second in string.ascii_lowercase]
    texts: list[Prompt] = [*string.ascii_letters, *map(str, range(1000)), *pairs]
    Random(seed).shuffle(texts)
    return texts
