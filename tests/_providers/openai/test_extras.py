"""Citations, images, audio and server tools in the shapes of OpenAI's SDK and of compatible hosts."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from openai.types.chat import ChatCompletionAudio
from openai.types.responses import Response

from llm_provider import Citation
from llm_provider._providers.openai import extras
from llm_provider._providers.openai.chat_stream import Assembler
from openai_support import completion

WAV = base64.b64encode(b"RIFF....WAVE").decode()


def of_message(**message: Any) -> dict[str, Any]:
    """A completion with these fields of its message."""
    return completion(message)


def of_output(*items: dict[str, Any]) -> dict[str, Any]:
    """A response with these items, of the types of OpenAI's SDK."""
    response = Response.model_validate(
        {
            "id": "r", "created_at": 1, "model": "m", "object": "response", "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [], "output": list(items),
        }
    )  # fmt: skip
    return response.model_dump(mode="json", warnings="error")


def test_a_response_cites_files() -> None:
    annotations = [
        {"type": "file_citation", "file_id": "f1", "filename": "a.pdf", "index": 3},
        {
            "type": "container_file_citation", "container_id": "c", "file_id": "f2", "filename": "b.csv",
            "start_index": 0, "end_index": 2,
        },
    ]  # fmt: skip
    content = [{"type": "output_text", "text": "Hi", "annotations": annotations}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
    assert extras.citations(of_output(message)) == [
        Citation(title="a.pdf", file_id="f1"),
        Citation(title="b.csv", file_id="f2", start=0, end=2),
    ]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (
            {**completion(), "citations": ["https://a", "https://b"]},
            [Citation(url="https://a"), Citation(url="https://b")],
        ),
        (
            {
                **completion(),
                "citations": ["https://a"],
                "search_results": [{"url": "https://a", "title": "A", "snippet": "said"}],
            },
            [Citation(url="https://a", title="A", quote="said")],
        ),
        (
            of_message(
                content=[{"type": "text", "text": "It is so"}, {"type": "reference", "reference_ids": [2]}]
            ),
            [Citation(end=8, document_index=2)],
        ),
        (
            of_message(
                content="Yes. It is so.",
                provider_specific_fields={
                    "citations": [
                        [
                            {
                                "type": "char_location", "cited_text": "so", "document_index": 0,
                                "document_title": "T", "supported_text": "It is so.",
                            }
                        ]
                    ]
                },
            ),
            [Citation(start=5, end=14, quote="so", title="T", document_index=0)],
        ),
        (of_message(content="Hi", annotations=[{"type": "file", "file": {"hash": "x"}}]), []),
    ],
    ids=["xai", "perplexity", "mistral", "litellm", "openrouter's parsed files"],
)  # fmt: skip
def test_hosts_cite_in_ways_of_their_own(reply: dict[str, Any], expected: list[Citation]) -> None:
    assert extras.citations(reply) == expected


def test_speech_has_its_transcript() -> None:
    speech = ChatCompletionAudio(id="a", data=WAV, expires_at=1, transcript="Hello")
    audio = extras.audio(of_message(content=None, audio=speech.model_dump()))
    assert audio is not None
    assert (audio.data, audio.format, audio.transcript) == (b"RIFF....WAVE", "wav", "Hello")
    assert extras.audio(completion()) is None


def test_each_tool_of_openai_has_its_arguments_and_its_result() -> None:
    calls = extras.server_tool_calls(
        of_output(
            {
                "type": "file_search_call", "id": "1", "status": "completed", "queries": ["q"],
                "results": [{"file_id": "f", "text": "found"}],
            },
            {
                "type": "code_interpreter_call", "id": "2", "status": "completed", "code": "1+1",
                "container_id": "c", "outputs": [{"type": "logs", "logs": "2"}],
            },
            {
                "type": "mcp_call", "id": "3", "server_label": "s", "name": "look", "arguments": '{"a": 1}',
                "output": "seen",
            },
            {"type": "image_generation_call", "id": "4", "status": "completed", "result": WAV},
            {
                "type": "function_call", "id": "5", "call_id": "5", "name": "mine", "arguments": "{}",
                "status": "completed",
            },
        )
    )  # fmt: skip
    assert [call.name for call in calls] == ["file_search", "code_interpreter", "look", "image_generation"]
    assert [call.id for call in calls] == ["1", "2", "3", "4"]
    assert calls[0].arguments == {"queries": ["q"]}
    assert calls[0].result[0]["text"] == "found"
    assert calls[1].arguments == {"code": "1+1", "container_id": "c"}
    assert calls[1].result[0]["logs"] == "2"
    assert (calls[2].arguments, calls[2].result) == ({"a": 1}, "seen")
    assert calls[3].result is None


def test_citations_that_litellm_streams_are_kept() -> None:
    assembler = Assembler()
    cited = {"type": "char_location", "cited_text": "so", "document_index": 0}
    for delta in ({"content": "Yes"}, {"provider_specific_fields": {"citation": cited}}):
        assembler.feed({"choices": [{"index": 0, "delta": delta}]})
    assembler.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    assert extras.citations(assembler.reply()) == [Citation(quote="so", document_index=0)]


def test_pages_that_a_host_streams_are_kept() -> None:
    assembler = Assembler()
    chunk = {"citations": ["https://a"], "choices": [{"index": 0, "delta": {"content": "Yes"}}]}
    assembler.feed(chunk)
    assembler.feed({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    assert extras.citations(assembler.reply()) == [Citation(url="https://a")]
