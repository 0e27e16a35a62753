"""Answers that Google divides: a request ends with `CONTINUATION`, and the next one goes on. Pure.

The rules are the same as in google-genai's `automatic_continuation`: the same request with the token of the
first candidate goes on with all candidates. Lists are joined, and counts are added up.
"""

from typing import Any

from ...json_values import JSONMapping, JSONObject
from ..shared.replies import count, dicts, part
from .decode import CONTINUES, index_of

_OF_THE_LAST = frozenset({CONTINUES, "finishReason", "finishMessage"})
"""Fields of a candidate that say how its last request ended."""

_UNFINISHED = (None, "", "CONTINUATION")


def continuation(reply: Any) -> JSONObject | None:
    """The fields with which the same request goes on; None for an answer that is whole or cannot go on."""
    candidates = reply.get("candidates")
    if not candidates:
        return None
    first = candidates[0] if len(candidates) == 1 else min(candidates, key=index_of)
    token = first.get(CONTINUES)
    if not isinstance(token, str) or not token or first.get("finishReason") not in _UNFINISHED:
        return None
    return {CONTINUES: token}


def join(before: JSONMapping, after: JSONMapping) -> JSONObject:
    """Two replies as one, with the id of the first: the ids of calls are made from it."""
    later = {index_of(candidate): candidate for candidate in after.get("candidates") or ()}
    # Without candidates, the prompt was blocked this time.
    blocked = None if later else {"finishReason": part(after, "promptFeedback").get("blockReason")}
    candidates = []
    for candidate in before["candidates"]:
        is_open = candidate.get("finishReason") in _UNFINISHED
        following = later.pop(index_of(candidate), blocked if is_open else None)
        candidates.append(candidate if following is None else _join_candidates(candidate, following))
    joined: JSONObject = _merge(before, {**after, "candidates": None, "responseId": None})
    return {**joined, "candidates": [*candidates, *later.values()]}


def _join_candidates(before: JSONMapping, after: JSONMapping) -> JSONObject:
    kept = {name: value for name, value in before.items() if name not in _OF_THE_LAST}
    metadata = part(after, "groundingMetadata")
    if supports := list(dicts(metadata.get("groundingSupports"))):
        chunks = len(dicts(part(before, "groundingMetadata").get("groundingChunks")))
        parts = len(part(before, "content").get("parts") or ())
        moved = [_move(support, chunks, parts) for support in supports]
        after = {**after, "groundingMetadata": {**metadata, "groundingSupports": moved}}
    joined: JSONObject = _merge(kept, after)
    return joined


def _move(support: JSONMapping, chunks: int, parts: int) -> JSONObject:
    """A support of the text whose sources and part have so many others before them."""
    segment, numbers = part(support, "segment"), support.get("groundingChunkIndices")
    indices = [number for number in numbers if type(number) is int] if isinstance(numbers, list) else []
    return {
        **support,
        "groundingChunkIndices": [chunks + number for number in indices],
        "segment": {**segment, "partIndex": parts + count(segment, "partIndex")},
    }


def _merge(before: Any, after: Any, name: str = "") -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        return {**before, **{key: _merge(before.get(key), after[key], key) for key in after}}
    if isinstance(before, list) and isinstance(after, list) and name != "safetyRatings":
        return [*before, *after]
    if (
        name.endswith(("Count", "Sum"))
        and isinstance(before, (int, float))
        and isinstance(after, (int, float))
    ):
        return before + after
    return before if after is None else after
