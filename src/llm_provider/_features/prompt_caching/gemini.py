"""Gemini's implicit cache: the API finds common prefixes by itself, so nothing is sent.

A read costs a tenth of the price of input, or a quarter for Gemini 2.5's first models, and a write nothing.
Google's explicit cache, `cached_contents`, has the same discount for rent. The minima come from litellm's
model table (1.109), November 2026. The registry loads one module for each adapter.
"""

from collections.abc import Mapping

from ..._core.json_values import JSONMapping, JSONObject
from ..._core.requests.routing import Target
from .settings import PrefixMark, Unit, content_units, json_unit

_MINIMUM, _MINIMUM_OF_2_5 = 4096, 2048
_LIFETIME = 300.0
"""Seconds. Google names no figure."""


def serves(target: Target) -> bool:
    """Every Gemini model has it since 2.5."""
    return target.model.startswith("gemini")


def minimum(model: str) -> int:
    return _MINIMUM_OF_2_5 if model.startswith("gemini-2") else _MINIMUM


def lifetime(model: str) -> float:
    return _LIFETIME


def is_implicit(model: str) -> bool:
    return True


def units(payload: JSONMapping) -> list[Unit]:
    result: list[Unit] = []
    system = payload.get("systemInstruction")
    if isinstance(system, Mapping):
        result += content_units("system", system.get("parts"), (), _is_text, instructs=True)
    for tool in payload.get("tools") or ():
        result.append(json_unit("tool", tool, None, instructs=True))
    for content in payload.get("contents") or ():
        if isinstance(content, Mapping):
            result += content_units(str(content.get("role")), content.get("parts"), (), _is_text)
    return result


def mark_prefix(payload: JSONObject, mark: PrefixMark) -> JSONObject:
    """A copy of a payload that lets Gemini cache a prefix: the payload itself."""
    return payload


def _is_text(part: JSONMapping) -> bool:
    return part.keys() == {"text"}
