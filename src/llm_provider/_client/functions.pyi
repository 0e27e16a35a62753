"""Written by `make stubs` from _client/functions.py and _requests/parameters.py."""

from collections.abc import AsyncIterable
from collections.abc import AsyncIterator
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from typing import Literal
from typing import TypeVar
from typing import overload
from typing_extensions import TypeForm
from llm_provider._batches.handle import Batch
from llm_provider._calls.stream import AsyncStream
from llm_provider._calls.stream import Stream
from llm_provider._client.batch_arguments import Models
from llm_provider._client.batch_arguments import OnError
from llm_provider._client.client import Client
from llm_provider._errors import LLMError
from llm_provider._estimates.estimate import Estimate
from llm_provider._estimates.estimates import Estimates
from llm_provider._limits.timeouts import Timeouts
from llm_provider._money.budget import Budget
from llm_provider._money.ledger import Ledger
from llm_provider._requests.checks import CacheMode
from llm_provider._requests.checks import DeliveryMode
from llm_provider._requests.checks import Endpoint
from llm_provider._requests.checks import InBatch
from llm_provider._requests.checks import Modality
from llm_provider._requests.checks import ReasoningContext
from llm_provider._requests.checks import ReasoningEffort
from llm_provider._requests.checks import ReasoningSummary
from llm_provider._requests.checks import Resend
from llm_provider._requests.checks import ServiceTier
from llm_provider._requests.checks import Unsupported
from llm_provider._requests.checks import Verbosity
from llm_provider._requests.inputs import Inputs
from llm_provider._requests.tools import Tool
from llm_provider._types.embeddings import Embeddings
from llm_provider._types.messages import Prompt
from llm_provider._types.response import Response
from llm_provider._types.response import Result
from llm_provider._types.results import Results
from llm_provider._types.usage import Usage

T = TypeVar('T')

def default_client(
) -> Client:
    """The client of the module's functions. It reads the environment when it is first used."""
    ...

@overload
def call(
    model: str,
    messages: Prompt,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    metadata: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
) -> Response[T]:
    """Ask a model and wait for the answer.

    Works in a script, in any number of threads, and inside a running event loop such as a notebook's.

    Args:
        model: A model name in the spelling of litellm: "gpt-6.1-sol", "claude-sonnet-5-5",
            "gemini/gemini-3.8-flash", "together_ai/zai-org/GLM-5.3", "local/my-model".
        messages: One user message, or a list of OpenAI-style messages.
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        metadata: Up to 16 pairs of text that OpenAI stores with the request.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.

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
    ...

@overload
def call(
    model: str,
    messages: Prompt,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    metadata: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
) -> Response:
    """Ask a model and wait for the answer.

    Works in a script, in any number of threads, and inside a running event loop such as a notebook's.

    Args:
        model: A model name in the spelling of litellm: "gpt-6.1-sol", "claude-sonnet-5-5",
            "gemini/gemini-3.8-flash", "together_ai/zai-org/GLM-5.3", "local/my-model".
        messages: One user message, or a list of OpenAI-style messages.
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        metadata: Up to 16 pairs of text that OpenAI stores with the request.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.

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
    ...

@overload
async def acall(
    model: str,
    messages: Prompt,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    metadata: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
) -> Response[T]:
    """`call` for any event loop. Cancelling it cancels the request at the server.

    >>> import asyncio
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     asyncio.run(acall("claude-sonnet-5-5", "What is 3*3?", base_url=simulator.url("anthropic"))).text
    '9'

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        metadata: Up to 16 pairs of text that OpenAI stores with the request.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
    """
    ...

@overload
async def acall(
    model: str,
    messages: Prompt,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    metadata: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
) -> Response:
    """`call` for any event loop. Cancelling it cancels the request at the server.

    >>> import asyncio
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     asyncio.run(acall("claude-sonnet-5-5", "What is 3*3?", base_url=simulator.url("anthropic"))).text
    '9'

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        metadata: Up to 16 pairs of text that OpenAI stores with the request.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
    """
    ...

@overload
def embed(
    model: str,
    inputs: Iterable[str],
    *,
    dry_run: Literal[False] = False,
    dimensions: int | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    strict_model: bool | None = None,
    timeout: float | Timeouts | None = None,
    deadline: float | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    in_batch: InBatch | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
) -> Embeddings:
    """Turn texts into vectors.

    Each text has a cache entry of its own, so a list with one new text sends only that text. Long lists are
    divided into as many requests as the provider's limits need, which are sent at the same time under rate
    control.

    Args:
        model: The name of an embedding model in the spelling of litellm: "text-embedding-3-small",
            "gemini/gemini-embedding-001", "mistral/mistral-embed", "local/my-model".
        inputs: The texts. No text may be empty.
        dry_run: Send nothing, and return an `Estimate` of tokens, cost and time instead.
        dimensions: The number of numbers in each vector; default the model's.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
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
        in_batch: The behaviour of a call with a text that is in a batch under way, as in `call`.
        extra_body: Fields of this provider's API, such as Gemini's `taskType`, that are merged into the
            request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.

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
    ...

@overload
def embed(
    model: str,
    inputs: Iterable[str],
    *,
    dry_run: Literal[True],
    dimensions: int | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    strict_model: bool | None = None,
    timeout: float | Timeouts | None = None,
    deadline: float | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    in_batch: InBatch | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
) -> Estimate:
    """Turn texts into vectors.

    Each text has a cache entry of its own, so a list with one new text sends only that text. Long lists are
    divided into as many requests as the provider's limits need, which are sent at the same time under rate
    control.

    Args:
        model: The name of an embedding model in the spelling of litellm: "text-embedding-3-small",
            "gemini/gemini-embedding-001", "mistral/mistral-embed", "local/my-model".
        inputs: The texts. No text may be empty.
        dry_run: Send nothing, and return an `Estimate` of tokens, cost and time instead.
        dimensions: The number of numbers in each vector; default the model's.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
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
        in_batch: The behaviour of a call with a text that is in a batch under way, as in `call`.
        extra_body: Fields of this provider's API, such as Gemini's `taskType`, that are merged into the
            request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.

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
    ...

async def aembed(
    model: str,
    inputs: Iterable[str],
    *,
    dimensions: int | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    strict_model: bool | None = None,
    timeout: float | Timeouts | None = None,
    deadline: float | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    in_batch: InBatch | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
) -> Embeddings:
    """`embed` for any event loop. Cancelling it cancels the requests at the server.

    Args:
        dimensions: The number of numbers in each vector; default the model's.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
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
        in_batch: The behaviour of a call with a text that is in a batch under way, as in `call`.
        extra_body: Fields of this provider's API, such as Gemini's `taskType`, that are merged into the
            request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
    """
    ...

@overload
def stream(
    model: str,
    messages: Prompt,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    metadata: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
) -> Stream[T]:
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

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        metadata: Up to 16 pairs of text that OpenAI stores with the request.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
    """
    ...

@overload
def stream(
    model: str,
    messages: Prompt,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    metadata: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
) -> Stream:
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

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        metadata: Up to 16 pairs of text that OpenAI stores with the request.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
    """
    ...

@overload
def astream(
    model: str,
    messages: Prompt,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    metadata: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
) -> AsyncStream[T]:
    """`stream` for `async for` and `async with`; call it inside a running event loop.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        metadata: Up to 16 pairs of text that OpenAI stores with the request.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
    """
    ...

@overload
def astream(
    model: str,
    messages: Prompt,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    metadata: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
) -> AsyncStream:
    """`stream` for `async for` and `async with`; call it inside a running event loop.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        metadata: Up to 16 pairs of text that OpenAI stores with the request.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
    """
    ...

@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: Literal['return'] = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Results[Response[T] | LLMError]:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: Literal['return'] = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Results[Result]:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: Literal['raise'],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Results[Response[T]]:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: Literal['raise'],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Results[Response]:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: OnError = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[False],
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Batch:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: str,
    inputs: Inputs,
    *,
    on_error: OnError = 'return',
    dry_run: Literal[True],
    wait: bool = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Estimate:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    on_error: Literal['return'] = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> dict[str, Results[Response[T] | LLMError]]:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    on_error: Literal['return'] = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> dict[str, Results[Result]]:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    on_error: Literal['raise'],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> dict[str, Results[Response[T]]]:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    on_error: Literal['raise'],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> dict[str, Results[Response]]:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
def call_many(
    model: Models,
    inputs: Inputs,
    *,
    on_error: OnError = 'return',
    dry_run: Literal[True],
    wait: bool = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Estimates:
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
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid. Nothing was sent.
        BatchError: see `on_error`.

    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator:
    ...     answers = call_many("gpt-6.1-sol", ["1+1?", "2+3?"], base_url=simulator.url("openai"))
    >>> [answer.text for answer in answers]
    ['2', '5']
    """
    ...

@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal['return'] = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Results[Response[T] | LLMError]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal['return'] = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Results[Result]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal['raise'],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Results[Response[T]]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal['raise'],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Results[Response]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: OnError = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[False],
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Batch:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: OnError = 'return',
    dry_run: Literal[True],
    wait: bool = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Estimate:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal['return'] = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> dict[str, Results[Response[T] | LLMError]]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal['return'] = 'return',
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> dict[str, Results[Result]]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal['raise'],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> dict[str, Results[Response[T]]]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: Literal['raise'],
    dry_run: Literal[False] = False,
    wait: Literal[True] = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> dict[str, Results[Response]]:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
async def acall_many(
    model: Models,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    on_error: OnError = 'return',
    dry_run: Literal[True],
    wait: bool = True,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Estimates:
    """`call_many` for any event loop. `inputs` may also be an asynchronous iterable.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
def iter_many(
    model: str,
    inputs: Inputs,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Iterator[tuple[int, Response[T] | LLMError]]:
    """Ask a model many prompts, and yield `(index, result)` pairs as calls finish.

    The inputs are read only as fast as results are taken, so memory stays bounded however many there are.
    A failed call's result is its `LLMError`. Leaving the loop early cancels the calls under way.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
def iter_many(
    model: str,
    inputs: Inputs,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Iterator[tuple[int, Result]]:
    """Ask a model many prompts, and yield `(index, result)` pairs as calls finish.

    The inputs are read only as fast as results are taken, so memory stays bounded however many there are.
    A failed call's result is its `LLMError`. Leaving the loop early cancels the calls under way.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
def aiter_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: TypeForm[T],
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> AsyncIterator[tuple[int, Response[T] | LLMError]]:
    """`iter_many` for `async for`.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

@overload
def aiter_many(
    model: str,
    inputs: Inputs | AsyncIterable[Prompt],
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> AsyncIterator[tuple[int, Result]]:
    """`iter_many` for `async for`.

    Args:
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).
    """
    ...

def batches(
) -> list[Batch]:
    """The batches that any process submitted with this cache directory, oldest first; see docs/batches.md.

    >>> batches()
    []
    """
    ...

def estimate(
    model: str,
    inputs: Inputs,
    *,
    system: str | None = None,
    max_tokens: int | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    logit_bias: Mapping[int, float] | Mapping[str, float] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    n: int | None = None,
    draw: int | None = None,
    tools: Sequence[Tool] | None = None,
    max_tool_rounds: int | None = None,
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None = None,
    allowed_tools: Sequence[str] | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_repairs: int | None = None,
    reasoning_effort: ReasoningEffort | None = None,
    thinking_budget: int | Literal['adaptive'] | None = None,
    reasoning_summary: ReasoningSummary | None = None,
    reasoning_context: ReasoningContext | None = None,
    verbosity: Verbosity | None = None,
    modalities: Sequence[Modality] | None = None,
    logprobs: bool | None = None,
    top_logprobs: int | None = None,
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None = None,
    service_tier: ServiceTier | None = None,
    store: bool | None = None,
    previous_response_id: str | None = None,
    cached_content: str | None = None,
    prompt_caching: bool | None = None,
    prompt_cache_key: str | None = None,
    user: str | None = None,
    endpoint: Endpoint | None = None,
    unsupported: Unsupported | None = None,
    deadline: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    extra_headers: Mapping[str, str] | None = None,
    api_key: str | None = None,
    base_url: str | None = None,
    timeout: float | Timeouts | None = None,
    max_retries: int | None = None,
    outage_patience: float | None = None,
    cache: CacheMode | bool | None = None,
    budget: float | Decimal | Budget | None = None,
    strict_model: bool | None = None,
    in_batch: InBatch | None = None,
    max_concurrent: int | None = None,
    progress: bool | None = None,
    delivery: DeliveryMode | None = None,
    resend: Resend | None = None,
    rows: Any = None,
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None = None,
) -> Estimate:
    """Estimate the requests, tokens, USD and time of a `call_many` with the same arguments. Nothing is sent.

    It looks into the cache, loads no SDK and needs no key. Input tokens are counted if tiktoken and the
    model's encoding are on this machine, else estimated. Output tokens are those of stored answers of the
    model, else a guess. `Estimate.assumptions` names the method. docs/estimates.md has the rules and their
    errors.

    Args:
        model: As for `call_many`.
        inputs: Any iterable of prompts; an iterator is used up.
        system: A system prompt, which precedes the conversation.
        max_tokens: The longest answer, in tokens, reasoning included.
        temperature: Randomness of the answer, from 0 to 2.
        top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.
        top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have
            it.
        frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.
        presence_penalty: How much tokens that already occur become less likely, from -2 to 2.
        logit_bias: Token id → a number from -100 to 100 that is added to the token's logit.
        stop: One or several texts before which the answer ends.
        seed: A number with which providers sample more repeatably.
        n: The number of samples.
        draw: The number of the first sample, from 0.
        tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":
            {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.
        max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at
            most.
        tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be
            called, or `{"type": "function", "function": {"name": ...}}`.
        allowed_tools: The names of those `tools` that the model may call now; the others stay in the
            prompt and its cache.
        parallel_tool_calls: Whether the model may call several tools at once.
        response_format: The structure of the answer: a type (a pydantic model, a dataclass, a
            TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict
            (`json_object` or `json_schema`).
        max_repairs: How often the model is asked again, with the reason, if its answer does not match
            `response_format`.
        reasoning_effort: How much the model reasons before it answers.
        thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is
            none.
        reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"
            or "detailed".
        reasoning_context: The earlier reasoning that OpenAI's model sees again: "current_turn",
            "all_turns" or "auto".
        verbosity: How long the answers of OpenAI's models are: "low", "medium" or "high".
        modalities: The kinds of content that the answer may have: "text", "audio", "image".
        logprobs: Whether the answer has the log probabilities of its tokens.
        top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to
            20.
        safety_settings: Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's
            list of settings.
        service_tier: The service level, which sets price and speed: "flex" is cheap and slow,
            "priority" fast.
        store: Whether OpenAI stores the answer for `previous_response_id`; default False.
        previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API
            continues.
        cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",
            before the messages.
        prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they
            have in common.
        prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its
            prompt cache.
        user: An id of the end user, for the provider's abuse detection.
        endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat
            Completions or "responses" for Responses.
        unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the
            default) or is left out ("drop").
        deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a
            batch, seconds for all of its calls together.
        extra_body: Fields of this provider's API that are merged into the request's JSON.
        extra_headers: HTTP headers that are added to the request.
        api_key: The provider's API key; default one from the client's `keys` or the environment.
        base_url: The server to send to; default the environment's, else the provider's own.
        timeout: Seconds for one attempt, without the time in the queue.
        max_retries: The most requests that are sent again after a failure that may be temporary.
        outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0
            fails at once, and `float("inf")` waits for ever.
        cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads
            and never sends, "off" does neither.
        budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which
            several calls can share.
        strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;
            default the client's.
        in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.
        max_concurrent: The most requests in flight at once; default the client's.
        progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.
        delivery: "live" sends each request now.
        resend: Where rows of a batch that failed or expired are sent once more: in another batch, the
            default, or as live requests.
        rows: A data frame, or an iterable of dicts.
        metadata: One value for each input, such as a dict with its id, or a function of the prompt (of
            the row, with `rows`).

    Raises:
        RequestError: the model or a parameter is not valid.
        TypeError: `inputs` is one prompt.

    >>> found = estimate("claude-haiku-5-5", ["Name a bird.", "Name a fish."], max_tokens=100)
    >>> found.requests, found.output_tokens.high == 200, found.cost.high < 0.001
    (2, True, True)
    >>> sorted(found.costs)
    ['batch', 'standard']
    """
    ...

def usage(
) -> Ledger:
    """The ledger of all calls by the functions of this module in this process. It continues to count.

    `track` counts a part of a program, and `Client.usage` the calls of a client.

    >>> usage().cost == usage().spent + usage().wasted
    True
    """
    ...

def price(
    model: str,
    usage: Usage,
    *,
    service_tier: str | None = None,
    at: date | None = None,
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
    ...

