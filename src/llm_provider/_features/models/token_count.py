"""`TokenCount`: the number of tokens of a request, as the provider or this machine counts it."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias

from ..._core import doors
from ..._core.client.call_runner import CallRunner
from ..._core.errors import APIResponseValidationError, LLMError
from ..._core.formats.protocol import CountAnswer, EncodedRequest
from ..._core.formats.shared.replies import expect_dict
from ..._core.journey.call import Call, Exchange
from ..._core.journey.chat import CHAT
from ..._core.requests.checks import flag
from ..._core.requests.routing import Target, maker_names
from ..._core.runtime import event_loop
from ..._core.runtime.json_pieces import canonical
from ..._core.tokens.counting import adds_input, input_tokens
from ..._core.tokens.tokenizer import counter_of_target
from ..._core.types.messages import Prompt

if TYPE_CHECKING:
    from ..._core.requests.parameters import Parameters
    from ..._core.types.response import Response

CountMethod: TypeAlias = Literal["provider", "tiktoken", "estimate"]
"""How tokens were counted: by the provider, with OpenAI's own vocabulary on this machine, or estimated."""


class TokenCount(int):
    """The input tokens of a request. It is an `int`, and knows how it was found.

    `exact` tells whether it is the number that the provider counts. `method` is "provider" if the provider
    has counted, "tiktoken" if the texts were counted with the vocabulary of the model, and "estimate"
    otherwise. The true number is between `low` and `high`, which are equal to the count if it is exact.

    >>> count = TokenCount(12, method="estimate", low=9, high=16)
    >>> count, count + 1, count.exact
    (TokenCount(12, method='estimate', low=9, high=16), 13, False)
    >>> TokenCount(12, method="provider")
    TokenCount(12, method='provider')
    """

    method: CountMethod
    low: int
    high: int

    def __new__(
        cls, tokens: int, *, method: CountMethod, low: int | None = None, high: int | None = None
    ) -> Self:
        self = super().__new__(cls, tokens)
        self.method = method
        self.low = tokens if low is None else low
        self.high = tokens if high is None else high
        return self

    @property
    def exact(self) -> bool:
        """Whether it is the number that the provider counts."""
        return self.low == self.high

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, Any]]:
        return (int(self),), {"method": self.method, "low": self.low, "high": self.high}

    def __repr__(self) -> str:
        bounds = "" if self.exact else f", low={self.low}, high={self.high}"
        return f"TokenCount({int(self)}, method={self.method!r}{bounds})"

    def __str__(self) -> str:
        return str(int(self))


# `MessageCountTokensParams` of anthropic 2: a request without the fields that concern its answer only.
_COUNTED = frozenset(
    {"cache_control", "messages", "model", "output_config", "system", "thinking", "tool_choice", "tools"}
)


class TokenCountFormat(NamedTuple):
    """How a provider counts: the last part of the operation, and the field of the reply."""

    method: str
    reply_field: str

    def encode(self, encoded: EncodedRequest, target: Target) -> EncodedRequest:
        if target.route.adapter == "gemini":
            from ..._core.formats.gemini.encode import operation, resource

            # Gemini's API reference: so the whole request is counted, with its system instruction and its
            # tools. The SDK's own method sends the contents alone.
            payload = encoded.payload
            if target.route.cloud is None:
                payload = {"generateContentRequest": {"model": resource(target.model), **payload}}
            return EncodedRequest(operation(target, self.method), payload, encoded.headers)
        counted = EncodedRequest(f"{encoded.operation}/{self.method}", {}, encoded.headers)
        if target.route.cloud is not None and target.route.cloud.version:
            counted = doors.cloud_anthropic.counting(encoded, target)
        counted.payload |= {name: value for name, value in encoded.payload.items() if name in _COUNTED}
        return counted

    def decode(self, reply: Any) -> int:
        """The number of input tokens; an `APIResponseValidationError` if the reply has none."""
        count = expect_dict(reply, "reply").get(self.reply_field)
        if type(count) is not int or count < 0:
            raise APIResponseValidationError(f"the provider's reply has no {self.reply_field}")
        return count


FORMATS: Mapping[str, TokenCountFormat] = {
    "anthropic": TokenCountFormat("count_tokens", "input_tokens"),
    "gemini": TokenCountFormat("countTokens", "totalTokens"),
}
"""Adapter → how its provider counts. The others do not count."""


def counts(target: Target) -> bool:
    """Whether the provider of a target counts tokens. Classic Bedrock does not, through Anthropic's SDK."""
    cloud = target.route.cloud
    return target.route.adapter in FORMATS and (cloud is None or cloud.audience != "bedrock")


_MOST_COUNTS = 1024
"""Counts by providers that a client remembers."""


def count_and_wait(
    runner: CallRunner, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
) -> TokenCount:
    call = _find_count(runner, "count_tokens", model, messages, parameters, exact=exact)
    if not isinstance(call, Call):
        return call
    runner.engine.load(call)
    with _reporting_failures(runner):
        return event_loop.wait(_ask(runner, call), runner.engine.cancel)


async def count_async(
    runner: CallRunner, model: str, messages: Prompt, parameters: Parameters, *, exact: bool
) -> TokenCount:
    call = _find_count(runner, "acount_tokens", model, messages, parameters, exact=exact)
    if not isinstance(call, Call):
        return call
    with _reporting_failures(runner):
        return await event_loop.run(_ask(runner, call), runner.engine.cancel)


@contextlib.contextmanager
def _reporting_failures(runner: CallRunner) -> Iterator[None]:
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


class _Count(Exchange):
    """Asks for the number of input tokens."""

    name = "count_tokens"
    billed = False

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


async def _ask(runner: CallRunner, question: Call[Response]) -> TokenCount:
    """The number of tokens that the provider counts; `LLMError` if it failed, and retries did not help."""

    async def send(question: Call[Response]) -> TokenCount:
        try:
            answered = await runner.engine.loop_state().sender.send(question, question.parts, None)
        except LLMError as error:
            question.describe(error)
            raise
        count = TokenCount(int(answered.answer.tokens), method="provider")
        if len(runner.counts) >= _MOST_COUNTS:
            runner.counts.popitem(last=False)
        runner.counts[question.key(0)] = count
        return count

    return await runner.engine.begin(question, send)


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
