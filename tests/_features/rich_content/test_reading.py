"""Images and audio of answers: where they are kept, and their forms."""

import base64
import copy
import json
import pickle
from pathlib import Path

import pytest

from llm_provider import Client, Response
from llm_provider._features.rich_content import reading as rich_content
from raw_server import RawServer, answering
from wire_shapes import SHAPES

PNG = b"\x89PNG\r\n\x1a\n rest"


def test_an_answer_of_an_image_alone_is_stored(tmp_path: Path) -> None:
    reply = copy.deepcopy(SHAPES["gemini"][0].whole)
    data = base64.b64encode(PNG).decode()
    reply["candidates"][0]["content"]["parts"] = [{"inlineData": {"mimeType": "image/png", "data": data}}]
    with Client(cache_dir=tmp_path) as client, RawServer(answering(json.dumps(reply).encode())) as server:
        for cached in (False, True):
            answer = client.call("gemini-3.8-flash", "Draw", api_key="k", base_url=server.root)
            assert (answer.cached, answer.text) == (cached, "")
            for twin in (answer, pickle.loads(pickle.dumps(answer)), Response.from_dict(answer.to_dict())):
                assert [image.data for image in twin.images] == [PNG]
        assert server.requests == 1


@pytest.mark.parametrize(
    ("data", "form"), [(b"RIFF", "wav"), (b"ID3", "mp3"), (b"fLaC", "flac"), (b"\0\1", "pcm16")]
)
def test_the_format_of_audio_shows_in_its_first_bytes(data: bytes, form: str) -> None:
    audio = rich_content.audio_of(data, "Hi")
    assert audio is not None
    assert (audio.format, audio.transcript) == (form, "Hi")
