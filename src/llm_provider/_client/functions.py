"""The functions of the module: `Client`'s methods on one default client, built on first use."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from .._money.ledger import Ledger
from .._requests.inputs import Inputs
from .._requests.request import seal
from .._requests.signatures import with_parameters
from .._types.embeddings import Embeddings
from .._types.messages import Prompt
from .._types.response import Response, Result
from .._types.usage import Usage
from .batch_arguments import Models, OnError
from .client import Client

if TYPE_CHECKING:
    from datetime import date
    from decimal import Decimal

    from .._batches.handle import Batch
    from .._calls.stream import AsyncStream, Stream
    from .._estimates.estimate import Estimate
    from .._estimates.estimates import Estimates
    from .._requests.parameters import BatchParameters, EmbedParameters, Parameters
    from .._types.results import Results

_default: dict[int, Client] = {}


def default_client() -> Client:
    """The client of the module's functions. It reads the environment when it is first used."""
    # One client per process: `setdefault` is atomic, so concurrent threads get the same one.
    process = os.getpid()
    client = _default.get(process)
    return client if client is not None else _default.setdefault(process, Client())


@with_parameters
def call(model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Response:
    """Ask a model and wait for the answer.

    Works in a script, in any number of threads, and inside a running event loop such as a notebook's.

    Args:
        model: A model name in the spelling of litellm: "gpt-6.1-sol", "claude-sonnet-5-5",
            "gemini/gemini-3.8-flash", "together_ai/zai-org/GLM-5.3", "local/my-model".
        messages: One user message, or a list of OpenAI-style messages.
        **parameters: See `Parameters`.

    Raises:
        RequestError: the model or the provider cannot serve the request. Nothing was sent.
        ProviderError: the provider failed, and retries did not help.
        TypeError: a parameter does not exist.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answer = call("gpt-6.1-sol", "What is 2+2?", base_url=simulator.url("openai"))
    >>> answer.text, answer.finish_reason, answer.provider
    ('4', 'stop', 'openai')
    """
    seal(parameters)
    return default_client().call(model, messages, **parameters)


@with_parameters
async def acall(model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Response:
    """`call` for any event loop. Cancelling it cancels the request at the server.

    >>> import asyncio
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     asyncio.run(acall("claude-sonnet-5-5", "What is 3*3?", base_url=simulator.url("anthropic"))).text
    '9'
    """
    seal(parameters)
    return await default_client().acall(model, messages, **parameters)


@overload
def embed(
    model: str,
    inputs: Iterable[str],
    *,
    dry_run: Literal[False] = False,
    **parameters: Unpack[EmbedParameters],
) -> Embeddings: ...


@overload
def embed(
    model: str, inputs: Iterable[str], *, dry_run: Literal[True], **parameters: Unpack[EmbedParameters]
) -> Estimate: ...


@with_parameters
def embed(
    model: str, inputs: Iterable[str], *, dry_run: bool = False, **parameters: Unpack[EmbedParameters]
) -> Embeddings | Estimate:
    """Turn texts into vectors.

    Each text has a cache entry of its own, so a list with one new text sends only that text. Long lists are
    divided into as many requests as the provider's limits need, which are sent at the same time under rate
    control.

    Args:
        model: The name of an embedding model in the spelling of litellm: "text-embedding-3-small",
            "gemini/gemini-embedding-001", "mistral/mistral-embed", "local/my-model".
        inputs: The texts. No text may be empty.
        dry_run: Send nothing, and return an `Estimate` of tokens, cost and time instead.
        **parameters: See `EmbedParameters`.

    Returns:
        The vectors in the order of the texts, the usage, and the cost in USD.

    Raises:
        RequestError: an input or a parameter is not valid, or the model does not embed. Nothing was sent.
        ProviderError: the provider failed, and retries did not help. The texts that were answered are stored.
        TypeError: a parameter does not exist.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     found = embed("text-embedding-3-small", ["a bird", "a fish"], base_url=simulator.url("openai"))
    >>> len(found.vectors), found.dimensions, found.cached
    (2, 1536, False)
    """
    seal(parameters)
    if dry_run:
        return default_client().embed(model, inputs, dry_run=True, **parameters)
    return default_client().embed(model, inputs, **parameters)


@with_parameters
async def aembed(model: str, inputs: Iterable[str], **parameters: Unpack[EmbedParameters]) -> Embeddings:
    """`embed` for any event loop. Cancelling it cancels the requests at the server."""
    seal(parameters)
    return await default_client().aembed(model, inputs, **parameters)


@with_parameters
def stream(model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Stream:
    """Ask a model and read the answer as it is written.

    The stream yields `Delta`s. At its end `.response` is the `Response` that `call` would return. Closing it
    early, with `close()` or by leaving its `with` block, cancels the request.

    Raises:
        RequestError, ProviderError: as for `call`. Failures after the start are raised by the iteration.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     with stream("gpt-6.1-sol", "Hi", base_url=simulator.url("openai")) as deltas:
    ...         text = "".join(delta.text for delta in deltas)
    >>> text == deltas.response.text
    True
    """
    seal(parameters)
    return default_client().stream(model, messages, **parameters)


@with_parameters
def astream(model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> AsyncStream:
    """`stream` for `async for` and `async with`; call it inside a running event loop."""
    seal(parameters)
    return default_client().astream(model, messages, **parameters)


@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: Literal["return"] = "return",
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    **parameters: Unpack[BatchParameters],
) -> Results[Result]: ...


@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: Literal["raise"],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    **parameters: Unpack[BatchParameters],
) -> Results[Response]: ...


@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: OnError = "return",
    dry_run: Literal[False] = False,
    wait: Literal[False],
    **parameters: Unpack[BatchParameters],
) -> Batch: ...


@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: OnError = "return",
    dry_run: Literal[True],
    wait: bool = True,
    **parameters: Unpack[BatchParameters],
) -> Estimate: ...


@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    on_error: Literal["return"] = "return",
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    **parameters: Unpack[BatchParameters],
) -> dict[str, Results[Result]]: ...


@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    on_error: Literal["raise"],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    **parameters: Unpack[BatchParameters],
) -> dict[str, Results[Response]]: ...


@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    on_error: OnError = "return",
    dry_run: Literal[True],
    wait: bool = True,
    **parameters: Unpack[BatchParameters],
) -> Estimates: ...


@with_parameters
def call_many(
    model: str | Models,
    inputs: Inputs,
    *,
    on_error: OnError = "return",
    dry_run: bool = False,
    wait: bool = True,
    **parameters: Unpack[BatchParameters],
) -> Results[Result] | Results[Response] | Estimate | Batch | dict[str, Any]:
    """Ask a model many prompts at once. The results are in the order of the inputs.

    Each answer is stored before it counts as done: after an interruption, a second run sends only the rest.

    Args:
        model: As for `call`. A list of models gives each the same inputs, side by side and with one budget,
            and returns a dict with the results of each.
        inputs: Any iterable of prompts, or a column of a data frame. With `rows` it is a template: text with
            `{fields}` that name columns, or a function of a row.
        on_error: "return" puts the error of a failed call in its place; "raise" raises a `BatchError`,
            which holds all results, after every other call has finished.
        dry_run: Send nothing, and return an `Estimate` instead; see `estimate`.
        wait: With `delivery="batch"`, False returns a `Batch` once everything is submitted.
        **parameters: See `BatchParameters`.

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    seal(parameters)
    client: Any = default_client()
    found: Results[Result] | Estimate | Batch | dict[str, Any] = client.call_many(
        model, inputs, on_error=on_error, dry_run=dry_run, wait=wait, **parameters
    )
    return found


@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal["return"] = "return",
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    **parameters: Unpack[BatchParameters],
) -> Results[Result]: ...


@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal["raise"],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    **parameters: Unpack[BatchParameters],
) -> Results[Response]: ...


@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: OnError = "return",
    dry_run: Literal[False] = False,
    wait: Literal[False],
    **parameters: Unpack[BatchParameters],
) -> Batch: ...


@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: OnError = "return",
    dry_run: Literal[True],
    wait: bool = True,
    **parameters: Unpack[BatchParameters],
) -> Estimate: ...


@overload
async def acall_many(
    model: Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal["return"] = "return",
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    **parameters: Unpack[BatchParameters],
) -> dict[str, Results[Result]]: ...


@overload
async def acall_many(
    model: Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal["raise"],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    **parameters: Unpack[BatchParameters],
) -> dict[str, Results[Response]]: ...


@overload
async def acall_many(
    model: Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: OnError = "return",
    dry_run: Literal[True],
    wait: bool = True,
    **parameters: Unpack[BatchParameters],
) -> Estimates: ...


@with_parameters
async def acall_many(
    model: str | Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: OnError = "return",
    dry_run: bool = False,
    wait: bool = True,
    **parameters: Unpack[BatchParameters],
) -> Results[Result] | Results[Response] | Estimate | Batch | dict[str, Any]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable."""
    seal(parameters)
    client: Any = default_client()
    found: Results[Result] | Estimate | Batch | dict[str, Any] = await client.acall_many(
        model, inputs, on_error=on_error, dry_run=dry_run, wait=wait, **parameters
    )
    return found


@with_parameters
def iter_many(
    model: str,
    inputs: Inputs,
    **parameters: Unpack[BatchParameters],
) -> Iterator[tuple[int, Result]]:
    """Ask a model many prompts, and yield `(index, result)` pairs as calls finish.

    The inputs are read only as fast as results are taken, so memory stays bounded however many there are.
    A failed call's result is its `LLMError`. Leaving the loop early cancels the calls under way.
    """
    seal(parameters)
    return default_client().iter_many(model, inputs, **parameters)


@with_parameters
def aiter_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    **parameters: Unpack[BatchParameters],
) -> AsyncIterator[tuple[int, Result]]:
    """`iter_many` for `async for`."""
    seal(parameters)
    return default_client().aiter_many(model, inputs, **parameters)


def batches() -> list[Batch]:
    """The batches that any process submitted with this cache directory, oldest first; see docs/batches.md.

    >>> batches()
    []
    """
    return default_client().batches()


@with_parameters
def estimate(model: str, inputs: Inputs, **parameters: Unpack[BatchParameters]) -> Estimate:
    """Estimate the requests, tokens, USD and time of a `call_many` with the same arguments. Nothing is sent.

    It looks into the cache, loads no SDK and needs no key. Input tokens are counted if tiktoken and the
    model's encoding are on this machine, else estimated. Output tokens are those of stored answers of the
    model, else a guess. `Estimate.assumptions` names the method. docs/estimates.md has the rules and their
    errors.

    Args:
        model: As for `call_many`.
        inputs: Any iterable of prompts; an iterator is used up.
        **parameters: See `BatchParameters`.

    Raises:
        RequestError: the model or a parameter is not valid.
        TypeError: `inputs` is one prompt.

    >>> found = estimate("claude-haiku-5-5", ["Name a bird.", "Name a fish."], max_tokens=100)
    >>> found.requests, found.output_tokens.high == 200, found.cost.high < 0.001
    (2, True, True)
    >>> sorted(found.costs)
    ['batch', 'standard']
    """
    seal(parameters)
    return default_client().estimate(model, inputs, **parameters)


def usage() -> Ledger:
    """The ledger of all calls by the functions of this module in this process. It continues to count.

    `track` counts a part of a program, and `Client.usage` the calls of a client.

    >>> usage().cost == usage().spent + usage().wasted
    True
    """
    return default_client().usage


def price(
    model: str, usage: Usage, *, service_tier: str | None = None, at: date | None = None
) -> Decimal | None:
    """The cost of a usage in USD by the shipped `prices.csv`; None if the price is not known.

    Args:
        model: A model name, as for `call`.
        usage: The usage of one call.
        service_tier: The service level, by its name in `prices.csv`: "standard", "batch", "flex", "priority",
            "fast", "ultrafast" or "off_peak". "default" and "auto" are "standard".
        at: The day or the time of the call, for past and announced prices. A datetime without a zone is UTC.

    Raises:
        RequestError: the model has no route, the usage is no `Usage` of counts, the service level does not
            exist, or `at` is no date.

    >>> price("claude-haiku-5-5", Usage(input_tokens=1000, output_tokens=100))
    Decimal('0.00015')
    >>> price("claude-haiku-5-5", Usage(input_tokens=1000, output_tokens=100), service_tier="batch")
    Decimal('0.000075')
    >>> from datetime import date
    >>> usage = Usage(input_tokens=1_000_000)
    >>> [price("mistral/mistral-large-4", usage, at=date(2026, 10, day)) for day in (19, 20, 29)]
    [Decimal('0.68'), Decimal('1.36'), Decimal('0.7')]
    """
    return default_client().price(model, usage, service_tier=service_tier, at=at)
