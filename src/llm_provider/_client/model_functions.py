"""The functions of the module about models: which there are, and how they count tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from .._requests.request import seal
from .._requests.signatures import with_parameters
from .._types.messages import Prompt
from .functions import default_client

if TYPE_CHECKING:
    from .._requests.parameters import Parameters
    from .._tokens.models import Model
    from .._types.token_count import TokenCount


def models(provider: str | None = None, *, live: bool = False) -> list[Model]:
    """The models that can be called, with their limits and prices, sorted by provider and name.

    The list comes from the tables of this package, without network. A model that is missing can be called
    too; only its price is not known.

    Args:
        provider: The only provider to list, such as "openai", "groq" or "openrouter"; default all. Your own
            servers ("local") and litellm's other providers have no list here.
        live: Whether the provider is asked which models the key reaches, "local" too. Its own limits and
            modalities come before those of the tables; prices are those of the tables. It needs a provider.

    Raises:
        RequestError: there is no such provider. The message names near ones.
        MissingAPIKeyError: with `live`, a key is required and none is set.
        ProviderError: with `live`, the provider gave no list, and retries did not help.

    >>> [model.name for model in models("anthropic") if "haiku-5" in model.name]
    ['claude-haiku-5-5']
    >>> cheapest = min(
    ...     (model for model in models("gemini") if model.kind == "chat" and model.output_price),
    ...     key=lambda model: model.output_price,
    ... )
    """
    return default_client().models(provider, live=live)


@with_parameters
def count_tokens(
    model: str, messages: Prompt, *, exact: bool = True, **parameters: Unpack[Parameters]
) -> TokenCount:
    """Count the input tokens of a call without making it.

    Anthropic and Gemini count for nothing. They are asked under the same rate control and with the same
    retries as calls, and not again in this process. For all other models the texts are counted with OpenAI's
    vocabulary if it is on this machine, and else the tokens are estimated; nothing is sent then. `method` of
    the result says which. docs/estimates.md has the errors of estimates.

    Args:
        model: A model name, as for `call`.
        messages: One user message, or a list of OpenAI-style messages, with images and tool calls.
        exact: Whether a provider that counts is asked. False sends nothing and needs no key. With
            cache="only" nothing is sent either.
        **parameters: See `Parameters`. `system`, `tools` and `response_format` are counted too.

    Raises:
        RequestError: the model or the provider cannot serve the call. Nothing was sent.
        ProviderError: the provider failed to count, and retries did not help.
        TypeError: a parameter does not exist.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     count = count_tokens("claude-sonnet-5-5", "Why?", base_url=simulator.url("anthropic"))
    >>> count.exact, count.method
    (True, 'provider')
    >>> count_tokens("claude-sonnet-5-5", "Why?", exact=False).method
    'estimate'
    """
    seal(parameters)
    return default_client().count_tokens(model, messages, exact=exact, **parameters)


@with_parameters
async def acount_tokens(
    model: str, messages: Prompt, *, exact: bool = True, **parameters: Unpack[Parameters]
) -> TokenCount:
    """`count_tokens` for any event loop. Cancelling it cancels the request at the server."""
    seal(parameters)
    return await default_client().acount_tokens(model, messages, exact=exact, **parameters)
