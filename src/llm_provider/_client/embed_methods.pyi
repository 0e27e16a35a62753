"""Written by `make stubs` from _client/embed_methods.py and _requests/parameters.py."""

from collections.abc import Iterable
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from typing import Literal
from typing import overload
from llm_provider._client.answers import Answers
from llm_provider._estimates.estimate import Estimate
from llm_provider._limits.timeouts import Timeouts
from llm_provider._money.budget import Budget
from llm_provider._requests.checks import CacheMode
from llm_provider._types.embeddings import Embeddings

class EmbedMethods(Answers):
    """Texts to vectors."""
    @overload
    def embed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dry_run: Literal[False] = False,
        dimensions: int | None = None,
        strict_model: bool | None = None,
        timeout: float | Timeouts | None = None,
        deadline: float | None = None,
        max_retries: int | None = None,
        outage_patience: float | None = None,
        cache: CacheMode | bool | None = None,
        budget: float | Decimal | Budget | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> Embeddings:
        """See `llm_provider.embed`.

    Args:
        dimensions: The number of numbers in each vector; default the model's.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        timeout: Seconds for one attempt of one request, without the time in the queue.
        deadline: Seconds until all texts are embedded or the call fails, with all attempts and waits.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that it waits for a provider that is down; default the client's, else
            3,600.
        cache: How the cache is used, as in `call`.
        budget: The most that all texts together may cost, in USD; or a `Budget`, which several calls
            can share.
        extra_body: Fields of this provider's API, such as Gemini's `taskType`, that are merged into the
            request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
    """
        ...

    @overload
    def embed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dry_run: Literal[True],
        dimensions: int | None = None,
        strict_model: bool | None = None,
        timeout: float | Timeouts | None = None,
        deadline: float | None = None,
        max_retries: int | None = None,
        outage_patience: float | None = None,
        cache: CacheMode | bool | None = None,
        budget: float | Decimal | Budget | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> Estimate:
        """See `llm_provider.embed`.

    Args:
        dimensions: The number of numbers in each vector; default the model's.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        timeout: Seconds for one attempt of one request, without the time in the queue.
        deadline: Seconds until all texts are embedded or the call fails, with all attempts and waits.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that it waits for a provider that is down; default the client's, else
            3,600.
        cache: How the cache is used, as in `call`.
        budget: The most that all texts together may cost, in USD; or a `Budget`, which several calls
            can share.
        extra_body: Fields of this provider's API, such as Gemini's `taskType`, that are merged into the
            request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
    """
        ...

    async def aembed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dimensions: int | None = None,
        strict_model: bool | None = None,
        timeout: float | Timeouts | None = None,
        deadline: float | None = None,
        max_retries: int | None = None,
        outage_patience: float | None = None,
        cache: CacheMode | bool | None = None,
        budget: float | Decimal | Budget | None = None,
        extra_body: Mapping[str, Any] | None = None,
        extra_headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
    ) -> Embeddings:
        """See `llm_provider.aembed`.

    Args:
        dimensions: The number of numbers in each vector; default the model's.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        timeout: Seconds for one attempt of one request, without the time in the queue.
        deadline: Seconds until all texts are embedded or the call fails, with all attempts and waits.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that it waits for a provider that is down; default the client's, else
            3,600.
        cache: How the cache is used, as in `call`.
        budget: The most that all texts together may cost, in USD; or a `Budget`, which several calls
            can share.
        extra_body: Fields of this provider's API, such as Gemini's `taskType`, that are merged into the
            request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
    """
        ...


