"""The parameters of the public functions: their names, types and documentation.

This is the only place that lists them. Type checkers and editors read them here, and `signatures` shows them
in `help`. A call does not import this module.

An overload that gives `parsed` its type names `response_format` itself. So `Defaults`, `Parameters` and
`BatchParameters` have bases without it. `metadata` is not the same for a call and a batch, so their common
base lacks it too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ..money.budget import Budget
from ..pace.call_limits import Timeouts
from ..types.messages import FinishReason
from .api_keys import KeyList
from .checks import (
    BackgroundOptions,
    CacheMode,
    CallDelivery,
    DecideMethod,
    DeliveryMode,
    Endpoint,
    InBatch,
    Modality,
    RateControl,
    ReasoningContext,
    ReasoningEffort,
    ReasoningSummary,
    Resend,
    ScoreMethod,
    ServiceTier,
    Unsupported,
    Verbosity,
)
from .model_kinds import EstimateKind
from .routing import Transport
from .tools import Tool

if TYPE_CHECKING:
    from ..._features.hosts.host import Host
    from ..._features.second_level.settings import SecondLevel, SecondLevelStore
    from ..._features.telemetry.observer import Telemetry
    from ..._features.user_limits.limit import Limit


class ResponseFormat(TypedDict, total=False):
    """The structure of answers."""

    response_format: Any
    """The structure of the answer: a type (a pydantic model, a dataclass, a TypedDict, `list[...]`, a union,
    `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict (`json_object` or `json_schema`)."""


class JSONFormat(TypedDict, total=False):
    """The structure of answers, without a Python type for them."""

    response_format: Mapping[str, Any] | None
    """A JSON schema, or OpenAI's dict."""


class RequestMetadata(TypedDict, total=False):
    """What a provider stores with a request."""

    metadata: Mapping[str, str] | None
    """Up to 16 pairs of text that OpenAI stores with the request.

    They are not part of the key of this library's cache."""


class SharedDefaults(TypedDict, total=False):
    """What a client, a call and a batch have in common."""

    system: str | Sequence[Mapping[str, Any]] | None
    """A system prompt, which precedes the conversation: a text, or a list of text parts as in a message."""
    max_tokens: int | None
    """The longest answer, in tokens, reasoning included. It is sent under the name that the model expects."""
    temperature: float | None
    """Randomness of the answer, from 0 to 2."""
    top_p: float | None
    """Only the most likely tokens that together have this probability are sampled, from 0 to 1."""
    top_k: int | None
    """Only this many of the most likely tokens are sampled; Claude, Gemini and open models have it."""
    frequency_penalty: float | None
    """How much tokens that already occur often become less likely, from -2 to 2."""
    presence_penalty: float | None
    """How much tokens that already occur become less likely, from -2 to 2."""
    logit_bias: Mapping[int, float] | Mapping[str, float] | None
    """Token id → a number from -100 to 100 that is added to the token's logit."""
    stop: str | Sequence[str] | None
    """One or several texts before which the answer ends."""
    seed: int | None
    """A number with which providers sample more repeatably."""
    n: int | None
    """The number of samples. They are sent as separate calls where the provider has no such parameter.

    Samples of one prompt are numbered and stored one by one: after `n=4`, `n=10` sends six more."""
    draw: int | None
    """The number of the first sample, from 0. `draw=3` is the fourth sample, stored apart from `draw=0`."""
    tools: Sequence[Tool] | None
    """Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function": {...}}`), MCP
    servers (`mcp(...)`), and tools that the provider runs: by name, such as "web_search", or in its form."""
    max_tool_rounds: int | None
    """How often the functions of `tools` are run and the model is asked again, at most. None returns the
    `tool_calls` and runs nothing."""
    tool_choice: str | Mapping[str, Any] | Callable[..., Any] | None
    """"auto", "none", "required", one of the `tools` (a function or a model) that must be called, or
    `{"type": "function", "function": {"name": ...}}`."""
    allowed_tools: Sequence[str] | None
    """The names of those `tools` that the model may call now; the others stay in the prompt and its cache."""
    parallel_tool_calls: bool | None
    """Whether the model may call several tools at once."""
    max_repairs: int | None
    """How often the model is asked again, with the reason, if its answer does not match `response_format`.
    Default 1; 0 never asks again."""
    reasoning_effort: ReasoningEffort | None
    """How much the model reasons before it answers. "default" is Groq's."""
    thinking_budget: int | Literal["adaptive"] | None
    """The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is none. "adaptive" lets
    Claude from 4.6 on or Gemini decide, as -1 does on Gemini."""
    reasoning_summary: ReasoningSummary | None
    """The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise" or "detailed"."""
    reasoning_context: ReasoningContext | None
    """The earlier reasoning that OpenAI's model sees again: "current_turn", "all_turns" or "auto"."""
    verbosity: Verbosity | None
    """How long the answers of OpenAI's models are: "low", "medium" or "high"."""
    modalities: Sequence[Modality] | None
    """The kinds of content that the answer may have: "text", "audio", "image"."""
    logprobs: bool | None
    """Whether the answer has the log probabilities of its tokens."""
    top_logprobs: int | None
    """The number of alternatives per token that have log probabilities too, from 0 to 20."""
    safety_settings: Sequence[Mapping[str, str]] | Mapping[str, str] | None
    """Gemini's filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google's list of settings."""
    service_tier: ServiceTier | None
    """The service level, which sets price and speed: "flex" is cheap and slow, "priority" fast."""
    upstream: str | None
    """The host behind a router that is asked, and no other: "nebius", or on OpenRouter with its quantization,
    "nebius/fp8". Only OpenRouter and Hugging Face's router have it."""
    store: bool | None
    """Whether OpenAI or Gemini's Interactions stores the answer for `previous_response_id`; default False."""
    previous_response_id: str | None
    """The `Response.id` of a stored answer that OpenAI's Responses or Gemini's Interactions continues."""
    cached_content: str | None
    """The name of a beginning that is stored at Google, such as "cachedContents/abc", before the messages."""
    prompt_caching: bool | Literal["explicit"] | None
    """Whether calls use the provider's prompt cache for the long beginning that they have in common.

    "explicit" stores it at Google, for rent. It is a hint that nobody refuses, and not part of the key."""
    prompt_cache_key: str | None
    """A name for calls with a common beginning, by which OpenAI finds them in its prompt cache.

    It is not part of the key of this library's cache."""
    user: str | None
    """An id of the end user, for the provider's abuse detection. It is not part of the cache key."""
    endpoint: Endpoint | None
    """The endpoint that is asked: "chat" or "responses" of OpenAI or a compatible server, or "interactions"
    of Gemini. Default the one that serves the model with these parameters."""
    unsupported: Unsupported | None
    """Whether a parameter that the model cannot honour raises an error ("raise", the default) or is left
    out ("drop"). `Response.dropped` lists what was left out."""
    max_age: float | timedelta | None
    """The greatest age of a stored answer that is used, in seconds or as a `timedelta`. An older one is asked
    and stored anew; with `cache="only"` it is a miss. It is not part of the cache key."""
    deadline: float | None
    """Seconds for the whole call, with all attempts, waits and the time in the queue; for a batch, seconds
    for all of its calls together."""
    extra_body: Mapping[str, Any] | None
    """Fields of this provider's API that are merged into the request's JSON."""
    extra_headers: Mapping[str, str] | None
    """HTTP headers that are added to the request."""
    api_key: str | None
    """The provider's API key; default one from the client's `keys` or the environment."""
    base_url: str | None
    """The server to send to; default the environment's, else the provider's own."""


class Defaults(SharedDefaults, RequestMetadata, ResponseFormat, total=False):
    """The parameters of a call for which `Client` takes defaults, beside its own settings."""


class ClientSettings(TypedDict, total=False):
    """The settings of a client. `_core/settings` has the check and the default of each."""

    cache_dir: str | os.PathLike[str] | None
    """The cache directory; default `LLM_PROVIDER_CACHE_DIR`, else the platform's user cache."""
    cache_shared: bool | None
    """Whether the group of the cache directory shares it, as a laboratory does. Whoever can write to it can
    change the answers that you get. The directory and its answers are made writable for its group. Default
    `LLM_PROVIDER_CACHE_SHARED`, else False, which refuses a directory that others can write to; see
    docs/security.md."""
    cache: CacheMode | bool | str | SecondLevel | SecondLevelStore | None
    """"use", "refresh", "only" or "off", for calls without `cache`; see `Parameters`. Or a store that
    machines share, behind the local one: a URL such as "valkey://host:6379/0", a `SecondLevel`, or an
    object with the methods of `SecondLevelStore`; docs/clusters.md has the rules. Default
    `LLM_PROVIDER_CACHE`, else "use"."""
    cache_finish_reasons: Collection[FinishReason | Literal["empty"]] | None
    """The cache keeps and serves only answers with these finish reasons. Add "length", "refusal" or
    "content_filter" to keep such answers too, and "empty" for answers without content. Default "stop" and
    "tool_calls"."""
    max_concurrent: int | None
    """Most requests under way per provider, model and key; default `LLM_PROVIDER_MAX_CONCURRENT`. Without
    both, it is 1,000 for batches and asynchronous calls (less if the process may not open as many files),
    beginning with 8, and threads that wait in `call` or `stream` have no limit. Within it the rate control
    finds the limits of the provider."""
    keys: Mapping[str, KeyList] | None
    """API keys by provider name, before the keys of the environment: one key (`{"openai": "sk-..."}`), or a
    list over which calls are spread. A list within it holds the keys of one account. In the
    place of a key may be a function, or a coroutine function, that returns a token: docs/keys.md."""
    hosts: Sequence[Host] | None
    """Servers of your own, each with a name. The TOML file that `LLM_PROVIDER_HOSTS` names may have more:
    docs/providers.md."""
    deployments: Mapping[str, str] | None
    """Which models your deployments at clouds are: `{"azure/my-deployment": "gpt-6.1-sol"}`. What the model
    accepts, its tokens and its prices follow from that: docs/keys.md."""
    env_file: str | os.PathLike[str] | None
    """A `.env` file, such as ".env", with API keys and base URLs, which come after the
    environment. The file is read once and changes no variable. No file is read without this setting."""
    prices: str | os.PathLike[str] | None
    """A CSV file whose rows replace rows of `prices.csv`; "fresh": the last `llm-provider prices update`."""
    budget: float | Decimal | Budget | None
    """USD that all calls of this client may cost at most, or a `Budget`, which clients, batches and
    processes can share; default `LLM_PROVIDER_BUDGET`, else none. docs/costs.md has the rules."""
    token_budget: int | Budget | None
    """Tokens that its calls may take at most, or a `Budget` of them; default `LLM_PROVIDER_TOKEN_BUDGET`."""
    timeout: float | Timeouts | None
    """Seconds for one attempt, without the wait for a slot, or `Timeouts`. A call's own timeouts replace
    them one by one: `Timeouts(idle=30)` here and `timeout=60` there set both. Default 600."""
    max_retries: int | None
    """The most requests after the first one, if each fails in a way that may pass. Default 10, and while
    the provider is down as many as `outage_patience` allows."""
    outage_patience: float | None
    """Seconds that calls wait for a provider that is down; see docs/reliability.md. Default 60 for a single
    call, and 3,600 for `embed` and for the calls of a batch, together."""
    max_response_bytes: int | None
    """The most bytes of an answer after decompression. A larger one is not read to its end, and its call
    fails. Default 64,000,000."""
    on_result: Callable[..., object] | None
    """For logs and metrics. It is called with the `Response` or `Embeddings` of each call, stored ones too,
    or with its `LLMError`, in the thread or task of the call. A function of two arguments also gets the
    `AskedCall`. An exception that it raises becomes a warning."""
    rate_control: RateControl | None
    """How the rate is found; default "adaptive", which learns how many requests and tokens a second an
    account may send. After the first refusal it learns together with the other processes of this machine
    that use the same cache directory; "shared" does so from the first request on, "independent" never.
    "aimd" only halves the number of requests in flight after a refusal. See docs/retries.md."""
    limits: Mapping[str, Limit | Mapping[str, int]] | str | os.PathLike[str] | None
    """Your own limits of requests and tokens a minute, and of requests at once, by model, `openai/*` or `*`:
    a dict such as `{"gpt-6.1-sol": Limit(rpm=500)}` or a TOML file; default `LLM_PROVIDER_LIMITS` or none."""
    transport: Transport | None
    """The HTTP client of the SDKs: "aiohttp" (HTTP/1.1), "http2" or "http1"; default the fastest one for
    the route by measurement, which is aiohttp for all today."""
    ledger: str | os.PathLike[str] | None
    """A file to which each answer, hit and failure that may have been billed is appended as one line of
    JSON, before the call returns; default `LLM_PROVIDER_LEDGER`, else none. `Ledger.read` sums it."""
    strict_model: bool | None
    """Whether an answer by another snapshot of a model than before raises `ModelDriftError`. Otherwise the
    first such answer causes a warning."""
    show_estimate_above: float | None
    """USD. If a `call_many` is likely to cost more, a notebook shows its `Estimate` before it begins, made
    from a sample of its inputs. None shows none, and a script never shows one. Default 1.00."""
    telemetry: bool | Telemetry | None
    """OpenTelemetry spans and metrics: True, False, or a `Telemetry` with providers of its own. Default
    `LLM_PROVIDER_OTEL`, else once the program has configured OpenTelemetry's SDK: docs/observability.md."""
    log_content: bool | None
    """Whether logs and spans hold prompts and answers; default `LLM_PROVIDER_LOG_CONTENT`, else False."""
    show_waits: bool | None
    """Whether a wait of more than a second is told on standard error, or in the progress bar; default
    `LLM_PROVIDER_SHOW_WAITS`, else True."""


class ClientParameters(ClientSettings, Defaults, total=False):
    """What `Client` takes: its settings, and defaults for the parameters of calls."""


class SharedParameters(SharedDefaults, total=False):
    """What a call and a batch have in common."""

    timeout: float | Timeouts | None
    """Seconds for one attempt, without the queue. `Timeouts` limits connection, first byte and pauses."""
    max_retries: int | None
    """The most requests that are sent again after a failure that may be temporary. Default the client's."""
    outage_patience: float | None
    """Seconds that the call, or the whole batch, waits for a provider that is down. 0 fails at once, and
    `float("inf")` waits for ever. Default the client's: 60 for a call and 3,600 for a batch."""
    fallback: Sequence[str] | None
    """Models that are asked in this order if the one before is down, refuses, or has too short a context;
    docs/retries.md has the rules. `Response.passed_over` has the models that did not answer."""
    cache: CacheMode | bool | None
    """How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads and never
    sends, "off" does neither. True and False mean "use" and "off"."""
    budget: float | Decimal | Budget | None
    """The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which several calls can
    share. The client's own budget applies too."""
    token_budget: int | Budget | None
    """The most tokens of all its requests together, input and output; or a `Budget` with `unit="tokens"`."""
    strict_model: bool | None
    """Whether `ModelDriftError` is raised if another snapshot answers than before; default the client's."""
    in_batch: InBatch | None
    """The behaviour of a call whose input is in a batch under way: "live", the default, sends it all the
    same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`."""
    background_options: BackgroundOptions | None
    """With `delivery="background"`: such as `{"completion_window": "8h"}`."""


class Common(SharedParameters, RequestMetadata, total=False):
    """The parameters of a call but `response_format`."""

    delivery: CallDelivery | None
    """"live", the default, or "background": a job of OpenAI's Responses, which outlives the process."""


class Untyped(Common, JSONFormat, total=False):
    """The parameters of a call whose `parsed` has no type for type checkers."""


class Parameters(Common, ResponseFormat, total=False):
    """The parameters of `call`, `acall`, `stream` and `astream` besides the model and the messages.

    Names are OpenAI's where OpenAI has the parameter. None means "not set": the client's default applies, and
    without one nothing is sent for it.
    """


class Many(TypedDict, total=False):
    """What all functions for many inputs have in common."""

    max_concurrent: int | None
    """The most requests in flight at once; default the client's."""
    max_errors: float | None
    """How many inputs may fail, a number or a share such as 0.05, before nothing more is sent. Inputs that
    were not asked get a `TooManyErrorsError`, and the same call asks them later."""
    progress: bool | None
    """Whether a progress bar is shown; None: on terminals and in notebooks, elsewhere a line a minute."""


class BatchCommon(SharedParameters, Many, total=False):
    """The parameters of a batch but `response_format`."""

    delivery: DeliveryMode | None
    """"live" sends each request now. "batch" uses the provider's batch API: half the price in most cases,
    within a day. "auto" chooses by `deadline` and price. "background": a job for each input, as in `call`."""
    resend: Resend | None
    """Where rows of a batch that failed or expired are sent once more: in another batch, the default, or as
    live requests. `max_retries=0` sends none again."""
    batch_size: int | None
    """The most rows in one batch of `delivery="batch"`; default as many as the provider takes."""
    rows: Any
    """A data frame, or an iterable of dicts. The inputs are then a template: text with `{fields}` that name
    columns, or a function of a row."""
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None
    """One value for each input, such as a dict with its id, or a function of the prompt (of the row, with
    `rows`). Its result has the value as `metadata`, and so has its line in the ledger. Nothing of it is sent.
    A single dict means the same as in `call`: pairs of text that OpenAI stores with every request."""


class UntypedBatch(BatchCommon, JSONFormat, total=False):
    """The parameters of a batch whose `parsed` have no type for type checkers."""


class BatchParameters(BatchCommon, ResponseFormat, total=False):
    """The parameters of `call_many` and `iter_many` besides the model and the inputs."""


class EstimateParameters(BatchParameters, total=False):
    """The parameters of `estimate` and `aestimate` besides the model and the inputs."""

    dimensions: int | None
    """The number of numbers in each vector, of a model that embeds."""
    on_error: Literal["return", "raise"] | None
    """As for `call_many`; an estimate is the same with both."""
    method: ScoreMethod | DecideMethod | None
    """As for `score` and `decide`, with their `kind`."""
    draws: int | None
    """As for `decide`."""
    pack: int | bool | None
    """As for `decide`: every request pays for the input again."""
    kind: EstimateKind | None
    """"chat" estimates `call_many`, "embedding" estimates `embed`, "score" estimates `score_many`, whose
    inputs are pairs of a context and its continuations, and "decision" estimates `decide_many`, whose inputs
    are pairs of an input and its questions. Default the kind that the model's name tells, else "chat"."""


class RecheckParameters(BatchParameters, total=False):
    """The parameters of `recheck` besides the model and the inputs. `draw` continues a recheck."""

    share: float | None
    """The largest part of the stored questions that is asked again, if `detect` needs it; default 1."""
    floor: float | None
    """The share of answers that differ although nothing has changed, such as 0.001. Without it each question
    is asked twice, and the noise is measured."""
    detect: float | None
    """The share of differing answers that is to be seen with a power of 0.95; default 0.05."""
    compare: Callable[[Any], Any] | None
    """Returns what is compared of a response, a hashable value. Default the text and the tool calls."""
    history: str | os.PathLike[str] | None
    """A file of JSON lines for border prompts, their reference answers and all reports."""
    persistence: int | None
    """With a history, the days in a row that must differ significantly for an alarm; default 3."""
    tag: str | None
    """The name of a `track` block: its stored answers are asked again. Default all of the model."""
    ledger: str | os.PathLike[str] | None
    """The file with the keys of the tag; default the file in `LLM_PROVIDER_LEDGER`."""
    dry_run: bool | None
    """Whether nothing is sent. The report then says what could be seen, and at what cost."""


class TextParameters(TypedDict, total=False):
    """What the functions for given texts have in common. `call` has the same names and meanings."""

    strict_model: bool | None
    """Whether `ModelDriftError` is raised if another snapshot answers than before; default the client's."""
    timeout: float | Timeouts | None
    """Seconds for one attempt of one request, without the time in the queue."""
    deadline: float | None
    """Seconds until all texts are answered or the call fails, with all attempts and waits."""
    max_retries: int | None
    """The most requests that are sent again after a failure that may be temporary. Default the client's."""
    outage_patience: float | None
    """Seconds that it waits for a provider that is down; default the client's, else 3,600."""
    cache: CacheMode | bool | None
    """How the cache is used, as in `call`. Each text has an entry of its own."""
    max_age: float | timedelta | None
    """The greatest age of a stored answer that is used, in seconds or as a `timedelta`, as in `call`."""
    budget: float | Decimal | Budget | None
    """The most that all texts together may cost, in USD; or a `Budget`, which several calls can share."""
    token_budget: int | Budget | None
    """The most tokens that all texts together may take; or a `Budget` with `unit="tokens"`."""
    extra_body: Mapping[str, Any] | None
    """Fields of this provider's API, such as Gemini's `taskType`, that are merged into the request's JSON."""
    extra_headers: Mapping[str, str] | None
    """HTTP headers that are added to the request."""
    api_key: str | None
    """The provider's API key; default one from the client's `keys` or the environment."""
    base_url: str | None
    """The server to send to; default the environment's, else the provider's own."""


class EmbedParameters(TextParameters, total=False):
    """The parameters of `embed` and `aembed` besides the model and the texts. None means "not set"."""

    dimensions: int | None
    """The number of numbers in each vector; default the model's. Only some models take another."""
    upstream: str | None
    """The host behind a router that is asked, as in `call`."""
    delivery: DeliveryMode | None
    """"live", "batch" or "auto", as in `call_many`."""
    resend: Resend | None
    """Where rows of a batch that failed or expired are sent once more, as in `call_many`."""
    batch_size: int | None
    """The most texts in one batch of `delivery="batch"`; default as many as the provider takes."""
    in_batch: InBatch | None
    """The behaviour of a call with a text that is in a batch under way, as in `call`."""


class ScoreParameters(TextParameters, total=False):
    """The parameters of `score` and `ascore` besides the model and the texts. None means "not set"."""

    method: ScoreMethod | None
    """How the server is asked, where it has two ways: "prompt_logprobs" (the default) or "echo" for vLLM,
    "generate" (the default) or "echo" for sglang. Other servers have one."""
    check_order: bool | None
    """Whether the probe before the first score of a server also scores its texts in another order, which
    finds values that depend on what was asked before. It takes three more requests."""


class ScoreManyParameters(ScoreParameters, Many, total=False):
    """The parameters of `score_many` besides the model, the contexts and the continuations."""

    metadata: Iterable[Any] | None
    """One value for each context, as for `call_many`."""


class DecideParameters(TextParameters, total=False):
    """The parameters of `decide` and `adecide` besides the model, the input and the questions."""

    method: DecideMethod | None
    """How the probabilities are found: "native", the default, by the provider's endpoint for decisions;
    "logprobs" from the log probabilities of one token; "sampled" from how often each answer is given."""
    draws: int | None
    """With "sampled", how many answers are drawn; default 10."""
    pack: int | bool | None
    """The most questions in one request: True, the default, as many as it takes; False, one."""
    reasoning_effort: ReasoningEffort | None
    """With "logprobs" and "sampled", as in `call`."""


class DecideManyParameters(DecideParameters, Many, total=False):
    """The parameters of `decide_many` and `adecide_many` besides the model, the inputs and the questions."""

    rows: Any
    """A data frame, or an iterable of dicts. The inputs are then a template, as in `call_many`."""
    metadata: Iterable[Any] | Callable[[Any], Any] | None
    """One value for each input, or a function of the input or the row, as for `call_many`."""
