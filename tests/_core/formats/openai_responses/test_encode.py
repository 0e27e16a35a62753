"""Answers that go back in the next turn of the Responses format."""

from typing import Any

from hypothesis import given

from llm_provider._core.formats.openai_responses import encode as responses
from llm_provider._core.requests.request import Request
from openai_support import JSON_VALUES, PRO


def encode(prompt: Any = "Hi", **parameters: Any) -> dict[str, Any]:
    return responses.encode(Request.build("gpt-5.5-pro", prompt, parameters), PRO).payload


class TestReplay:
    @given(JSON_VALUES)
    def test_damaged_items_are_not_sent(self, content: Any) -> None:
        kept = {"provider": "openai", "content": content}
        message = {"role": "assistant", "content": "Hi", "provider_specific_fields": kept}
        assert encode([message])["input"] == [{"role": "assistant", "content": "Hi"}]
