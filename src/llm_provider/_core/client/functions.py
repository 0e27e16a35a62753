"""The functions of the module: `Client`'s methods on one default client, built on first use."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from ..money.ledger import Ledger
from ..requests.inputs import AsyncInputs, Inputs
from ..requests.request import seal
from ..requests.signatures import with_parameters
from ..types.embeddings import Embeddings
from ..types.messages import EmbedInput, Prompt
from ..types.response import Response, Result
from .batch_methods import Models, OnError
from .client import Client

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from ..batches.handle import Batch
    from ..errors import LLMError
    from ..journey.stream import AsyncStream, Stream
    from ..requests.parameters import (
        BatchCommon,
        BatchParameters,
        Common,
        EmbedParameters,
        Parameters,
        Untyped,
        UntypedBatch,
    )
    from ..types.results import Results

T = TypeVar("T")

_default: dict[int, Client] = {}


def default_client() -> Client:
    """The client of the module's functions. It reads the environment when it is first used."""
    # One client per process: `setdefault` is atomic, so concurrent threads get the same one.
    process = os.getpid()
    client = _default.get(process)
    return client if client is not None else _default.setdefault(process, Client())


@overload
def call(model: str, messages: Prompt, **parameters: Unpack[Untyped]) -> Response: ...


@overload
def call(
    model: str, messages: Prompt, *, response_format: TypeForm[T], **parameters: Unpack[Common]
) -> Response[T]: ...


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
    if "api_key" in parameters:
        seal(parameters)
    return default_client().call(model, messages, **parameters)


@overload
async def acall(model: str, messages: Prompt, **parameters: Unpack[Untyped]) -> Response: ...


@overload
async def acall(
    model: str, messages: Prompt, *, response_format: TypeForm[T], **parameters: Unpack[Common]
) -> Response[T]: ...


@with_parameters
async def acall(model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> Response:
    """`call` for any event loop. Cancelling it cancels the request at the server.

    >>> import asyncio
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     asyncio.run(acall("claude-sonnet-5-5", "What is 3*3?", base_url=simulator.url("anthropic"))).text
    '9'
    """
    if "api_key" in parameters:
        seal(parameters)
    return await default_client().acall(model, messages, **parameters)


@with_parameters
def embed(model: str, inputs: Iterable[EmbedInput], **parameters: Unpack[EmbedParameters]) -> Embeddings:
    """Turn texts, and images where a model takes them, into vectors.

    Each input has a cache entry of its own, so a list with one new text sends only that text. Long lists are
    divided into as many requests as the provider's limits need, which are sent at the same time under rate
    control.

    Args:
        model: The name of an embedding model in the spelling of litellm: "text-embedding-3-small",
            "gemini/gemini-embedding-001", "mistral/mistral-embed", "local/my-model".
        inputs: The texts. No text may be empty. With such a model as "gemini/gemini-embedding-2", an input
            may also be a file, an image, or a list of contents that has one vector, as in a prompt.
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
    return default_client().embed(model, inputs, **parameters)


@with_parameters
async def aembed(
    model: str, inputs: Iterable[EmbedInput], **parameters: Unpack[EmbedParameters]
) -> Embeddings:
    """`embed` for any event loop. Cancelling it cancels the requests at the server."""
    seal(parameters)
    return await default_client().aembed(model, inputs, **parameters)


@overload
def stream(model: str, messages: Prompt, **parameters: Unpack[Untyped]) -> Stream: ...


@overload
def stream(
    model: str, messages: Prompt, *, response_format: TypeForm[T], **parameters: Unpack[Common]
) -> Stream[T]: ...


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


@overload
def astream(model: str, messages: Prompt, **parameters: Unpack[Untyped]) -> AsyncStream: ...


@overload
def astream(
    model: str, messages: Prompt, *, response_format: TypeForm[T], **parameters: Unpack[Common]
) -> AsyncStream[T]: ...


@with_parameters
def astream(model: str, messages: Prompt, **parameters: Unpack[Parameters]) -> AsyncStream:
    """`stream` for `async for` and `async with`; call it inside a running event loop."""
    seal(parameters)
    return default_client().astream(model, messages, **parameters)


@overload
def call_many(
    model: str, inputs: Inputs, *, on_error: Literal["return"] = "return", **parameters: Unpack[UntypedBatch]
) -> Results[Result]: ...


@overload
def call_many(
    model: str, inputs: Inputs, *, on_error: Literal["raise"], **parameters: Unpack[UntypedBatch]
) -> Results[Response]: ...


@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    response_format: TypeForm[T],
    on_error: Literal["return"] = "return",
    **parameters: Unpack[BatchCommon],
) -> Results[Response[T] | LLMError]: ...


@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    response_format: TypeForm[T],
    on_error: Literal["raise"],
    **parameters: Unpack[BatchCommon],
) -> Results[Response[T]]: ...


@overload
def call_many(
    model: Models, inputs: Inputs, *, on_error: OnError = "return", **parameters: Unpack[UntypedBatch]
) -> dict[str, Results[Result]]: ...


@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    response_format: TypeForm[T],
    on_error: OnError = "return",
    **parameters: Unpack[BatchCommon],
) -> dict[str, Results[Response[T] | LLMError]]: ...


@with_parameters
def call_many(
    model: str | Models,
    inputs: Inputs,
    *,
    on_error: OnError = "return",
    **parameters: Unpack[BatchParameters],
) -> Results[Result] | Results[Response] | dict[str, Any]:
    """Ask a model many prompts at once. The results are in the order of the inputs.

    Each answer is stored before it counts as done: after an interruption, a second run sends only the rest.

    Args:
        model: As for `call`. A list of models gives each the same inputs, side by side and with one budget,
            and returns a dict with the results of each.
        inputs: Any iterable of prompts, or a column of a data frame. With `rows` it is a template: text with
            `{fields}` that name columns, or a function of a row.
        on_error: "return" puts the error of a failed call in its place; "raise" raises a `BatchError`,
            which holds all results, after every other call has finished.
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
    return client.call_many(model, inputs, on_error=on_error, **parameters)  # type: ignore[no-any-return]


@overload
async def acall_many(
    model: str,
    inputs: AsyncInputs,
    *,
    on_error: Literal["return"] = "return",
    **parameters: Unpack[UntypedBatch],
) -> Results[Result]: ...


@overload
async def acall_many(
    model: str, inputs: AsyncInputs, *, on_error: Literal["raise"], **parameters: Unpack[UntypedBatch]
) -> Results[Response]: ...


@overload
async def acall_many(
    model: str,
    inputs: AsyncInputs,
    *,
    response_format: TypeForm[T],
    on_error: Literal["return"] = "return",
    **parameters: Unpack[BatchCommon],
) -> Results[Response[T] | LLMError]: ...


@overload
async def acall_many(
    model: str,
    inputs: AsyncInputs,
    *,
    response_format: TypeForm[T],
    on_error: Literal["raise"],
    **parameters: Unpack[BatchCommon],
) -> Results[Response[T]]: ...


@overload
async def acall_many(
    model: Models, inputs: AsyncInputs, *, on_error: OnError = "return", **parameters: Unpack[UntypedBatch]
) -> dict[str, Results[Result]]: ...


@overload
async def acall_many(
    model: Models,
    inputs: AsyncInputs,
    *,
    response_format: TypeForm[T],
    on_error: OnError = "return",
    **parameters: Unpack[BatchCommon],
) -> dict[str, Results[Response[T] | LLMError]]: ...


@with_parameters
async def acall_many(
    model: str | Models,
    inputs: AsyncInputs,
    *,
    on_error: OnError = "return",
    **parameters: Unpack[BatchParameters],
) -> Results[Result] | Results[Response] | dict[str, Any]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable."""
    seal(parameters)
    client: Any = default_client()
    return await client.acall_many(model, inputs, on_error=on_error, **parameters)  # type: ignore[no-any-return]


@with_parameters
def submit_many(
    model: str, inputs: Inputs, *, on_error: OnError = "return", **parameters: Unpack[BatchParameters]
) -> Batch:
    """Submit many prompts to the provider's batch API, and return without waiting for the answers.

    The `Batch` goes on without this process; `batches()` finds it again. docs/batches.md has the rules.

    Args:
        model: As for `call`.
        inputs: As for `call_many`.
        on_error: What `Batch.results` does with the error of a failed call; see `call_many`.
        **parameters: See `BatchParameters`. `delivery` can only be "batch".

    Raises:
        RequestError: the model or a parameter is not valid, or the provider has no batch API for them.
        ProviderError: the provider did not accept the batch.
        UncertainBatchError: it is not known whether an earlier batch was submitted.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     batch = submit_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    ...     batch.results().texts
    ['2', '5']
    """
    seal(parameters)
    return default_client().submit_many(model, inputs, on_error=on_error, **parameters)


@with_parameters
async def asubmit_many(
    model: str, inputs: AsyncInputs, *, on_error: OnError = "return", **parameters: Unpack[BatchParameters]
) -> Batch:
    """`submit_many` for any event loop. `inputs` may also be an asynchronous iterable."""
    seal(parameters)
    return await default_client().asubmit_many(model, inputs, on_error=on_error, **parameters)


@overload
def iter_many(
    model: str, inputs: Inputs, **parameters: Unpack[UntypedBatch]
) -> Iterator[tuple[int, Result]]: ...


@overload
def iter_many(
    model: str, inputs: Inputs, *, response_format: TypeForm[T], **parameters: Unpack[BatchCommon]
) -> Iterator[tuple[int, Response[T] | LLMError]]: ...


@with_parameters
def iter_many(
    model: str, inputs: Inputs, **parameters: Unpack[BatchParameters]
) -> Iterator[tuple[int, Result]]:
    """Ask a model many prompts, and yield `(index, result)` pairs as calls finish.

    The inputs are read only as fast as results are taken, so memory stays bounded however many there are.
    An iterator is read in a thread of its own: it may wait for its next input, or for an earlier result.
    A failed call's result is its `LLMError`. Leaving the loop early cancels the calls under way.
    """
    seal(parameters)
    return default_client().iter_many(model, inputs, **parameters)


@overload
def aiter_many(
    model: str, inputs: AsyncInputs, **parameters: Unpack[UntypedBatch]
) -> AsyncIterator[tuple[int, Result]]: ...


@overload
def aiter_many(
    model: str, inputs: AsyncInputs, *, response_format: TypeForm[T], **parameters: Unpack[BatchCommon]
) -> AsyncIterator[tuple[int, Response[T] | LLMError]]: ...


@with_parameters
def aiter_many(
    model: str, inputs: AsyncInputs, **parameters: Unpack[BatchParameters]
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


def usage() -> Ledger:
    """The ledger of all calls by the functions of this module in this process. It continues to count.

    `track` counts a part of a program, and `Client.usage` the calls of a client.

    >>> usage().cost == usage().spent + usage().wasted
    True
    """
    return default_client().usage
