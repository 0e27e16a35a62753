"""The table of a call's parameters: how each is checked, who has to send it, and what to write without it.

Types and documentation are in `parameters`, the fields of each wire format in its table `ACCEPTS`.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from .. import doors
from ..json_values import JSONMapping, JSONObject
from ..pace.call_limits import patience_seconds, seconds
from . import checks
from .checks import Check, flag, number, one_of, text


class Parameter(NamedTuple):
    """One row of the table, with the check that normalises a value.

    `remedy` is the advice in the error of a wire format that lacks the parameter; empty where none sends it.
    `essential` says that the answer is of another kind without it: `unsupported="drop"` keeps it. `is_label`
    says that it does not change the answer, so it is not part of the cache key. `no_effect` is a value that
    every provider honours, because it asks for nothing.
    """

    check: Check
    remedy: str = ""
    essential: bool = False
    is_label: bool = False
    no_effect: object = None


_ROWS = {
    "system": Parameter(checks.check_system),
    "max_tokens": Parameter(number(1, 2**31 - 1, whole=True), "leave it out", essential=True),
    "temperature": Parameter(number(0, 2), "leave it out"),
    "top_p": Parameter(number(0, 1), "leave it out"),
    "stop": Parameter(
        checks.check_stop, "leave it out and cut the text yourself; most models of others than OpenAI have it"
    ),
    "seed": Parameter(
        number(-(2**63), 2**63 - 1, whole=True),
        "leave it out; OpenAI's Chat Completions, most compatible hosts and Gemini have it",
    ),
    "n": Parameter(number(1, 128, whole=True)),
    "draw": Parameter(number(0, 2**31 - 1, whole=True)),
    "tools": Parameter(checks.check_tools, "leave it out", essential=True),
    "max_tool_rounds": Parameter(number(0, 1000, whole=True)),
    "tool_choice": Parameter(checks.check_tool_choice, "ask for the tool in the prompt"),
    "response_format": Parameter(
        checks.check_response_format, "ask for the form in the prompt", essential=True
    ),
    "max_repairs": Parameter(number(0, 10, whole=True)),
    "reasoning_effort": Parameter(one_of(checks.ReasoningEffort), "leave it out"),
    "endpoint": Parameter(
        one_of(checks.Endpoint), "leave it out; OpenAI has 'chat' and 'responses', Gemini has 'interactions'"
    ),
    "logprobs": Parameter(
        flag, "leave it out; OpenAI, some compatible hosts and Gemini have it", no_effect=False
    ),
    "top_logprobs": Parameter(
        number(0, 20, whole=True), "leave it out; OpenAI, some compatible hosts and Gemini have it"
    ),
    "strict_model": Parameter(flag),
    "timeout": Parameter(checks.check_timeout),
    "deadline": Parameter(seconds),
    "max_retries": Parameter(number(0, 1000, whole=True)),
    "outage_patience": Parameter(patience_seconds),
    "cache": Parameter(checks.check_cache),
    "max_age": Parameter(checks.check_max_age),
    "budget": Parameter(checks.check_budget),
    "token_budget": Parameter(checks.check_budget),
    "in_batch": Parameter(checks.check_in_batch),
    "extra_body": Parameter(checks.check_extra_body),
    "extra_headers": Parameter(checks.check_headers),
    "base_url": Parameter(text),
    "api_key": Parameter(checks.check_key),
}

_RARE = {
    "thinking_budget": Parameter(
        checks.check_thinking_budget, "use reasoning_effort; Claude and Gemini 2.5 to 3.5 have it"
    ),
    "reasoning_summary": Parameter(
        one_of(checks.ReasoningSummary), "leave it out; OpenAI's Responses, Anthropic and Gemini have it"
    ),
    "reasoning_context": Parameter(
        one_of(checks.ReasoningContext), "leave it out; OpenAI's Responses has it"
    ),
    "top_k": Parameter(
        checks.check_top_k, "use top_p; Claude up to 4.6, Gemini and hosts of open models have it"
    ),
    **dict.fromkeys(
        ("frequency_penalty", "presence_penalty"),
        Parameter(
            number(-2, 2), "leave it out; OpenAI's Chat Completions, compatible hosts and Gemini have it"
        ),
    ),
    "logit_bias": Parameter(
        checks.check_logit_bias, "leave it out; OpenAI's Chat Completions and compatible hosts have it"
    ),
    "allowed_tools": Parameter(
        checks.check_names, "give only these tools in tools=; OpenAI and Gemini have it", essential=True
    ),
    "parallel_tool_calls": Parameter(
        flag, "ask for one call in the prompt; OpenAI, compatible hosts and Anthropic have it", no_effect=True
    ),
    "cached_content": Parameter(
        text, "send its content as messages, with prompt_caching=True; Gemini has it", essential=True
    ),
    "verbosity": Parameter(
        one_of(checks.Verbosity),
        "ask for the length in the prompt, or set max_tokens; OpenAI's GPT-5 and later have it",
    ),
    "modalities": Parameter(
        checks.check_modalities,
        "leave it out; OpenAI's Chat Completions and Gemini have it",
        essential=True,
        no_effect=("text",),
    ),
    "upstream": Parameter(
        checks.check_upstream, "leave it out; OpenRouter and Hugging Face's router have it", essential=True
    ),
    "safety_settings": Parameter(checks.check_safety_settings, "leave it out; Gemini has it"),
    "service_tier": Parameter(
        checks.check_service_tier, "leave it out; OpenAI, Anthropic and Gemini have it"
    ),
    "store": Parameter(flag, "leave it out; OpenAI has it", no_effect=False),
    "previous_response_id": Parameter(
        text, "send the whole conversation as messages; OpenAI's Responses has it", essential=True
    ),
    "prompt_cache_key": Parameter(text, "leave it out; OpenAI has it", is_label=True),
    "user": Parameter(text, "leave it out; OpenAI, compatible hosts and Anthropic have it", is_label=True),
    "metadata": Parameter(
        checks.check_metadata, "leave it out, or use track() to label costs; OpenAI has it", is_label=True
    ),
    "prompt_caching": Parameter(checks.check_prompt_caching),
    "unsupported": Parameter(one_of(checks.Unsupported)),
    "fallback": Parameter(checks.check_fallback),
    "delivery": Parameter(
        checks.check_delivery,
        "leave it out, or use call_many(..., delivery='batch'); OpenAI's Responses and Gemini's Interactions "
        "have background jobs",
        essential=True,
    ),
    "background_options": Parameter(checks.check_background),
}

PARAMETERS: Mapping[str, Parameter] = MappingProxyType(_ROWS | _RARE)
"""Every parameter of a call by its name.

Adapters write the parameters in this order: one that depends on another in some wire format comes after it.
"""

CHECKS: Mapping[str, Check] = MappingProxyType({name: row.check for name, row in PARAMETERS.items()})
"""The check of each parameter."""

RARE = tuple(_RARE)
"""The parameters that `Request.options` holds, so that the calls without them pay nothing."""

SENT = tuple(name for name, row in _ROWS.items() if row.remedy)
"""The other parameters that a wire format has to send, or to refuse. Each is a field of `Request`."""


_OF_TOOLS = ("tool_choice", "allowed_tools", "parallel_tool_calls")
_RIVALS = {
    "reasoning_effort": "thinking_budget",
    "thinking_budget": "reasoning_effort",
    "logprobs": "top_logprobs",
}
"""A parameter of a call, and the default that contradicts it."""


_NO_DEFAULTS = ("fallback", "delivery", "background_options")


def check_defaults(function: str, defaults: JSONMapping, settings: Iterable[str] = ()) -> JSONObject:
    """The defaults that are set, checked and normalised. `settings` are other names to suggest."""
    for name in defaults:
        # A default list would hold the model of some calls, and a batch has a delivery of its own.
        if name not in CHECKS or name in _NO_DEFAULTS:
            raise TypeError(doors.remedies.describe_unexpected(function, name, [*CHECKS, *settings]))
    return {name: CHECKS[name](name, value) for name, value in defaults.items() if value is not None}


def fill(parameters: JSONObject, defaults: JSONMapping, names: Collection[str] | None = None) -> None:
    """Add defaults to the parameters of a call, which win.

    A default that is about tools is left out of a call without tools, and one that contradicts a parameter of
    the call is left out too. With `names`, the call takes only these.
    """
    own = {name for name, value in parameters.items() if value is not None}
    left_out = {_RIVALS[name] for name in own & _RIVALS.keys()}
    if "tools" not in own and "tools" not in defaults:
        left_out.update(_OF_TOOLS)
    accepted = defaults.keys() if names is None else defaults.keys() & names
    parameters.update({name: defaults[name] for name in accepted - own - left_out})
