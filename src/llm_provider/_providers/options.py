"""The parameters of `Request.options`, as far as all wire formats treat them alike.

It is imported by the first call that sets one.
"""

from __future__ import annotations

from collections.abc import Iterable

from .._requests.request import Request
from .adapter import refuse

REMEDIES = {
    "top_k": "use top_p; Claude up to 4.6, Gemini and hosts of open models have it",
    "frequency_penalty": "leave it out; OpenAI's Chat Completions, compatible hosts and Gemini have it",
    "presence_penalty": "leave it out; OpenAI's Chat Completions, compatible hosts and Gemini have it",
    "logit_bias": "leave it out; OpenAI's Chat Completions and compatible hosts have it",
    "allowed_tools": "give only these tools in tools=; OpenAI and Gemini have it",
    "parallel_tool_calls": "ask for one call in the prompt; OpenAI, compatible hosts and Anthropic have it",
    "thinking_budget": "use reasoning_effort; Claude and Gemini 2.5 to 3.5 have it",
    "reasoning_summary": "leave it out; OpenAI's Responses, Anthropic and Gemini have it",
    "reasoning_context": "leave it out; OpenAI's Responses has it",
    "cached_content": "send its content as messages, with prompt_caching=True; Gemini has it",
    "verbosity": "ask for the length in the prompt, or set max_tokens; OpenAI's GPT-5 and later have it",
    "modalities": "leave it out; OpenAI's Chat Completions and Gemini have it",
    "safety_settings": "leave it out; Gemini has it",
    "service_tier": "leave it out; OpenAI, Anthropic and Gemini have it",
    "store": "leave it out; OpenAI has it",
    "previous_response_id": "send the whole conversation as messages; OpenAI's Responses has it",
    "prompt_cache_key": "leave it out; OpenAI has it",
    "user": "leave it out; OpenAI, compatible hosts and Anthropic have it",
    "metadata": "leave it out, or use track() to label costs; OpenAI has it",
}
"""Parameter → the advice in the error of a provider that does not have it."""

_FOR_ALL = ("unsupported", "prompt_caching")
"""Options that no wire format has to send: they are dealt with outside the adapters."""

_NO_EFFECT: dict[str, tuple[object, ...]] = {
    "store": (False,),
    "modalities": (("text",),),
}
"""Values that every provider honours, as they ask for nothing."""


def asked(request: Request, missing: Iterable[str], provider: str) -> dict[str, object]:
    """The options of a request that a wire format has to send.

    Args:
        request: The request, with at least one option.
        missing: The options that the format does not have.
        provider: The route's name.

    Raises:
        UnsupportedParameterError: a missing option is set, to a value that asks for something.
    """
    options = dict(request.options or {})
    for name in _FOR_ALL:
        options.pop(name, None)
    for name in missing:
        if name in options and options.pop(name) not in _NO_EFFECT.get(name, ()):
            raise refuse(name, request, REMEDIES[name], provider=provider)
    return options


def may_drop(name: str) -> bool:
    """Whether `unsupported="drop"` may leave an option out, without which the answer is of the same kind."""
    return name in REMEDIES and name not in (
        "allowed_tools",
        "modalities",
        "previous_response_id",
        "cached_content",
    )
