"""A quick look at the chunks that most of a stream consists of: those that only add text.

It takes 33 % off a stream of 100 chunks: 75,400 bytecode instructions instead of 113,100, SDK and transport
included (Python 3.11, openai 2, `python -m benchmarks.hot_path`). `chat_stream` reads every other chunk field
by field.
"""

from __future__ import annotations

from typing import Any


def only_text(event: Any) -> str | None:
    """The text of a chunk that adds text to the first sample and nothing else; None for any other event.

    The remaining fields of such a chunk are either not read by `chat_stream` or repeated in the last chunk.

    >>> only_text({"choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}]})
    'Hel'
    >>> only_text({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    """
    try:
        (piece,) = event["choices"]
        delta = piece["delta"]
        (text,) = delta.values()
        plain = (
            "content" in delta
            and type(text) is str
            and not piece.get("finish_reason")
            and not piece.get("index")
            and piece.get("logprobs") is None
            and "error" not in piece
            and "error" not in event
            and "type" not in event
            and not event.get("usage")
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
    return text if plain else None
