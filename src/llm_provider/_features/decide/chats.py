"""Decisions by models that only write text: `logprobs` reads the odds of one token, `sampled` counts answers.

Each question is asked alone, with a letter for each option. The two never share a key with each other or with
the endpoints for decisions, because their probabilities mean other things.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ..._core.errors import OutputError, RequestError, UnsupportedParameterError
from ..._core.formats.protocol import Adapter, EncodedRequest
from ..._core.journey.call import Call, Sample
from ..._core.journey.chat import CHAT
from ..._core.journey.engine import Engine
from ..._core.journey.lookup import READING
from ..._core.json_values import JSONObject
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.runtime.json_pieces import canonical
from .calibration import find_interval
from .conversation import flatten
from .decisions import DecideRequest
from .native import Judgement, from_weights
from .questions import Question

PROMPT_VERSION = 1
"""A part of each key: other words give other answers."""

_MOST_ALTERNATIVES = 20
"""The most likely tokens that OpenAI and Gemini tell; an option beyond them would look impossible."""

_ANSWER_TOKENS = 16
"""The least that OpenAI's Responses API takes. The first token is read alone."""

_REFUSED = ("refusal", "content_filter")
_MOST = 0.01
"""The largest log probability: more than 0, as servers round them."""


def list_codes(question: Question) -> list[str]:
    """The text that stands for each option: a letter, which is one token, or a number of many options."""
    count = len(question.options)
    return list(string.ascii_uppercase[:count]) if count <= 26 else [str(n) for n in range(1, count + 1)]


def write_prompt(question: Question) -> str:
    """What is asked behind the input.

    >>> from llm_provider._features.decide.questions import predicate
    >>> print(write_prompt(predicate("The text is polite.")))
    ---
    About the text above: is this statement true?
    The text is polite.
    <BLANKLINE>
    A: true
    B: false
    <BLANKLINE>
    Answer with one letter, and nothing else.
    """
    asks = {
        "predicate": "is this statement true?",
        "choice": "which option fits?",
        "score": "which level fits? The lowest level comes first.",
    }[question.kind]
    codes = list_codes(question)
    lines = [
        f"{code}: {option}" + (f" ({means})" if means else "")
        for code, option, means in zip(codes, question.options, question.descriptions, strict=True)
    ]
    what = "letter" if codes[0].isalpha() else "number"
    return "\n".join([
        "---", f"About the text above: {asks}", question.instructions, "", *lines, "",
        f"Answer with one {what}, and nothing else.",
    ])  # fmt: skip


def check_method(request: DecideRequest) -> None:
    """Raise a `RequestError` for a question whose options one token cannot tell apart."""
    for question in request.inputs if request.method == "logprobs" else ():
        if len(question.options) > _MOST_ALTERNATIVES:
            raise RequestError(
                f"question {question.name!r} has {len(question.options)} options, and method='logprobs' sees "
                f"the {_MOST_ALTERNATIVES} likeliest tokens: use method='sampled', or fewer options"
            )


def encode(
    request: DecideRequest, question: Question, target: Target, adapter: Adapter
) -> tuple[Request, EncodedRequest]:
    """A question as a chat; `UnsupportedParameterError` where the model does not tell log probabilities."""
    content = [*flatten(request.messages), {"type": "text", "text": write_prompt(question)}]
    if all(part["type"] == "text" for part in content):
        # Some servers take only text as the content of a message.
        text = "\n\n".join(part["text"] for part in content)
        messages: tuple[Mapping[str, Any], ...] = ({"role": "user", "content": text},)
    else:
        messages = ({"role": "user", "content": content},)
    if request.method == "logprobs":
        parameters: JSONObject = {
            "logprobs": True, "top_logprobs": _MOST_ALTERNATIVES, "max_tokens": _ANSWER_TOKENS
        }  # fmt: skip
    else:
        parameters = {"n": request.draws}
    chat = request.make_chat(messages, **parameters)
    try:
        return chat, CHAT.encode(chat, target, adapter)
    except UnsupportedParameterError as error:
        if error.parameter not in ("logprobs", "top_logprobs"):
            raise
        raise UnsupportedParameterError(
            f"method='logprobs': {request.model} does not tell log probabilities: use method='sampled'",
            parameter="method", provider=target.provider, model=request.model,
        ) from None  # fmt: skip


Judged: TypeAlias = tuple[Judgement, Sequence[Sample]]
"""The judgement of a question, and the answers that it was made of."""


async def judge_by_chat(call: Call[Any], question: Question, engine: Engine) -> Judged:
    """Ask one question by the method of its call."""
    judge = _read_odds if call.request.method == "logprobs" else _count_draws
    return await judge(call, question, engine)


async def _read_odds(call: Call[Any], question: Question, engine: Engine) -> Judged:
    """The probability of each option as the first token of an answer."""
    part = _as_chat(call, question)
    sample = await engine.loop_state().sender.send(part, part.parts, None)
    choice = sample.answer.choices[0]
    if choice.finish_reason in _REFUSED and not choice.logprobs:
        return Judgement(refusal=choice.finish_reason), [sample]
    first = next((token for token in choice.logprobs or () if token.token.strip()), None)
    if first is None:
        raise OutputError(f"{call.target.provider} told no log probabilities: use method='sampled'")
    for token in (first, *first.top):
        if not token.logprob <= _MOST:
            raise OutputError(
                f"{call.target.provider} told the log probability {token.logprob:g} of {token.token!r:.40}, "
                "which is no number up to 0: use method='sampled'"
            )
    odds: dict[str, float] = {}
    # The token that was drawn need not be among the likeliest ones.
    drawn = () if any(token.token == first.token for token in first.top) else (first,)
    for token in (*first.top, *drawn):
        # Tokenizers have one token for a letter, and others for it with a space around it.
        odds[token.token.strip()] = odds.get(token.token.strip(), 0.0) + math.exp(token.logprob)
    weights = [odds.get(code, 0.0) for code in list_codes(question)]
    mass = math.fsum(weights)
    if not mass:
        raise OutputError(
            f"none of the options is among the likeliest tokens; the model began with {first.token!r:.40}"
        )
    return from_weights(question, weights, mass=mass), [sample]


async def _count_draws(call: Call[Any], question: Question, engine: Engine) -> Judged:
    """How often each option was answered. Each answer is stored as in a call with `n`."""
    chat = _as_chat(call, question)
    answered = await engine.find_samples(chat, chat.parts) if call.cache in READING else {}
    groups = CHAT.groups(chat, [part for part in chat.parts if part not in answered])
    # A task can lead one flight, and this one leads the flight of its question.
    for got in await engine.run_side_by_side([engine.ask(chat.make_part(), group) for group in groups]):
        answered.update(enumerate(got, start=len(answered)))
    samples, codes = list(answered.values()), list_codes(question)
    texts = [choice.text for sample in samples for choice in sample.answer.choices]
    counts = Counter(code for text in texts if (code := read_code(text, codes)) is not None)
    total = counts.total()
    if not total:
        refused = [choice.finish_reason for sample in samples for choice in sample.answer.choices]
        if all(reason in _REFUSED for reason in refused):
            return Judgement(refusal=refused[0]), samples
        raise OutputError(f"none of {len(texts)} answers names an option; the first is {texts[0]!r:.60}")
    intervals = {
        option: find_interval(counts[code], total)
        for option, code in zip(question.options, codes, strict=True)
    }
    weights = [float(counts[code]) for code in codes]
    return from_weights(question, weights, draws=total, intervals=intervals), samples


def _as_chat(call: Call[Any], question: Question) -> Call[Any]:
    """A part of a call that asks a question as a chat. Its requests count with the requests of the call."""
    chat, encoded = encode(call.request, question, call.target, call.adapter)
    return replace(
        call.make_part(), operation=CHAT, exchange=CHAT, request=chat, encoded=encoded, first_key=None,
        body=canonical(encoded.payload), parts=CHAT.parts(chat), answered=None,
    )  # fmt: skip


def read_code(text: str, codes: Sequence[str]) -> str | None:
    """The option that an answer names; None if it is something else.

    >>> [read_code(text, ["A", "B"]) for text in ("**B**.", "A: true", "A good text")]
    ['B', 'A', None]
    """
    # `\W` has the invisible characters that some models write too.
    match = re.match(r"\W*([A-Za-z]|\d+)\W*(?:$|(?<=[:.)])\s)", text)
    return match[1].upper() if match is not None and match[1].upper() in codes else None
