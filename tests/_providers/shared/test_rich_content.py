"""Citations, images, audio and server tools of answers over the real SDKs: whole, streamed and stored."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Citation, Client, GeneratedImage, Response, ServerToolCall
from llm_provider._providers.shared import rich_content
from openai_support import completion
from raw_server import RawServer, answering, streaming

PNG = b"\x89PNG\r\n\x1a\n rest"
ENCODED = base64.b64encode(PNG).decode()
TEXT = "Zürich has lakes."


def anthropic_message() -> dict[str, Any]:
    cited = {
        "type": "web_search_result_location",
        "url": "https://a.ch",
        "title": "Zürich",
        "cited_text": "Zürich lies at a lake",
        "encrypted_index": "x",
    }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "lakes"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "https://a.ch"}]},
            {"type": "text", "text": "Zürich "},
            {"type": "text", "text": "has lakes.", "citations": [cited]},
        ],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 5},
    }


def anthropic_events() -> list[Any]:
    message = anthropic_message()
    events: list[Any] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(message["content"]):
        begun, deltas = dict(block), []
        if block["type"] == "text":
            begun["text"] = ""
            begun.pop("citations", None)
            deltas = [
                {"type": "citations_delta", "citation": citation} for citation in block.get("citations", ())
            ]
            deltas.append({"type": "text_delta", "text": block["text"]})
        elif block["type"] == "server_tool_use":
            begun["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
    )
    return [*events, {"type": "message_stop"}]


ANNOTATION = {
    "type": "url_citation",
    "url_citation": {"start_index": 7, "end_index": 17, "url": "https://a.ch", "title": "Zürich"},
}
CHAT = completion(
    {
        "content": TEXT,
        "annotations": [ANNOTATION],
        "images": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{ENCODED}"}}],
        "executed_tools": [
            {"index": 0, "type": "search", "arguments": '{"query": "lakes"}', "output": "found"}
        ],
    }
)
CHAT_EVENTS = [
    {**CHAT, "choices": [{"index": 0, "delta": {"role": "assistant", "content": TEXT[:4]}}]},
    {**CHAT, "choices": [{"index": 0, "delta": {"content": TEXT[4:]}}]},
    {
        **CHAT,
        "choices": [
            {
                "index": 0,
                "delta": {
                    name: CHAT["choices"][0]["message"][name]
                    for name in ("annotations", "images", "executed_tools")
                },
                "finish_reason": "stop",
            }
        ],
    },
]
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-5.5-pro",
    "output": [
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "lakes"},
        },
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": ENCODED},
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "Zürich ", "annotations": []},
                {
                    "type": "output_text",
                    "text": "has lakes.",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "start_index": 0,
                            "end_index": 10,
                            "url": "https://a.ch",
                            "title": "Zürich",
                        }
                    ],
                },
            ],
        },
    ],
    "usage": {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10},
}
GEMINI = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"text": TEXT}, {"inlineData": {"mimeType": "image/png", "data": ENCODED}}],
            },
            "finishReason": "STOP",
            "index": 0,
            "groundingMetadata": {
                "webSearchQueries": ["lakes"],
                "groundingChunks": [{"web": {"uri": "https://a.ch", "title": "Zürich"}}],
                "groundingSupports": [
                    {
                        "segment": {"startIndex": 8, "endIndex": 18, "text": "has lakes."},
                        "groundingChunkIndices": [0],
                    }
                ],
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 5},
    "modelVersion": "gemini-3.8-flash",
    "responseId": "r1",
}


def gemini_events() -> list[Any]:
    (candidate,) = GEMINI["candidates"]
    text, image = candidate["content"]["parts"]

    def event(parts: list[Any], **fields: Any) -> dict[str, Any]:
        return {
            **GEMINI,
            "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **fields}],
        }

    grounding = candidate["groundingMetadata"]
    return [
        event([{"text": text["text"][:4]}], groundingMetadata={"webSearchQueries": ["lakes"]}),
        event([{"text": text["text"][4:]}, image]),
        event([], groundingMetadata={**grounding, "webSearchQueries": []}, finishReason="STOP"),
    ]


CASES = {
    "openai/gpt-5.5": (CHAT, CHAT_EVENTS, "search", True),
    "together_ai/m": (CHAT, CHAT_EVENTS, "search", True),
    "gpt-5.5-pro": (RESPONSE, [{"type": "response.completed", "response": RESPONSE}], "web_search", True),
    "claude-sonnet-5-5": (anthropic_message(), anthropic_events(), "web_search", False),
    "gemini-3.8-flash": (GEMINI, gemini_events(), "google_search", True),
}


def check(response: Response, tool: str, *, images: bool) -> None:
    (citation,) = response.citations
    assert citation.start is not None
    assert response.text[citation.start : citation.end] == "has lakes."
    assert (citation.url, citation.title) == ("https://a.ch", "Zürich")
    assert [image.data for image in response.images] == ([PNG] if images else [])
    assert response.audio is None
    call = next(call for call in response.server_tool_calls if call.name == tool)
    assert "lakes" in str(call.arguments)


@pytest.mark.parametrize("model", CASES)
def test_they_are_the_same_whole_streamed_and_stored(model: str, tmp_path: Path) -> None:
    whole, events, tool, images = CASES[model]
    settings: dict[str, Any] = {"api_key": "k", "max_retries": 0}
    with Client(cache_dir=tmp_path) as client:
        with RawServer(answering(json.dumps(whole).encode())) as server:
            check(client.call(model, "one", base_url=server.root, **settings), tool, images=images)
            stored = client.call(model, "one", base_url=server.root, **settings)
        assert stored.cached
        check(stored, tool, images=images)
        check(pickle.loads(pickle.dumps(stored)), tool, images=images)
        check(Response.from_dict(stored.to_dict()), tool, images=images)
        with RawServer(streaming(events, done=model.endswith(("m", "5.5")))) as server:
            stream = client.stream(model, "two", base_url=server.root, **settings)
            assert "".join(map(str, stream)) == TEXT
            check(stream.response, tool, images=images)


@pytest.mark.parametrize("model", CASES)
def test_each_sample_has_its_own(model: str, tmp_path: Path) -> None:
    whole, _, tool, images = CASES[model]
    settings: dict[str, Any] = {"api_key": "k", "n": 3}
    several = json.loads(json.dumps(whole))
    if "choices" in several:
        several["choices"] = [{**several["choices"][0], "index": index} for index in range(3)]
    elif "candidates" in several:
        several["candidates"] = [{**several["candidates"][0], "index": index} for index in range(3)]
    with Client(cache_dir=tmp_path) as client, RawServer(answering(json.dumps(several).encode())) as server:
        for _ in range(2):
            answer = client.call(model, "one", base_url=server.root, **settings)
            assert len(answer.samples) == 3
            for sample in answer.samples:
                check(sample, tool, images=images)
                assert (sample.usage, sample.cost, len(sample.samples)) == (answer.usage, answer.cost, 1)


def test_an_answer_of_an_image_alone_is_stored(tmp_path: Path) -> None:
    (candidate,) = GEMINI["candidates"]
    parts = candidate["content"]["parts"][1:]
    only = {**GEMINI, "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}
    with Client(cache_dir=tmp_path) as client, RawServer(answering(json.dumps(only).encode())) as server:
        for cached in (False, True):
            answer = client.call("gemini-3.8-flash", "Draw", api_key="k", base_url=server.root)
            assert (answer.cached, answer.text, len(answer.images)) == (cached, "", 1)
        assert server.requests == 1


@pytest.mark.parametrize("name", ["citations", "images", "audio", "server_tool_calls"])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "litellm", "unknown"])
@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        [{}],
        {"choices": [{"message": None}], "output": 5, "content": "x", "candidates": [None]},
        {
            "choices": [
                {"message": {"annotations": [{}], "images": [{}], "audio": {}, "executed_tools": [{}]}}
            ]
        },
        {"output": [{"type": "x_call"}, {"type": "message", "content": [{"annotations": [{"type": 5}]}]}]},
        {"content": [{"type": "text", "citations": [{}]}, {"type": "server_tool_use"}]},
        {"candidates": [{"groundingMetadata": {"groundingSupports": [{"groundingChunkIndices": [9]}]}}]},
        {
            "candidates": [
                {"content": {"parts": [{"inlineData": {"data": "%"}}, {"codeExecutionResult": {}}]}}
            ]
        },
    ],
)
def test_no_shape_raises(name: str, provider: str, reply: Any) -> None:
    rich_content.read(name, provider, reply)


def test_the_first_of_several_samples_counts() -> None:
    assert len(rich_content.read("citations", "openai", [CHAT, {}])) == 1
    assert rich_content.read("citations", "openai", [{}, CHAT]) == []


def test_images_have_data_or_an_address() -> None:
    assert rich_content.image_at("https://x/a.png") == GeneratedImage(url="https://x/a.png")
    assert rich_content.image_at("data:image/webp;base64,UklGRg==") == GeneratedImage(
        data=b"RIFF", media_type="image/webp"
    )
    assert rich_content.image_at("data:image/webp;base64,%%") is None


@pytest.mark.parametrize(
    ("data", "form"), [(b"RIFF", "wav"), (b"ID3", "mp3"), (b"fLaC", "flac"), (b"\0\1", "pcm16")]
)
def test_the_format_of_audio_shows_in_its_first_bytes(data: bytes, form: str) -> None:
    audio = rich_content.audio_of(data, "Hi")
    assert audio is not None
    assert (audio.format, audio.transcript) == (form, "Hi")


def test_values_are_plain() -> None:
    assert Citation(start=1) == Citation(start=1, raw={"a": 1})
    assert ServerToolCall(name="x").result is None
