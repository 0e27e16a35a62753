"""The Responses wire format: payloads, replies, streams, and answers sent back in the next turn."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from llm_provider._providers.openai_responses import encode as responses
from llm_provider._providers.openai_responses import stream as responses_stream
from llm_provider._providers.openai_responses.decode import decode
from llm_provider._requests.request import Request
from llm_provider._types.messages import Delta, delta_of
from openai_support import JSON_VALUES, PRO


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

    for position, item in enumerate(reply["output"]):
        opened = {**item, "arguments": ""} if item["type"] == "function_call" else {**item, "content": []}
        events.append({"type": "response.output_item.added", "output_index": position, "item": opened})
        for index, summary in enumerate(item.get("summary") or ()):
            where = {"output_index": position, "summary_index": index}
            added = {"type": "summary_text", "text": ""}
            events.append({"type": "response.reasoning_summary_part.added", "part": added, **where})
            pieces("response.reasoning_summary_text.delta", summary["text"], **where)
        for index, entry in enumerate(item.get("content") or ()):
            where = {"output_index": position, "content_index": index}
            events.append({"type": "response.content_part.added", "part": {"type": entry["type"]}, **where})
            if entry["type"] == "output_text":
                pieces("response.output_text.delta", entry["text"], **where)
            else:
                pieces("response.refusal.delta", entry["refusal"], **where)
        if item["type"] == "function_call":
            pieces("response.function_call_arguments.delta", item["arguments"], output_index=position)
        events.append({"type": "response.output_item.done", "output_index": position, "item": item})
    events.append({"type": f"response.{reply['status']}", "response": reply})
    return events


def assemble(events: list[dict[str, Any]]) -> tuple[list[Delta], Any]:
    assembler = responses_stream.Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in events]
    return deltas, assembler.reply()


class TestEncode:
    def test_a_json_schema_is_flat_too(self) -> None:
        class City(BaseModel):
            name: str

        schema = {"type": "object", "properties": {}}
        response_format = {
            "type": "json_schema",
            "json_schema": {"name": "thing", "schema": schema, "strict": True},
        }
        assert encode(response_format=response_format)["text"]["format"] == {
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


class TestReplay:
    @given(JSON_VALUES)
    def test_damaged_items_are_not_sent(self, content: Any) -> None:
        kept = {"provider": "openai", "content": content}
        message = {"role": "assistant", "content": "Hi", "provider_specific_fields": kept}
        assert encode([message])["input"] == [{"role": "assistant", "content": "Hi"}]


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
        (choice,) = decode(assembled).choices
        assert "".join(delta.text for delta in deltas) == choice.text
        assert "".join(delta.reasoning for delta in deltas) == choice.reasoning
        calls: dict[int, list[str]] = {}
        for fragment in (fragment for delta in deltas for fragment in delta.tool_calls):
            parts = calls.setdefault(fragment.index, ["", "", ""])
            for position, piece in enumerate((fragment.id, fragment.name, fragment.arguments)):
                parts[position] += piece
        assert list(calls.values()) == [[call.id, call.name, call.arguments] for call in choice.tool_calls]
