"""The parameters of the public functions: their names, types and documentation.

This is the only place that lists them. Type checkers and editors read them here, and `signatures` shows them
in `help`. A call does not import this module.

An overload that gives `parsed` its type names `response_format` itself. So `Defaults`, `Parameters` and
`BatchParameters` have bases without it. `metadata` is not the same for a call and a batch, so their common
base lacks it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, TypedDict

from .._limits.timeouts import Timeouts
from .._money.budget import Budget
from .checks import (
    CacheMode,
    DeliveryMode,
    Endpoint,
    InBatch,
    Modality,
    ReasoningContext,
    ReasoningEffort,
    ReasoningSummary,
    Resend,
    ServiceTier,
    Unsupported,
    Verbosity,
)
from .model_kinds import ModelKind
from .tools import Tool


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

    system: str | None
    """A system prompt, which precedes the conversation."""
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
    """The number of the first sample, from 0. `draw=3` is the fourth sample and is stored apart from
    `draw=0`."""
    tools: Sequence[Tool] | None
    """Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function": {...}}`), and
    tools that the provider runs: by name, such as "web_search", or in its own form."""
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
    store: bool | None
    """Whether OpenAI stores the answer for `previous_response_id`; default False."""
    previous_response_id: str | None
    """The `Response.id` of a stored answer that OpenAI's Responses API continues."""
    cached_content: str | None
    """The name of a beginning that is stored at Google, such as "cachedContents/abc", before the messages."""
    prompt_caching: bool | None
    """Whether calls use the provider's prompt cache for the long beginning that they have in common.

    It is a hint, which no provider refuses. It is not part of the key of this library's cache."""
    prompt_cache_key: str | None
    """A name for calls with a common beginning, by which OpenAI finds them in its prompt cache.

    It is not part of the key of this library's cache."""
    user: str | None
    """An id of the end user, for the provider's abuse detection.

    It is not part of the key of this library's cache."""
    endpoint: Endpoint | None
    """The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat Completions or
    "responses" for Responses. Default the one that serves the model with these parameters."""
    unsupported: Unsupported | None
    """Whether a parameter that the model cannot honour raises an error ("raise", the default) or is left
    out ("drop"). `Response.dropped` lists what was left out."""
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


class SharedParameters(SharedDefaults, total=False):
    """What a call and a batch have in common."""

    timeout: float | Timeouts | None
    """Seconds for one attempt, without the time in the queue. `Timeouts` limits the connection, the first
    byte and pauses separately."""
    max_retries: int | None
    """The most requests that are sent again after a failure that may be temporary. Default the client's."""
    outage_patience: float | None
    """Seconds that the call, or the whole batch, waits for a provider that is down. 0 fails at once, and
    `float("inf")` waits for ever. Default the client's: 60 for a call and 3,600 for a batch."""
    cache: CacheMode | bool | None
    """How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads and never
    sends, "off" does neither. True and False mean "use" and "off"."""
    budget: float | Decimal | Budget | None
    """The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which several calls can
    share. The client's own budget applies too."""
    strict_model: bool | None
    """Whether `ModelDriftError` is raised if another snapshot answers than before; default the client's."""
    in_batch: InBatch | None
    """The behaviour of a call whose input is in a batch under way: "live", the default, sends it all the
    same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`."""


class Common(SharedParameters, RequestMetadata, total=False):
    """The parameters of a call but `response_format`."""


class Untyped(Common, JSONFormat, total=False):
    """The parameters of a call whose `parsed` has no type for type checkers."""


class Parameters(Common, ResponseFormat, total=False):
    """The parameters of `call`, `acall`, `stream` and `astream` besides the model and the messages.

    Names are OpenAI's where OpenAI has the parameter. None means "not set": the client's default applies, and
    without one nothing is sent for it.
    """


class BatchCommon(SharedParameters, total=False):
    """The parameters of a batch but `response_format`."""

    max_concurrent: int | None
    """The most requests in flight at once; default the client's."""
    progress: bool | None
    """Whether a progress bar is shown; None shows it on a terminal and in a notebook. Elsewhere None prints a
    line a minute to standard error."""
    delivery: DeliveryMode | None
    """"live" sends each request now. "batch" uses the provider's batch API: half the price in most cases,
    within a day, and the job outlives the process. "auto" chooses by `deadline` and price."""
    resend: Resend | None
    """Where rows of a batch that failed or expired are sent once more: in another batch, the default, or as
    live requests. `max_retries=0` sends none again."""
    rows: Any
    """A data frame, or an iterable of dicts. The inputs are then a template: text with `{fields}` that name
    columns, or a function of a row."""
    metadata: Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None
    """One value for each input, such as a dict with its id, or a function of the prompt (of the row, with
    `rows`). Its result has the value as `metadata`, and so has its line in the ledger. Nothing of it is sent.

    A single dict is that of `call`: pairs of text that OpenAI stores with every request."""


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
    kind: ModelKind | None
    """"chat" estimates `call_many`, "embedding" estimates `embed`. Default the kind that the model's name
    tells, and "chat" for a name that tells none."""


class EmbedParameters(TypedDict, total=False):
    """The parameters of `embed` and `aembed` besides the model and the texts.

    Names and meanings are those of `call`. None means "not set".
    """

    dimensions: int | None
    """The number of numbers in each vector; default the model's. Only some models take another."""
    delivery: DeliveryMode | None
    """"live" sends each request now. "batch" uses the provider's batch API: half the price in most cases,
    within a day, and the job outlives the process. "auto" chooses by `deadline` and price."""
    resend: Resend | None
    """Where rows of a batch that failed or expired are sent once more: in another batch, the default, or as
    live requests. `max_retries=0` sends none again."""
    strict_model: bool | None
    """Whether `ModelDriftError` is raised if another snapshot answers than before; default the client's."""
    timeout: float | Timeouts | None
    """Seconds for one attempt of one request, without the time in the queue."""
    deadline: float | None
    """Seconds until all texts are embedded or the call fails, with all attempts and waits."""
    max_retries: int | None
    """The most requests that are sent again after a failure that may be temporary. Default the client's."""
    outage_patience: float | None
    """Seconds that it waits for a provider that is down; default the client's, else 3,600."""
    cache: CacheMode | bool | None
    """How the cache is used, as in `call`. Each text has an entry of its own."""
    budget: float | Decimal | Budget | None
    """The most that all texts together may cost, in USD; or a `Budget`, which several calls can share."""
    in_batch: InBatch | None
    """The behaviour of a call with a text that is in a batch under way, as in `call`."""
    extra_body: Mapping[str, Any] | None
    """Fields of this provider's API, such as Gemini's `taskType`, that are merged into the request's JSON."""
    extra_headers: Mapping[str, str] | None
    """HTTP headers that are added to the request."""
    api_key: str | None
    """The provider's API key; default one from the client's `keys` or the environment."""
    base_url: str | None
    """The server to send to; default the environment's, else the provider's own."""
