"""The methods of `Client` for embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, Unpack, overload

from .._calls.embed import EMBED
from .._requests.checks import flag
from .._requests.embed_request import EmbedRequest
from .._requests.request import seal
from .._requests.signatures import with_parameters
from .._types.embeddings import Embeddings
from .answers import Answers

if TYPE_CHECKING:
    from .._calls.call import Call
    from .._estimates.estimate import Estimate
    from .._requests.parameters import EmbedParameters


class EmbedMethods(Answers):
    """Texts to vectors."""

    @overload
    def embed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dry_run: Literal[False] = False,
        **parameters: Unpack[EmbedParameters],
    ) -> Embeddings: ...

    @overload
    def embed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dry_run: Literal[True],
        **parameters: Unpack[EmbedParameters],
    ) -> Estimate: ...

    @with_parameters
    def embed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dry_run: bool = False,
        **parameters: Unpack[EmbedParameters],
    ) -> Embeddings | Estimate:
        """See `llm_provider.embed`."""
        seal(parameters)
        front = self._delivery([model], inputs, parameters, embeds=True)
        if flag("dry_run", dry_run):
            from .._estimates.estimate import estimate_texts

            call = self._prepare_texts(model, inputs, parameters)
            return estimate_texts(self._engine, call, self._prices, self.statistics())
        if front is not None:
            return front.embed(lambda: self._prepare_texts(model, inputs, parameters))
        return self._answer("embed", EMBED, EmbedRequest.build, model, inputs, parameters, self._concurrency)

    def _prepare_texts(
        self, model: str, inputs: Iterable[str], parameters: EmbedParameters
    ) -> Call[Embeddings]:
        self._fill(parameters, embeds=True)
        return self._engine.prepare(EMBED, EmbedRequest.build(model, inputs, parameters), self._concurrency)

    @with_parameters
    async def aembed(
        self, model: str, inputs: Iterable[str], **parameters: Unpack[EmbedParameters]
    ) -> Embeddings:
        """See `llm_provider.aembed`."""
        seal(parameters)
        front = self._delivery([model], inputs, parameters, embeds=True)
        if front is not None:
            return await front.aembed(lambda: self._prepare_texts(model, inputs, parameters))
        return await self._answer_soon("aembed", EMBED, EmbedRequest.build, model, inputs, parameters)
