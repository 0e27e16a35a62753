"""OpenAI-style messages in Anthropic's form, and answers sent back in the next turn."""

from __future__ import annotations

import base64
import json
from typing import Any

import pydantic
import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from anthropic_support import CURRENT, OLD, SECRET, THOUGHT, USE, call, encode, reply, text, user
from llm_provider._errors import RequestError, UnsupportedParameterError
from llm_provider._providers.anthropic import adapter

PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="


def converted(*messages: dict[str, Any], model: str = CURRENT) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = encode(list(messages), model).payload["messages"]
    return turns


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

    @pytest.mark.parametrize("bad", [{"id": "a", "function": {}}, "x", {"id": "a"}])
    def test_a_malformed_tool_call(self, bad: Any) -> None:
        with pytest.raises(RequestError, match=r"messages\[1\]\.tool_calls\[0\]"):
            converted(user("Hi"), {"role": "assistant", "content": "x", "tool_calls": [bad]}, user("Hi"))

    @pytest.mark.parametrize("text", ["[1]", "{"])
    def test_arguments_that_are_no_object_are_sent_as_text(self, text: str) -> None:
        message = {"role": "assistant", "content": None, "tool_calls": [call("a", text)]}
        with pytest.warns(UserWarning, match="not a JSON object, which anthropic needs"):
            turns = converted(user("Hi"), message, user("Hi"))
        assert turns[1]["content"][0]["input"] == {"arguments": text}

    @pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}, {"content": []}])
    def test_an_empty_answer_is_left_out(self, content: Any) -> None:
        with pytest.warns(UserWarning, match="an earlier answer is empty, for which anthropic has no form"):
            assert converted(user("Hi"), {"role": "assistant", **content}, user("Bye")) == [
                user("Hi"),
                user("Bye"),
            ]

    def test_a_refusal_is_what_was_said(self) -> None:
        refused = {"role": "assistant", "content": None, "refusal": "No."}
        assert converted(user("Hi"), refused, user("Bye"))[1] == {"role": "assistant", "content": "No."}

    def test_a_name_is_left_out_visibly(self) -> None:
        for message in (
            user("Hi"),
            {"role": "system", "content": "A"},
            {"role": "assistant", "content": "B"},
        ):
            plain = converted(message, user("Hi"), model=OLD)
            with pytest.warns(UserWarning, match="holds name, for which anthropic has no form"):
                assert converted({**message, "name": "Ada"}, user("Hi"), model=OLD) == plain

    def test_a_call_in_the_older_form_is_a_call(self) -> None:
        old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}}
        result = {"role": "tool", "tool_call_id": "", "content": "x"}
        _, asked, answered = converted(user("Hi"), old, result)
        assert asked["content"] == [{"type": "tool_use", "id": "call_1_0", "name": "f", "input": {"a": 1}}]
        assert answered["content"][0]["tool_use_id"] == "call_1_0"

    def test_a_call_of_a_custom_tool_has_its_text_as_input(self) -> None:
        call = {"id": "c1", "type": "custom", "custom": {"name": "grep", "input": "a.*b"}}
        asked, _ = converted({"role": "assistant", "content": None, "tool_calls": [call]}, user("Hi"))
        (block,) = asked["content"]
        assert block == {"type": "tool_use", "id": "c1", "name": "grep", "input": {"input": "a.*b"}}

    @pytest.mark.filterwarnings("ignore:an earlier answer holds audio")
    def test_a_spoken_answer_is_its_transcript(self) -> None:
        spoken = {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "Hello"}}
        assert converted(user("Hi"), spoken, user("Bye"))[1] == {"role": "assistant", "content": "Hello"}

    def test_a_begun_answer(self) -> None:
        begun = {"role": "assistant", "content": "The answer is"}
        assert converted(user("Hi"), begun, model=OLD)[1] == begun
        with pytest.raises(UnsupportedParameterError, match="user message"):
            converted(user("Hi"), begun)


class TestReplay:
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


def test_a_large_image_is_encoded_quickly_enough_to_be_used() -> None:
    data = base64.b64encode(bytes(3_000_000)).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    assert converted(user([part]))[0]["content"][0]["source"]["data"] == data


def sendable(*messages: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """The converted messages, which the SDK's request types accept."""
    payload = encode(list(messages), **more).payload
    types = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)
    types.validate_json(json.dumps(payload), strict=False)
    turns: list[dict[str, Any]] = payload["messages"]
    return turns


CONTROL = {"type": "ephemeral"}


class TestOtherProvidersForms:
    def test_a_refusal_is_what_was_said(self) -> None:
        refused = {"role": "assistant", "content": None, "refusal": "I must not."}
        assert sendable(user("Hi"), refused, user("Why?"))[1]["content"] == "I must not."

    def test_calls_and_results_without_ids(self) -> None:
        turns = sendable(
            user("Weather?"),
            {"role": "assistant", "content": None, "tool_calls": [call(""), call("b"), call("")]},
            {"role": "tool", "tool_call_id": "", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {"role": "tool", "tool_call_id": "", "content": "three"},
        )
        identifiers = [block["id"] for block in turns[1]["content"]]
        assert identifiers == ["call_1_0", "b", "call_1_2"]
        results = {block["tool_use_id"]: block["content"] for block in turns[2]["content"]}
        assert results == dict(zip(identifiers, ("one", "two", "three"), strict=True))

    def test_cache_control_of_a_message_is_that_of_its_last_block(self) -> None:
        system = {"role": "system", "content": "Be brief.", "cache_control": CONTROL}
        answer = {"role": "assistant", "content": "Ho", "cache_control": CONTROL, "tool_calls": [call("a")]}
        result = {"role": "tool", "tool_call_id": "a", "content": "sun", "cache_control": CONTROL}
        messages = [system, {**user("Hi"), "cache_control": CONTROL}, answer, result]
        assert encode(messages).payload["system"] == [{**text("Be brief."), "cache_control": CONTROL}]
        turns = sendable(*messages)
        assert turns[0]["content"] == [{**text("Hi"), "cache_control": CONTROL}]
        assert [block.get("cache_control") for block in turns[1]["content"]] == [None, CONTROL]
        assert turns[2]["content"][0]["cache_control"] == CONTROL
        own = dict(adapter.decode(reply(text("One"), THOUGHT)).choices[0].message)
        replayed = sendable(user("?"), {**own, "cache_control": CONTROL}, user("!"))[1]["content"]
        assert replayed == [{**text("One"), "cache_control": CONTROL}, THOUGHT]

    @pytest.mark.parametrize(
        ("part", "source"),
        [
            (
                {"type": "document_url", "document_url": "https://example.org/a.pdf", "document_name": "a"},
                {"type": "url", "url": "https://example.org/a.pdf"},
            ),
            (
                {"type": "document_url", "document_url": {"url": PDF}, "document_name": "a"},
                {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            ),
            (
                {"type": "file", "file": {"file_data": "https://example.org/a.pdf", "filename": "a"}},
                {"type": "url", "url": "https://example.org/a.pdf"},
            ),
        ],
    )
    def test_documents(self, part: dict[str, Any], source: dict[str, Any]) -> None:
        (block,) = sendable(user([part]))[0]["content"]
        assert block == {"type": "document", "source": source, "title": "a"}

    def test_an_image_in_a_tool_result(self) -> None:
        image = {"type": "image_url", "image_url": {"url": PNG}}
        asked = {"role": "assistant", "content": None, "tool_calls": [call("a")]}
        result = {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "Here"}, image]}
        (block,) = sendable(user("?"), asked, result)[2]["content"]
        assert [entry["type"] for entry in block["content"]] == ["text", "image"]

    def test_anthropics_own_blocks_pass(self) -> None:
        blocks = [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "Hi"},
        ]
        assert (
            sendable(user("?"), {"role": "assistant", "content": blocks}, user("!"))[1]["content"] == blocks
        )
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sun"}
        asked = {"role": "assistant", "content": [USE]}
        assert sendable(user("?"), asked, user([result]))[2]["content"] == [result]

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "image", "path": "a.png"},
            {"type": "document", "url": "https://example.org/a.pdf"},
            {"type": "input_image", "file_id": "file_1"},
            {"type": "video_url", "video_url": "https://example.org/a.mp4"},
            {"type": "document_url", "document_url": "http://example.org/a.pdf"},
        ],
    )
    def test_a_part_that_would_be_misread_is_refused(self, part: dict[str, Any]) -> None:
        with pytest.raises(RequestError, match=r"messages\[0\]\.content\[0\]"):
            encode([user([part])])

    def test_thinking_of_another_provider_is_left_out_visibly(self) -> None:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
        answer = {"role": "assistant", "content": [thinking, {"type": "text", "text": "Hi"}]}
        with pytest.warns(UserWarning, match="thinking"):
            turns = sendable(user("?"), answer, user("!"))
        assert turns[1]["content"] == [text("Hi")]
