"""Files, bytes and images in messages: which are recognised and refused, and their forms on the wire."""

import base64
import io
import os
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from llm_provider import Client, RequestError
from llm_provider._requests import media
from llm_provider._requests.request import Request
from llm_provider.simulator import Simulator

PNG = b"\x89PNG\r\n\x1a\n rest"
FILES = {
    "a.png": (PNG, "image/png"),
    "a.jpg": (b"\xff\xd8\xff\xe0 rest", "image/jpeg"),
    "a.gif": (b"GIF89a rest", "image/gif"),
    "a.webp": (b"RIFF\0\0\0\0WEBP", "image/webp"),
    "a.heic": (b"\0\0\0\x18ftypheic", "image/heic"),
    "a.pdf": (b"%PDF-1.7 rest", "application/pdf"),
    "a.wav": (b"RIFF\0\0\0\0WAVE", "audio/wav"),
    "a.mp3": (b"ID3 rest", "audio/mpeg"),
    "b.mp3": (b"\xff\xfb\x90\x64", "audio/mpeg"),
    "a.aac": (b"\xff\xf1\x50", "audio/aac"),
    "a.flac": (b"fLaC rest", "audio/flac"),
    "a.ogg": (b"OggS rest", "audio/ogg"),
    "a.aiff": (b"FORM\0\0\0\0AIFF", "audio/aiff"),
    "a.m4a": (b"\0\0\0\x18ftypM4A ", "audio/mp4"),
    "a.mp4": (b"\0\0\0\x18ftypisom", "video/mp4"),
    "a.mov": (b"\0\0\0\x18ftypqt  ", "video/quicktime"),
    "a.webm": (b"\x1a\x45\xdf\xa3 webm", "video/webm"),
    "a.avi": (b"RIFF\0\0\0\0AVI ", "video/avi"),
}


def parts(prompt: Any) -> list[Any]:
    (message,) = Request.build("gpt-6.1-sol", prompt, {}).messages
    assert message["role"] == "user"
    return list(message["content"])


def kind_and_data(part: Any) -> tuple[str, bytes]:
    """The media type of a part, and its bytes."""
    inner = part[part["type"]]
    if part["type"] == "input_audio":
        kind = {"mp3": "audio/mpeg", "m4a": "audio/mp4"}.get(inner["format"], f"audio/{inner['format']}")
        return kind, base64.b64decode(inner["data"])
    head, _, data = (inner.get("url") or inner["file_data"]).partition(";base64,")
    return head.removeprefix("data:"), base64.b64decode(data)


@pytest.mark.parametrize("name", FILES)
def test_a_path_and_its_bytes_are_the_same_part(tmp_path: Path, name: str) -> None:
    data, kind = FILES[name]
    (tmp_path / name).write_bytes(data)
    text, from_path, from_bytes = parts(["What is this?", tmp_path / name, data])
    assert text == {"type": "text", "text": "What is this?"}
    assert from_path == from_bytes
    assert kind_and_data(from_path) == (kind, data)


def test_the_content_counts_and_not_the_name(tmp_path: Path) -> None:
    (tmp_path / "wrong.jpg").write_bytes(PNG)
    (tmp_path / "other").write_bytes(PNG)
    assert parts([tmp_path / "wrong.jpg"]) == parts([tmp_path / "other"]) == parts([bytearray(PNG)])
    assert "wrong" not in str(parts([tmp_path / "wrong.jpg"]))


def test_a_text_file_is_its_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeffcity,°C\nZürich,3\n".encode())
    (tmp_path / "b.txt").write_text("BMW and other cars", encoding="utf-8")
    texts = parts([tmp_path / "a.csv", os.fspath("plain"), tmp_path / "b.txt"])
    assert [part["text"] for part in texts] == ["city,°C\nZürich,3\n", "plain", "BMW and other cars"]
    (tmp_path / "c.txt").write_bytes(b"\xe9")
    with pytest.raises(RequestError, match=r"messages\[0\]: the file .*c.txt' is not UTF-8 text"):
        parts([tmp_path / "c.txt"])


def test_an_image_of_pillow_is_sent_as_png() -> None:
    image = PIL.Image.new("RGBA", (3, 2), (255, 0, 0, 128))
    (part,) = parts([image])
    kind, data = kind_and_data(part)
    assert (kind, PIL.Image.open(io.BytesIO(data)).tobytes()) == ("image/png", image.tobytes())
    with pytest.raises(RequestError, match=r"messages\[0\] is a PIL image .*: write image.convert\('RGB'\)"):
        parts([image.convert("CMYK")])


def test_the_content_of_a_message_takes_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    message = {
        "role": "user",
        "content": ["What is this?", tmp_path / "a.png", {"type": "text", "text": "!"}],
    }
    conversation = [{"role": "system", "content": "Be brief."}, message, {"role": "user", "content": PNG}]
    system, question, alone = Request.build("gpt-6.1-sol", conversation, {}).messages
    assert system is conversation[0]
    assert question["content"] == parts(message["content"])
    assert alone["content"] == parts([PNG])
    assert message["content"][1] == tmp_path / "a.png", "the caller's message is not changed"


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("empty.png", b"", "empty.png' is empty"),
        ("not.png", b"Hello", "the content of '.*not.png' is not of the kind that its name says"),
        ("a.xyz", b"Hello", "a.xyz' is of an unknown kind. A Path may be images .PNG"),
        ("a.docx", b"PK\x03\x04", "is application/zip.*export an office document as PDF"),
        ("a.mkv", b"\x1a\x45\xdf\xa3 matroska", "convert it to MP4"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, data: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RequestError, match=rf"messages\[1\]: .*{problem}"):
        parts(["What?", tmp_path / name])


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    with path.open("wb") as file:
        file.write(PNG)
        file.truncate(media.MOST_BYTES + 1)
    (part,) = parts([path])
    attachment = part["image_url"]["url"]
    assert len(attachment) < 100
    assert (attachment.size, attachment.path) == (media.MOST_BYTES + 1, str(path))
    with Client() as client, pytest.raises(RequestError, match=r"of 22.0 MB, and groq takes .* 22 MB"):
        client.call("groq/openai/gpt-oss-120b", ["What?", path], api_key="k")
    path.rename(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes(b" " * (media.MOST_BYTES + 1))
    with pytest.raises(RequestError, match=r"the text file .* has 22.0 MB, and the limit is 22 MB"):
        parts(["What?", tmp_path / "a.txt"])


CONTENT = [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "https://x/a.png"}}]


def test_parts_alone_are_a_prompt() -> None:
    assert parts(CONTENT) == CONTENT


def test_the_cache_key_depends_on_the_content(simulator: Simulator, tmp_path: Path) -> None:
    for name, data in (("a.png", PNG), ("copy.png", PNG), ("other.png", PNG + b"!")):
        (tmp_path / name).write_bytes(data)
    with Client(cache_dir=tmp_path / "cache") as client:
        bound = client.with_options(api_key="k", base_url=simulator.url("openai"))
        names = ("a.png", "copy.png", "other.png", "a.png")
        cached = [bound.call("gpt-6.1-sol", ["Hi", tmp_path / name]).cached for name in names]
    assert cached == [False, True, False, True]
