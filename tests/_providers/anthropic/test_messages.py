"""OpenAI-style messages in Anthropic's form, and answers sent back in the next turn."""

from __future__ import annotations

import base64
from typing import Any

from anthropic_support import CURRENT, encode, user


def converted(*messages: dict[str, Any], model: str = CURRENT) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = encode(list(messages), model).payload["messages"]
    return turns


def test_a_large_image_is_encoded_quickly_enough_to_be_used() -> None:
    data = base64.b64encode(bytes(3_000_000)).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    assert converted(user([part]))[0]["content"][0]["source"]["data"] == data
