"""Images and audio of answers: where they are kept, their forms, and how they are shown and written."""

import base64
import copy
import io
import json
import pickle
import re
import wave
from pathlib import Path

import pytest

from llm_provider import Client, GeneratedAudio, GeneratedImage, RequestError, Response
from llm_provider._features.rich_content import values as rich_content
from raw_server import RawServer, answering
from support import response
from wire_shapes import SHAPES

PNG = GeneratedImage(data=b"\x89PNG")


def test_a_notebook_shows_an_image() -> None:
    assert (PNG._repr_png_(), PNG._repr_jpeg_()) == (b"\x89PNG", None)
    assert PNG._repr_html_() == '<img src="data:image/png;base64,iVBORw==">'
    photo = GeneratedImage(data=b"\xff\xd8", media_type="image/jpeg")
    assert (photo._repr_png_(), photo._repr_jpeg_()) == (None, b"\xff\xd8")
    linked = GeneratedImage(url='https://x/"a".png')
    assert linked._repr_png_() is None
    escaped = "https://x/&quot;a&quot;.png"
    assert (
        linked._repr_html_() == f'<a href="{escaped}" rel="noopener noreferrer" target="_blank">{escaped}</a>'
    )
    assert repr(linked) == "GeneratedImage('image/png', 'https://x/\"a\".png')"


@pytest.mark.parametrize(
    "image",
    [
        GeneratedImage(url="https://tracker.example/pixel.png"),
        GeneratedImage(url="http://169.254.169.254/"),
        GeneratedImage(url="//tracker.example/pixel.png"),
        GeneratedImage(url="javascript:alert(1)"),
        GeneratedImage(url="data:text/html,<script>alert(1)</script>"),
        GeneratedImage(url='"><img src=x onerror=alert(1)>'),
        GeneratedImage(
            data=b"<svg><image href='https://tracker.example'/></svg>", media_type="image/svg+xml"
        ),
        GeneratedImage(data=b"<script>", media_type='image/png"><script>alert(1)</script>'),
        GeneratedImage(data=b"<script>", media_type="text/html"),
    ],
)
def test_a_notebook_loads_nothing_by_itself(image: GeneratedImage) -> None:
    html = image._repr_html_()
    assert not re.search(r'<(?!/a>|a href="https?://)', html)
    assert (image._repr_png_(), image._repr_jpeg_()) == (None, None)


def test_an_image_is_saved(tmp_path: Path) -> None:
    PNG.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == PNG.data
    with pytest.raises(RequestError, match="only the address of this image: https://x"):
        GeneratedImage(url="https://x").save(tmp_path / "b.png")
    assert not (tmp_path / "b.png").exists()


def test_samples_without_a_header_become_a_wav_file(tmp_path: Path) -> None:
    audio = GeneratedAudio(data=b"\0\1\2\3", format="pcm16", sample_rate=16_000, transcript="Hi")
    audio.save(tmp_path / "a.wav")
    with wave.open(io.BytesIO((tmp_path / "a.wav").read_bytes())) as file:
        assert (file.getframerate(), file.getnchannels(), file.readframes(9)) == (16_000, 1, b"\0\1\2\3")
    assert audio._repr_html_().startswith('<audio controls src="data:audio/wav;base64,UklGR')
    assert repr(audio) == "GeneratedAudio('pcm16', 4 bytes, 'Hi')"


def test_other_audio_stays_as_it_is() -> None:
    audio = GeneratedAudio(data=b"ID3", format="mp3")
    assert audio.playable == b"ID3"
    assert 'src="data:audio/mpeg;base64,SUQz"' in audio._repr_html_()


def test_a_notebook_shows_the_images_of_a_response() -> None:
    body = b'{"choices": [{"message": {"images": [{"image_url": {"url": "https://x/a.png"}}]}}]}'
    answer = response("Hi", provider="openai", body=body)
    assert '<a href="https://x/a.png"' in answer._repr_html_()
    assert (answer.citations, answer.audio, answer.server_tool_calls) == ([], None, [])


PNG_BYTES = b"\x89PNG\r\n\x1a\n rest"


def test_an_answer_of_an_image_alone_is_stored(tmp_path: Path) -> None:
    reply = copy.deepcopy(SHAPES["gemini"][0].whole)
    data = base64.b64encode(PNG_BYTES).decode()
    reply["candidates"][0]["content"]["parts"] = [{"inlineData": {"mimeType": "image/png", "data": data}}]
    with Client(cache_dir=tmp_path) as client, RawServer(answering(json.dumps(reply).encode())) as server:
        for cached in (False, True):
            answer = client.call("gemini-3.8-flash", "Draw", api_key="k", base_url=server.root)
            assert (answer.cached, answer.text) == (cached, "")
            for twin in (answer, pickle.loads(pickle.dumps(answer)), Response.from_dict(answer.to_dict())):
                assert [image.data for image in twin.images] == [PNG_BYTES]
        assert server.requests == 1


@pytest.mark.parametrize(
    ("data", "form"), [(b"RIFF", "wav"), (b"ID3", "mp3"), (b"fLaC", "flac"), (b"\0\1", "pcm16")]
)
def test_the_format_of_audio_shows_in_its_first_bytes(data: bytes, form: str) -> None:
    audio = rich_content.audio_of(data, "Hi")
    assert audio is not None
    assert (audio.format, audio.transcript) == (form, "Hi")
