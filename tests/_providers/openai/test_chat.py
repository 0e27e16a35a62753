"""The Chat Completions wire format: payloads per host, replies, streams, usage."""

import warnings
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel, Field

from llm_provider._errors import (
    APIResponseValidationError,
    LLMError,
    OverloadedError,
    RateLimitError,
    RequestError,
    UnsupportedParameterError,
)
from llm_provider._providers.openai import chat
from llm_provider._requests.parameter_table import PARAMETERS
from llm_provider._requests.request import Request
from llm_provider._requests.routing import ROUTES, resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider._types.messages import ToolCall
from llm_provider._types.usage import Usage
from openai_support import JSON_VALUES, completion

USER = {"role": "user", "content": "Hi"}

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def encode(model: str, prompt: Any = "Hi", **parameters: Any) -> dict[str, Any]:
    return chat.encode(Request.build(model, prompt, parameters), resolve(model)).payload


class TestEncode:
    def test_every_parameter_is_in_the_payload(self) -> None:
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
        payload = encode(
            "local/qwen",
            system="Be brief.",
            max_tokens=100,
            temperature=0.5,
            top_p=0.9,
            stop=["a", "b"],
            seed=7,
            n=2,
            tools=[TOOL],
            tool_choice="auto",
            response_format=schema,
            reasoning_effort="low",
            top_logprobs=2,
            extra_body={"top_k": 5, "response_format": {"strict": True}},
        )
        assert payload == {
            "model": "qwen",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            "max_tokens": 100,
            "temperature": 0.5,
            "top_p": 0.9,
            "stop": ["a", "b"],
            "seed": 7,
            "tools": [TOOL],
            "tool_choice": "auto",
            "response_format": {**schema, "strict": True},
            "reasoning_effort": "low",
            "logprobs": True,
            "top_logprobs": 2,
            "top_k": 5,
        }
        canonical(payload)

    def test_what_is_not_set_is_not_sent(self) -> None:
        assert encode("local/qwen") == {"model": "qwen", "messages": [{"role": "user", "content": "Hi"}]}
        assert encode("local/qwen", temperature=None, stop=[], tools=[]) == encode("local/qwen")

    def test_zero_is_set(self) -> None:
        payload = encode("local/qwen", temperature=0, seed=0)
        assert (payload["temperature"], payload["seed"]) == (0, 0)

    def test_the_name_of_max_tokens_is_the_callers(self) -> None:
        request = Request.build("gpt-5.5", "Hi", {"max_tokens": 9})
        encoded = chat.encode(request, resolve("gpt-5.5"), accepts=chat.OPENAIS)
        assert encoded.payload["max_completion_tokens"] == 9
        assert "max_tokens" not in encoded.payload

    def test_hosts_spell_parameters_their_way(self) -> None:
        assert encode("mistral/mistral-large-4", seed=3)["random_seed"] == 3
        together = encode("together_ai/zai-org/GLM-5.3", top_logprobs=4)
        assert together["logprobs"] == 4
        assert "top_logprobs" not in together
        assert encode("together_ai/zai-org/GLM-5.3", logprobs=True)["logprobs"] == 1

    @pytest.mark.parametrize("route", [route for route in ROUTES.values() if route.adapter == "openai"])
    def test_what_a_host_lacks_is_refused_with_its_remedy(self, route: Any) -> None:
        values = {"seed": 1, "logprobs": True, "top_logprobs": 2}
        for name in route.lacks & values.keys():
            with pytest.raises(UnsupportedParameterError, match=PARAMETERS[name].remedy) as caught:
                encode(f"{route.provider}/some-model", **{name: values[name]})
            assert caught.value.provider == route.provider

    def test_samples_are_separate_calls_where_the_host_has_no_n(self) -> None:
        for model, field, most in (("groq/llama", (), 1), ("xai/grok-4.7", ("n",), 128)):
            encoded = chat.encode(Request.build(model, "Hi", {"n": 3}), resolve(model))
            assert (encoded.samples_field, encoded.most_samples) == (field, most)
            # How many are asked for at once is no part of what is asked: each sample is an entry of its own.
            assert "n" not in encoded.payload

    def test_a_pydantic_model_becomes_its_schema(self) -> None:
        class City(BaseModel):
            name: str

        asked = encode("local/qwen", response_format=City)["response_format"]
        assert asked["type"] == "json_schema"
        assert asked["json_schema"]["name"] == "City"
        assert asked["json_schema"]["schema"]["required"] == ["name"]

    def test_openais_models_are_held_to_it(self) -> None:
        class City(BaseModel):
            name: str
            people: int = Field(1, ge=1)

        class Table(BaseModel):
            cells: dict[str, int]

        inner = encode("gpt-6.1-sol", response_format=City)["response_format"]["json_schema"]
        assert (inner["name"], inner["strict"]) == ("City", True)
        assert inner["schema"]["required"] == ["name", "people"]
        assert inner["schema"]["properties"]["people"]["anyOf"][0]["minimum"] == 1
        tuned = encode("ft:gpt-5.5:me::1", response_format=City)["response_format"]["json_schema"]
        assert "minimum" not in tuned["schema"]["properties"]["people"]["anyOf"][0]
        # Strict mode has no form for free keys.
        free = encode("gpt-6.1-sol", response_format=Table)["response_format"]["json_schema"]
        assert free == {"name": "Table", "schema": Table.model_json_schema()}
        # The rules of other hosts differ, and the schema stays as it is.
        other = encode("groq/llama", response_format=City)["response_format"]["json_schema"]
        assert other == {"name": "City", "schema": City.model_json_schema()}

    @pytest.mark.parametrize("model", ["gpt-6.1-sol", "groq/llama", "litellm/cohere/command"])
    def test_an_answer_that_is_no_object_is_wrapped(self, model: str) -> None:
        schema = encode(model, response_format=list[int])["response_format"]["json_schema"]["schema"]
        assert schema["properties"] == {"answer": {"items": {"type": "integer"}, "type": "array"}}

    def test_a_bare_schema_is_adapted_and_openais_form_is_not(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        inner = encode("gpt-6.1-sol", response_format=schema)["response_format"]["json_schema"]
        assert (inner["name"], inner["schema"]["required"]) == ("answer", ["a"])
        asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
        assert encode("gpt-6.1-sol", response_format=asked)["response_format"] == asked

    def test_a_host_without_schemas_gets_it_in_the_prompt(self) -> None:
        model = "deepseek/deepseek-v4-pro"
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        encoded = chat.encode(Request.build(model, "Hi", {"response_format": schema}), resolve(model))
        assert encoded.payload["response_format"] == {"type": "json_object"}
        system, user = encoded.payload["messages"]
        assert (system["role"], user) == ("system", {"role": "user", "content": "Hi"})
        assert '"a":{"type":"integer"}' in system["content"]
        assert encoded.structure is not None
        assert encoded.structure.in_prompt
        plain = chat.encode(
            Request.build(model, "Hi", {"response_format": {"type": "json_object"}}), resolve(model)
        )
        assert len(plain.payload["messages"]) == 1

    @pytest.mark.parametrize(
        ("model", "kept"),
        [
            ("gpt-5.5", set()),
            ("mistral/mistral-large-4", set()),
            ("groq/openai/gpt-oss-120b", {"reasoning"}),
            ("deepseek/deepseek-v4-pro", {"reasoning", "reasoning_content", "thinking_blocks"}),
        ],
    )
    def test_reasoning_goes_back_to_hosts_that_take_it(self, model: str, kept: set[str]) -> None:
        reasoning = {
            "reasoning": "Hm.",
            "reasoning_content": "Hm.",
            "thinking_blocks": [{"type": "thinking"}],
        }
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            (message,) = encode(model, [{"role": "assistant", "content": "Hi", **reasoning}])["messages"]
        assert set(message) == {"role", "content"} | kept
        named = [str(warning.message).partition(",")[0] for warning in caught]
        assert named == [f"an earlier answer holds {name}" for name in sorted(reasoning.keys() - kept)]

    @pytest.mark.parametrize("content", [{}, {"content": None}, {"content": []}])
    def test_an_answer_without_content_is_left_out(self, content: dict[str, Any]) -> None:
        with pytest.warns(UserWarning, match="an earlier answer is empty, for which openai has no form"):
            messages = encode("gpt-5.5", [USER, {"role": "assistant", **content}, USER])["messages"]
        assert messages == [USER, USER]

    def test_openai_takes_an_empty_text(self) -> None:
        empty = {"role": "assistant", "content": ""}
        assert encode("gpt-5.5", [USER, empty, USER])["messages"] == [USER, empty, USER]

    def test_a_host_needs_the_content_of_an_answer_that_only_reasoned(self) -> None:
        thought = {"role": "assistant", "content": None, "reasoning_content": "Hm."}
        (message,) = encode("deepseek/deepseek-v4-pro", [thought])["messages"]
        assert message == {**thought, "content": ""}

    def test_a_server_of_the_users_own_gets_all(self) -> None:
        request = Request.build(
            "openai/x", [{"role": "assistant", "content": "Hi", "reasoning_content": "Hm."}], {}
        )
        target = resolve("openai/x", "http://localhost:8000/v1")
        assert "reasoning_content" in chat.encode(request, target).payload["messages"][0]

    def test_our_own_fields_of_a_message_stay_here(self) -> None:
        message = {"role": "assistant", "content": "Hi", "provider_specific_fields": {"provider": "gemini"}}
        assert encode("local/qwen", [message])["messages"] == [{"role": "assistant", "content": "Hi"}]
        assert "provider_specific_fields" in message


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}} for name in "ab"
    ],
}


class TestPartsOfOtherHosts:
    def test_the_image_of_a_result_follows_the_results(self) -> None:
        """A tool message of OpenAI's has text only."""
        text = {"type": "text", "text": "Seen"}
        results = [
            {"role": "tool", "tool_call_id": "a", "content": [IMAGE]},
            {"role": "tool", "tool_call_id": "b", "content": [text, IMAGE]},
        ]
        expected = [
            {
                "role": "tool",
                "tool_call_id": "a",
                "content": "The result is in the next message of the user.",
            },
            {"role": "tool", "tool_call_id": "b", "content": [text]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "From the result of the tool call a:"},
                    IMAGE,
                    {"type": "text", "text": "From the result of the tool call b:"},
                    IMAGE,
                ],
            },
        ]
        for more in ([], [USER]):
            assert encode("gpt-4.1", [USER, CALLS, *results, *more])["messages"][2:] == [*expected, *more]
        for host in ("openrouter", "mistral", "local"):
            assert encode(f"{host}/m", [USER, CALLS, *results])["messages"][2:] == results

    def test_thinking_goes_to_the_hosts_that_have_it(self) -> None:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
        text = {"type": "text", "text": "Hi"}
        answer = {"role": "assistant", "content": [thinking, text]}
        assert encode("mistral/mistral-large-4", [answer])["messages"] == [answer]
        with pytest.warns(UserWarning, match="thinking of another provider's model, for which openai"):
            assert encode("gpt-4.1", [answer])["messages"] == [{"role": "assistant", "content": [text]}]
        with pytest.warns(UserWarning, match="has no form") as caught:
            assert encode("gpt-4.1", [USER, {**answer, "content": [thinking]}])["messages"] == [USER]
        assert len(caught) == 2

    @pytest.mark.parametrize("kind", ["video_url", "document_url"])
    def test_openai_has_no_form_for_a_part(self, kind: str) -> None:
        message = {"role": "user", "content": [{"type": kind, kind: {"url": "https://x/a"}}]}
        with pytest.raises(RequestError, match=rf"messages\[0\].content\[0\] has type '{kind}'"):
            encode("gpt-4.1", [message])
        assert encode("openrouter/m", [message])["messages"] == [message]

    def test_openai_does_not_continue_an_answer(self) -> None:
        begun = {"role": "assistant", "content": "It", "prefix": True}
        with pytest.raises(RequestError, match=r"messages\[1\] has 'prefix'"):
            encode("gpt-4.1", [USER, begun])
        assert encode("deepseek/deepseek-v4-pro", [USER, begun])["messages"] == [USER, begun]


class TestAnswersSentBack:
    def test_a_host_gets_its_own_fields_back(self) -> None:
        details = [{"type": "reasoning.encrypted", "data": "ZW5j", "id": "rs_1", "index": 0}]
        signed = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        signed["extra_content"] = {"google": {"thought_signature": "c2ln"}}
        given = {"content": None, "tool_calls": [signed], "reasoning_details": details, "x_new": 1}
        message = chat.decode(completion(given, finish_reason="tool_calls")).choices[0].message
        assert encode("openrouter/google/gemini-3.8-flash", [message])["messages"] == [
            {"role": "assistant", **given}
        ]
        # OpenAI refuses another host's reasoning.
        with pytest.warns(UserWarning, match="reasoning_details"):
            (sent,) = encode("gpt-5.1", [message])["messages"]
        assert "reasoning_details" not in sent

    def test_of_a_spoken_answer_the_id_goes_back(self) -> None:
        audio = {"id": "audio_1", "data": "AAAA", "expires_at": 1, "transcript": "Hello"}
        message = chat.decode(completion({"content": None, "audio": audio})).choices[0].message
        conversation = [{"role": "user", "content": "Hi"}, {**message, "content": "Hello"}]
        assert encode("gpt-audio", conversation)["messages"][1]["audio"] == {"id": "audio_1"}
        assert message["audio"] == audio

    def test_fields_and_parts_of_one_host_pass(self) -> None:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
        messages = [
            {
                "role": "user",
                "name": "ann",
                "content": [{"type": "document_url", "document_url": "https://x/y"}],
            },
            {"role": "assistant", "content": [thinking, {"type": "text", "text": "He"}], "prefix": True},
        ]
        assert encode("mistral/mistral-large-4", messages)["messages"] == messages

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "image", "path": "a.png"},
            {"type": "image_url", "image_url": {"path": "a.png"}},
            {"type": "image_url", "path": "a.png", "image_url": "a.png"},
        ],
    )
    def test_an_image_in_a_file_is_refused_with_a_hint(self, part: Any) -> None:
        with pytest.raises(RequestError, match=r"messages\[0\].content\[1\].*data:image"):
            encode("local/qwen", [{"role": "user", "content": [{"type": "text", "text": "See"}, part]}])


class TestDecode:
    def test_a_whole_answer(self) -> None:
        answer = chat.decode({**completion({"reasoning_content": "Greeting."}), "service_tier": "flex"})
        (choice,) = answer.choices
        assert (choice.text, choice.reasoning, choice.finish_reason) == ("Hello", "Greeting.", "stop")
        assert choice.message == {"role": "assistant", "content": "Hello", "reasoning_content": "Greeting."}
        assert (answer.id, answer.model, answer.service_tier) == ("chatcmpl-1", "gpt-5.5-2026-04-23", "flex")
        assert answer.usage == Usage(input_tokens=10, output_tokens=5)

    def test_an_empty_reasoning_field_does_not_hide_the_other(self) -> None:
        answer = chat.decode(completion({"reasoning_content": "", "reasoning": "Hm."}))
        assert answer.choices[0].reasoning == "Hm."

    @pytest.mark.parametrize(
        ("word", "expected"),
        [
            ("stop", "stop"),
            ("eos", "stop"),
            ("length", "length"),
            ("content_filter", "content_filter"),
            ("function_call", "tool_calls"),
            ("something-new", "stop"),
        ],
    )
    def test_finish_reasons(self, word: str, expected: str) -> None:
        assert chat.decode(completion(finish_reason=word)).choices[0].finish_reason == expected

    def test_tool_calls_end_the_answer_whatever_the_host_says(self) -> None:
        call = {"id": "1", "type": "function", "function": {"name": "now", "arguments": ""}}
        choice = chat.decode(completion({"content": None, "tool_calls": [call]})).choices[0]
        assert choice.finish_reason == "tool_calls"
        assert choice.tool_calls == (ToolCall(id="1", name="now", arguments="{}"),)
        assert choice.message == {"role": "assistant", "content": None, "tool_calls": [call]}

    def test_a_refusal_is_its_text(self) -> None:
        choice = chat.decode(completion({"content": None, "refusal": "I cannot."})).choices[0]
        assert (choice.text, choice.finish_reason) == ("I cannot.", "refusal")
        # The next turn takes it.
        Request.build("gpt-5.5", [choice.message], {})

    def test_content_in_parts_is_told_apart_and_kept(self) -> None:
        parts = [
            {
                "type": "thinking",
                "thinking": [{"type": "text", "text": "Hm, "}, {"type": "text", "text": "yes."}],
            },
            {"type": "text", "text": "Hel"},
            {"type": "text", "text": "lo"},
        ]
        choice = chat.decode(completion({"content": parts})).choices[0]
        assert (choice.text, choice.reasoning) == ("Hello", "Hm, yes.")
        assert choice.message["content"] == parts

    @pytest.mark.parametrize("word", ["error", "abort", "insufficient_system_resource"])
    def test_an_answer_that_the_host_broke_off_is_an_error(self, word: str) -> None:
        with pytest.raises(APIResponseValidationError, match=word):
            chat.decode(completion(finish_reason=word))

    def test_the_error_of_a_choice_is_an_error(self) -> None:
        with pytest.raises(OverloadedError, match="upstream is full"):
            chat.decode(
                completion(finish_reason="error", error={"code": "slow_down", "message": "upstream is full"})
            )

    def test_an_error_with_status_200_is_an_error(self) -> None:
        with pytest.raises(RateLimitError, match="slow down") as caught:
            chat.decode({"error": {"type": "rate_limit_error", "message": "slow down"}})
        assert caught.value.maybe_billed

    @pytest.mark.parametrize(
        "reply",
        [
            None,
            "text",
            [],
            {},
            {"choices": []},
            {"choices": {"0": {}}},
            {"choices": [None]},
            {"choices": [{}]},
            {**completion({"content": None}, finish_reason=None), "usage": None},
            completion(finish_reason=["stop"]),
            completion({"content": 5}),
            completion({"tool_calls": 5}),
            completion({"tool_calls": [{"function": {}}]}),
            completion({"tool_calls": [{"function": {"name": "x", "arguments": {"a": 1}}}]}),
        ],
    )
    def test_what_is_not_a_whole_answer_is_an_error(self, reply: Any) -> None:
        with pytest.raises(APIResponseValidationError):
            chat.decode(reply)

    @pytest.mark.parametrize("word", [None, "", "new_word"])
    def test_an_empty_answer_that_was_billed_is_an_answer(self, word: Any) -> None:
        choice = chat.decode(completion({"content": None}, finish_reason=word)).choices[0]
        assert (choice.text, choice.finish_reason) == ("", "stop")

    def test_an_answer_without_a_finish_reason_may_be_an_image(self) -> None:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        reply = {**completion({"content": "", "images": [image]}, finish_reason=None), "usage": None}
        assert chat.decode(reply).choices[0].message["images"] == [image]

    @given(JSON_VALUES, JSON_VALUES, JSON_VALUES)
    def test_nothing_but_our_errors_comes_out_of_any_json(self, a: Any, b: Any, c: Any) -> None:
        message = {"content": a, "tool_calls": b, "refusal": c, "reasoning": a}
        for reply in (
            a,
            {"choices": a, "usage": b, "error": c},
            completion(message),
            completion({"content": [{"type": "thinking", "thinking": a}]}),
            {**completion(finish_reason=a, logprobs=b, error=c), "usage": {"prompt_tokens_details": a}},
            completion({"tool_calls": [{"id": a, "function": {"name": b, "arguments": c}}]}),
        ):
            try:
                chat.decode(reply)
            except LLMError:
                continue
