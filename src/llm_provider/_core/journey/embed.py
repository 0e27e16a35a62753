"""The operation `embed`: texts in, one vector for each of them out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import orjson

from .. import doors
from ..errors import BadRequestError, ContextWindowExceededError, LLMError, RequestError
from ..formats import registry
from ..formats.protocol import Adapter, EmbeddingAnswer, EmbeddingFormat, EncodedRequest
from ..formats.shared.payload import RequestFacts
from ..pace.call_limits import DEFAULT_BATCH_PATIENCE
from ..requests.attachments import Attachment
from ..requests.request import DEFAULTS, EmbedRequest, Request
from ..requests.routing import Target
from ..runtime.json_pieces import canonical, loads
from ..types.embeddings import Embeddings
from ..types.usage import Usage
from .call import MAX_REQUEST_BYTES, Call, Operation, Sample, summarize

_LEAST_BYTES_PER_TOKEN = 2
"""For the token limit of a request. Text in every script has 3 bytes or more per token. Random characters,
such as base64, have as few as 1.5: if their request is refused, it is divided."""

_LIKELY_BYTES_PER_TOKEN = 4
"""For the rate limit, and for dividing the usage of a request among its texts."""

_TOO_MANY_TOKENS = "max_tokens_per_request"
"""OpenAI's code for texts that are too long together, although each of them is short enough."""


_MOST_MEDIA_BYTES = 15_000_000
"""For one request with media. Gemini takes 20 MB."""


class Embed(Operation[EmbedRequest, Embeddings]):
    """Embedding of texts and media. Its parts are the distinct inputs, numbered by their first index."""

    name = "embeddings"
    patience = DEFAULT_BATCH_PATIENCE
    defaults = DEFAULTS
    has_texts = True
    build = staticmethod(EmbedRequest.build)

    def bare_request(self, model: str, base_url: str | None) -> EmbedRequest:
        return EmbedRequest(model=model, inputs=(), base_url=base_url)

    def encode(self, request: EmbedRequest, target: Target, adapter: Adapter) -> EncodedRequest:
        """The payload without the texts, and the forms of media."""
        form = registry.load_embeddings(target)
        encoded = form.encode(request, target)
        if request.has_media:
            _encode_media(request, target, form, encoded)
        return encoded

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
        """As many texts in one request as the provider accepts, by their number and by their tokens.

        Texts and media are in requests of their own, so that each is billed what it costs.
        """
        limits, inputs = _format(call).limits(call.target), call.request.inputs
        media = [part for part in parts if type(inputs[part]) is not str] if call.request.has_media else []
        texts = [part for part in parts if type(inputs[part]) is str] if media else parts

        def measure(part: int) -> int:
            return len(inputs[part].encode()) // _LEAST_BYTES_PER_TOKEN + 1

        most = limits.media or limits.texts
        sized = _divide(media, most, _MOST_MEDIA_BYTES, lambda part: inputs[part].size)
        return _divide(texts, limits.texts, limits.tokens, measure) + sized

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
        """The inputs. The model writes no tokens, and the provider adds no input."""
        texts = self._texts(call, parts)
        if call.request.has_media:
            return _facts_of_media(texts)._replace(variant=self.variant(call))
        return RequestFacts(
            variant=self.variant(call),
            max_output_tokens=0,
            texts=texts,
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
        texts: list[Any] = self._texts(call, parts)
        return [
            len(text.encode()) // _LIKELY_BYTES_PER_TOKEN + 1 if type(text) is str else text.tokens
            for text in texts
        ]


def split_price(price: float | None, shares: Sequence[int]) -> list[float | None]:
    """The USD of a request by shares, whose decimals add up to it."""
    if price is None:
        return [None] * len(shares)
    first = [price * share / sum(shares) for share in shares[:-1]]
    return [*first, float(Decimal(repr(price)) - sum(Decimal(repr(each)) for each in first))]


def _divide(
    parts: Sequence[int], most: int, size: int | None, measure: Callable[[int], int]
) -> list[Sequence[int]]:
    """Parts in groups of at most `most`, whose measures add up to at most `size` unless it is None."""
    groups: list[Sequence[int]] = []
    group: list[int] = []
    total = 0
    for part in parts:
        more = measure(part)
        if group and (len(group) == most or (size is not None and total + more > size)):
            groups.append(group)
            group, total = [], 0
        group.append(part)
        total += more
    return [*groups, group] if group else groups


def _encode_media(
    request: EmbedRequest, target: Target, form: EmbeddingFormat, encoded: EncodedRequest
) -> None:
    """Set the forms of the inputs that are no texts, and their files that are uploaded."""
    contents: dict[str, Any] = {}
    uploads: dict[str, Attachment] = {}
    for index, given in enumerate(request.inputs):
        if type(given) is str or given in contents:
            continue
        own: Any = given
        chat = Request(model=request.model, messages=({"role": "user", "content": [*own.parts]},))
        try:
            chat, files, _ = doors.uploads.refer_to_files(chat, target)
            contents[given] = form.encode_contents(chat, target)
        except RequestError as error:
            error.message = error.message.replace("messages[0].content", f"inputs[{index}]")
            error.args = (error.message,)
            raise
        uploads.update((file.reference, file) for file in files)
        if not files and own.size > MAX_REQUEST_BYTES:
            problem = f"inputs[{index}] has {own.size / 1e6:.0f} MB, and {target.provider} has no files API"
            raise RequestError(f"{problem}: give smaller files", model=request.model)
    encoded.contents, encoded.uploads = contents, tuple(uploads.values())


def _facts_of_media(inputs: Sequence[Any]) -> RequestFacts:
    from ..formats.openai_chat.decode import facts

    parts = [({"type": "text", "text": each},) if type(each) is str else each.parts for each in inputs]
    content = [part for several in parts for part in several]
    counted = facts(EncodedRequest("", {"messages": [{"role": "user", "content": content}]}))
    return counted._replace(max_output_tokens=0, turns=0)


def _format(call: Call[Embeddings]) -> EmbeddingFormat:
    return registry.load_embeddings(call.target)


EMBED = Embed()
