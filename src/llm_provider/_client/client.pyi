"""Written by `make stubs` from _client/client.py and _requests/parameters.py."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from types import TracebackType
from typing import Any
from typing import Literal
from typing import Self
from typing import TypeVar
from typing import overload
from typing_extensions import TypeForm
import os
from llm_provider._batches.handle import Batch
from llm_provider._cache.response_cache import ResponseCache
from llm_provider._cache.second_level.settings import SecondLevel
from llm_provider._cache.second_level.settings import SecondLevelStore
from llm_provider._cache.storage.diff import Explanation
from llm_provider._calls.call import Call
from llm_provider._calls.stream import AsyncStream
from llm_provider._calls.stream import Stream
from llm_provider._client.batch_methods import BatchMethods
from llm_provider._client.count_methods import CountMethods
from llm_provider._client.embed_methods import EmbedMethods
from llm_provider._limits.concurrency import Concurrency
from llm_provider._limits.scopes import ScopeStatistics
from llm_provider._limits.timeouts import DEFAULT_TIMEOUT
from llm_provider._limits.timeouts import Timeouts
from llm_provider._money.budget import Budget
from llm_provider._money.ledger import Ledger
from llm_provider._requests.api_keys import KeyList
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
from llm_provider._requests.parameters import Parameters
from llm_provider._requests.routing import Transport
from llm_provider._requests.tools import Tool
from llm_provider._settings import KEPT_BY_DEFAULT
from llm_provider._settings import MAX_RESPONSE_BYTES
from llm_provider._settings import RateControl
from llm_provider._telemetry.telemetry import Telemetry
from llm_provider._tokens.models import Model
from llm_provider._types.messages import FinishReason
from llm_provider._types.messages import Prompt
from llm_provider._types.response import Response
from llm_provider._types.usage import Usage

T = TypeVar('T')
class Client(EmbedMethods, CountMethods, BatchMethods):
    """Calls with settings, limits, cache and connections of their own.

    The functions of the module do the same on one client with default settings.

    Args:
        cache_dir: The cache directory; default `LLM_PROVIDER_CACHE_DIR`, else the platform's user cache.
        cache_shared: Whether the group of the cache directory shares it, as a laboratory does. Whoever can
            write to it can change the answers that you get. The directory and its answers are made writable
            for its group. Default `LLM_PROVIDER_CACHE_SHARED`, else False, which refuses a directory that
            others can write to; see docs/security.md.
        cache: "use", "refresh", "only" or "off", for calls without `cache`; see `Parameters`. Or a store that
            machines share, behind the local one: a URL such as "valkey://host:6379/0", a `SecondLevel`, or an
            object with the methods of `SecondLevelStore`; docs/clusters.md has the rules. Default
            `LLM_PROVIDER_CACHE`, else "use".
        cache_finish_reasons: The cache keeps and serves only answers with these finish reasons. Add "length",
            "refusal" or "content_filter" to keep such answers too, and "empty" for answers without content.
        max_concurrent: Most requests under way per provider, model and key; default
            `LLM_PROVIDER_MAX_CONCURRENT`. Without both, it is 1,000 for batches and asynchronous calls (less
            if the process may not open as many files), beginning with 8, and threads that wait in `call` or
            `stream` have no limit. Within it the rate control finds the limits of the provider.
        keys: API keys by provider name, before those of the environment: one key (`{"openai": "sk-..."}`),
            or a list over which calls are spread. A list within it holds the keys of one account:
            docs/keys.md.
        env_file: A `.env` file, such as ".env", with API keys and base URLs, which come after those of the
            environment. The file is read once and changes no variable. No file is read without this setting.
        prices: A CSV file with the columns of `prices.csv`, whose rows replace the shipped ones.
        budget: USD that all calls of this client may cost at most, or a `Budget`, which clients, batches and
            processes can share; default `LLM_PROVIDER_BUDGET`, else none. docs/budgets.md has the rules.
        timeout: Seconds for one attempt, without the wait for a slot, or `Timeouts`. A call's own timeouts
            replace them one by one: `Timeouts(idle=30)` here and `timeout=60` there set both.
        max_retries: The most requests after the first one, if each fails in a way that may pass. Default 10,
            and while the provider is down as many as `outage_patience` allows.
        outage_patience: Seconds that calls wait for a provider that is down; see docs/reliability.md. Default
            60 for a single call, and 3,600 for `embed` and for the calls of a batch, together.
        max_response_bytes: The most bytes of an answer after decompression. A larger one is not read to its
            end, and its call fails.
        on_result: For logs and metrics. It is called with the `Response` or `Embeddings` of each call, stored
            ones too, or with its `LLMError`, in the thread or task of the call. A function of two arguments
            also gets the `AskedCall`. An exception that it raises becomes a warning.
        rate_control: "adaptive" learns how many requests and tokens a second an account may send. After the
            first refusal it learns together with the other processes of this machine that use the same cache
            directory; "shared" does so from the first request on, "independent" never. "aimd" only halves
            the number of requests in flight after a refusal. See docs/rate-control.md.
        transport: The HTTP client of the SDKs: "aiohttp" (HTTP/1.1), "http2" or "http1"; default the fastest
            one for the route by measurement, which is aiohttp for all today.
        ledger: A file to which each answer, hit and failure that may have been billed is appended as one
            line of JSON, before the call returns; default `LLM_PROVIDER_LEDGER`, else none. `Ledger.read`
            sums it.
        strict_model: Whether an answer by another snapshot of a model than before raises `ModelDriftError`.
            Otherwise the first such answer causes a warning.
        show_estimate_above: USD. If a `call_many` is likely to cost more, a notebook shows its `Estimate`
            before it begins, made from a sample of its inputs. None shows none, and a script never shows
            one.
        telemetry: OpenTelemetry spans and metrics: True, False, or a `Telemetry` with providers of its own.
            Default `LLM_PROVIDER_OTEL`, else as soon as the program has configured OpenTelemetry's SDK. See
            docs/observability.md.
        log_content: Whether log lines and spans hold prompts and answers; default
            `LLM_PROVIDER_LOG_CONTENT`, else False.
        show_waits: Whether a wait of more than a second is told on standard error, or in the progress bar;
            default `LLM_PROVIDER_SHOW_WAITS`, else True.
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

    A call's own parameter wins over a default, and None in a call means that the default applies. `embed`
    uses those defaults that it has as parameters, but not `extra_body`.

    Raises:
        RequestError: a setting is not valid.
        MissingDependencyError: `telemetry` is on, and OpenTelemetry's API is not installed.
        TypeError: there is no such setting or parameter.

    >>> with Client(max_concurrent=8, cache="off") as client:
    ...     client.price("gpt-6.1-sol", Usage(input_tokens=1000))
    Decimal('0.002')
    """
    def __init__(
        self,
        *,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_shared: bool | None = None,
        cache: CacheMode | bool | str | SecondLevel | SecondLevelStore | None = None,
        cache_finish_reasons: Collection[FinishReason | Literal['empty']] = KEPT_BY_DEFAULT,
        max_concurrent: int | None = None,
        keys: Mapping[str, KeyList] | None = None,
        env_file: str | os.PathLike[str] | None = None,
        prices: str | os.PathLike[str] | None = None,
        budget: float | Decimal | Budget | None = None,
        timeout: float | Timeouts = DEFAULT_TIMEOUT,
        max_retries: int | None = None,
        outage_patience: float | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        on_result: Callable[..., object] | None = None,
        rate_control: RateControl = 'adaptive',
        transport: Transport | None = None,
        ledger: str | os.PathLike[str] | None = None,
        strict_model: bool = False,
        show_estimate_above: float | None = 1.0,
        telemetry: bool | Telemetry | None = None,
        log_content: bool | None = None,
        show_waits: bool | None = None,
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
    ) -> None:
        ...

    def __reduce__(
        self,
    ) -> tuple[Any, ...]:
        """A pickle has the settings and no API key; docs/settings.md says what it takes."""
        ...

    def __copy__(
        self,
    ) -> Self:
        """The client itself, since a copy would count limits, budget and usage apart."""
        ...

    def __deepcopy__(
        self,
        _: object,
    ) -> Self:
        ...

    def _start(
        self,
    ) -> None:
        """Prepare the end of the process, before the first call that has to be sent."""
        ...

    @overload
    def call(
        self,
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
        """See `llm_provider.call`.

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
    def call(
        self,
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
        """See `llm_provider.call`.

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
        self,
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
        """See `llm_provider.acall`.

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
        self,
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
        """See `llm_provider.acall`.

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
        self,
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
        """See `llm_provider.stream`.

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
        self,
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
        """See `llm_provider.stream`.

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
        self,
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
        """See `llm_provider.astream`.

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
        self,
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
        """See `llm_provider.astream`.

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

    def _prepare(
        self,
        model: str,
        messages: Prompt,
        parameters: Parameters,
        allowed: Concurrency,
        function: str = 'call',
    ) -> Call[Response]:
        ...

    def with_options(
        self,
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
    ) -> Self:
        """A variant of this client whose calls have other defaults.

        The variant shares everything else with this client: connections, rate limits, cache, budget, usage,
        ledger and `on_result`. Closing it has no effect; closing this client closes both.

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

        Raises:
            RequestError: a value is invalid.
            TypeError: there is no such parameter.

        >>> with Client(temperature=0) as client:
        ...     creative = client.with_options(temperature=1, max_tokens=500)
        ...     creative.usage is client.usage
        True
        """
        ...

    @property
    def cache(
        self,
    ) -> ResponseCache:
        """The disk cache."""
        ...

    @property
    def budget(
        self,
    ) -> Budget | None:
        """The budget of this client's calls; None if there is none.

        >>> with Client(budget=5.00) as client:
        ...     client.budget
        Budget(limit=5, spent=0, reserved=0, left=5)
        """
        ...

    @property
    def usage(
        self,
    ) -> Ledger:
        """The ledger of this client's calls. It continues to count."""
        ...

    def explain_miss(
        self,
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
    ) -> Explanation | None:
        """Explains why a call is not answered from the cache: the nearest stored call, and the differences.

        It says so if the call itself is stored, and if nothing that is stored is similar. Failed calls and
        answers that were cut are not stored.

        Args:
            model: As for `call`.
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

        Returns:
            None if no call to the same provider and endpoint is stored.

        Raises:
            RequestError: the model or the provider cannot serve the call.
            OSError: the cache cannot be read.

        >>> from llm_provider.simulator import Simulator
        >>> with Simulator() as simulator, Client(cache="refresh") as client:
        ...     where = {"base_url": simulator.url("openai")}
        ...     answer = client.call("gpt-6.1-sol", "Hi", reasoning_effort="low", **where)
        ...     explanation = client.explain_miss("gpt-6.1-sol", "Hi", reasoning_effort="high", **where)
        >>> print(*explanation.differences)
        payload.reasoning_effort: stored "low", asked "high"
        """
        ...

    def price(
        self,
        model: str,
        usage: Usage,
        *,
        service_tier: str | None = None,
        at: date | None = None,
    ) -> Decimal | None:
        """See `llm_provider.price`."""
        ...

    def models(
        self,
        provider: str | None = None,
        *,
        live: bool = False,
    ) -> list[Model]:
        """See `llm_provider.models`. The models of the client's own price table are in the list too.

        `live=True` asks with the `keys`, the `api_key` and the `base_url` of the client, if it has any.
        """
        ...

    def batches(
        self,
    ) -> list[Batch]:
        """See `llm_provider.batches`."""
        ...

    def statistics(
        self,
    ) -> list[ScopeStatistics]:
        """The state of the rate control of each scope in use."""
        ...

    def close(
        self,
    ) -> None:
        """Close connections and files. Calls under way fail; later ones raise `RuntimeError`."""
        ...

    async def aclose(
        self,
    ) -> None:
        """`close`, awaited."""
        ...

    def _close_files(
        self,
    ) -> None:
        ...

    def _close_engine(
        self,
    ) -> None:
        ...

    def __enter__(
        self,
    ) -> Self:
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ...

    async def __aenter__(
        self,
    ) -> Self:
        ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ...


