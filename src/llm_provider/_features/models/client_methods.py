"""Counts of the tokens of a request: by the provider, or on this machine."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ..._core.client.call_runner import CallRunner
from ..._core.errors import LLMError
from ..._core.formats.protocol import CountAnswer
from ..._core.journey.call import Call, Exchange
from ..._core.journey.chat import CHAT
from ..._core.journey.engine import Engine
from ..._core.requests.checks import flag
from ..._core.requests.routing import maker_names
from ..._core.runtime import event_loop
from ..._core.runtime.canonical_json import canonical
from ..._core.tokens.counting import adds_input, input_tokens
from ..._core.tokens.tokenizer import counter_of_target
from ..._core.types.messages import Prompt
from .count_formats import FORMATS, counts
from .token_count import TokenCount

if TYPE_CHECKING:
    from ..._core.requests.parameters import Parameters
    from ..._core.types.response import Response

_MOST_COUNTS = 1024
"""Counts by providers that a client remembers."""


def count_and_wait(
    runner: CallRunner, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
) -> TokenCount:
    """The count, for the thread that waits for it."""
    call = _find_count(runner, "count_tokens", model, messages, parameters, exact=exact)
    if not isinstance(call, Call):
        return call
    runner.engine.load(call)
    with _telling_failures(runner):
        counted = event_loop.wait(_ask(runner.engine, call), runner.engine.cancel)
        return _remember(runner, call, counted)


async def count_soon(
    runner: CallRunner, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
) -> TokenCount:
    """The count, for the task that awaits it."""
    call = _find_count(runner, "acount_tokens", model, messages, parameters, exact=exact)
    if not isinstance(call, Call):
        return call
    with _telling_failures(runner):
        tokens = await event_loop.run(_ask(runner.engine, call), runner.engine.cancel)
        return _remember(runner, call, tokens)


@contextlib.contextmanager
def _telling_failures(runner: CallRunner) -> Iterator[None]:
    try:
        yield
    except LLMError as error:
        runner.report(error)
        raise


def _find_count(
    runner: CallRunner, function: str, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
) -> TokenCount | Call[Response]:
    """The count as far as it is known here, or the call that asks the provider, not on the loop's thread."""
    flag("exact", exact)
    call = runner.prepare(CHAT, model, messages, parameters, runner.concurrency, function)
    if not exact or call.cache == "only" or not counts(call.target):
        return local_count(call)
    question = _build_question(call)
    known: TokenCount | None = runner.counts.get(question.key(0))
    if known is not None and call.cache == "use":
        return known
    event_loop.refuse_own_thread(function)
    runner.start()
    return question


def _remember(runner: CallRunner, call: Call[Response], tokens: int) -> TokenCount:
    count = TokenCount(tokens, method="provider")
    if len(runner.counts) >= _MOST_COUNTS:
        runner.counts.popitem(last=False)
    runner.counts[call.key(0)] = count
    return count


class _Count(Exchange):
    """Asks for the number of input tokens."""

    name = "count_tokens"
    billed = False

    def body(self, call: Call[Any], parts: Sequence[int]) -> bytes:
        return call.body

    def tokens(self, call: Call[Any], parts: Sequence[int]) -> float:
        """Counted tokens do not count against a rate limit of tokens."""
        return 0.0

    def decode(self, call: Call[Any], reply: Any, count: int) -> CountAnswer:
        return CountAnswer(FORMATS[call.target.route.adapter].decode(reply), usage=None)

    def usage(self, call: Call[Any], reply: Any) -> None:
        """Counting uses no tokens."""


_COUNT = _Count()


def _build_question(call: Call[Response]) -> Call[Response]:
    """The call that asks the provider for the tokens of a chat call. It refuses what that call refuses."""
    encoded = FORMATS[call.target.route.adapter].encode(call.encoded, call.target)
    encoded.uploads = call.encoded.uploads
    body = canonical(encoded.payload)
    return replace(call, exchange=_COUNT, encoded=encoded, body=body, parts=(0,), cache="off", first_key=None)


async def _ask(engine: Engine, question: Call[Response]) -> int:
    """The number of tokens that the provider counts; `LLMError` if it failed, and retries did not help."""

    async def send(question: Call[Response]) -> int:
        try:
            answered = await engine.here().sender.send(question, question.parts, None)
        except LLMError as error:
            question.describe(error)
            raise
        return int(answered.answer.tokens)

    return await engine.begin(question, send)


_PUBLISHED_RULE = re.compile(r"(ft:)?gpt-(3\.5|4)[-.o0-9].*|(ft:)?gpt-4")
"""Models for which OpenAI publishes the tokens around messages (openai-cookbook, How to count tokens)."""

_PER_CONVERSATION, _PER_MESSAGE = 3, 4
"""The tokens around messages: 3 and the name of the role, which is one token, and 3 before the answer."""


def local_count(call: Call[Any]) -> TokenCount:
    """Count the input of a chat call: exactly if the model's vocabulary is here, else as an estimate.

    Only texts are counted exactly, and only for models whose tokens around messages are published.
    """
    facts = call.facts()
    provider, model = maker_names(call.target)
    count = counter_of_target(call.target)
    method: Literal["tiktoken", "estimate"] = "estimate"
    if count is not None and not (facts.media or facts.structures or adds_input(facts, model)):
        if provider == "openai" and _PUBLISHED_RULE.fullmatch(model):
            texts = sum(map(count, facts.texts))
            return TokenCount(texts + _PER_MESSAGE * facts.turns + _PER_CONVERSATION, method="tiktoken")
        method = "tiktoken"
    tokens = input_tokens(facts, call.target, count)
    low, high = math.floor(tokens.low), math.ceil(tokens.high)
    # A range of one number would pass for an exact count.
    return TokenCount(round(tokens.likely), method=method, low=low, high=max(high, low + 1))
