"""The OpenAI adapter: which format serves a call, and its calls through the SDK."""

import asyncio
import json
from typing import Any, ClassVar

import pytest

from llm_provider._errors import (
    APIResponseValidationError,
    InternalServerError,
    LLMError,
    RateLimitError,
    RequestError,
    UnsupportedParameterError,
)
from llm_provider._limits.timeouts import Timeouts
from llm_provider._providers.adapter import Answer, EncodedRequest, Outgoing
from llm_provider._providers.openai import adapter
from llm_provider._providers.registry import load as adapter_of
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider.simulator import Fault, Simulator
from openai_support import PRO, WEATHER
from support import ignore


def encode(model: str, **parameters: Any) -> EncodedRequest:
    return adapter.encode(Request.build(model, "Hi", parameters), resolve(model))


@pytest.mark.parametrize(
    ("model", "parameters", "operation"),
    [
        ("gpt-4.1", {"tools": [WEATHER], "temperature": 0.5}, "chat/completions"),
        ("gpt-5.5", {}, "chat/completions"),
        ("gpt-5.5", {"tools": [WEATHER]}, "responses"),
        ("gpt-5.5", {"tools": [WEATHER], "reasoning_effort": "none"}, "chat/completions"),
        ("gpt-5.6-sol", {"reasoning_effort": "max"}, "chat/completions"),
        ("gpt-5.6-sol", {"reasoning_context": "all_turns"}, "responses"),
        ("xai/grok-5", {"reasoning_context": "all_turns"}, "responses"),
        ("ft:gpt-5.5:mine::1", {"tools": [WEATHER]}, "responses"),
        ("gpt-5.5-pro", {}, "responses"),
        ("groq/gpt-5.5-pro", {"tools": [WEATHER]}, "chat/completions"),
    ],
)
def test_the_format_depends_on_the_model_and_its_parameters(
    model: str, parameters: dict[str, Any], operation: str
) -> None:
    assert encode(model, **parameters).operation == operation


@pytest.mark.parametrize(
    ("model", "parameters", "remedy"),
    [
        ("gpt-4.1", {"reasoning_effort": "low"}, "it does not reason"),
        ("gpt-5.1", {"reasoning_effort": "xhigh"}, "use one of none, low, medium, high"),
        ("gpt-5.5", {"temperature": 0.5}, "set reasoning_effort='none'"),
        ("gpt-5", {"top_p": 0.5}, "leave it out"),
        ("gpt-5.5", {"logprobs": True}, "set reasoning_effort='none'"),
    ],
)
def test_a_parameter_that_a_family_does_not_accept_is_refused(
    model: str, parameters: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(UnsupportedParameterError, match=remedy) as caught:
        encode(model, **parameters)
    assert caught.value.parameter is not None
    assert caught.value.parameter.partition("=")[0] in parameters


def test_a_reasoning_model_accepts_the_values_that_it_uses_anyway() -> None:
    payload = encode("gpt-5.5", temperature=1, top_p=1.0, logprobs=False).payload
    assert (payload["temperature"], payload["top_p"], payload["logprobs"]) == (1, 1.0, False)


async def exchange(
    simulator: Simulator, model: str, prompts: list[Any], *, stream: bool, **parameters: Any
) -> list[Answer]:
    """Send conversations one after the other through the SDK and decode what comes back."""
    connection, answers = adapter.connect("aiohttp"), []
    target = resolve(model, simulator.url("openai"))
    try:
        for prompt in prompts:
            encoded = adapter.encode(Request.build(model, prompt, dict(parameters)), target)
            assert encoded.operation == "responses"
            order = Outgoing(
                encoded, canonical(encoded.payload), target, APIKey("sk-test"), Timeouts(total=20)
            )
            if stream:
                assembler = adapter.assembler(encoded)
                async for batch in connection.stream(order, ignore):
                    for event in batch:
                        assembler.feed(event)
                reply = assembler.reply()
            else:
                reply = json.loads(await connection.send(order, ignore))
            answers.append(adapter.decode(reply))
    finally:
        await connection.close()
    return answers


@pytest.mark.parametrize("stream", [False, True])
class TestOverTheWire:
    @pytest.mark.parametrize(
        ("prompt", "parameters", "reason"),
        [
            ("What is 2+3?", {}, "stop"),
            ("Tell me more", {"max_tokens": 2}, "length"),
            ("please refuse", {}, "refusal"),
            ("use the tool", {"tools": [WEATHER], "tool_choice": "required"}, "tool_calls"),
            ("Give JSON", {"response_format": {"type": "json_object"}, "reasoning_effort": "high"}, "stop"),
        ],
    )
    def test_answers(
        self, simulator: Simulator, prompt: str, parameters: dict[str, Any], reason: str, stream: bool
    ) -> None:
        (answer,) = asyncio.run(exchange(simulator, "gpt-5.5-pro", [prompt], stream=stream, **parameters))
        (choice,) = answer.choices
        assert choice.finish_reason == reason
        assert choice.text or choice.tool_calls
        assert answer.usage is not None
        assert answer.usage.total_tokens == simulator.ledger().input_tokens + simulator.ledger().output_tokens
        (request,) = simulator.requests("openai")
        encoded = adapter.encode(Request.build("gpt-5.5-pro", prompt, parameters), PRO)
        assert request.path.endswith("/responses")
        assert request.body == {**encoded.payload, **({"stream": True} if stream else {})}

    def test_the_next_turn_takes_the_answer_and_the_connection(
        self, simulator: Simulator, stream: bool
    ) -> None:
        tools = {"tools": [WEATHER], "tool_choice": "required"}
        user = {"role": "user", "content": "use the tool"}
        (answer,) = asyncio.run(exchange(simulator, "gpt-6.1-sol", [[user]], stream=stream, **tools))
        message, (call,) = answer.choices[0].message, answer.choices[0].tool_calls
        conversation = [user, message, {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        simulator.clear()
        asyncio.run(
            exchange(simulator, "gpt-6.1-sol", [conversation, conversation], stream=stream, tools=[WEATHER])
        )
        sent = simulator.requests("openai")[0].body["input"]
        assert sent[1:-1] == message["provider_specific_fields"]["content"]
        assert sent[-1] == {"type": "function_call_output", "call_id": call.id, "output": "sunny"}
        assert simulator.ledger().connections == 1

    def test_errors(self, simulator: Simulator, stream: bool) -> None:
        simulator.inject(Fault(status=429, retry_after="3"), provider="openai")
        with pytest.raises(Exception, match="429") as caught:
            asyncio.run(exchange(simulator, "gpt-5.5-pro", ["Hi"], stream=stream))
        error = adapter.map_error(caught.value)
        assert isinstance(error, RateLimitError)
        assert error.retry_after == 3.0


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(cut_after=1), APIResponseValidationError),
        (Fault(empty_stream=True), APIResponseValidationError),
        (Fault(error_after=0), InternalServerError),
        (Fault(error_after=1, status=429), RateLimitError),
    ],
)
def test_a_broken_stream_is_an_error_of_ours(
    simulator: Simulator, fault: Fault, kind: type[LLMError]
) -> None:
    simulator.inject(fault, provider="openai")
    with pytest.raises(kind) as caught:
        asyncio.run(exchange(simulator, "gpt-5.5-pro", ["Tell me more"], stream=True))
    assert caught.value.maybe_billed


class TestEndpoint:
    @pytest.mark.parametrize(
        ("model", "parameters", "operation"),
        [
            ("gpt-5.5", {}, "chat/completions"),
            ("gpt-5.5", {"endpoint": "responses"}, "responses"),
            ("local/qwen", {"endpoint": "responses"}, "responses"),
            ("gpt-5.5-pro", {"endpoint": "chat"}, "chat/completions"),
            ("gpt-5.5", {"endpoint": "chat", "tools": [WEATHER]}, "chat/completions"),
            ("gpt-5.5", {"extra_body": {"previous_response_id": "resp_1"}}, "responses"),
            ("gpt-5.5", {"extra_body": {"reasoning": {"summary": "auto"}}}, "responses"),
            ("gpt-5.5", {"extra_body": {"service_tier": "flex"}}, "chat/completions"),
            # A host of another provider may know these fields.
            ("openrouter/openai/gpt-5.5", {"extra_body": {"reasoning": {}}}, "chat/completions"),
            ("gpt-5.1", {"tools": [{"type": "web_search"}]}, "responses"),
            ("gpt-5.1", {"tools": [WEATHER]}, "chat/completions"),
        ],
    )
    def test_the_endpoint_can_be_chosen_and_follows_from_what_only_one_has(
        self, model: str, parameters: Any, operation: str
    ) -> None:
        request = Request.build(model, "Hi", parameters)
        assert adapter.encode(request, resolve(model)).operation == operation

    def test_fields_that_only_responses_has_are_those_of_the_sdk(self) -> None:
        from openai.types.chat.completion_create_params import CompletionCreateParamsBase
        from openai.types.responses.response_create_params import ResponseCreateParamsBase

        of_chat = CompletionCreateParamsBase.__annotations__.keys()
        # Older releases of the SDK know fewer of them.
        assert ResponseCreateParamsBase.__annotations__.keys() - of_chat <= adapter._ONLY_RESPONSES
        assert not of_chat & adapter._ONLY_RESPONSES


class TestTools:
    CUSTOM: ClassVar[Any] = {"type": "custom", "custom": {"name": "grep", "format": {"type": "text"}}}

    def test_tools_that_are_no_functions_pass(self) -> None:
        own = {"type": "openrouter:web_search", "parameters": {"engine": "exa"}}
        request = Request.build("openrouter/openai/gpt-5.5", "Hi", {"tools": [WEATHER, own]})
        assert adapter.encode(request, resolve(request.model)).payload["tools"] == [WEATHER, own]
        choice = {"type": "custom", "custom": {"name": "grep"}}
        request = Request.build("gpt-5.1", "Hi", {"tools": [self.CUSTOM], "tool_choice": choice})
        payload = adapter.encode(request, resolve(request.model)).payload
        assert (payload["tools"], payload["tool_choice"]) == ([self.CUSTOM], choice)

    def test_responses_has_them_in_its_own_form(self) -> None:
        search = {"type": "web_search", "search_context_size": "low"}
        choice = {"type": "custom", "custom": {"name": "grep"}}
        request = Request.build("gpt-5.5-pro", "Hi", {"tools": [self.CUSTOM, search], "tool_choice": choice})
        payload = adapter.encode(request, resolve(request.model)).payload
        assert payload["tools"] == [{"type": "custom", "name": "grep", "format": {"type": "text"}}, search]
        assert payload["tool_choice"] == {"type": "custom", "name": "grep"}

    @pytest.mark.parametrize(
        "model", ["gpt-5.1", "gpt-5.5-pro", "local/qwen", "gemini-3.8-flash", "claude-opus-5-5"]
    )
    def test_tools_of_extra_body_are_added(self, model: str) -> None:
        extra = {"google_search": {}} if model.startswith("gemini") else {"type": "web_search", "name": "s"}
        target = resolve(model)
        request = Request.build(model, "Hi", {"tools": [WEATHER], "extra_body": {"tools": [extra]}})
        alone = Request.build(model, "Hi", {"tools": [WEATHER]})
        encode = adapter_of(target.route.adapter).encode
        assert encode(request, target).payload["tools"] == [*encode(alone, target).payload["tools"], extra]

    @pytest.mark.parametrize("model", ["gpt-5.5", "claude-opus-5-5", "gemini-3.8-flash", "mistral/m"])
    def test_what_only_groq_has_is_refused_elsewhere(self, model: str) -> None:
        request = Request.build("groq/openai/gpt-oss-120b", "Hi", {"reasoning_effort": "default"})
        payload = adapter.encode(request, resolve(request.model)).payload
        assert payload["reasoning_effort"] == "default"
        with pytest.raises(UnsupportedParameterError, match="reasoning_effort"):
            request = Request.build(model, "Hi", {"reasoning_effort": "default"})
            adapter_of(resolve(model).route.adapter).encode(request, resolve(model))


class TestOptions:
    """The parameters that few calls set."""

    @pytest.mark.parametrize(
        ("model", "parameters", "fields"),
        [
            ("gpt-4.1", {"frequency_penalty": 1, "presence_penalty": -1}, {"frequency_penalty": 1}),
            ("gpt-4.1", {"logit_bias": {50256: -100}}, {"logit_bias": {"50256": -100}}),
            ("gpt-5.5", {"service_tier": "flex"}, {"service_tier": "flex"}),
            ("gpt-5.5", {"verbosity": "low"}, {"verbosity": "low"}),
            ("gpt-4.1", {"store": False}, {"store": False}),
            ("gpt-4.1", {"endpoint": "chat", "store": True}, {"store": True}),
            ("gpt-4.1", {"tools": [WEATHER], "parallel_tool_calls": False}, {"parallel_tool_calls": False}),
            (
                "gpt-4.1",
                {"tools": [WEATHER], "allowed_tools": ["weather"], "tool_choice": "required"},
                {
                    "tool_choice": {
                        "type": "allowed_tools",
                        "allowed_tools": {
                            "mode": "required",
                            "tools": [{"type": "function", "function": {"name": "weather"}}],
                        },
                    }
                },
            ),
            ("gpt-5.5-pro", {"verbosity": "high"}, {"text": {"verbosity": "high"}}),
            (
                "gpt-5.5-pro",
                {"reasoning_summary": "concise", "reasoning_effort": "low"},
                {"reasoning": {"effort": "low", "summary": "concise"}},
            ),
            (
                "gpt-5.5-pro",
                {"tools": [WEATHER], "allowed_tools": ["weather"]},
                {
                    "tool_choice": {
                        "type": "allowed_tools",
                        "mode": "auto",
                        "tools": [{"type": "function", "name": "weather"}],
                    }
                },
            ),
        ],
    )
    def test_the_native_form(self, model: str, parameters: Any, fields: dict[str, Any]) -> None:
        payload = encode(model, **parameters).payload
        assert {name: payload[name] for name in fields} == fields

    def test_stored_answers_and_summaries_are_asked_of_responses(self) -> None:
        for parameters in ({"store": True}, {"previous_response_id": "r"}, {"reasoning_summary": "auto"}):
            found = encode("gpt-5.5", **parameters)
            assert found.operation == "responses"
            assert found.payload["store"] is parameters.get("store", False)
        assert encode("gpt-5.5", store=False).operation == "chat/completions"
        with pytest.raises(UnsupportedParameterError, match="OpenAI's Responses has it"):
            encode("gpt-5.5", previous_response_id="r", endpoint="chat")

    @pytest.mark.parametrize(
        ("model", "parameters", "parameter"),
        [
            ("gpt-5.5", {"frequency_penalty": 1}, "frequency_penalty"),
            ("gpt-4.1", {"verbosity": "low"}, "verbosity"),
            ("gpt-4.1", {"reasoning_summary": "auto"}, "reasoning_summary"),
            ("gpt-4.1", {"top_k": 4}, "top_k"),
            ("gpt-4.1", {"modalities": ["image"]}, "the modality 'image'"),
            ("gpt-5.2", {"logit_bias": {1: 1}, "reasoning_effort": "low"}, "logit_bias"),
            ("gpt-5.5-pro", {"modalities": ["audio"], "extra_body": {"audio": {}}}, "modalities"),
        ],
    )
    def test_the_rest_is_refused_by_name(self, model: str, parameters: Any, parameter: str) -> None:
        with pytest.raises(UnsupportedParameterError) as caught:
            encode(model, **parameters)
        assert caught.value.parameter == parameter

    def test_custom_tools_may_be_allowed_too(self) -> None:
        asked = {
            "tools": [WEATHER, {"type": "custom", "custom": {"name": "grep"}}],
            "allowed_tools": ["grep"],
        }
        choice = encode("gpt-4.1", **asked).payload["tool_choice"]
        assert choice["allowed_tools"]["tools"] == [{"type": "custom", "custom": {"name": "grep"}}]
        choice = encode("gpt-5.5-pro", **asked).payload["tool_choice"]
        assert choice["tools"] == [{"type": "custom", "name": "grep"}]

    def test_speech_needs_a_voice(self) -> None:
        with pytest.raises(RequestError, match="say how it sounds"):
            encode("gpt-audio", modalities=["text", "audio"])
        audio = {"voice": "alloy", "format": "wav"}
        found = encode("gpt-audio", modalities=["text", "audio"], extra_body={"audio": audio})
        assert found.payload["modalities"] == ["text", "audio"]

    def test_the_service_tier_sets_the_price(self) -> None:
        for model in ("gpt-5.5", "gpt-5.5-pro"):
            assert adapter.variant(encode(model, service_tier="flex")) == "flex"
            assert adapter.variant(encode(model, service_tier="fast")) == "priority"
            assert adapter.facts(encode(model, service_tier="priority")).variant == "priority"
