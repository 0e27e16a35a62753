"""Defaults for the parameters of calls, which `Client(...)` and `Client.with_options` take."""

from collections.abc import Collection, Iterable

from .. import doors
from ..json_values import JSONMapping, JSONObject
from .parameter_table import CHECKS

_OF_TOOLS = ("tool_choice", "allowed_tools", "parallel_tool_calls")
_RIVALS = {
    "reasoning_effort": "thinking_budget",
    "thinking_budget": "reasoning_effort",
    "logprobs": "top_logprobs",
}
"""A parameter of a call, and the default that contradicts it."""


def check_defaults(function: str, defaults: JSONMapping, settings: Iterable[str] = ()) -> JSONObject:
    """The defaults that are set, checked and normalised. `settings` are other names to suggest."""
    for name in defaults:
        # A default list would hold the model of some calls.
        if name not in CHECKS or name == "fallback":
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
