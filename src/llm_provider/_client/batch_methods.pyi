"""Written by `make stubs` from _client/batch_methods.py and _requests/parameters.py."""

from collections.abc import AsyncIterable
from collections.abc import AsyncIterator
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from typing import Literal
from typing import TypeVar
from typing import overload
from typing_extensions import TypeForm
from llm_provider._batches.handle import Batch
from llm_provider._calls.batch import Work
from llm_provider._client.answers import Answers
from llm_provider._client.batch_arguments import Models
from llm_provider._client.batch_arguments import OnError
from llm_provider._errors import LLMError
from llm_provider._estimates.estimate import Estimate
from llm_provider._estimates.estimate import Estimator
from llm_provider._estimates.estimates import Estimates
from llm_provider._limits.timeouts import Timeouts
from llm_provider._money.budget import Budget
from llm_provider._money.pricing import PriceTable
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
from llm_provider._requests.inputs import BatchInputs
from llm_provider._requests.inputs import Inputs
from llm_provider._requests.parameters import BatchParameters
from llm_provider._requests.tools import Tool
from llm_provider._settings import Settings
from llm_provider._types.messages import Prompt
from llm_provider._types.response import Response
from llm_provider._types.response import Result
from llm_provider._types.results import Results

T = TypeVar('T')
class BatchMethods(Answers):
    """The methods of a client for many inputs. `Client` has the attributes that they use."""
    _prices: Callable[[], PriceTable]
    _settings: Settings
    _show_estimate_above: float | None
    @overload
    def iter_many(
        self,
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
        """See `llm_provider.iter_many`.

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
        self,
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
        """See `llm_provider.iter_many`.

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

    def _iterate(
        self,
        asked: Sequence[tuple[str, BatchInputs]],
        parameters: BatchParameters,
    ) -> Iterator[tuple[int, Result]]:
        ...

    @overload
    def aiter_many(
        self,
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
        """See `llm_provider.aiter_many`.

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
        self,
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
        """See `llm_provider.aiter_many`.

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

    def _aiterate(
        self,
        asked: Sequence[tuple[str, BatchInputs]],
        parameters: BatchParameters,
    ) -> AsyncIterator[tuple[int, Result]]:
        ...

    def _batches(
        self,
        name: str,
        asked: Sequence[tuple[str, BatchInputs]],
        parameters: BatchParameters,
    ) -> list[tuple[Work, Any]]:
        """The batch of each model, with its prompts. They share one budget."""
        ...

    def _batch(
        self,
        name: str,
        model: str,
        parameters: BatchParameters,
        metadata: Callable[[Prompt], Any] | None,
    ) -> Work:
        """How the calls of a batch are made and sent.

        An invalid model or parameter would fail every input, so it is found here, once.
        """
        ...

    def _estimator(
        self,
        model: str,
        parameters: BatchParameters,
        *,
        counted: bool = True,
    ) -> Estimator:
        ...

    @overload
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
    def call_many(
        self,
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
        """See `llm_provider.call_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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
        self,
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
        """See `llm_provider.acall_many`.

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

    def estimate(
        self,
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
        """See `llm_provider.estimate`.

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

    def _show_estimate(
        self,
        model: str,
        inputs: object,
        parameters: BatchParameters,
    ) -> None:
        ...


