"""What another provider has no form for is left out, and each kind of it is named once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from llm_provider._providers import left_out


def named(message: dict[str, Any], own: str = "gemini") -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        left_out.warn_of_lost_content(message, "gemini", own=own)
    texts = [str(warning.message) for warning in caught]
    assert all(
        text.endswith(", for which gemini has no form here: it is left out of the request") for text in texts
    )
    return [text.partition(",")[0].removeprefix("an earlier answer holds ") for text in texts]


def kept(provider: str, content: Any) -> dict[str, Any]:
    fields = {"provider": provider, "content": content}
    return {"role": "assistant", "content": "Hi", "provider_specific_fields": fields}


@pytest.mark.parametrize(
    ("message", "kinds"),
    [
        ({"role": "assistant", "content": "Hi", "refusal": "No", "tool_calls": [{}]}, []),
        ({"role": "assistant", "content": "Hi", "audio": None, "annotations": []}, []),
        ({"role": "assistant", "reasoning": "Hm", "audio": {"id": "a"}}, ["audio", "reasoning"]),
        (kept("anthropic", [{"type": "text", "text": "Hi"}, {"type": "tool_use"}]), []),
        (
            kept("anthropic", [{"type": "thinking"}, {"type": "text", "citations": [{}]}]),
            ["citations", "thinking"],
        ),
        (
            kept("openai", [{"type": "message", "content": [{"type": "output_text", "annotations": [{}]}]}]),
            ["annotations"],
        ),
        (
            kept("openai", [{"type": "image_generation_call"}, {"type": "function_call"}]),
            ["image_generation_call"],
        ),
        (
            kept("other", [{"text": "Hm", "thought": True}, {"functionCall": {}, "thoughtSignature": "x"}]),
            ["thought", "thoughtSignature"],
        ),
        (kept("litellm", {"thinking_blocks": [{}]}), ["thinking_blocks"]),
        (kept("gemini", [{"inlineData": {}}]), []),
        (kept("other", [None, {"type": "thinking"}, {"type": "thinking"}]), ["thinking"]),
        (kept("other", 5), []),
        ({"role": "assistant", "provider_specific_fields": "x"}, []),
    ],
)
def test_each_kind_is_named_once(message: dict[str, Any], kinds: list[str]) -> None:
    assert named(message) == kinds


def test_python_shows_each_kind_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            left_out.warn_of_empty_turn("some provider")
            left_out.warn_of_lost_content({"role": "assistant", "audio": {}, "kind": 1}, "some provider")
    assert len(caught) == 2


@pytest.mark.parametrize(("text", "sent"), [("", {}), ("{}", {}), ('{"a": [1]}', {"a": [1]})])
def test_arguments_are_an_object(text: str, sent: dict[str, Any]) -> None:
    assert left_out.call_arguments(text, "gemini") == sent


@pytest.mark.parametrize("text", ["[1]", "null", '{"city": "Be', "Bern"])
def test_other_arguments_are_sent_as_text(text: str) -> None:
    with pytest.warns(UserWarning, match="the arguments of an earlier tool call are not a JSON object"):
        assert left_out.call_arguments(text, "gemini") == {"arguments": text}
