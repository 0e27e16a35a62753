"""Defaults for the parameters of calls, which `Client(...)` and `Client.with_options` take.

It is imported by the first client that has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .embed_request import SHARED
from .foreign_names import unexpected
from .request import CHECKS, check

_OF_EMBED = frozenset(SHARED) - {"extra_body"}
"""The defaults that `embed` uses. The fields in `extra_body` are those of one endpoint."""

_OF_TOOLS = ("tool_choice", "allowed_tools", "parallel_tool_calls")
_RIVALS = {
    "reasoning_effort": "thinking_budget",
    "thinking_budget": "reasoning_effort",
    "logprobs": "top_logprobs",
}
"""A parameter of a call, and the default that contradicts it."""


def checked_defaults(function: str, given: Mapping[str, Any], settings: Iterable[str] = ()) -> dict[str, Any]:
    """The defaults that are set, each checked and normalised. None means "not set".

    Args:
        function: The name of the function that the user called, for the message.
        given: The user's values, by name.
        settings: Other names that the function takes, for a suggestion.

    Raises:
        TypeError: there is no such parameter.
        RequestError: a value is invalid.
    """
    for name in given:
        if name not in CHECKS:
            raise TypeError(unexpected(function, name, [*CHECKS, *settings]))
    return {name: check(name, value) for name, value in given.items() if value is not None}


def fill(parameters: dict[str, Any], defaults: Mapping[str, Any], *, embeds: bool) -> None:
    """Add defaults to the parameters of a call, which win.

    A default that is about tools is left out of a call without tools, and one that contradicts a parameter of
    the call is left out too.

    >>> parameters = {"temperature": 0, "seed": None}
    >>> fill(parameters, {"temperature": 1, "seed": 3, "tool_choice": "auto"}, embeds=False)
    >>> parameters
    {'temperature': 0, 'seed': 3}
    """
    given = {name for name, value in parameters.items() if value is not None}
    left_out = {_RIVALS[name] for name in given & _RIVALS.keys()}
    if "tools" not in given and "tools" not in defaults:
        left_out.update(_OF_TOOLS)
    names = defaults.keys() & _OF_EMBED if embeds else defaults.keys()
    parameters.update({name: defaults[name] for name in names - given - left_out})
