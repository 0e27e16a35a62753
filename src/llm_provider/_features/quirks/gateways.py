"""OpenRouter and litellm: what they add to answers of the hosts behind them."""

from typing import Any

from ..._core.formats.shared.errors import error_fields, from_answer
from ..._core.formats.shared.replies import ABORTED, FINISH_WORDS, part
from ..._core.json_values import JSONMapping, JSONObject

OWN_FIELDS = "provider_specific_fields"
"""What litellm adds to choices and to messages."""

NATIVE_WORDS = ("native_finish_reason", OWN_FIELDS)
"""Fields of a choice with the upstream's own word for its end: of OpenRouter, and of litellm."""

# Fields of the entries of a list whose text comes in pieces: reasoning of OpenRouter and of litellm.
_GROWING = ("text", "summary", "thinking")

_PLAIN = frozenset({"index", "message", "finish_reason", "logprobs"})


def read_word(choice: JSONMapping) -> Any:
    """The word for the end of a choice; its error is raised, which OpenRouter writes beside it."""
    word = choice.get("finish_reason")
    if _PLAIN.issuperset(choice):
        return word
    if choice.get("error"):
        codes, explanation = error_fields(choice)
        raise from_answer(200, codes=codes, message=explanation)
    word = read_native_word(word, choice.get("native_finish_reason"), replaced=False)
    native = part(choice, OWN_FIELDS).get("native_finish_reason")
    return read_native_word(word, native, replaced=True)


def read_native_word(word: object, native: object, *, replaced: bool) -> Any:
    """The word of a gateway, or its upstream's word where the gateway took it for a whole answer's.

    OpenRouter has words of upstreams that are in no table, which say nothing, and litellm only those that it
    has `replaced` by "stop".

    >>> read_native_word("stop", "MAX_TOKENS", replaced=False), read_native_word("stop", "ok", replaced=False)
    ('MAX_TOKENS', 'stop')
    """
    if not (isinstance(native, str) and native) or word not in (None, "stop", "tool_calls"):
        return word
    meaning = "unknown" if replaced or native in ABORTED else "stop"
    return word if FINISH_WORDS.get(native.lower(), meaning) in ("stop", "tool_calls") else native


def collect_citation(extra: JSONObject, delta: JSONMapping) -> None:
    """Add a citation of Claude's, as litellm streams them, in the form that a whole answer has."""
    own = delta.get(OWN_FIELDS)
    if isinstance(own, dict) and own.get("citation"):
        kept = extra.setdefault(OWN_FIELDS, {"citations": [[]]})
        kept["citations"][0].append(own["citation"])


def add_entry(entries: list[Any], entry: Any) -> None:
    """Add an entry to a list, or the next piece of its last entry, which a signature ends."""
    if not isinstance(entry, dict):
        entries.append(entry)
        return
    entry = {name: value for name, value in entry.items() if value is not None}
    last = entries[-1] if entries else None
    same = (
        isinstance(last, dict)
        and last.get("type") == entry.get("type")
        and last.get("index") == entry.get("index")
        and ("id" not in entry or entry["id"] == last.get("id", entry["id"]))
        and any(name in last for name in _GROWING)
        and (any(name in entry for name in _GROWING) or "signature" in entry)
        and not last.get("signature")
    )
    if not same or last is None:
        entries.append(entry)
        return
    for name, value in entry.items():
        grows = name in _GROWING and isinstance(value, str) and isinstance(last.get(name), str)
        last[name] = last[name] + value if grows else value
