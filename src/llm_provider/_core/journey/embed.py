"""The operation `embed`: texts in, one vector for each of them out."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import orjson

from ..errors import BadRequestError, ContextWindowExceededError, LLMError
from ..formats import registry
from ..formats.protocol import Adapter, EmbeddingAnswer, EmbeddingFormat, EncodedRequest
from ..formats.shared.payload import RequestFacts
from ..pace.call_limits import DEFAULT_BATCH_PATIENCE
from ..requests.request import DEFAULTS, EmbedRequest
from ..requests.routing import Target
from ..runtime.json_pieces import canonical, loads
from ..types.embeddings import Embeddings
from ..types.usage import Usage
from .call import Call, Operation, Sample, summarize

_LEAST_BYTES_PER_TOKEN = 2
"""For the token limit of a request. Text in every script has 3 bytes or more per token. Random characters,
such as base64, have as few as 1.5: if their request is refused, it is divided."""

_LIKELY_BYTES_PER_TOKEN = 4
"""For the rate limit, and for dividing the usage of a request among its texts."""

_TOO_MANY_TOKENS = "max_tokens_per_request"
"""OpenAI's code for texts that are too long together, although each of them is short enough."""


class Embed(Operation[EmbedRequest, Embeddings]):
    """Embedding of texts. Its parts are the distinct texts, numbered by their first index in the list."""

    name = "embeddings"
    patience = DEFAULT_BATCH_PATIENCE
    defaults = DEFAULTS
    has_texts = True
    build = staticmethod(EmbedRequest.build)

    def bare_request(self, model: str, base_url: str | None) -> EmbedRequest:
        return EmbedRequest(model=model, inputs=(), base_url=base_url)

    def encode(self, request: EmbedRequest, target: Target, adapter: Adapter) -> EncodedRequest:
        """The payload without the texts."""
        return registry.load_embeddings(target).encode(request, target)

    def parts(self, request: EmbedRequest) -> Sequence[int]:
        """The first index of each distinct text."""
        first: dict[str, int] = {}
        for index, text in enumerate(request.inputs):
            first.setdefault(text, index)
        return list(first.values())

    def identity(self, call: Call[Embeddings], part: int) -> tuple[bytes, int]:
        """The payload that asks for one text alone."""
        return self.body(call, (part,)), 0

    def groups(self, call: Call[Embeddings], parts: Sequence[int]) -> list[Sequence[int]]:
        """As many texts in one request as the provider accepts, by their number and by their tokens."""
        limits = _format(call).limits(call.target)
        groups: list[Sequence[int]] = []
        group: list[int] = []
        tokens = 0
        for part in parts:
            more = len(call.request.inputs[part].encode()) // _LEAST_BYTES_PER_TOKEN + 1
            full = len(group) == limits.texts or (limits.tokens is not None and tokens + more > limits.tokens)
            if group and full:
                groups.append(group)
                group, tokens = [], 0
            group.append(part)
            tokens += more
        return [*groups, group] if group else groups

    def smaller_groups(
        self, call: Call[Embeddings], parts: Sequence[int], error: LLMError
    ) -> list[Sequence[int]]:
        """Two halves of a group whose texts were too long, so that only the text that is too long fails."""
        too_long = isinstance(error, ContextWindowExceededError) or (
            isinstance(error, BadRequestError) and error.code == _TOO_MANY_TOKENS
        )
        if too_long and len(parts) > 1:
            middle = len(parts) // 2
            return [parts[:middle], parts[middle:]]
        if too_long:
            error.message = f"inputs[{parts[0]}]: {error.message}"
            error.args = (error.message,)
        return []

    def body(self, call: Call[Embeddings], parts: Sequence[int]) -> bytes:
        """The payload with the texts of a group."""
        return canonical(_format(call).payload_of(call.encoded, self._texts(call, parts)))

    def prompt(self, call: Call[Embeddings], parts: Sequence[int]) -> bytes:
        """The whole body: the model reads every text."""
        return self.body(call, parts)

    def tokens(self, call: Call[Embeddings], parts: Sequence[int]) -> float:
        """About one token for four bytes of text."""
        return float(sum(self._shares(call, parts)))

    def facts(self, call: Call[Embeddings], parts: Sequence[int]) -> RequestFacts:
        """The texts. The model writes no tokens, and the provider adds no input."""
        return RequestFacts(
            variant=self.variant(call),
            max_output_tokens=0,
            texts=self._texts(call, parts),
            media=(),
            turns=0,
            tools=(),
            schemas=(),
            adds_input=False,
        )

    def decode(self, call: Call[Embeddings], reply: Any, count: int) -> EmbeddingAnswer:
        """The vectors. A usage of zeros counts as none."""
        answer = _format(call).decode(reply, count, call.encoded)
        if answer.usage is not None and not answer.usage.input_tokens:
            # Hosts write zeros where they count nothing.
            answer.usage = None
        # A reply with vectors is large.
        answer.reply = {name: value for name, value in reply.items() if type(value) is str}
        return answer

    def usage(self, call: Call[Embeddings], reply: Any) -> Usage | None:
        return _format(call).usage(reply)

    def split(self, call: Call[Embeddings], sample: Sample, parts: Sequence[int]) -> list[Sample]:
        """One sample per text, with its share of the usage and of the price."""
        form, shares = _format(call), self._shares(call, parts)
        prices = split_price(sample.price, shares)
        replies = form.split(loads(sample.body), shares)
        return [
            replace(
                sample,
                answer=replace(self.decode(call, reply, 1), origin=sample.answer.origin),
                body=orjson.dumps(reply),
                price=price,
            )
            for price, reply in zip(prices, replies, strict=False)
        ]

    def result(self, call: Call[Embeddings], samples: Sequence[Sample]) -> Embeddings:
        """The vectors in the order of the texts. A text that is repeated gets its vector each time."""
        inputs = call.request.inputs
        vectors: dict[str, list[float]] = {
            inputs[part]: sample.answer.vectors[0] for part, sample in zip(call.parts, samples, strict=True)
        }
        return Embeddings(vectors=tuple(vectors[text] for text in inputs), **summarize(call, samples))

    def _texts(self, call: Call[Embeddings], parts: Sequence[int]) -> list[str]:
        return [call.request.inputs[part] for part in parts]

    def _shares(self, call: Call[Embeddings], parts: Sequence[int]) -> list[int]:
        return [len(text.encode()) // _LIKELY_BYTES_PER_TOKEN + 1 for text in self._texts(call, parts)]


def split_price(price: float | None, shares: Sequence[int]) -> list[float | None]:
    """The USD of a request by shares, whose decimals add up to it."""
    if price is None:
        return [None] * len(shares)
    first = [price * share / sum(shares) for share in shares[:-1]]
    return [*first, float(Decimal(repr(price)) - sum(Decimal(repr(each)) for each in first))]


def _format(call: Call[Embeddings]) -> EmbeddingFormat:
    return registry.load_embeddings(call.target)


EMBED = Embed()
