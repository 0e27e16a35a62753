"""The Messages adapter: what is sent, what is read, and both through the real SDK."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import orjson
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._errors import (
    APIConnectionError,
    APIResponseValidationError,
    AuthenticationError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    OverloadedError,
    QuotaExceededError,
    RateLimitError,
    RequestError,
    UnsupportedParameterError,
)
from llm_provider._limits.timeouts import Timeouts
from llm_provider._providers.adapter import EncodedRequest, Outgoing
from llm_provider._providers.anthropic import adapter
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider._types import Usage, delta_of
from llm_provider.simulator import Fault, Simulator
from support import ignore, wait_until

OLD, CURRENT, ALWAYS = "claude-haiku-4-5", "claude-opus-5", "claude-sonnet-5-5"
PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def encode(messages: Any = "Hi", model: str = CURRENT, **parameters: Any) -> EncodedRequest:
    return adapter.encode(Request.build(model, messages, parameters), resolve(model))


def converted(*messages: dict[str, Any], model: str = CURRENT) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = encode(list(messages), model).payload["messages"]
    return turns


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def call(identifier: str, arguments: str = '{"city":"Bern"}') -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": "weather", "arguments": arguments}}


class TestParameters:
    def test_the_smallest_request(self) -> None:
        encoded = encode("Hi")
        assert encoded == EncodedRequest(
            "messages",
            {"model": CURRENT, "max_tokens": 32_000, "messages": [{"role": "user", "content": "Hi"}]},
        )

    def test_what_every_model_takes(self) -> None:
        encoded = encode(
            "Hi", max_tokens=7, stop=["END"], n=3, logprobs=False, extra_headers={"X-Trace": "1"}
        )
        assert encoded.payload["max_tokens"] == 7
        assert encoded.payload["stop_sequences"] == ["END"]
        assert (encoded.samples_field, encoded.most_samples) == ((), 1)
        assert encoded.headers == {"x-trace": "1"}

    @pytest.mark.parametrize(
        "model", [OLD, "claude-sonnet-4-5-20250929", "claude-opus-4-6", "claude-sonnet-4-6"]
    )
    def test_sampling_asks_older_models_with_the_api_version_that_takes_it(self, model: str) -> None:
        encoded = encode("Hi", model, temperature=0.2)
        assert encoded.payload["temperature"] == 0.2
        assert encoded.headers == {"anthropic-version": "2023-06-01"}
        assert encode("Hi", model).headers == {}
        assert encode("Hi", model, extra_body={"top_k": 5}).headers == {"anthropic-version": "2023-06-01"}

    @pytest.mark.parametrize(
        ("model", "parameters", "parameter"),
        [
            ("claude-opus-4-7", {"temperature": 0.5}, "temperature"),
            ("claude-opus-5", {"temperature": 1.0}, "temperature"),
            ("claude-haiku-5-5", {"top_p": 0.5}, "top_p"),
            ("claude-fable-5-2", {"temperature": 0}, "temperature"),
            (OLD, {"temperature": 1.5}, "a temperature above 1"),
            (OLD, {"temperature": 0.5, "top_p": 0.5}, "temperature and top_p together"),
            (
                OLD,
                {"temperature": 0.5, "reasoning_effort": "low"},
                "temperature together with reasoning_effort",
            ),
            (CURRENT, {"seed": 1}, "seed"),
            (CURRENT, {"logprobs": True}, "logprobs"),
            (CURRENT, {"top_logprobs": 2}, "logprobs"),
            (
                CURRENT,
                {"response_format": {"type": "json_object"}},
                "response_format={'type': 'json_object'}",
            ),
            (CURRENT, {"reasoning_effort": "minimal"}, "reasoning_effort='minimal'"),
            (ALWAYS, {"reasoning_effort": "none"}, "reasoning_effort='none'"),
            ("claude-sonnet-4-6", {"reasoning_effort": "xhigh"}, "reasoning_effort='xhigh'"),
            (OLD, {"reasoning_effort": "max"}, "reasoning_effort='max'"),
        ],
    )
    def test_what_a_model_cannot_honour_is_refused_by_name(
        self, model: str, parameters: dict[str, Any], parameter: str
    ) -> None:
        with pytest.raises(UnsupportedParameterError, match=model) as caught:
            encode("Hi", model, **parameters)
        assert caught.value.parameter == parameter
        assert ": " in str(caught.value), "the message says what to do instead"

    def test_a_model_not_known_decides_itself(self) -> None:
        encoded = encode("Hi", "claude-next-9", temperature=0.5, top_p=0.5, reasoning_effort="max")
        assert encoded.payload["temperature"] == encoded.payload["top_p"] == 0.5

    @pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh", "max"])
    def test_effort_on_current_models(self, effort: str) -> None:
        payload = encode("Hi", ALWAYS, reasoning_effort=effort).payload
        assert payload["thinking"] == {"type": "adaptive", "display": "summarized"}
        assert payload["output_config"] == {"effort": effort}

    def test_effort_as_a_budget_on_older_models(self) -> None:
        payload = encode("Hi", OLD, reasoning_effort="medium").payload
        assert payload["thinking"] == {"type": "enabled", "budget_tokens": 2048}
        with pytest.raises(RequestError, match="raise max_tokens"):
            encode("Hi", OLD, reasoning_effort="medium", max_tokens=2048)

    def test_thinking_switched_off(self) -> None:
        assert encode("Hi", CURRENT, reasoning_effort="none").payload["thinking"] == {"type": "disabled"}

    @pytest.mark.parametrize(
        "extra", [{"thinking": {"type": "disabled"}}, {"output_config": {"effort": "low"}}]
    )
    def test_effort_said_twice(self, extra: dict[str, Any]) -> None:
        with pytest.raises(RequestError, match="both say"):
            encode("Hi", reasoning_effort="low", extra_body=extra)
        assert "thinking" not in encode("Hi", extra_body={"metadata": {}}).payload

    def test_extra_body_is_merged_last(self) -> None:
        extra = {"service_tier": "auto", "output_config": {"task": 1}, "max_tokens": 5}
        payload = encode("Hi", reasoning_effort="low", extra_body=extra).payload
        assert payload["service_tier"] == "auto"
        assert payload["output_config"] == {"effort": "low", "task": 1}
        assert payload["max_tokens"] == 5


class TestTools:
    def test_translation(self) -> None:
        tool = {**TOOL, "cache_control": {"type": "ephemeral"}}
        bare = {"type": "function", "function": {"name": "now", "strict": True}}
        assert encode("Hi", tools=[tool, bare]).payload["tools"] == [
            {
                "name": "weather",
                "description": "Tells the weather.",
                "input_schema": TOOL["function"]["parameters"],  # type: ignore[index]  # a literal
                "cache_control": {"type": "ephemeral"},
            },
            {"name": "now", "strict": True, "input_schema": {"type": "object", "properties": {}}},
        ]

    @pytest.mark.parametrize(
        ("choice", "expected"),
        [
            ("auto", {"type": "auto"}),
            ("none", {"type": "none"}),
            ("required", {"type": "any"}),
            ({"type": "function", "function": {"name": "weather"}}, {"type": "tool", "name": "weather"}),
        ],
    )
    def test_choice(self, choice: Any, expected: dict[str, Any]) -> None:
        assert encode("Hi", tools=[TOOL], tool_choice=choice).payload["tool_choice"] == expected

    def test_a_thinking_model_cannot_be_forced(self) -> None:
        for model, effort in ((ALWAYS, None), (OLD, "low")):
            with pytest.raises(UnsupportedParameterError, match="tool_choice='auto'"):
                encode("Hi", model, tools=[TOOL], tool_choice="required", reasoning_effort=effort)
        assert encode("Hi", ALWAYS, tools=[TOOL], tool_choice="auto").payload["tool_choice"] == {
            "type": "auto"
        }


class Point(pydantic.BaseModel):
    x: int = pydantic.Field(ge=0, description="east")
    y: int


class Shape(pydantic.BaseModel):
    points: list[Point] = pydantic.Field(min_length=2)
    label: str | None = None


class Table(pydantic.BaseModel):
    cells: dict[str, int]


class TestResponseFormat:
    def test_a_schema_goes_out_as_it_is(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}
        asked = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        payload = encode("Hi", response_format=asked, reasoning_effort="low").payload
        assert payload["output_config"] == {
            "effort": "low",
            "format": {"type": "json_schema", "schema": schema},
        }
        assert "output_config" not in encode("Hi", response_format={"type": "text"}).payload

    def test_a_pydantic_model_is_closed_and_its_limits_are_told(self) -> None:
        schema = encode("Hi", response_format=Shape).payload["output_config"]["format"]["schema"]
        point = schema["$defs"]["Point"]
        assert schema["additionalProperties"] is point["additionalProperties"] is False
        assert point["properties"]["x"] == {
            "type": "integer",
            "title": "X",
            "description": "east (minimum: 0)",
        }
        assert schema["properties"]["points"]["description"] == "(minItems: 2)"
        assert schema["properties"]["points"]["items"] == {"$ref": "#/$defs/Point"}
        assert schema["properties"]["label"]["anyOf"] == [{"type": "string"}, {"type": "null"}]

    def test_free_keys_are_refused(self) -> None:
        with pytest.raises(UnsupportedParameterError, match="free keys"):
            encode("Hi", response_format=Table)


class TestMessages:
    def test_leading_system_messages(self) -> None:
        assert encode("Hi", system="Be brief.").payload["system"] == "Be brief."
        developer = {
            "role": "developer",
            "content": [{"type": "text", "text": "B", "cache_control": {"type": "x"}}],
        }
        payload = encode([{"role": "system", "content": "A"}, developer, user("Hi")]).payload
        assert payload["system"] == [
            {"type": "text", "text": "A"},
            {"type": "text", "text": "B", "cache_control": {"type": "x"}},
        ]
        assert payload["messages"] == [user("Hi")]

    def test_a_later_system_message(self) -> None:
        later = {"role": "system", "content": "Now rhyme."}
        assert converted(user("Hi"), later)[1] == {
            "role": "system",
            "content": [{"type": "text", "text": "Now rhyme."}],
        }
        with pytest.raises(UnsupportedParameterError, match="put it at the beginning"):
            converted(user("Hi"), later, model=OLD)
        with pytest.raises(UnsupportedParameterError, match="at this place"):
            converted(user("Hi"), {"role": "assistant", "content": "Ho"}, later, user("Go on"))
        with pytest.raises(RequestError, match="only system messages"):
            converted(later)

    def test_parts(self) -> None:
        turn = converted(
            user(
                [
                    {"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}},
                    {"type": "image_url", "image_url": {"url": PNG, "detail": "auto"}},
                    {"type": "image_url", "image_url": "https://example.org/a.png"},
                    {"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}},
                    {"type": "file", "file": {"file_id": "file_1"}},
                    {"type": "file", "file": {"file_data": "data:text/plain;base64,aMOp"}},
                    {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
                ]
            )
        )[0]
        assert turn["content"] == [
            {"type": "text", "text": "Look", "cache_control": {"type": "ephemeral"}},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
            },
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                "title": "a.pdf",
            },
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hé"}},
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
        ]

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
            {"type": "video_url", "video_url": {"url": "https://example.org"}},
            {"type": "image_url", "image_url": {"url": "http://example.org/a.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA=="}},
            {"type": "image_url", "image_url": {"url": PNG, "detail": "high"}},
            {"type": "image_url", "image_url": 3},
            {"type": "file", "file": {"file_data": "data:application/zip;base64,AA=="}},
            {"type": "file", "file": {"file_data": "data:text/plain;base64,/w=="}},
            {"type": "file", "file": "a.pdf"},
            {"type": "text"},
        ],
    )
    def test_a_part_without_a_form_is_refused_by_place(self, part: dict[str, Any]) -> None:
        with pytest.raises(RequestError, match=r"messages\[1\]\.content\[1\]"):
            converted(user("Hi"), user([{"type": "text", "text": "a"}, part]))

    def test_tool_calls_and_results(self) -> None:
        turns = converted(
            user("Weather?"),
            {"role": "assistant", "content": "", "tool_calls": [call("functions.weather:0"), call("b", "")]},
            {"role": "tool", "tool_call_id": "functions.weather:0", "content": "sun"},
            {
                "role": "tool",
                "tool_call_id": "b",
                "content": [{"type": "text", "text": "no"}],
                "is_error": True,
            },
            user("Thanks"),
        )
        assert turns[1]["content"] == [
            {"type": "tool_use", "id": "functions_weather_0", "name": "weather", "input": {"city": "Bern"}},
            {"type": "tool_use", "id": "b", "name": "weather", "input": {}},
        ]
        assert turns[2] == user(
            [
                {"type": "tool_result", "tool_use_id": "functions_weather_0", "content": "sun"},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "content": [{"type": "text", "text": "no"}],
                    "is_error": True,
                },
            ]
        )
        assert turns[3] == user("Thanks")

    @pytest.mark.parametrize("bad", [call("a", "[1]"), call("a", "{"), call("", "{}"), "x", {"id": "a"}])
    def test_a_malformed_tool_call(self, bad: Any) -> None:
        with pytest.raises(RequestError, match=r"messages\[1\]\.tool_calls\[0\]"):
            converted(user("Hi"), {"role": "assistant", "content": "x", "tool_calls": [bad]}, user("Hi"))

    def test_fields_that_would_be_lost(self) -> None:
        for message in (
            user("Hi"),
            {"role": "system", "content": "A"},
            {"role": "assistant", "content": "B"},
        ):
            with pytest.raises(RequestError, match=r"messages\[0\]\.name"):
                converted({**message, "name": "Ada"}, user("Hi"))
        old = {"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}}
        with pytest.raises(RequestError, match="use tool_calls"):
            converted(user("Hi"), old, user("Hi"))

    def test_a_begun_answer(self) -> None:
        begun = {"role": "assistant", "content": "The answer is"}
        assert converted(user("Hi"), begun, model=OLD)[1] == begun
        with pytest.raises(UnsupportedParameterError, match="user message"):
            converted(user("Hi"), begun)


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SECRET = {"type": "redacted_thinking", "data": "eA=="}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"}}


def reply(*content: Any, stop_reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 7}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": CURRENT,
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
        **fields,
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


class TestDecode:
    def test_everything_at_once(self) -> None:
        answer = adapter.decode(
            reply(THOUGHT, SECRET, text("Let me "), text("look."), USE, stop_reason="tool_use")
        )
        (choice,) = answer.choices
        assert (choice.text, choice.reasoning, choice.finish_reason) == ("Let me look.", "Hm.", "tool_calls")
        assert choice.tool_calls[0].parsed_arguments == {"city": "Bern"}
        assert choice.message["tool_calls"] == [call("toolu_1")]
        assert (answer.model, answer.id) == (CURRENT, "msg_1")

    def test_the_message_is_sent_back_word_for_word(self) -> None:
        blocks = [THOUGHT, SECRET, text("Let me "), text("look."), USE]
        message = adapter.decode(reply(*blocks, stop_reason="tool_use")).choices[0].message
        result = {"role": "tool", "tool_call_id": "toolu_1", "content": "sun"}
        assert converted(user("?"), dict(message), result)[1] == {"role": "assistant", "content": blocks}
        stored = json.loads(json.dumps(message))
        assert converted(user("?"), stored, result)[1]["content"] == blocks
        paused = adapter.decode(reply(text("Searching"), stop_reason="pause_turn")).choices[0]
        assert paused.finish_reason == "length"
        assert converted(user("?"), dict(paused.message))[1]["content"] == [text("Searching")]

    def test_an_edited_message_is_built_anew(self) -> None:
        message = dict(adapter.decode(reply(THOUGHT, text("One"))).choices[0].message)
        assert converted(user("?"), {**message, "content": "Two"}, user("!"))[1]["content"] == "Two"
        edited = {**message, "tool_calls": [call("a")]}
        assert converted(user("?"), edited, user("!"))[1]["content"][0] == text("One")
        other = {**message, "provider_specific_fields": {"provider": "gemini", "content": [{"text": "x"}]}}
        assert converted(user("?"), other, user("!"))[1]["content"] == "One"

    @pytest.mark.parametrize(
        ("stop_reason", "expected"),
        [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("pause_turn", "length"),
            ("refusal", "refusal"),
            ("a_new_one", "stop"),
        ],
    )
    def test_finish_reasons(self, stop_reason: str, expected: str) -> None:
        assert adapter.decode(reply(text("x"), stop_reason=stop_reason)).choices[0].finish_reason == expected

    def test_a_refusal_without_text_gives_its_explanation(self) -> None:
        details = {"type": "refusal", "category": "bio", "explanation": "Not that."}
        choice = adapter.decode(reply(stop_reason="refusal", stop_details=details)).choices[0]
        assert (choice.text, choice.message["content"]) == ("Not that.", None)

    def test_usage_is_inclusive(self) -> None:
        usage = {
            "input_tokens": 10,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 50,
            "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30},
            "output_tokens": 40,
            "output_tokens_details": {"thinking_tokens": 15},
            "service_tier": "priority",
        }
        answer = adapter.decode(reply(text("x"), usage=usage))
        assert answer.usage == Usage(
            input_tokens=160,
            output_tokens=40,
            cache_read_input_tokens=100,
            cache_write_input_tokens=50,
            cache_write_1h_input_tokens=30,
            reasoning_output_tokens=15,
        )
        assert answer.service_tier == "priority"
        assert adapter.decode(reply(usage={**usage, "speed": "fast"})).service_tier == "fast"
        assert adapter.decode(reply(usage=None)).usage is None

    @pytest.mark.parametrize(
        "bad",
        [
            None,
            [],
            {},
            "text",
            reply(stop_reason=None),  # type: ignore[arg-type]  # what a proxy may send
            reply(content=None),
            reply("text"),
            reply({"type": "text", "text": None}),
            reply({"type": "tool_use", "id": "a", "name": "b", "input": None}),
            reply({"type": "tool_use", "id": "a", "name": None, "input": {}}),
        ],
    )
    def test_what_is_not_a_whole_answer(self, bad: Any) -> None:
        with pytest.raises(APIResponseValidationError):
            adapter.decode(bad)

    def test_an_error_with_status_200(self) -> None:
        with pytest.raises(OverloadedError):
            adapter.decode({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


# What events and messages are made of, so that nonsense gets past the first look.
WORDS = (
    "type text thinking tool_use content input id name usage stop_reason error message index delta end_turn",
    "content_block message_start content_block_start content_block_delta message_delta text_delta",
    "input_json_delta partial_json citations_delta",
)
KEYS = st.sampled_from(" ".join(WORDS).split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | KEYS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)


@given(JSON)
def test_decode_raises_nothing_but_its_own_errors(value: Any) -> None:
    for candidate in (
        value,
        reply(value),
        {**reply(text("x")), **(value if isinstance(value, dict) else {})},
    ):
        with contextlib.suppress(LLMError):
            adapter.decode(candidate)


@given(st.lists(JSON, max_size=6))
def test_the_assembler_raises_nothing_but_its_own_errors(events: list[Any]) -> None:
    assembler = adapter.Assembler()
    with contextlib.suppress(LLMError):
        assembler.feed({"type": "message_start", "message": reply()})
        assembler.feed({"type": "content_block_start", "index": 0, "content_block": text("")})
        for event in events:
            assembler.feed(event)
        adapter.decode(assembler.reply())


BLOCKS = st.lists(
    st.builds(text, st.text(min_size=1))
    | st.builds(lambda words: {"type": "thinking", "thinking": words, "signature": "c2ln"}, st.text())
    | st.just(SECRET)
    | st.builds(
        lambda identifier, value: {"type": "tool_use", "id": identifier, "name": "f", "input": {"a": value}},
        st.text("abc", min_size=1),
        st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-(2**53), 2**53),
    ),
    max_size=4,
)


def streamed(message: dict[str, Any], cut: st.DataObject) -> Iterator[dict[str, Any]]:
    """The events of a message, with its pieces cut anywhere."""
    start = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": 5, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        empty, deltas = dict(block), []
        if block["type"] == "text":
            empty["text"] = ""
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"], cut)]
        elif block["type"] == "thinking":
            empty |= {"thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"], cut)
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif block["type"] == "tool_use":
            empty["input"] = {}
            written = orjson.dumps(block["input"]).decode()
            deltas = [
                {"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(written, cut)]
            ]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


def pieces(whole: str, cut: st.DataObject) -> list[str]:
    places = sorted(cut.draw(st.lists(st.integers(0, len(whole)), max_size=3)))
    return [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]


class TestAssembler:
    @given(BLOCKS, st.data())
    @settings(max_examples=50)
    def test_a_stream_in_any_pieces_is_the_reply_it_would_have_been(
        self, blocks: list[dict[str, Any]], data: st.DataObject
    ) -> None:
        whole = reply(*blocks)
        assembler = adapter.Assembler()
        deltas = [delta_of(assembler.feed(event)) for event in streamed(whole, data)]
        assert assembler.reply() == whole
        choice = adapter.decode(whole).choices[0]
        assert "".join(delta.text for delta in deltas) == choice.text
        assert "".join(delta.reasoning for delta in deltas) == choice.reasoning
        calls: dict[int, str] = {}
        for delta in deltas:
            for piece in delta.tool_calls:
                calls[piece.index] = calls.get(piece.index, "") + piece.arguments
        assert list(calls.values()) == [one.arguments for one in choice.tool_calls]

    def test_what_is_cut_is_no_answer(self) -> None:
        events = list(streamed(reply(text("")), _no_cuts()))
        for length in range(len(events)):
            assembler = adapter.Assembler()
            for event in events[:length]:
                assembler.feed(event)
            with pytest.raises(APIResponseValidationError):
                assembler.reply()

    def test_a_tool_call_cut_by_its_limit_cannot_be_run(self) -> None:
        assembler = adapter.Assembler()
        for event in streamed(reply({**USE, "input": {}}, stop_reason="max_tokens"), _no_cuts()):
            assembler.feed(event)
            if event["type"] == "content_block_start":
                assembler.feed(_json_piece('{"ci'))
        choice = adapter.decode(assembler.reply()).choices[0]
        assert (choice.finish_reason, choice.tool_calls[0].arguments) == ("length", '{"ci{}')

    def test_broken_tool_input_is_no_answer(self) -> None:
        assembler = adapter.Assembler()
        for event in streamed(reply(USE), _no_cuts()):
            assembler.feed(event)
            if event["type"] == "content_block_start":
                assembler.feed(_json_piece("]"))
        with pytest.raises(APIResponseValidationError):
            assembler.reply()

    def test_citations_and_late_fields(self) -> None:
        assembler = adapter.Assembler()
        for event in streamed(reply(text("")), _no_cuts()):
            if event["type"] == "content_block_stop":
                citation = {"type": "citations_delta", "citation": {"cited_text": "a"}}
                assembler.feed({"type": "content_block_delta", "index": 0, "delta": citation})
            late = {"context_management": {"applied_edits": []}} if event["type"] == "message_delta" else {}
            assembler.feed({**event, **late})
        whole = assembler.reply()
        assert whole["content"][0]["citations"] == [{"cited_text": "a"}]
        assert whole["context_management"] == {"applied_edits": []}

    def test_an_error_event(self) -> None:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        with pytest.raises(OverloadedError) as caught:
            adapter.Assembler().feed(error)
        assert caught.value.maybe_billed


class _NoCuts:
    def draw(self, strategy: Any) -> list[int]:
        return []


def _no_cuts() -> Any:
    return _NoCuts()


def _json_piece(piece: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


# ---------------------------------------------------------------------- through the SDK


def outgoing(simulator: Simulator, messages: Any, model: str = ALWAYS, **parameters: Any) -> Outgoing:
    request = Request.build(model, messages, parameters)
    target = resolve(model, simulator.url("anthropic"))
    encoded = adapter.encode(request, target)
    return Outgoing(encoded, canonical(encoded.payload), target, APIKey("sk-secret"), Timeouts(total=20))


async def sent(connection: Any, order: Outgoing, *, stream: bool) -> Any:
    if not stream:
        return orjson.loads(await connection.send(order, ignore))
    assembler = adapter.Assembler()
    async for batch in connection.stream(order, ignore):
        for event in batch:
            assembler.feed(event)
    return assembler.reply()


def exchange(order: Outgoing, *, stream: bool = False, transport: str = "aiohttp") -> Any:
    async def run() -> Any:
        connection = adapter.connect(transport)
        try:
            return await sent(connection, order, stream=stream)
        except LLMError:
            raise
        except Exception as error:
            raise adapter.map_error(error) from error
        finally:
            await connection.close()

    return asyncio.run(run())


@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
def test_a_call_and_a_stream_give_the_same_answer(simulator: Simulator, transport: str) -> None:
    order = outgoing(simulator, "What is 2 + 2?", reasoning_effort="high")
    whole, streamed_ = (
        adapter.decode(exchange(order, stream=stream, transport=transport)) for stream in (False, True)
    )
    assert whole.choices[0].text == streamed_.choices[0].text == "4"
    assert whole.choices[0].reasoning == streamed_.choices[0].reasoning != ""
    assert whole.usage == streamed_.usage
    first, second = simulator.requests("anthropic")
    assert first.body == order.encoded.payload
    assert second.body == {**order.encoded.payload, "stream": True}


def test_sampling_reaches_the_wire_with_its_version(simulator: Simulator) -> None:
    exchange(outgoing(simulator, "Hi", OLD, temperature=0.5))
    (request,) = simulator.requests("anthropic")
    assert request.body["temperature"] == 0.5
    assert request.headers["anthropic-version"] == "2023-06-01"


def test_a_whole_conversation_with_a_tool(simulator: Simulator) -> None:
    order = outgoing(simulator, "Weather in Bern?", CURRENT, tools=[TOOL], tool_choice="required")
    choice = adapter.decode(exchange(order, stream=True)).choices[0]
    assert choice.finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": choice.tool_calls[0].id, "content": "sun"}
    messages = [user("Weather in Bern?"), choice.message, result]
    assert adapter.decode(exchange(outgoing(simulator, messages, CURRENT, tools=[TOOL]))).choices[0].text


def test_a_long_answer_needs_no_stream(simulator: Simulator) -> None:
    assert exchange(outgoing(simulator, "Hi", max_tokens=128_000))["content"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(status=401), AuthenticationError),
        (Fault(status=429, retry_after="7"), RateLimitError),
        (Fault(quota=True), QuotaExceededError),
        (Fault(context_length=True), ContextWindowExceededError),
        (Fault(status=500), InternalServerError),
        (Fault(status=529), OverloadedError),
        (Fault(redirect="http://127.0.0.1:1/"), APIResponseValidationError),
        (Fault(body="<html>proxy</html>", content_type="text/html"), APIResponseValidationError),
        (Fault(body=""), APIResponseValidationError),
    ],
)
def test_failures(simulator: Simulator, fault: Fault, kind: type[LLMError], stream: bool) -> None:
    simulator.inject(fault)
    with pytest.raises(kind) as caught:
        exchange(outgoing(simulator, "Hi"), stream=stream)
    assert caught.value.retry_after == (7.0 if fault.retry_after else None)
    assert len(simulator.requests("anthropic")) == 1, "the SDK's own retries are off"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(error_after=1, status=529), OverloadedError),
        (Fault(cut_after=1), APIResponseValidationError),
        (Fault(empty_stream=True), APIResponseValidationError),
        (Fault(abort_after=1), APIConnectionError),
    ],
)
def test_failures_inside_a_stream(simulator: Simulator, fault: Fault, kind: type[LLMError]) -> None:
    simulator.inject(fault)
    with pytest.raises(kind) as caught:
        exchange(outgoing(simulator, "Say a few words"), stream=True)
    assert caught.value.maybe_billed


@pytest.mark.parametrize("stream", [False, True])
def test_cancelling_ends_the_request_at_the_server(simulator: Simulator, stream: bool) -> None:
    simulator.inject(Fault(hang=True))

    async def run() -> None:
        connection = adapter.connect("aiohttp")
        task = asyncio.ensure_future(sent(connection, outgoing(simulator, "Hi"), stream=stream))
        assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1)
        task.cancel()
        await asyncio.wait([task])
        assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().disconnects == 1)
        await connection.close()

    asyncio.run(run())


def test_connections_are_reused(simulator: Simulator) -> None:
    async def run() -> None:
        connection = adapter.connect("aiohttp")
        for number in range(5):
            await sent(connection, outgoing(simulator, f"Hi {number}"), stream=number % 2 == 0)
        await connection.close()

    asyncio.run(run())
    assert simulator.ledger().requests == 5
    assert simulator.ledger().connections == 1


def test_no_sdk_is_imported_before_the_first_connection() -> None:
    code = (
        "import sys\n"
        "from llm_provider._requests.request import Request\n"
        "from llm_provider._requests.routing import resolve\n"
        "from llm_provider._providers.anthropic import adapter\n"
        "adapter.encode(Request.build('claude-opus-5', 'Hi', {}), resolve('claude-opus-5'))\n"
        "assert not {'anthropic', 'httpx', 'httpx2', 'aiohttp'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_large_image_is_encoded_quickly_enough_to_be_used() -> None:
    data = base64.b64encode(bytes(3_000_000)).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    assert converted(user([part]))[0]["content"][0]["source"]["data"] == data
