"""Wrong log-probabilities of a prompt with status 200, as real servers have sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["SCORE_CHANGES"]

JSON = dict[str, Any]

_computed: set[str] = set()
"""Prompts whose values are in the prefix cache of an engine with the fault `prefix_cache`."""


def _find_arrays(answer: JSON) -> Iterator[JSON]:
    """The legacy arrays of a reply, those of Together's prompt first."""
    for part in (*answer.get("prompt", ()), *answer.get("choices", ())):
        if isinstance(part.get("logprobs"), dict) and "tokens" in part["logprobs"]:
            yield part["logprobs"]


def _cut_prompt(answer: JSON) -> None:
    """The server has ignored that the prompt is asked for."""
    if "prompt" in answer:
        answer["prompt"] = []
    else:
        for arrays in _find_arrays(answer):
            arrays |= {name: values[-1:] for name, values in arrays.items()}
    for choice in answer.get("choices", ()):
        choice["prompt_logprobs"] = None
    if "meta_info" in answer:
        answer["meta_info"]["input_token_logprobs"] = []
    if "details" in answer:
        answer["details"]["prefill"] = []


def _change_values(answer: JSON, change: Callable[[list[Any]], list[Any]]) -> None:
    """Change the log-probabilities of a prompt, in whatever form they are."""
    for arrays in _find_arrays(answer):
        for name in {"token_logprobs", "top_logprobs"} & arrays.keys():
            arrays[name] = change(arrays[name])
    for choice in answer.get("choices", ()):
        listed = choice.get("prompt_logprobs") or ()
        ids = choice.get("prompt_token_ids", ())[: len(listed)]
        own = [entry and entry[str(token)] for entry, token in zip(listed, ids, strict=True)]
        values = change([entry and entry["logprob"] for entry in own])
        for entry, value in zip(own, values, strict=True):
            if entry:
                entry["logprob"] = value
    rows = answer.get("meta_info", {}).get("input_token_logprobs", ())
    for row, value in zip(rows, change([row[0] for row in rows]), strict=True):
        row[0] = value
    tokens = answer.get("details", {}).get("prefill", ())
    for token, value in zip(tokens, change([token["logprob"] for token in tokens]), strict=True):
        token["logprob"] = value


def _replace_numbers(number: float | None) -> Callable[[JSON], None]:
    def change(values: list[Any]) -> list[Any]:
        return [number if isinstance(value, float) else value for value in values]

    return lambda answer: _change_values(answer, change)


def _delay_values(answer: JSON) -> None:
    """Each value is one position late, as from a server that puts no token in front."""
    _change_values(answer, _delay)
    for choice in answer.get("choices", ()):
        if "prompt_logprobs" in choice:
            choice["prompt_logprobs"] = _delay(choice["prompt_logprobs"])
    if "input_top_logprobs" in answer.get("meta_info", {}):
        answer["meta_info"]["input_top_logprobs"] = _delay(answer["meta_info"]["input_top_logprobs"])


def _delay(values: list[Any]) -> list[Any]:
    return [*values[:1], *values[-1:], *values[1:-1]] if len(values) > 1 else values


def _lower(value: Any) -> Any:
    if isinstance(value, dict):
        return {token: logprob - 0.5 for token, logprob in value.items()}
    return value and value - 0.5


def _shift_cached(answer: JSON) -> None:
    """The values of a prompt that was computed before differ."""
    key = repr([(answer.get("model"), part.get("prompt_token_ids")) for part in answer.get("choices", ())])
    if key in _computed:
        _change_values(answer, lambda values: [_lower(value) for value in values])
    _computed.add(key)


def _keep_likeliest(answer: JSON) -> None:
    """Only the k likeliest tokens of a position, without the one of the prompt."""
    for choice in answer.get("choices", ()):
        choice["prompt_logprobs"] = [
            entry and dict([min(entry.items(), key=lambda item: item[1]["rank"])])
            for entry in choice.get("prompt_logprobs") or ()
        ]


def _drop_logprobs(answer: JSON) -> None:
    for choice in answer.get("choices", ()):
        choice["logprobs"] = None


def _encode_again(answer: JSON) -> None:
    """The server has read other tokens than those that were sent."""
    for part in answer.get("choices", ()):
        part.get("prompt_token_ids", [0])[-1:] = [2]
    for arrays in _find_arrays(answer):
        arrays["tokens"][1:2] = ["other"]
    for row in answer.get("meta_info", {}).get("input_token_logprobs", ())[-1:]:
        row[1] = 2
    for token in answer.get("details", {}).get("prefill", ())[-1:]:
        token["id"] = 2


SCORE_CHANGES: Mapping[str, Callable[[JSON], None]] = {
    "no_prompt_scores": _cut_prompt,
    "late_scores": _delay_values,
    "unrepresented_scores": _replace_numbers(-9999.0),
    "zero_scores": _replace_numbers(0.0),
    "null_scores": _replace_numbers(None),
    "no_scores": _drop_logprobs,
    "likeliest_scores": _keep_likeliest,
    "other_tokens": _encode_again,
    "prefix_cache": _shift_cached,
}
"""By the name of the shape."""
