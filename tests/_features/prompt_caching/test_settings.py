"""Units and prefixes of prompts, in every format that has a prompt cache."""

from typing import Any

import pytest

from llm_provider._core.formats import registry
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.journey.chat import Chat
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._features.prompt_caching.settings import prefixes

LONG = "Some words of a long document. " * 700
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def encoded(model: str, messages: Any, **parameters: Any) -> EncodedRequest:
    request = Request.build(model, messages, {"prompt_caching": True, **parameters})  # type: ignore[typeddict-item]  # any parameters
    target = resolve(model, None)
    return Chat().encode(request, target, registry.load(target.route.adapter))


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "gpt-5.5", "gemini-3.8-flash"])
def test_a_short_prefix_is_none(model: str) -> None:
    form = registry.load_prompt_cache(resolve(model, None))
    assert form is not None
    assert prefixes(form, encoded(model, "a", system="Be brief.").payload, model) == []
    assert encoded(model, "a", system="Be brief.").prefix is None


def test_a_text_has_a_common_beginning_where_tokens_are_compared() -> None:
    for model, expected in (("gpt-5.5", True), ("gemini-3.8-flash", True), ("claude-sonnet-5-5", False)):
        form = registry.load_prompt_cache(resolve(model, None))
        assert form is not None
        first, second = [prefixes(form, encoded(model, LONG + text).payload, model) for text in "ab"]
        assert first == second
        assert bool(first) is expected


@pytest.mark.parametrize("model", ["groq/llama-4", "local/x", "deepseek/deepseek-v4-pro", "bedrock/x"])
def test_it_is_a_hint_that_no_provider_refuses(model: str) -> None:
    request = encoded(model, "Hi", system=LONG)
    assert request.prefix is None
    assert request.payload == encoded(model, "Hi", system=LONG, prompt_caching=False).payload
