"""Written by `make stubs` from _client/model_functions.py and _requests/parameters.py."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from typing import Literal
from llm_provider._limits.timeouts import Timeouts
from llm_provider._money.budget import Budget
from llm_provider._requests.checks import CacheMode
from llm_provider._requests.checks import Endpoint
from llm_provider._requests.checks import InBatch
from llm_provider._requests.checks import Modality
from llm_provider._requests.checks import ReasoningContext
from llm_provider._requests.checks import ReasoningEffort
from llm_provider._requests.checks import ReasoningSummary
from llm_provider._requests.checks import ServiceTier
from llm_provider._requests.checks import Unsupported
from llm_provider._requests.checks import Verbosity
from llm_provider._requests.tools import Tool
from llm_provider._tokens.models import Model
from llm_provider._types.messages import Prompt
from llm_provider._types.token_count import TokenCount

def models(
    provider: str | None = None,
    *,
    live: bool = False,
) -> list[Model]:
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
    ...

def count_tokens(
    model: str,
    messages: Prompt,
    *,
    exact: bool = True,
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
            sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`. `system`, `tools` and `response_format` are counted too.

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
    ...

async def acount_tokens(
    model: str,
    messages: Prompt,
    *,
    exact: bool = True,
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
) -> TokenCount:
    """`count_tokens` for any event loop. Cancelling it cancels the request at the server.

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

