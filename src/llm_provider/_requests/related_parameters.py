"""The checks of parameters that need others or contradict them; the first call that has one imports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .._errors import RequestError, cite
from .._json_values import JSONMapping, JSONObject
from .parameter_table import RARE

if TYPE_CHECKING:
    from .tools import SentTool


def relate(checked: JSONObject) -> None:
    """Check parameters against each other, and move the rare ones into `options`."""
    if checked.get("top_logprobs") is not None and not checked.setdefault("logprobs", True):
        raise RequestError("top_logprobs was given with logprobs=False; leave logprobs out or set it to True")
    for name in ("tool_choice", "parallel_tool_calls", "allowed_tools"):
        if name in checked and not checked.get("tools"):
            raise RequestError(f"{name} was given without tools; give tools=, or leave {name} out")
    if callable(checked.get("tool_choice")):
        checked["tool_choice"] = _choose_tool(checked["tool_choice"], checked["tools"])
    if "max_tool_rounds" in checked:
        from .tools import check_rounds

        check_rounds(checked)
    if "allowed_tools" in checked:
        _check_allowed(checked["allowed_tools"], checked)
    if "thinking_budget" in checked and "reasoning_effort" in checked:
        raise RequestError(
            "reasoning_effort and thinking_budget both say how much to reason: leave one of them out"
        )
    options = {name: checked.pop(name) for name in RARE if name in checked}
    if options:
        checked["options"] = options


def _choose_tool(choice: object, tools: Sequence[SentTool]) -> JSONObject:
    """The `tool_choice` for a function or a class; a `RequestError` if it is no tool of the call."""
    from .tools import name_of, read_tools

    (wanted,) = read_tools("tool_choice", [choice])
    name = name_of(wanted)
    if wanted not in tools:
        known = [tool_name for tool in tools if (tool_name := name_of(tool)) is not None]
        problem = f"is not among tools: {', '.join(known) or 'no function'}"
        if name in known:
            problem = "has the name of another one in tools: give the same in both"
        raise RequestError(f"tool_choice is {name!r}, which {problem}")
    return {"type": "function", "function": {"name": name}}


def _check_allowed(allowed: tuple[str, ...], checked: JSONMapping) -> None:
    choice = checked.get("tool_choice")
    if choice not in (None, "auto", "required"):
        raise RequestError(
            f"allowed_tools was given with tool_choice={cite(choice)}; leave tool_choice out, or set it to "
            "'auto' or 'required'"
        )
    known = [name for tool in checked["tools"] if (name := _own_name(tool)) is not None]
    for name in allowed:
        if name not in known:
            raise RequestError(
                f"allowed_tools names {name!r}, which is not among tools: {', '.join(known) or 'no function'}"
            )


def _own_name(tool: SentTool) -> str | None:
    """The name of a function, or of another tool that the user defines."""
    if isinstance(tool, str):
        return None
    candidates = (tool.get("function"), tool.get("custom"), tool)
    names = (candidate.get("name") for candidate in candidates if isinstance(candidate, Mapping))
    return next((name for name in names if isinstance(name, str)), None)
