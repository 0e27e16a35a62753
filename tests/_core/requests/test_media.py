"""Files, bytes and images in messages; golden pairs have a file of each kind, and those that are refused."""

import base64
import io
import os
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from llm_provider import Client, RequestError
from llm_provider._core.requests import media
from llm_provider._core.requests.request import Request
from llm_provider.simulator import Simulator

PNG = b"\x89PNG\r\n\x1a\n rest"


def parts(prompt: Any) -> list[Any]:
    (message,) = Request.build("gpt-6.1-sol", prompt, {}).messages
    assert message["role"] == "user"
    return list(message["content"])


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
    head, _, data = part["image_url"]["url"].partition(";base64,")
    assert head == "data:image/png"
    assert PIL.Image.open(io.BytesIO(base64.b64decode(data))).tobytes() == image.tobytes()
    with pytest.raises(RequestError, match=r"messages\[0\] is a PIL image .*: write image.convert\('RGB'\)"):
        parts([image.convert("CMYK")])


def test_parts_alone_are_a_prompt_and_the_content_of_a_message_takes_the_same(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "https://x/a.png"}}]
    assert parts(content) == content
    # litellm's form of an image.
    assert parts([content[0], {"type": "image_url", "image_url": "https://x/a.png"}]) == content
    with pytest.raises(RequestError, match="not 'file:"):
        parts([{"type": "image_url", "image_url": {"url": "file:///a.png"}}])
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


def test_the_cache_key_depends_on_the_content(simulator: Simulator, tmp_path: Path) -> None:
    for name, data in (("a.png", PNG), ("copy.png", PNG), ("other.png", PNG + b"!")):
        (tmp_path / name).write_bytes(data)
    with Client(cache_dir=tmp_path / "cache") as client:
        bound = client.with_options(api_key="k", base_url=simulator.url("openai"))
        names = ("a.png", "copy.png", "other.png", "a.png")
        cached = [bound.call("gpt-6.1-sol", ["Hi", tmp_path / name]).cached for name in names]
    assert cached == [False, True, False, True]
