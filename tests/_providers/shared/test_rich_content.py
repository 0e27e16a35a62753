"""Images and audio of answers: where they are kept, and their forms."""

import base64
import json
import pickle
from pathlib import Path

import pytest

from llm_provider import Client, GeneratedImage, Response
from llm_provider._providers.shared import rich_content
from raw_server import RawServer, answering

PNG = b"\x89PNG\r\n\x1a\n rest"
ENCODED = base64.b64encode(PNG).decode()

GEMINI = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"inlineData": {"mimeType": "image/png", "data": ENCODED}}],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 5},
    "modelVersion": "gemini-3.8-flash",
    "responseId": "r1",
}


def test_an_answer_of_an_image_alone_is_stored(tmp_path: Path) -> None:
    with Client(cache_dir=tmp_path) as client, RawServer(answering(json.dumps(GEMINI).encode())) as server:
        for cached in (False, True):
            answer = client.call("gemini-3.8-flash", "Draw", api_key="k", base_url=server.root)
            assert (answer.cached, answer.text) == (cached, "")
            for copy in (answer, pickle.loads(pickle.dumps(answer)), Response.from_dict(answer.to_dict())):
                assert [image.data for image in copy.images] == [PNG]
        assert server.requests == 1


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
