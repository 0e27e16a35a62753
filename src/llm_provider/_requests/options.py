"""The checks of the parameters that few calls set. It is imported by the first call that sets one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from .._errors import RequestError, shown
from .checks import (
    Modality,
    ReasoningContext,
    ReasoningSummary,
    ServiceTier,
    Unsupported,
    Verbosity,
    flag,
    number,
    one_of,
    text,
)
from .tools import checked_tools, name_of

_PAIRS, _LONGEST_NAME, _LONGEST_TEXT = 16, 64, 512
"""OpenAI's limits for `metadata`: pairs, and characters of a name and of a text."""

_STANDARD = ("standard", "standard_only")
"""Gemini's and Anthropic's words for the service tier that OpenAI calls "default"."""


def gathered(names: frozenset[str], checked: dict[str, Any]) -> dict[str, Any]:
    """Move the parameters with these names out of the checked ones of a call.

    Raises:
        RequestError: two parameters contradict each other, or one lacks the other that it is about.
    """
    options = {name: checked.pop(name) for name in names & checked.keys()}
    for name in ("parallel_tool_calls", "allowed_tools"):
        if name in options and not checked.get("tools"):
            raise RequestError(f"{name} was given without tools; give tools=, or leave {name} out")
    if "allowed_tools" in options:
        _check_allowed(options["allowed_tools"], checked)
    if "thinking_budget" in options and checked.get("reasoning_effort") is not None:
        raise RequestError(
            "reasoning_effort and thinking_budget both say how much to reason: leave one of them out"
        )
    return options


def chosen_tool(choice: Any, tools: Sequence[Mapping[str, Any] | str]) -> dict[str, Any]:
    """The `tool_choice` for a function or a class.

    Raises:
        RequestError: it is no tool, or is not among the tools of the call.
    """
    (wanted,) = checked_tools("tool_choice", [choice])
    name = name_of(wanted)
    if wanted not in tools:
        known = [found for tool in tools if (found := name_of(tool)) is not None]
        problem = f"is not among tools: {', '.join(known) or 'no function'}"
        if name in known:
            problem = "has the name of another one in tools: give the same in both"
        raise RequestError(f"tool_choice is {name!r}, which {problem}")
    return {"type": "function", "function": {"name": name}}


def _check_allowed(allowed: tuple[str, ...], checked: Mapping[str, Any]) -> None:
    choice = checked.get("tool_choice")
    if choice not in (None, "auto", "required"):
        raise RequestError(
            f"allowed_tools was given with tool_choice={shown(choice)}; leave tool_choice out, or set it to "
            "'auto' or 'required'"
        )
    known = [name for tool in checked["tools"] if (name := _name_of(tool)) is not None]
    for name in allowed:
        if name not in known:
            raise RequestError(
                f"allowed_tools names {name!r}, which is not among tools: {', '.join(known) or 'no function'}"
            )


def _name_of(tool: Mapping[str, Any] | str) -> str | None:
    """The name of a function, or of another tool that the user defines."""
    if isinstance(tool, str):
        return None
    for inner in (tool.get("function"), tool.get("custom"), tool):
        if isinstance(inner, Mapping) and isinstance(inner.get("name"), str):
            return str(inner["name"])
    return None


def _names(name: str, value: Any) -> tuple[str, ...]:
    if (
        not isinstance(value, (list, tuple))
        or not value
        or not all(isinstance(one, str) and one for one in value)
    ):
        raise RequestError(f"{name} must be a list of names such as ['search'], not {shown(value)}")
    return tuple(value)


def _modalities(name: str, value: Any) -> tuple[str, ...]:
    known = get_args(Modality)
    if not isinstance(value, (list, tuple)) or not value:
        raise RequestError(f"{name} must be a list such as ['text', 'audio'], not {shown(value)}")
    words = tuple(word.lower() if isinstance(word, str) else word for word in value)
    for word in words:
        if word not in known:
            from .remedies import word_remedy

            remedy = word_remedy(name, word, known)
            raise RequestError(f"{name} must be some of {', '.join(known)}, not {shown(word)}{remedy}")
    return words


_service_tier = one_of(ServiceTier)


def _tier(name: str, value: Any) -> str:
    tier = _service_tier(name, value)
    return "default" if tier in _STANDARD else str(tier)


_bias = number(-100, 100)


def _logit_bias(name: str, value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise RequestError(
            f"{name} must be a dict of token ids and numbers such as {{1234: -100}}, not "
            f"{type(value).__name__}"
        )
    biases: dict[str, float] = {}
    for token, bias in value.items():
        is_text = isinstance(token, str)
        if isinstance(token, bool) or not (
            (is_text and token.isdecimal()) or (not is_text and hasattr(token, "__index__") and token >= 0)
        ):
            raise RequestError(
                f"{name} has the key {shown(token)}, which is not the id of a token: write a number, such as "
                "tiktoken's encoding.encode(text)[0]"
            )
        biases[str(int(token))] = _bias(f"{name}[{token}]", bias)
    return biases


def _safety_settings(name: str, value: Any) -> tuple[dict[str, str], ...]:
    if isinstance(value, Mapping):
        value = [{"category": category, "threshold": threshold} for category, threshold in value.items()]
    if not isinstance(value, (list, tuple)):
        raise RequestError(
            f"{name} must be a dict or a list of dicts, such as "
            f"{{'HARM_CATEGORY_HARASSMENT': 'BLOCK_NONE'}}, not {type(value).__name__}"
        )
    for index, setting in enumerate(value):
        fields = dict(setting) if isinstance(setting, Mapping) else {}
        if not {"category", "threshold"} <= fields.keys() or not all(
            isinstance(word, str) and word for word in fields.values()
        ):
            raise RequestError(
                f"{name}[{index}] must look like {{'category': 'HARM_CATEGORY_HARASSMENT', "
                f"'threshold': 'BLOCK_NONE'}}, not {shown(setting)}"
            )
    return tuple({key: str(word) for key, word in setting.items()} for setting in value)


def _metadata(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise RequestError(
            f"{name} must be a dict of texts such as {{'run': '7'}}, not {type(value).__name__}"
        )
    if len(value) > _PAIRS:
        raise RequestError(f"{name} has {len(value)} pairs, and OpenAI takes {_PAIRS}")
    for key, content in value.items():
        if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_NAME:
            raise RequestError(
                f"{name} has the key {shown(key)}: it must be a str of 1 to {_LONGEST_NAME} characters"
            )
        if not isinstance(content, str) or len(content) > _LONGEST_TEXT:
            found = f"one of {len(content):,}" if isinstance(content, str) else shown(content)
            raise RequestError(
                f"{name}[{key!r}] must be a str of at most {_LONGEST_TEXT} characters, not {found}"
            )
    return dict(value)


_whole_top_k = number(1, 2**31 - 1, whole=True)


def _top_k(name: str, value: Any) -> float:
    # Google's type of it is a float.
    return _whole_top_k(name, int(value) if isinstance(value, float) and value.is_integer() else value)


_budget = number(-1, 2**31 - 1, whole=True)


def _thinking_budget(name: str, value: Any) -> float | str:
    return "adaptive" if value == "adaptive" else _budget(name, value)


CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "top_k": _top_k,
    "frequency_penalty": number(-2, 2),
    "presence_penalty": number(-2, 2),
    "logit_bias": _logit_bias,
    "allowed_tools": _names,
    "parallel_tool_calls": flag,
    "thinking_budget": _thinking_budget,
    "reasoning_summary": one_of(ReasoningSummary),
    "reasoning_context": one_of(ReasoningContext),
    "cached_content": text,
    "verbosity": one_of(Verbosity),
    "modalities": _modalities,
    "safety_settings": _safety_settings,
    "service_tier": _tier,
    "store": flag,
    "previous_response_id": text,
    "prompt_caching": flag,
    "prompt_cache_key": text,
    "user": text,
    "metadata": _metadata,
    "unsupported": one_of(Unsupported),
}
"""The check of each parameter of `Request.options`, which also normalises it."""
