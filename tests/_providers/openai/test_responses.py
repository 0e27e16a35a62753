"""The Responses wire format: payloads, replies, streams, and answers sent back in the next turn."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider._errors import (
    APIResponseValidationError,
    BadRequestError,
    InternalServerError,
    LLMError,
    RateLimitError,
    RefusalError,
    RequestError,
    UnsupportedParameterError,
)
from llm_provider._providers.openai import chat, responses, responses_stream
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider._types.logprobs import TokenLogprob
from llm_provider._types.messages import Delta, ToolCall, delta_of
from llm_provider._types.usage import Usage
from openai_support import PRO, WEATHER

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def encode(prompt: Any = "Hi", **parameters: Any) -> dict[str, Any]:
    return responses.encode(Request.build("gpt-5.5-pro", prompt, parameters), PRO).payload


def reasoning_item(*summaries: str, encrypted: str = "gAAAA") -> dict[str, Any]:
    return {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in summaries],
        "encrypted_content": encrypted,
    }


def message_item(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": list(parts),
    }


def text_part(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **fields}


def call_item(
    identifier: str = "call_1", name: str = "weather", arguments: str = '{"city":"Bern"}'
) -> dict[str, Any]:
    return {
        "id": f"fc_{identifier}",
        "type": "function_call",
        "call_id": identifier,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def response(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5.5-pro-2026-04-23",
        "output": list(output),
        "service_tier": "default",
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
            "output_tokens": 50,
            "output_tokens_details": {"reasoning_tokens": 30},
            "total_tokens": 150,
        },
        **fields,
    }


def stream_of(reply: dict[str, Any], size: int = 3) -> list[dict[str, Any]]:
    """The events that a server sends while it makes `reply`, its texts cut into pieces of `size`."""
    events: list[dict[str, Any]] = [
        {
            "type": "response.created",
            "response": {**reply, "status": "in_progress", "output": [], "usage": None},
        }
    ]

    def pieces(kind: str, text: str, **where: int) -> None:
        cuts = range(0, len(text), size)
        events.extend({"type": kind, "delta": text[cut : cut + size], **where} for cut in cuts)

    for place, item in enumerate(reply["output"]):
        opened = {**item, "arguments": ""} if item["type"] == "function_call" else {**item, "content": []}
        events.append({"type": "response.output_item.added", "output_index": place, "item": opened})
        for index, summary in enumerate(item.get("summary") or ()):
            where = {"output_index": place, "summary_index": index}
            added = {"type": "summary_text", "text": ""}
            events.append({"type": "response.reasoning_summary_part.added", "part": added, **where})
            pieces("response.reasoning_summary_text.delta", summary["text"], **where)
        for index, entry in enumerate(item.get("content") or ()):
            where = {"output_index": place, "content_index": index}
            events.append({"type": "response.content_part.added", "part": {"type": entry["type"]}, **where})
            if entry["type"] == "output_text":
                pieces("response.output_text.delta", entry["text"], **where)
            else:
                pieces("response.refusal.delta", entry["refusal"], **where)
        if item["type"] == "function_call":
            pieces("response.function_call_arguments.delta", item["arguments"], output_index=place)
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": f"response.{reply['status']}", "response": reply})
    return events


def assemble(events: list[dict[str, Any]]) -> tuple[list[Delta], Any]:
    assembler = responses_stream.Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in events]
    return deltas, assembler.reply()


class TestEncode:
    def test_a_prompt_is_sent_statelessly_with_its_reasoning_to_be_returned(self) -> None:
        assert encode() == {
            "model": "gpt-5.5-pro",
            "input": [{"role": "user", "content": "Hi"}],
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }

    def test_every_parameter_has_its_place(self) -> None:
        payload = encode(
            "Hi",
            system="Be brief.",
            max_tokens=500,
            temperature=0.5,
            top_p=0.9,
            reasoning_effort="high",
            tools=[WEATHER],
            tool_choice={"type": "function", "function": {"name": "weather"}},
            response_format={"type": "json_object"},
            extra_body={"text": {"verbosity": "low"}, "service_tier": "flex"},
        )
        assert payload["input"][0] == {"role": "system", "content": "Be brief."}
        assert payload["max_output_tokens"] == 500
        assert (payload["temperature"], payload["top_p"]) == (0.5, 0.9)
        assert payload["reasoning"] == {"effort": "high"}
        assert payload["tool_choice"] == {"type": "function", "name": "weather"}
        assert payload["text"] == {"format": {"type": "json_object"}, "verbosity": "low"}
        assert payload["service_tier"] == "flex"

    def test_a_tool_is_flat_and_not_strict_unless_asked(self) -> None:
        strict = {"type": "function", "function": {"name": "now", "description": "The time", "strict": True}}
        weather, now = encode(tools=[WEATHER, strict], tool_choice="required")["tools"]
        assert weather == {"type": "function", "name": "weather", "strict": False, **WEATHER["function"]}
        assert now == {
            "type": "function",
            "name": "now",
            "description": "The time",
            "strict": True,
            "parameters": {"type": "object", "properties": {}},
        }

    def test_a_json_schema_is_flat_too(self) -> None:
        class City(BaseModel):
            name: str

        schema = {"type": "object", "properties": {}}
        asked = {"type": "json_schema", "json_schema": {"name": "thing", "schema": schema, "strict": True}}
        assert encode(response_format=asked)["text"]["format"] == {
            "type": "json_schema",
            "name": "thing",
            "schema": schema,
            "strict": True,
        }
        modelled = encode(response_format=City)["text"]["format"]
        assert (modelled["type"], modelled["name"]) == ("json_schema", "City")
        assert modelled["schema"]["required"] == ["name"]
        assert modelled["strict"] is True
        wrapped = encode(response_format=list[int])["text"]["format"]["schema"]
        assert list(wrapped["properties"]) == ["answer"]

    def test_log_probabilities_are_included_where_asked(self) -> None:
        payload = encode(top_logprobs=3)
        assert payload["top_logprobs"] == 3
        assert payload["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]
        assert encode(logprobs=False)["include"] == ["reasoning.encrypted_content"]

    def test_samples_are_separate_calls_and_headers_go_along(self) -> None:
        request = Request.build("gpt-5.5-pro", "Hi", {"n": 3, "extra_headers": {"X-Trace": "1"}})
        encoded = responses.encode(request, PRO)
        assert (encoded.operation, encoded.samples_field, encoded.headers) == (
            "responses",
            (),
            {"x-trace": "1"},
        )
        assert "n" not in encoded.payload

    @pytest.mark.parametrize(("name", "value"), [("seed", 0), ("stop", "END"), ("stop", ["a", "b"])])
    def test_what_the_api_lacks_is_refused_with_a_remedy(self, name: str, value: Any) -> None:
        with pytest.raises(
            UnsupportedParameterError, match=f"gpt-5.5-pro does not accept {name}: leave it out"
        ) as caught:
            encode(**{name: value})
        assert caught.value.parameter == name

    def test_parts_of_every_kind(self) -> None:
        parts = [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}},
            {"type": "text", "text": "long", "prompt_cache_breakpoint": {"mode": "explicit"}},
        ]
        assert encode([{"role": "user", "content": parts}])["input"][0]["content"] == [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
            {"type": "input_image", "image_url": "https://example.com/cat.png", "detail": "auto"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
            {"type": "input_text", "text": "long", "prompt_cache_breakpoint": {"mode": "explicit"}},
        ]

    def test_a_conversation_with_tools_keeps_its_order(self) -> None:
        call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        conversation = [
            {"role": "developer", "content": "Use tools."},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "sunny"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Sunny."}], "annotations": []},
            {"role": "system", "content": "Be brief now."},
        ]
        assert encode(conversation)["input"] == [
            {"role": "developer", "content": "Use tools."},
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "Let me look."},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": "sunny"}],
            },
            {"role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]},
            {"role": "system", "content": "Be brief now."},
        ]

    def test_what_other_providers_put_into_their_answers_stays_out(self) -> None:
        foreign = {
            "role": "assistant",
            "content": "Hello.",
            "reasoning_content": "The user greets.",
            "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
            "provider_specific_fields": {
                "provider": "anthropic",
                "content": [{"type": "text", "text": "Hello."}],
            },
        }
        with pytest.warns(UserWarning, match="an earlier answer holds") as caught:
            assert encode([foreign])["input"] == [{"role": "assistant", "content": "Hello."}]
        named = [str(warning.message).partition(",")[0] for warning in caught]
        assert named == [
            f"an earlier answer holds {name}" for name in ("reasoning_content", "thinking_blocks")
        ]

    def test_what_the_api_has_no_form_for_is_left_out_visibly(self) -> None:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
        answer = {"role": "assistant", "name": "bob", "content": [thinking, {"type": "text", "text": "Hi"}]}
        with pytest.warns(UserWarning, match="has no form") as caught:
            asked, answered = encode([{"role": "user", "content": "?", "name": "ann"}, answer])["input"]
        assert asked == {"role": "user", "content": "?"}
        assert answered["content"] == [{"type": "output_text", "text": "Hi"}]
        kinds = [str(warning.message).partition(",")[0].rpartition("holds ")[2] for warning in caught]
        assert kinds == ["name", "name", "thinking of another provider's model"]

    def test_an_answer_in_the_background_is_stored(self) -> None:
        """OpenAI refuses `background` without it."""
        question = [{"role": "user", "content": "?"}]
        assert encode(question, extra_body={"background": True})["store"] is True
        assert encode(question, extra_body={"background": True, "store": False})["store"] is False
        assert encode(question, extra_body={"background": False})["store"] is False

    def test_calls_without_ids_get_some(self) -> None:
        function = {"name": "f", "arguments": "{}"}
        old = {"role": "assistant", "content": None, "function_call": function}
        call = {"role": "assistant", "tool_calls": [{"id": "", "type": "function", "function": function}]}
        result = {"role": "tool", "tool_call_id": "", "content": "x"}
        items = encode([{"role": "user", "content": "?"}, old, result, call, result])["input"]
        assert [item.get("call_id") for item in items] == [
            None,
            "call_1_0",
            "call_1_0",
            "call_3_0",
            "call_3_0",
        ]

    @pytest.mark.filterwarnings("ignore:an earlier answer holds audio")
    def test_a_spoken_answer_is_its_transcript(self) -> None:
        spoken = {"role": "assistant", "content": None, "audio": {"id": "a1", "transcript": "Hello"}}
        assert encode([spoken])["input"] == [{"role": "assistant", "content": "Hello"}]

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("https://x/a.pdf", {"file_url": "https://x/a.pdf"}),
            (
                {"url": "data:application/pdf;base64,AA=="},
                {"file_data": "data:application/pdf;base64,AA==", "filename": "a"},
            ),
        ],
    )
    def test_a_document_at_a_url(self, given: Any, expected: dict[str, Any]) -> None:
        part = {"type": "document_url", "document_url": given, "document_name": "a"}
        (message,) = encode([{"role": "user", "content": [part]}])["input"]
        assert message["content"] == [{"type": "input_file", **expected}]

    @pytest.mark.parametrize("content", [{}, {"content": None}, {"content": ""}, {"content": []}])
    def test_an_empty_answer_is_left_out(self, content: dict[str, Any]) -> None:
        user = {"role": "user", "content": "Hi"}
        with pytest.warns(UserWarning, match="an earlier answer is empty, for which openai has no form"):
            assert encode([user, {"role": "assistant", **content}, user])["input"] == [user, user]

    @pytest.mark.parametrize(
        ("message", "place"),
        [
            (
                {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
                r"messages\[0\].content\[0\]",
            ),
            (
                {"role": "user", "content": [{"type": "image_url", "image_url": "x"}]},
                r"messages\[0\].content\[0\]",
            ),
            (
                {"role": "user", "content": [{"type": "image_url", "image_url": {}}]},
                r"content\[0\].image_url",
            ),
            ({"role": "user", "content": "Hi", "custom": "x"}, r"messages\[0\] has 'custom'"),
            ({"role": "assistant", "content": "Hi", "prefix": True}, r"has 'prefix'"),
            ({"role": "assistant", "function_call": {"arguments": "{}"}}, r"messages\[0\].tool_calls\[0\]"),
            ({"role": "assistant", "content": [{"type": "image_url"}]}, r"messages\[0\].content\[0\]"),
            (
                {"role": "assistant", "content": "x", "tool_calls": [{"id": "1"}]},
                r"messages\[0\].tool_calls\[0\]",
            ),
            ({"role": "assistant", "content": "x", "tool_calls": ["no"]}, r"messages\[0\].tool_calls\[0\]"),
        ],
    )
    def test_what_the_api_cannot_carry_is_named(self, message: dict[str, Any], place: str) -> None:
        with pytest.raises(RequestError, match=place):
            encode([message])


class TestDecode:
    def test_a_whole_answer(self) -> None:
        reply = response(
            reasoning_item("First.", "Second."), message_item(text_part("Hello "), text_part("you"))
        )
        answer = responses.decode(reply)
        (choice,) = answer.choices
        assert (choice.text, choice.reasoning, choice.finish_reason) == (
            "Hello you",
            "First.\n\nSecond.",
            "stop",
        )
        assert choice.tool_calls == ()
        assert choice.logprobs is None
        assert (answer.model, answer.id, answer.service_tier) == (
            "gpt-5.5-pro-2026-04-23",
            "resp_1",
            "standard",
        )
        assert answer.usage == Usage(
            input_tokens=100,
            output_tokens=50,
            cache_read_input_tokens=40,
            cache_write_input_tokens=10,
            reasoning_output_tokens=30,
        )

    def test_tool_calls_end_the_answer(self) -> None:
        answer = responses.decode(response(call_item(), call_item("call_2", "now", "")))
        assert answer.choices[0].finish_reason == "tool_calls"
        assert answer.choices[0].text == ""
        assert answer.choices[0].tool_calls == (
            ToolCall(id="call_1", name="weather", arguments='{"city":"Bern"}'),
            ToolCall(id="call_2", name="now", arguments=""),
        )

    @pytest.mark.parametrize(
        ("reason", "expected"),
        [("max_output_tokens", "length"), ("max_messages", "length"), ("content_filter", "content_filter")],
    )
    def test_an_incomplete_answer_keeps_what_there_is(self, reason: str, expected: str) -> None:
        cut = {"status": "incomplete", "incomplete_details": {"reason": reason}}
        assert responses.decode(response(message_item(text_part("Hel")), **cut)).choices[0].text == "Hel"
        empty = responses.decode(response(**cut)).choices[0]
        assert (empty.text, empty.finish_reason) == ("", expected)

    def test_a_refusal_is_its_text(self) -> None:
        answer = responses.decode(response(message_item({"type": "refusal", "refusal": "I cannot."})))
        assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("I cannot.", "refusal")
        assert answer.choices[0].message["refusal"] == "I cannot."

    def test_log_probabilities_have_the_form_of_chat_completions(self) -> None:
        entry = {"token": "Hi", "logprob": -0.1, "bytes": [72, 105], "top_logprobs": []}
        answer = responses.decode(response(message_item(text_part("Hi", logprobs=[entry]))))
        assert answer.choices[0].logprobs == (TokenLogprob(token="Hi", logprob=-0.1),)

    def test_items_of_built_in_tools_are_kept_but_not_read(self) -> None:
        search = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
        choice = responses.decode(response(search, message_item(text_part("Found.")))).choices[0]
        assert choice.text == "Found."
        assert search in choice.message["provider_specific_fields"]["content"]

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            ({"code": "server_error", "message": "Oops"}, InternalServerError),
            ({"code": "rate_limit_exceeded", "message": "Slow down"}, RateLimitError),
            ({"code": "invalid_prompt", "message": "Invalid prompt"}, BadRequestError),
            ({"code": "image_too_large", "message": "Too large"}, BadRequestError),
            ({"code": "bio_policy", "message": "No"}, RefusalError),
            ({"code": "image_content_policy_violation", "message": "No"}, RefusalError),
            (None, InternalServerError),
        ],
    )
    def test_a_failed_response_is_its_error(self, error: Any, kind: type[LLMError]) -> None:
        with pytest.raises(kind) as caught:
            responses.decode(response(status="failed", error=error))
        assert caught.value.maybe_billed

    @pytest.mark.parametrize(
        "reply",
        [
            None,
            [],
            "text",
            {},
            {**response(), "usage": None},
            response(status="in_progress"),
            response(status="cancelled"),
            response(status="unknown"),
            {**response(status="incomplete"), "usage": None},
            {**response(status="incomplete", incomplete_details={"reason": "steered"}), "usage": None},
            {**response(), "output": None, "usage": None},
            response("item"),  # type: ignore[arg-type]  # wrong on purpose
            response(message_item({"type": "output_text"})),
            response({"type": "message", "content": "text"}),
            response({"type": "function_call", "name": "weather", "arguments": "{}"}),
            response({"type": "reasoning", "summary": ["text"]}),
        ],
    )
    def test_what_is_not_a_whole_answer_is_an_error(self, reply: Any) -> None:
        with pytest.raises(APIResponseValidationError):
            responses.decode(reply)

    @pytest.mark.parametrize("output", [None, []])
    @pytest.mark.parametrize(
        ("ending", "expected"),
        [
            ({"status": "completed"}, "stop"),
            ({"status": "incomplete"}, "length"),
            ({"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "length"),
        ],
    )
    def test_an_empty_answer_that_was_billed_is_an_answer(
        self, output: Any, ending: dict[str, Any], expected: str
    ) -> None:
        answer = responses.decode({**response(), **ending, "output": output})
        assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("", expected)

    def test_a_whole_answer_may_have_an_unknown_status(self) -> None:
        reply = response(message_item({"type": "output_text", "text": "Hi"}), status="settled")
        assert responses.decode(reply).choices[0].finish_reason == "stop"

    def test_a_cancelled_answer_is_not_asked_for_again(self) -> None:
        with pytest.raises(APIResponseValidationError, match="'cancelled'") as caught:
            responses.decode(
                response(message_item({"type": "output_text", "text": "Hi"}), status="cancelled")
            )
        assert not caught.value.retryable

    @given(JSON_VALUES, JSON_VALUES, JSON_VALUES, st.sampled_from(["completed", "incomplete", "failed"]))
    def test_nothing_but_our_errors_comes_out_of_any_json(self, a: Any, b: Any, c: Any, status: str) -> None:
        item = {"type": "message", "content": [{"type": "output_text", "text": a, "logprobs": b}]}
        for reply in (
            a,
            {"status": status, "output": a, "error": b, "incomplete_details": c, "usage": c},
            response(item, {"type": "reasoning", "summary": b}, usage=c),
            response({"type": "function_call", "call_id": a, "name": b, "arguments": c}),
        ):
            try:
                responses.decode(reply)
            except LLMError:
                continue


class TestReplay:
    ITEMS = (reasoning_item("Thinking."), message_item(text_part("Let me look.")), call_item())

    def answered(self) -> dict[str, Any]:
        # Through JSON, as a message that a user keeps in a file.
        message: dict[str, Any] = json.loads(
            json.dumps(responses.decode(response(*self.ITEMS)).choices[0].message)
        )
        return message

    def test_an_answer_is_sent_back_as_it_came(self) -> None:
        result = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
        payload = encode([{"role": "user", "content": "Weather?"}, self.answered(), result])
        assert payload["input"][1:4] == list(self.ITEMS)
        assert payload["input"][4] == {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
        canonical(payload)

    def test_a_changed_answer_is_sent_as_it_now_reads(self) -> None:
        items = encode([{**self.answered(), "content": "I will look."}])["input"]
        assert items == [
            {"role": "assistant", "content": "I will look."},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Bern"}'},
        ]

    def test_a_dropped_tool_call_is_a_change_too(self) -> None:
        message = {**self.answered(), "tool_calls": None}
        assert encode([message])["input"] == [{"role": "assistant", "content": "Let me look."}]

    @given(JSON_VALUES)
    def test_damaged_items_are_not_sent(self, content: Any) -> None:
        kept = {"provider": "openai", "content": content}
        message = {"role": "assistant", "content": "Hi", "provider_specific_fields": kept}
        assert encode([message])["input"] == [{"role": "assistant", "content": "Hi"}]

    def test_a_refusal_can_be_sent_back(self) -> None:
        refused = (
            responses.decode(response(message_item({"type": "refusal", "refusal": "No."}))).choices[0].message
        )
        assert encode([refused])["input"][0]["content"] == [{"type": "refusal", "refusal": "No."}]
        by_hand = {"role": "assistant", "content": None, "refusal": "No."}
        assert encode([by_hand])["input"] == [
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
        ]

    def test_parts_of_a_refusal_and_a_bare_tool_call_are_taken(self) -> None:
        parts = [{"type": "text", "text": "Well, "}, {"type": "refusal", "refusal": "no."}]
        call = {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        conversation = [
            {"role": "assistant", "content": parts},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
        assert encode(conversation)["input"] == [
            {
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Well, "}, {"type": "refusal", "refusal": "no."}],
            },
            {"type": "function_call", "call_id": "1", "name": "now", "arguments": "{}"},
        ]

    def test_items_that_a_file_has_damaged_are_left_out(self) -> None:
        kept = {"provider": "openai", "content": [message_item({"type": "output_text"})]}
        message = {"role": "assistant", "content": "Hi", "provider_specific_fields": kept}
        assert encode([message])["input"] == [{"role": "assistant", "content": "Hi"}]

    def test_the_chat_format_takes_such_a_message(self) -> None:
        request = Request.build("gpt-5.5", [self.answered()], {})
        with pytest.warns(UserWarning, match="an earlier answer holds reasoning, for which openai"):
            (message,) = chat.encode(request, resolve("gpt-5.5")).payload["messages"]
        assert set(message) == {"role", "content", "tool_calls"}


class TestAssembler:
    REPLIES = (
        response(message_item(text_part("Hello, world"))),
        response(
            reasoning_item("First.", "Second."), reasoning_item("Third."), message_item(text_part("Done"))
        ),
        response(call_item(), call_item("call_2", "now", "{}")),
        response(message_item({"type": "refusal", "refusal": "I cannot do that."})),
        response(
            message_item(text_part("Hel")),
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
    )

    @pytest.mark.parametrize("reply", REPLIES)
    @given(size=st.integers(1, 20))
    def test_any_chunking_gives_the_whole_reply_and_its_deltas_the_answer(
        self, reply: dict[str, Any], size: int
    ) -> None:
        deltas, assembled = assemble(stream_of(reply, size))
        assert assembled == reply
        (choice,) = responses.decode(assembled).choices
        assert "".join(delta.text for delta in deltas) == choice.text
        assert "".join(delta.reasoning for delta in deltas) == choice.reasoning
        calls: dict[int, list[str]] = {}
        for fragment in (fragment for delta in deltas for fragment in delta.tool_calls):
            parts = calls.setdefault(fragment.index, ["", "", ""])
            for place, piece in enumerate((fragment.id, fragment.name, fragment.arguments)):
                parts[place] += piece
        assert list(calls.values()) == [[call.id, call.name, call.arguments] for call in choice.tool_calls]

    def test_items_that_the_last_event_leaves_out_come_from_the_earlier_ones(self) -> None:
        reply = response(reasoning_item(), message_item(text_part("Hello")))
        *events, last = stream_of(reply)
        assert assemble([*events, {**last, "response": {**reply, "output": []}}])[1] == reply

    def test_a_stream_without_its_last_event_was_cut(self) -> None:
        with pytest.raises(APIResponseValidationError, match="cut"):
            assemble(stream_of(self.REPLIES[0])[:-1])
        with pytest.raises(APIResponseValidationError):
            responses_stream.Assembler().reply()

    @pytest.mark.parametrize(
        ("event", "kind", "code"),
        [
            (
                {"type": "error", "code": "rate_limit_exceeded", "message": "Slow"},
                RateLimitError,
                "rate_limit_exceeded",
            ),
            ({"type": "error", "code": None, "message": "Oops"}, InternalServerError, None),
            ({"error": {"code": "server_error", "message": "Oops"}}, InternalServerError, "server_error"),
            (
                {
                    "type": "response.failed",
                    "response": response(status="failed", error={"code": "server_error"}),
                },
                InternalServerError,
                "server_error",
            ),
        ],
    )
    def test_an_error_event_is_its_error(self, event: Any, kind: type[LLMError], code: str | None) -> None:
        with pytest.raises(kind) as caught:
            responses_stream.Assembler().feed(event)
        assert caught.value.code == code

    @given(
        st.sampled_from(sorted({event["type"] for reply in REPLIES for event in stream_of(reply)})),
        JSON_VALUES,
    )
    def test_nothing_but_our_errors_comes_out_of_any_event(self, kind: str, value: Any) -> None:
        names = ("delta", "item", "part", "response", "output_index")
        for event in (
            value,
            {"type": kind, **dict.fromkeys(names, value)},
            {"type": kind, "item": {"type": value}},
        ):
            assembler = responses_stream.Assembler()
            try:
                assembler.feed(event)
                assembler.reply()
            except LLMError:
                continue
