"""Citations, images, audio and server tools in the shapes of google-genai."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.genai.types import GenerateContentResponse

from llm_provider import Citation, GeneratedImage, ServerToolCall
from llm_provider._providers.gemini import extras


def reply(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    """A reply of one candidate, as the SDK reads it and writes it again."""
    given = {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **candidate}]}
    return GenerateContentResponse.model_validate(given).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )


CHUNKS = [
    {"web": {"uri": "https://a", "title": "A", "domain": "a"}},
    {"retrievedContext": {"uri": "gs://b", "title": "B", "text": "so it is", "documentName": "docs/1"}},
]


@pytest.mark.parametrize(
    "segment",
    [
        {"startIndex": 8, "endIndex": 11, "text": "is."},
        {"startIndex": 7, "endIndex": 10, "text": "is."},
        {"startIndex": 8, "endIndex": 11},
        {"text": "is."},
    ],
    ids=["bytes", "characters", "no text", "no places"],
)
def test_a_segment_is_found_in_characters(segment: dict[str, Any]) -> None:
    supports = [{"segment": segment, "groundingChunkIndices": [0, 1, 7]}]
    metadata = {"groundingChunks": CHUNKS, "groundingSupports": supports}
    answer = reply(
        {"text": "Hm", "thought": True}, {"text": "Zürich "}, {"text": "is."}, groundingMetadata=metadata
    )
    first, second = extras.citations(answer)
    assert first == Citation(start=7, end=10, url="https://a", title="A")
    assert second == Citation(start=7, end=10, url="gs://b", title="B", quote="so it is", file_id="docs/1")


def test_sources_of_the_whole_answer() -> None:
    answer = reply({"text": "Hi"}, groundingMetadata={"groundingChunks": CHUNKS[:1]})
    assert extras.citations(answer) == [Citation(url="https://a", title="A")]
    recited = {"citations": [{"startIndex": 0, "endIndex": 2, "uri": "https://c", "title": "C"}]}
    assert extras.citations(reply({"text": "Hi"}, citationMetadata=recited)) == [
        Citation(start=0, end=2, url="https://c", title="C")
    ]


def test_speech_without_a_header_has_its_rate() -> None:
    pieces = [
        {
            "inlineData": {
                "mimeType": "audio/L16;codec=pcm;rate=16000",
                "data": base64.b64encode(data).decode(),
            }
        }
        for data in (b"\0\1", b"\2\3")
    ]
    audio = extras.audio(reply(*pieces))
    assert audio is not None
    assert (audio.data, audio.format, audio.sample_rate) == (b"\0\1\2\3", "pcm16", 16_000)
    wav = {"inlineData": {"mimeType": "audio/wav", "data": base64.b64encode(b"RIFF").decode()}}
    assert getattr(extras.audio(reply(wav)), "format", None) == "wav"
    assert extras.audio(reply({"text": "Hi"})) is None


def test_images_have_their_bytes_or_an_address() -> None:
    inline = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"PNG").decode()}}
    kept = {"fileData": {"mimeType": "image/webp", "fileUri": "gs://a"}}
    assert extras.images(reply(inline, {"text": "Hi"}, kept, {**inline, "thought": True})) == [
        GeneratedImage(data=b"PNG"),
        GeneratedImage(media_type="image/webp", url="gs://a"),
    ]


def test_tools_that_google_ran() -> None:
    answer = reply(
        {"executableCode": {"language": "PYTHON", "code": "1+1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
        {"text": "2"},
        groundingMetadata={"webSearchQueries": ["sum"]},
        urlContextMetadata={
            "urlMetadata": [
                {"retrievedUrl": "https://a", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"}
            ]
        },
    )
    code, search, page = extras.server_tool_calls(answer)
    assert code == ServerToolCall(
        name="code_execution",
        arguments={"language": "PYTHON", "code": "1+1"},
        result={"outcome": "OUTCOME_OK", "output": "2"},
    )
    assert (search.name, search.arguments) == ("google_search", {"queries": ["sum"]})
    assert (page.name, page.arguments) == ("url_context", {"urls": ["https://a"]})
