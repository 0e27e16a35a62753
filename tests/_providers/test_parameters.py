"""The parameters that few calls set: which formats have them, and what others say."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider import UnsupportedParameterError
from llm_provider._providers import registry
from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.anthropic import adapter as anthropic
from llm_provider._providers.gemini import adapter as gemini
from llm_provider._providers.litellm import adapter as litellm
from llm_provider._providers.openai import chat, responses
from llm_provider._requests.parameter_table import PARAMETERS
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve


def encode(model: str, **parameters: Any) -> EncodedRequest:
    target = resolve(model)
    request = Request.build(model, "Hi", parameters)  # type: ignore[arg-type]  # wrong on purpose, or any value
    return registry.load(target.route.adapter).encode(request, target)


FORMATS = (chat, responses, anthropic, gemini, litellm)


def test_a_parameter_that_some_format_has_has_a_remedy_for_the_others() -> None:
    sent = {name for name, row in PARAMETERS.items() if row.remedy}
    assert set().union(*(form.ACCEPTS for form in FORMATS)) == sent


@pytest.mark.parametrize(
    ("model", "parameters", "provider"),
    [
        ("gpt-4.1", {"safety_settings": {"A": "B"}}, "Gemini"),
        ("gpt-5.5", {"thinking_budget": 2000}, "Gemini 2.5"),
        ("claude-sonnet-5-5", {"frequency_penalty": 1}, "OpenAI"),
        ("claude-sonnet-5-5", {"prompt_cache_key": "k"}, "OpenAI"),
        ("gemini-3.8-flash", {"logit_bias": {1: 1}}, "OpenAI"),
        ("gemini-3.8-flash", {"previous_response_id": "r"}, "OpenAI's Responses"),
        ("deepseek/x", {"previous_response_id": "r"}, "OpenAI's Responses"),
        ("together_ai/x", {"verbosity": "low"}, "OpenAI"),
        ("mistral/x", {"user": "u"}, "OpenAI"),
        ("groq/x", {"store": True}, "OpenAI"),
        ("bedrock/x", {"metadata": {"a": "b"}}, "OpenAI"),
    ],
)
def test_a_refusal_names_the_parameter_and_who_has_it(model: str, parameters: Any, provider: str) -> None:
    (name,) = parameters
    with pytest.raises(UnsupportedParameterError, match=f"does not accept {name}: ") as caught:
        encode(model, **parameters)
    assert caught.value.parameter == name
    assert provider in str(caught.value)


def test_values_that_ask_for_nothing_are_taken_everywhere() -> None:
    for model in ("claude-sonnet-5-5", "gemini-3.8-flash", "groq/x", "gpt-5.5-pro"):
        plain = encode(model)
        assert encode(model, store=False).payload == plain.payload
    assert encode("claude-sonnet-5-5", modalities=["text"]) == encode("claude-sonnet-5-5")


def test_hosts_have_what_their_row_says() -> None:
    assert encode("groq/x", service_tier="flex").payload["service_tier"] == "flex"
    assert encode("openrouter/x", verbosity="low", modalities=["image"]).payload["modalities"] == ["image"]
    assert encode("together_ai/x", top_k=4, user="u").payload["top_k"] == 4
    assert encode("local/x", store=True).operation == "responses"
    assert encode("xai/x", previous_response_id="r").operation == "responses"
    litellm = encode("bedrock/x", safety_settings={"A": "B"}).payload
    assert litellm["safety_settings"] == [{"category": "A", "threshold": "B"}]


LABELLED = {"user": "u", "metadata": {"run": "7"}, "prompt_cache_key": "k"}


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5.5-pro"])
def test_labels_are_sent_and_not_hashed(model: str) -> None:
    found = encode(model, **LABELLED)
    assert found.payload == encode(model).payload
    assert found.labelled(found.payload) == {**found.payload, **LABELLED}
    added = encode(model, user="u", extra_body={"user": "v"})
    assert added.labelled(added.payload)["user"] == "v"
