"""The counts of tokens in OpenAI's two formats. Pure.

Totals include cached and reasoning tokens, as those of `Usage` do. Some hosts leave tokens out of both
counts, and name them in the details or count them in `total_tokens` alone:

- A part of the prompt, such as audio, that is larger than the prompt's count is not in it.
- Tokens that only the total has are input if they are as many as parts of the prompt together, such as
  audio, or if the prompt has no count.
- All others are reasoning, which is billed as output: the providers hide it, and not what they were sent.

A total that is smaller than the sum, or zero, says nothing. Nor does a total alone, or one count alone: input
and output have different prices. A server that follows the other format in its answers may follow it in the
names here too.
"""

import itertools

from ...json_values import JSONMapping
from ...types.usage import Usage
from ..shared.replies import count, part

_MEDIA = ("audio_tokens", "image_tokens", "video_tokens")
_CACHED = ("cached_tokens", "cache_write_tokens", "cache_creation_tokens")
_OTHER_NAMES = {"prompt": ("input", "output"), "input": ("prompt", "completion")}
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens", "citation_tokens")


def read_usage(usage: JSONMapping, read_name: str = "prompt", written_name: str = "completion") -> Usage:
    """The usage in an object of Chat Completions, or of Responses with the names "input" and "output"."""
    names = (f"{read_name}_tokens", f"{written_name}_tokens")
    read, written = count(usage, names[0]), count(usage, names[1])
    if not (read and written):
        others = tuple([f"{name}_tokens" for name in _OTHER_NAMES[read_name]])
        if not (read or written) and (count(usage, others[0]) or count(usage, others[1])):
            return read_usage(
                {name: value for name, value in usage.items() if name not in names}, *_OTHER_NAMES[read_name]
            )
        read, written = read or count(usage, others[0]), written or count(usage, others[1])
        known = [any(_is_count(usage.get(name)) for name in pair) for pair in zip(names, others, strict=True)]
        if not (all(known) or count(usage, "total_tokens")):
            return Usage()
    details = part(usage, f"{read_name}_tokens_details")
    written_details = part(usage, f"{written_name}_tokens_details")
    # DeepSeek and Moonshot report cache hits in a field of their own instead of in the details.
    hits = count(usage, "prompt_cache_hit_tokens") or count(usage, "cached_tokens")
    plain = not any(details.values()) and not any(written_details.values())
    whole = usage.get("total_tokens") == read + written
    if plain and (whole or count(usage, "total_tokens") <= read + written):
        return Usage(input_tokens=read, output_tokens=written, cache_read_input_tokens=hits)
    reasoning = count(written_details, "reasoning_tokens")
    media = {name: count(details, name) for name in _MEDIA}
    outside = [name for name, tokens in media.items() if tokens > read]
    read += sum(media[name] for name in outside)
    unnamed = count(usage, "total_tokens") - read - written
    if unnamed > 0 and (read or written):
        parts = [tokens for name, tokens in media.items() if tokens and name not in outside]
        parts += [count(details, name) for name in _CACHED] + [count(usage, name) for name in _BESIDE]
        if unnamed != reasoning and (not read or unnamed in _sums(parts)):
            read += unnamed
        else:
            written += unnamed
            reasoning = reasoning or unnamed
    lasting = part(details, "cache_creation_token_details")
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cache_read_input_tokens=count(details, "cached_tokens") or hits,
        cache_write_input_tokens=count(details, "cache_write_tokens")
        or count(details, "cache_creation_tokens"),
        cache_write_1h_input_tokens=count(lasting, "ephemeral_1h_input_tokens"),
        reasoning_output_tokens=reasoning,
        audio_input_tokens=media["audio_tokens"],
        audio_output_tokens=count(written_details, "audio_tokens"),
        image_output_tokens=count(written_details, "image_tokens"),
    )


def _is_count(value: object) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


def _sums(parts: list[int]) -> set[int]:
    """The sums of one or two of some numbers."""
    counts = [number for number in parts if number]
    return {sum(some) for size in (1, 2) for some in itertools.combinations(counts, size)}
