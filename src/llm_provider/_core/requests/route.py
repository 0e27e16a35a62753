"""`Route`: what is known about one provider. `routing` has the table of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from ..._features.clouds.addresses import Cloud
    from ..._features.hosts.host import Host

Transport = Literal["aiohttp", "http2", "http1"]
"""The HTTP client that carries an SDK's requests."""


class EmbeddingLimits(NamedTuple):
    """How much a host takes in one request for embeddings."""

    texts: int
    """Most texts in one request."""
    tokens: int | None
    """Most tokens of all texts of one request together; None where there is no such limit."""
    text_tokens: int | None
    """Most tokens of one text; None where it is not known."""
    media: int | None = None
    """Most inputs with media in one request; None for as many as texts."""


UNPUBLISHED = EmbeddingLimits(texts=100, tokens=16_384, text_tokens=None)
"""For hosts that publish no limits: the limits of the strictest host that does."""


class BatchService(NamedTuple):
    """A host's batch API, which has the shape of OpenAI's but for what the other columns say."""

    rows: int
    """Most rows of one batch."""
    bytes: int
    """Most bytes of its file."""
    purpose: str = "batch"
    """The purpose with which the file is uploaded."""
    operations: tuple[str, ...] = ()
    """The endpoints that it serves; empty for all that OpenAI's does."""
    endpoints: tuple[tuple[str, str], ...] = ()
    """Endpoints of rows, each with the endpoint that the batch itself names where that is another."""
    host: str = ""
    """The module of `_features/batch_hosts` with what is different; empty where nothing is."""
    needs: tuple[str, ...] = ()
    """Environment variables without which the host has no batches for the user, such as a bucket's name."""

    @property
    def is_set_up(self) -> bool:
        """Whether the user has set what the host's batches need."""
        return all(os.environ.get(variable, "").strip() for variable in self.needs)


_PENALTIES = frozenset({"presence_penalty", "frequency_penalty"})
GROK_LACKS = (
    # docs.x.ai/docs/guides/reasoning; at other hosts too, says huggingface/smolagents#1766.
    (r"(\w+\.)?grok-(3-mini|code-fast|4(?!.*non-reasoning)).*", _PENALTIES | {"stop"}),
    # Also without reasoning: miaoxworld/NativeTavern#83.
    (r"(\w+\.)?grok-4\.20.*", _PENALTIES),
)
"""What xAI's models lack, at xAI and at Azure. They refuse the neutral values too."""


def name_variable(provider: str, what: str) -> str:
    """The environment variable of a host by its name."""
    return f"{provider.removesuffix('_ai').upper()}_{what}"


# A row is its own identity: what is derived from it is remembered by the row.
@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One provider: a row of `ROUTES`.

    For an OpenAI-compatible host the first two columns suffice, and the rest has defaults. Nothing else of
    the package lists these hosts: environment variables, price sources and the simulator follow from the row.

    Attributes:
        provider: The provider's name and the prefix of its models: litellm's name where litellm has one.
        base_url: The provider's server; None where the adapter finds the server itself, and for several.
        adapter: The folder in `_core/formats` that speaks the provider's wire format.
        base_url_variable: The environment variable that points the route at another server. Default
            `<HOST>_BASE_URL`, where `<HOST>` is the provider's name without `_ai`, in upper case.
        key_variables: The variables of the API key, the first that is set counts. Default `<HOST>_API_KEY`.
        bare_names: A pattern of the model names that belong to this route without a prefix.
        key_required: Whether a call without an API key fails before it is sent.
        like_openai: Whether the API has every parameter that OpenAI's Chat Completions has.
        options: The parameters that the API has and few other compatible hosts; see `openai/chat.ACCEPTS`.
        lacks: The parameters that most compatible hosts have and the API lacks. Without `n`, each sample is a
            call.
        models_lack: Patterns of models, and the parameters that these lack and others of the host have.
        stores_answers: Whether the host has OpenAI's Responses API with stored answers.
        spelling: Parameters that the API names differently, each with its name there.
        transport: The default HTTP client under the SDK, by measurement (`python -m benchmarks transports`).
        stream_usage: Whether a streamed answer has its usage only if `stream_options` asks for it.
        json_schema: Whether the API takes a JSON schema for the answer. Else the prompt asks for it.
        default_effort: Whether the API may accept `reasoning_effort="default"`.
        embedding_limits: What a request for embeddings may hold (adapter `openai`). Default `UNPUBLISHED`.
        batches: The batch API of a host (adapter `openai`) or of a cloud; None where it has none.
        scores: How the host tells the log-probabilities of a given text, by a name of the table in
            `openai/scores.py`; empty where it does not.
        parts: Parts of messages that OpenAI does not have and the API has: "media in results" of tools, and
            "thinking" in the content.
        output_only: Fields of an assistant message that other hosts return and this host refuses as input.
        litellm_names: The provider's names in litellm's price map, the one that prefixes its models first.
            Default the provider's own name.
        other_names: Prefixes that other tools use, and litellm does not; an error names the right one.
        genai_prices_name: The provider's name in genai-prices. Default the provider's own name.
        quirks: The module of `_features/quirks` with what is different at this host; empty where nothing is.
            Default: what any server of the format may do.
        cloud: Where a cloud serves these models, one row for each wire format; None for other providers.
        host: The host of the user's own that the row was made of; None for a row of `ROUTES`.

    >>> row = Route("example_ai", "https://api.example.com/v1")
    >>> row.base_url_variable, row.key_variables, row.litellm_names
    ('EXAMPLE_BASE_URL', ('EXAMPLE_API_KEY',), ('example_ai',))
    """

    provider: str
    base_url: str | None
    adapter: str = "openai"
    base_url_variable: str = ""
    key_variables: tuple[str, ...] = ()
    bare_names: str = r"(?!)"
    key_required: bool = True
    like_openai: bool = False
    options: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    models_lack: tuple[tuple[str, frozenset[str]], ...] = ()
    stores_answers: bool = False
    spelling: Mapping[str, str] = field(default_factory=dict)
    transport: Transport = "aiohttp"
    stream_usage: bool = True
    json_schema: bool = True
    default_effort: bool = False
    embedding_limits: EmbeddingLimits = UNPUBLISHED
    batches: BatchService | None = None
    scores: str = ""
    parts: frozenset[str] = frozenset()
    output_only: frozenset[str] = frozenset()
    litellm_names: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    genai_prices_name: str = ""
    quirks: str | None = None
    cloud: Cloud | None = None
    host: Host | None = None

    @property
    def takes_tokens(self) -> bool:
        """Whether a function may return the tokens of an account."""
        return self.host is not None or self.cloud is not None or self.adapter == "openai"

    def __post_init__(self) -> None:
        if self.base_url is None or self.host is not None:
            return
        derived = {
            "base_url_variable": name_variable(self.provider, "BASE_URL"),
            "key_variables": (name_variable(self.provider, "API_KEY"),),
            "litellm_names": (self.provider,),
            "genai_prices_name": self.provider,
        }
        for column, value in derived.items():
            if not getattr(self, column):
                object.__setattr__(self, column, value)
