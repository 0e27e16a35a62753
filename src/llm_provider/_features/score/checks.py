"""The checks of a prompt's log-probabilities. Pure. docs/scoring.md lists them, and the failures behind each.

Servers ignore `echo`, leave the prompt out, put every value one position late or write -9999, all with status
200. A sum over such a reply looks like a score.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ..._core.errors import ScoreCheckError
from ..._core.formats.protocol import AnyAnswer

TOLERANCE = 0.1
"""How far two values of one token may differ, in nats. Prefix caches move logits by about 0.06."""
_LEAST = -9000.0
"""vLLM writes -9999 for what it cannot represent. No vocabulary has a token so unlikely."""
_WHOLE = 1.001
"""The most that the probabilities of one position may add up to."""

_REMEDIES = {
    "count": "the server does not tell the log-probabilities of the whole prompt",
    "first token": "the values may be shifted, or the server left some out",
    "echo": "the server scored another text than the one that was sent",
    "begin token": "leave the token that begins a text out of the context, because the server adds it",
    "slice": "end the context, or begin the continuation, at a word",
    "values": "the server has no log-probability for a token",
    "shift": "each value seems to belong to another token, as without a token that begins the text",
    "sum": "the server gives probabilities after sampling, or not all of them",
    "known answer": "the server's log-probabilities of a prompt are not those with which it generates",
    "chain": "the log-probability of a token changes with the tokens behind it",
    "order": "switch the server's prefix cache off (vLLM: --no-enable-prefix-caching)",
    "probe": "the server cannot be tested, so it is not used",
}
"""Check → what its failure means, or what to do."""


class Prompt(NamedTuple):
    """A prompt as it is sent: the ids of its tokens, or its text where `ids` is None.

    The text is empty where the ids were put together and not made of a text.
    """

    text: str
    ids: tuple[int, ...] | None


class Position(NamedTuple):
    """One token of a prompt, or the one that the model generated."""

    logprob: float | None
    token: str
    id: int | None = None
    top: Mapping[Any, float] = {}  # it is never changed
    """The log-probabilities of the likeliest tokens, by id, or by text where the reply has no ids."""

    @property
    def is_greedy(self) -> bool | None:
        """Whether the token is the most likely one; None if the reply does not tell."""
        return self.logprob >= max(self.top.values()) if self.top and self.logprob is not None else None


@dataclass(slots=True, kw_only=True)
class PromptAnswer(AnyAnswer):
    """A decoded reply to a request for the log-probabilities of a prompt."""

    positions: Sequence[Position]
    generated: Position


def fail(check: str, problem: str) -> NoReturn:
    raise ScoreCheckError(f"check {check!r} failed: {problem}; {_REMEDIES[check]}", check=check)


def check_prompt(answer: PromptAnswer, prompt: Prompt) -> None:
    """Raise a `ScoreCheckError` if the values cannot be those of this whole prompt."""
    positions, usage = answer.positions, answer.usage
    if not positions or len(positions) != len(prompt.ids or positions):
        sent = "some" if prompt.ids is None else len(prompt.ids)
        fail("count", f"the reply has {len(positions)} prompt tokens, and {sent} were sent")
    if usage is not None and len(positions) + 1 != usage.total_tokens:
        fail("count", f"the reply has {len(positions)} + 1 values, and its usage {usage.total_tokens} tokens")
    missing = [index for index, position in enumerate(positions) if position.logprob is None]
    if missing != [0]:
        fail(
            "first token", f"only the first token can be without a value, and those without are {missing[:9]}"
        )
    _check_echo(positions, prompt)
    check_values(positions[1:])


def _check_echo(positions: Sequence[Position], prompt: Prompt) -> None:
    ids, tokens = [position.id for position in positions], [position.token for position in positions]
    has_ids = prompt.ids is not None and None not in ids
    for index, (own, sent) in enumerate(zip(ids, prompt.ids or (), strict=False)):
        if has_ids and own != sent:
            fail("echo", f"token {index} has the id {own}, and {sent} was sent")
    text, begin = "".join(tokens), tokens[min(1, len(tokens) - 1)]
    if not prompt.text or "\ufffd" in text:
        return
    # The first position of some replies has no text.
    twice = tokens[0] == begin if tokens[0] else ids[:1] == ids[1:2]
    after = prompt.text.removeprefix(begin)
    if twice and after != prompt.text and same_text("".join(tokens[2:]), after):
        fail("begin token", f"the prompt begins twice with {begin!r}")
    if not has_ids and not same_text(text, prompt.text) and not same_text("".join(tokens[1:]), prompt.text):
        fail("echo", f"the echoed tokens are {text[:80]!r}, and not the text that was sent")


def same_text(tokens: str, text: str) -> bool:
    """Whether joined tokens are a text. Some tokenizers put a space in front of it.

    >>> same_text(" Hello", "Hello"), same_text("Hell", "Hello")
    (True, False)
    """
    return tokens == text or tokens.removeprefix(" ") == text.removeprefix(" ")


def check_values(positions: Sequence[Position]) -> None:
    """Raise a `ScoreCheckError` unless each value is the log-probability of its own token."""
    for index, (logprob, token, id_, top) in enumerate(positions, start=1):
        where = f"token {index} ({token!r:.40})"
        if type(logprob) not in (int, float) or not _LEAST < (logprob or 0.0) <= 0.0:
            fail("values", f"{where} has the log-probability {logprob!r:.40}")
        assert logprob is not None, "checked above"
        key = token if any(isinstance(name, str) for name in top) else id_
        if top and abs(top.get(key, logprob) - logprob) > TOLERANCE:
            fail("shift", f"{where} has {logprob:g}, and {top[key]:g} among the likeliest tokens")
        if top and key not in top and logprob >= min(top.values()):
            fail("shift", f"{where} has {logprob:g}, which is the value of another token")
        if math.fsum(map(math.exp, ({key: logprob} | dict(top)).values())) > _WHOLE:
            fail("sum", f"the probabilities at {where} add up to more than 1")
    if len(positions) > 1 and not any(position.logprob for position in positions):
        fail("values", "every log-probability is 0.0")
