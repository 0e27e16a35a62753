"""How many tokens a request has, by the provider's own count, for which providers bill nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..._core.errors import LLMError
from ..._core.formats.protocol import CountAnswer
from ..._core.journey.call import Call, Exchange
from ..._core.journey.engine import Engine
from ..._core.journey.several_parts import describe
from ..._core.runtime.canonical_json import canonical
from ..._core.types.response import Response
from .count_formats import FORMATS


class Count(Exchange):
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


_COUNT = Count()


def question_of(call: Call[Response]) -> Call[Response]:
    """The call that asks the provider for the tokens of a chat call. It refuses what that call refuses."""
    encoded = FORMATS[call.target.route.adapter].encode(call.encoded, call.target)
    encoded.uploads = call.encoded.uploads
    body = canonical(encoded.payload)
    return replace(call, exchange=_COUNT, encoded=encoded, body=body, parts=(0,), cache="off", first_key=None)


async def count_tokens(engine: Engine, question: Call[Response]) -> int:
    """The number of tokens that the provider counts; `LLMError` if it failed, and retries did not help."""

    async def ask(question: Call[Response]) -> int:
        try:
            answered = await engine.here().sender.send(question, question.parts, None)
        except LLMError as error:
            describe(question, error)
            raise
        return int(answered.answer.tokens)

    return await engine.begin(question, ask)
