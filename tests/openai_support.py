"""What the tests of OpenAI's formats share."""

from typing import Any

from hypothesis import strategies as st

from llm_provider._core.requests.routing import resolve

PRO = resolve("gpt-5.5-pro")
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def completion(message: dict[str, Any] | None = None, **choice: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-5.5-2026-04-23",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello", **(message or {})},
                "finish_reason": "stop",
                **choice,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
