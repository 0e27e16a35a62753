"""Shows the parameters of functions that are declared with `**parameters`.

The functions hand their parameters on as one dict, because a function with fifty parameters is slower to call.
`with_parameters` gives such a function a docstring and a `__signature__` that name every parameter, so `help`,
IPython and Jedi show them. Type checkers and editors read the stubs (`*.pyi`) instead.

`make stubs` writes the stubs, and the last part of this module, from `parameters`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def with_parameters(function: F) -> F:
    """Give a function that has `**parameters: Unpack[...]` a docstring and a signature that name them.

    >>> from llm_provider import call
    >>> list(inspect.signature(call).parameters)[:4]
    ['model', 'messages', 'system', 'max_tokens']
    """
    rest, annotation = list(function.__annotations__.items())[-2]
    group = annotation.removeprefix("Unpack[").removesuffix("]")
    if function.__doc__:
        function.__doc__ = documented(function.__doc__, group, rest)
    function.__signature__ = _Signature(function, group)  # type: ignore[attr-defined]  # functions may have one
    return function


def documented(docstring: str, group: str, rest: str) -> str:
    """A docstring with one line for each parameter of a group.

    Args:
        docstring: The docstring, as it is in the source.
        group: The name of a class in `_requests/parameters`.
        rest: The name of the `**` argument, whose entry the lines replace. Without an entry they come last.
    """
    mark = f"**{rest}: See `{group}`."
    before, found, after = docstring.partition(mark)
    if found:
        # The mark is indented already.
        return before + _lines(group, before[before.rindex("\n") + 1 :]).lstrip() + after
    indent = "    " if "\n" not in docstring else docstring[docstring.rindex("\n") + 1 :]
    return f"{docstring.rstrip()}\n\n{indent}Args:\n{_lines(group, indent + '    ')}\n{indent}"


def parameters_of(group: str) -> Iterator[tuple[str, str, str]]:
    """The name, the type and the entry in docstrings of each parameter of a group."""
    base = BASES.get(group)
    if base is not None:
        yield from (entry for entry in parameters_of(base) if entry[0] not in GROUPS[group])
    for name, (kind, entry) in GROUPS[group].items():
        yield name, kind, entry


def _lines(group: str, indent: str) -> str:
    key = group, indent
    if key not in _made:
        _made[key] = indent + "\n".join(entry for _, _, entry in parameters_of(group)).replace(
            "\n", f"\n{indent}"
        )
    return _made[key]


_made: dict[tuple[str, str], str] = {}


class _Signature(inspect.Signature):
    """A signature that is made when it is first read: making all of them would take as long as a call."""

    __slots__ = ("_function", "_group", "_whole")

    def __init__(self, function: Callable[..., Any], group: str) -> None:
        self._function, self._group = function, group
        self._whole: inspect.Signature | None = None

    def _read(self) -> inspect.Signature:
        if self._whole is None:
            function, group = self._function, self._group
            code = function.__code__
            given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            annotations: dict[str, Any] = function.__annotations__
            positional = function.__defaults__ or ()
            defaults = dict(zip(given[code.co_argcount - len(positional) :], positional, strict=False))
            defaults |= function.__kwdefaults__ or {}
            shown = [
                inspect.Parameter(
                    name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD
                    if place < code.co_argcount
                    else inspect.Parameter.KEYWORD_ONLY,
                    default=defaults.get(name, inspect.Parameter.empty),
                    annotation=annotations.get(name, inspect.Parameter.empty),
                )
                for place, name in enumerate(given)
            ]
            shown += [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
                for name, kind, _ in parameters_of(group)
            ]
            self._whole = inspect.Signature(shown, return_annotation=annotations["return"])
        return self._whole

    @property
    def parameters(self) -> Any:
        return self._read().parameters

    @property
    def return_annotation(self) -> Any:
        return self._read().return_annotation

    def replace(self, **changes: Any) -> Any:
        return self._read().replace(**changes)

    __replace__ = replace

    def __reduce__(self) -> Any:
        return self._read().__reduce__()


# --- written by `make stubs` -----------------------------------------------------------------------------
# fmt: off

BASES: Mapping[str, str] = {'Parameters': 'Defaults', 'BatchParameters': 'Parameters'}
GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    'Defaults': {
        'system': ('str | None',
            'system: A system prompt, which precedes the conversation.'),
        'max_tokens': ('int | None',
            'max_tokens: The longest answer, in tokens, reasoning included.'),
        'temperature': ('float | None',
            'temperature: Randomness of the answer, from 0 to 2.'),
        'top_p': ('float | None',
            'top_p: Only the most likely tokens that together have this probability are sampled, from 0 to 1.'),
        'top_k': ('int | None',
            'top_k: Only this many of the most likely tokens are sampled; Claude, Gemini and open models have\n    it.'),
        'frequency_penalty': ('float | None',
            'frequency_penalty: How much tokens that already occur often become less likely, from -2 to 2.'),
        'presence_penalty': ('float | None',
            'presence_penalty: How much tokens that already occur become less likely, from -2 to 2.'),
        'logit_bias': ('Mapping[int, float] | Mapping[str, float] | None',
            "logit_bias: Token id → a number from -100 to 100 that is added to the token's logit."),
        'stop': ('str | Sequence[str] | None',
            'stop: One or several texts before which the answer ends.'),
        'seed': ('int | None',
            'seed: A number with which providers sample more repeatably.'),
        'n': ('int | None',
            'n: The number of samples.'),
        'draw': ('int | None',
            'draw: The number of the first sample, from 0.'),
        'tools': ('Sequence[Tool] | None',
            'tools: Python functions, pydantic models, OpenAI-style tools (`{"type": "function", "function":\n    {...}}`), and tools that the provider runs: by name, such as "web_search", or in its own form.'),
        'max_tool_rounds': ('int | None',
            'max_tool_rounds: How often the functions of `tools` are run and the model is asked again, at\n    most.'),
        'tool_choice': ('str | Mapping[str, Any] | Callable[..., Any] | None',
            'tool_choice: "auto", "none", "required", one of the `tools` (a function or a model) that must be\n    called, or `{"type": "function", "function": {"name": ...}}`.'),
        'allowed_tools': ('Sequence[str] | None',
            'allowed_tools: The names of those `tools` that the model may call now; the others stay in the\n    prompt and its cache.'),
        'parallel_tool_calls': ('bool | None',
            'parallel_tool_calls: Whether the model may call several tools at once.'),
        'response_format': ('Any',
            "response_format: The structure of the answer: a type (a pydantic model, a dataclass, a\n    TypedDict, `list[...]`, a union, `Literal`, an Enum, `int`, …), a JSON schema, or OpenAI's dict\n    (`json_object` or `json_schema`)."),
        'max_repairs': ('int | None',
            'max_repairs: How often the model is asked again, with the reason, if its answer does not match\n    `response_format`.'),
        'reasoning_effort': ('ReasoningEffort | None',
            'reasoning_effort: How much the model reasons before it answers.'),
        'thinking_budget': ("int | Literal['adaptive'] | None",
            'thinking_budget: The most tokens of reasoning, for Claude up to 4.6 and Gemini 2.5 to 3.5; 0 is\n    none.'),
        'reasoning_summary': ('ReasoningSummary | None',
            'reasoning_summary: The kind of summary in `Response.reasoning`: "auto", or on OpenAI "concise"\n    or "detailed".'),
        'reasoning_context': ('ReasoningContext | None',
            'reasoning_context: The earlier reasoning that OpenAI\'s model sees again: "current_turn",\n    "all_turns" or "auto".'),
        'verbosity': ('Verbosity | None',
            'verbosity: How long the answers of OpenAI\'s models are: "low", "medium" or "high".'),
        'modalities': ('Sequence[Modality] | None',
            'modalities: The kinds of content that the answer may have: "text", "audio", "image".'),
        'logprobs': ('bool | None',
            'logprobs: Whether the answer has the log probabilities of its tokens.'),
        'top_logprobs': ('int | None',
            'top_logprobs: The number of alternatives per token that have log probabilities too, from 0 to\n    20.'),
        'safety_settings': ('Sequence[Mapping[str, str]] | Mapping[str, str] | None',
            'safety_settings: Gemini\'s filters: `{"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}`, or Google\'s\n    list of settings.'),
        'service_tier': ('ServiceTier | None',
            'service_tier: The service level, which sets price and speed: "flex" is cheap and slow,\n    "priority" fast.'),
        'store': ('bool | None',
            'store: Whether OpenAI stores the answer for `previous_response_id`; default False.'),
        'previous_response_id': ('str | None',
            "previous_response_id: The `Response.id` of a stored answer that OpenAI's Responses API\n    continues."),
        'cached_content': ('str | None',
            'cached_content: The name of a beginning that is stored at Google, such as "cachedContents/abc",\n    before the messages.'),
        'prompt_caching': ('bool | None',
            "prompt_caching: Whether calls use the provider's prompt cache for the long beginning that they\n    have in common."),
        'prompt_cache_key': ('str | None',
            'prompt_cache_key: A name for calls with a common beginning, by which OpenAI finds them in its\n    prompt cache.'),
        'user': ('str | None',
            "user: An id of the end user, for the provider's abuse detection."),
        'metadata': ('Mapping[str, str] | None',
            'metadata: Up to 16 pairs of text that OpenAI stores with the request.'),
        'endpoint': ('Endpoint | None',
            'endpoint: The endpoint of OpenAI, or of a compatible server, that is asked: "chat" for Chat\n    Completions or "responses" for Responses.'),
        'unsupported': ('Unsupported | None',
            'unsupported: Whether a parameter that the model cannot honour raises an error ("raise", the\n    default) or is left out ("drop").'),
        'deadline': ('float | None',
            'deadline: Seconds for the whole call, with all attempts, waits and the time in the queue; for a\n    batch, seconds for all of its calls together.'),
        'extra_body': ('Mapping[str, Any] | None',
            "extra_body: Fields of this provider's API that are merged into the request's JSON."),
        'extra_headers': ('Mapping[str, str] | None',
            'extra_headers: HTTP headers that are added to the request.'),
        'api_key': ('str | None',
            "api_key: The provider's API key; default one from the client's `keys` or the environment."),
        'base_url': ('str | None',
            "base_url: The server to send to; default the environment's, else the provider's own."),
    },
    'Parameters': {
        'timeout': ('float | Timeouts | None',
            'timeout: Seconds for one attempt, without the time in the queue.'),
        'max_retries': ('int | None',
            'max_retries: The most requests that are sent again after a failure that may be temporary.'),
        'outage_patience': ('float | None',
            'outage_patience: Seconds that the call, or the whole batch, waits for a provider that is down. 0\n    fails at once, and `float("inf")` waits for ever.'),
        'cache': ('CacheMode | bool | None',
            'cache: How the cache is used: "use" reads and stores, "refresh" sends and stores, "only" reads\n    and never sends, "off" does neither.'),
        'budget': ('float | Decimal | Budget | None',
            'budget: The most that the call, or the whole batch, may cost, in USD; or a `Budget`, which\n    several calls can share.'),
        'strict_model': ('bool | None',
            "strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;\n    default the client's."),
        'in_batch': ('InBatch | None',
            'in_batch: The behaviour of a call whose input is in a batch under way: "live", the default,\n    sends it all the same, "wait" waits for the batch, and "refuse" raises `PendingBatchError`.'),
    },
    'BatchParameters': {
        'max_concurrent': ('int | None',
            "max_concurrent: The most requests in flight at once; default the client's."),
        'progress': ('bool | None',
            'progress: Whether a progress bar is shown; None shows it on a terminal and in a notebook.'),
        'delivery': ('DeliveryMode | None',
            'delivery: "live" sends each request now.'),
        'resend': ('Resend | None',
            'resend: Where rows of a batch that failed or expired are sent once more: in another batch, the\n    default, or as live requests.'),
        'rows': ('Any',
            'rows: A data frame, or an iterable of dicts.'),
        'metadata': ('Mapping[str, str] | Iterable[Any] | Callable[[Any], Any] | None',
            'metadata: One value for each input, such as a dict with its id, or a function of the prompt (of\n    the row, with `rows`).'),
    },
    'EmbedParameters': {
        'dimensions': ('int | None',
            "dimensions: The number of numbers in each vector; default the model's."),
        'delivery': ('DeliveryMode | None',
            'delivery: "live" sends each request now.'),
        'resend': ('Resend | None',
            'resend: Where rows of a batch that failed or expired are sent once more: in another batch, the\n    default, or as live requests.'),
        'strict_model': ('bool | None',
            "strict_model: Whether `ModelDriftError` is raised if another snapshot answers than before;\n    default the client's."),
        'timeout': ('float | Timeouts | None',
            'timeout: Seconds for one attempt of one request, without the time in the queue.'),
        'deadline': ('float | None',
            'deadline: Seconds until all texts are embedded or the call fails, with all attempts and waits.'),
        'max_retries': ('int | None',
            'max_retries: The most requests that are sent again after a failure that may be temporary.'),
        'outage_patience': ('float | None',
            "outage_patience: Seconds that it waits for a provider that is down; default the client's, else\n    3,600."),
        'cache': ('CacheMode | bool | None',
            'cache: How the cache is used, as in `call`.'),
        'budget': ('float | Decimal | Budget | None',
            'budget: The most that all texts together may cost, in USD; or a `Budget`, which several calls\n    can share.'),
        'in_batch': ('InBatch | None',
            'in_batch: The behaviour of a call with a text that is in a batch under way, as in `call`.'),
        'extra_body': ('Mapping[str, Any] | None',
            "extra_body: Fields of this provider's API, such as Gemini's `taskType`, that are merged into the\n    request's JSON."),
        'extra_headers': ('Mapping[str, str] | None',
            'extra_headers: HTTP headers that are added to the request.'),
        'api_key': ('str | None',
            "api_key: The provider's API key; default one from the client's `keys` or the environment."),
        'base_url': ('str | None',
            "base_url: The server to send to; default the environment's, else the provider's own."),
    },
}
