"""The methods of `Client` for embeddings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack, cast

from .._calls.embed import EMBED
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
        run = self._choose_run(model, parameters)
        return self._answer("embed", EMBED, model, inputs, parameters, self._concurrency, run)

    @with_parameters
    async def aembed(
        self, model: str, inputs: Iterable[str], **parameters: Unpack[EmbedParameters]
    ) -> Embeddings:
        """See `llm_provider.aembed`."""
        seal(parameters)
        run = self._choose_run(model, parameters)
        return await self._answer_soon("aembed", EMBED, model, inputs, parameters, run)

    def _choose_run(
        self, model: str, parameters: EmbedParameters
    ) -> Callable[[Call[Embeddings]], Coroutine[Any, Any, Embeddings]] | None:
        """What sends a call through a batch; None if it goes live."""
        delivery = DeliveryOptions.take_from(parameters)
        if delivery.mode == "live":
            return None
        self._fill(parameters, EMBED.defaults)
        if not self._uses_batch_api([model], delivery, cast("Mapping[str, Any]", parameters)):
            return None
        from .._batches.work import run_in_batch

        return functools.partial(run_in_batch, self._engine, delivery.resend)
