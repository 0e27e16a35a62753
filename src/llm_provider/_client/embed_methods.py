"""The methods of `Client` for embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

from .._calls.embed import EMBED
from .._requests.embed_request import EmbedRequest
from .._requests.request import seal
from .._requests.signatures import with_parameters
from .._types.embeddings import Embeddings
from .answers import Answers
from .batch_arguments import DeliveryOptions

if TYPE_CHECKING:
    from .._calls.call import Call
    from .._requests.parameters import EmbedParameters


class EmbedMethods(Answers):
    """Texts to vectors."""

    @with_parameters
    def embed(self, model: str, inputs: Iterable[str], **parameters: Unpack[EmbedParameters]) -> Embeddings:
        """See `llm_provider.embed`."""
        seal(parameters)
        delivery = DeliveryOptions.take_from(parameters)
        self._fill(parameters, EMBED.defaults)
        front = self._batch_front([model], delivery, parameters)
        if front is not None:
            return front.embed(lambda: self._prepare_texts(model, inputs, parameters))
        return self._answer("embed", EMBED, model, inputs, parameters, self._concurrency)

    def _prepare_texts(
        self, model: str, inputs: Iterable[str], parameters: EmbedParameters
    ) -> Call[Embeddings]:
        return self._engine.prepare(EMBED, EmbedRequest.build(model, inputs, parameters), self._concurrency)

    @with_parameters
    async def aembed(
        self, model: str, inputs: Iterable[str], **parameters: Unpack[EmbedParameters]
    ) -> Embeddings:
        """See `llm_provider.aembed`."""
        seal(parameters)
        delivery = DeliveryOptions.take_from(parameters)
        self._fill(parameters, EMBED.defaults)
        front = self._batch_front([model], delivery, parameters)
        if front is not None:
            return await front.aembed(lambda: self._prepare_texts(model, inputs, parameters))
        return await self._answer_soon("aembed", EMBED, model, inputs, parameters)
