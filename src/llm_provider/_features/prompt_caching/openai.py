"""OpenAI's prompt cache: `prompt_cache_key`, and explicit breakpoints from GPT-5.6 on.

Models before GPT-5.6 find common prefixes of 1,024 tokens and more by themselves, in steps of 128 tokens,
and a write is free. The key sends calls with the same prefix to the same servers. From GPT-5.6 on a write
costs 1.25 times the price of input, and a prefix is found at breakpoints only. OpenAI sets one behind the
newest message, which is different in every call of a batch. Explicit ones take its place. The sources are
OpenAI's guide to prompt caching and the types of the openai SDK 3.52.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from ..._core.formats.openai.encode import family_of
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.requests.routing import Target
from . import settings as shared

_MINIMUM = 1024
_LIFETIME, _LIFETIME_OF_BREAKPOINTS = 300.0, 1800.0
"""Seconds."""

_PRICED = re.compile(r"(ft:)?gpt-(5\.([6-9]|\d\d)|[6-9]|\d\d)")
"""Models whose cache writes have a price, and which know explicit breakpoints."""

_BREAKPOINT = {"mode": "explicit"}
_TAKES = frozenset({"text", "image_url", "input_audio", "file", "input_text", "input_image", "input_file"})
_INSTRUCT = ("system", "developer")


def serves(target: Target) -> bool:
    """OpenAI's own models. Compatible hosts may refuse a field that they do not know."""
    return target.route.cloud is None and family_of(target) is not None


def minimum(model: str) -> int:
    return _MINIMUM


def is_implicit(model: str) -> bool:
    """Whether OpenAI finds common prefixes by itself, to the token and without a price for it.

    >>> is_implicit("gpt-5.5"), is_implicit("gpt-5.6-luna"), is_implicit("gpt-6.1-sol")
    (True, False, False)
    """
    return _PRICED.match(model) is None


def lifetime(model: str) -> float:
    return _LIFETIME if is_implicit(model) else _LIFETIME_OF_BREAKPOINTS


def units(payload: JSONMapping) -> list[shared.Unit]:
    """The units of a prompt in the order in which OpenAI's models read them, for both endpoints."""
    result = [shared.json_unit("tool", tool, None, instructs=True) for tool in payload.get("tools") or ()]
    if isinstance(payload.get("instructions"), str):
        result += shared.content_units("system", payload["instructions"], (), lambda _: False, instructs=True)
        result[-1] = result[-1]._replace(path=None)
    name = "messages" if "messages" in payload else "input"
    messages = payload.get(name)
    for index, message in enumerate(messages if isinstance(messages, (list, tuple)) else ()):
        if not isinstance(message, Mapping):
            continue
        role, content, path = message.get("role"), message.get("content"), (name, index, "content")
        own = {key: value for key, value in message.items() if key not in ("role", "content")}
        if role is None or own:
            # A call of a tool, its result, or an answer: its other fields are read too.
            result.append(shared.json_unit(str(role), message, None))
            continue
        inside = shared.content_units(
            str(role), content, path, lambda part: part.get("type") in _TAKES, instructs=role in _INSTRUCT
        )
        result += [unit._replace(path=None) for unit in inside] if role == "assistant" else inside
    return [] if _has_own(payload, messages) else result


def mark_prefix(payload: JSONObject, mark: shared.PrefixMark) -> JSONObject:
    prompt = units(payload)
    if not prompt:
        return payload
    changed = dict(payload)
    digest, prefix = mark.digest, prompt[: mark.length]
    if not mark.of_batch and prefix:
        # It stays the same while a conversation grows.
        stable = blake2b(digest_size=16)
        for unit in prefix[: sum(unit.instructs for unit in prefix) or 1]:
            stable.update(b"%d\0" % len(unit.content))
            stable.update(unit.content)
        digest = stable.digest()
    if digest is not None:
        changed.setdefault("prompt_cache_key", digest.hex())
    if is_implicit(str(payload.get("model"))):
        return changed
    if mark.of_batch:
        # Else the rest of each prompt would be written too, and no other call could read it.
        changed["prompt_cache_options"] = _BREAKPOINT
    path = shared.last_breakpoint(prefix)
    if path is None:
        return changed
    kind = "text" if path[0] == "messages" else "input_text"
    return shared.add_at(changed, path, {"prompt_cache_breakpoint": _BREAKPOINT}, kind)


def _has_own(payload: JSONMapping, messages: Any) -> bool:
    """Whether the user has set breakpoints, or the options of the cache."""
    if "prompt_cache_options" in payload:
        return True
    contents = [message.get("content") for message in messages or () if isinstance(message, Mapping)]
    return shared.is_in_any("prompt_cache_breakpoint", contents)
