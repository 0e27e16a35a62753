"""Gemini's implicit cache for interactions, by the rules of `generateContent`: nothing is sent."""

from ..._core.json_values import JSONMapping
from ..._core.requests.routing import AGENTS, Target
from .gemini import is_implicit, lifetime, mark_prefix, minimum
from .settings import Unit, content_units, json_unit

__all__ = ["is_implicit", "lifetime", "mark_prefix", "minimum", "serves", "units"]


def serves(target: Target) -> bool:
    return AGENTS.fullmatch(target.model) is None


def units(payload: JSONMapping) -> list[Unit]:
    result = content_units("system", payload.get("system_instruction", ()), (), _is_text, instructs=True)
    result += [json_unit("tool", tool, None, instructs=True) for tool in payload.get("tools") or ()]
    for step in payload.get("input") or ():
        result += content_units(str(step.get("type")), step.get("content") or [step], (), _is_text)
    return result


def _is_text(content: JSONMapping) -> bool:
    return content.keys() == {"type", "text"}
