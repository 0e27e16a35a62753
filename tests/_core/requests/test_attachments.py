"""Attachments: text for most code, and a file that can be read, hashed, copied and pickled."""

import copy
import hashlib
import pickle
from pathlib import Path
from typing import Any

import orjson
import pytest

from llm_provider import RequestError
from llm_provider._core.requests.attachments import (
    Attachment,
    UploadReference,
    attachments_of,
    with_references,
)

PDF = b"%PDF-1.7 and more"
URL = "data:application/pdf;base64,JVBERi0xLjcgYW5kIG1vcmU="


def from_everywhere(tmp_path: Path) -> list[Attachment]:
    path = tmp_path / "a.pdf"
    path.write_bytes(PDF)
    return [
        Attachment(URL, "application/pdf", len(PDF)),
        Attachment("large", "application/pdf", len(PDF), data=PDF),
        Attachment("large", "application/pdf", len(PDF), path=str(path)),
    ]


def test_the_content_and_its_hash_do_not_depend_on_where_it_is(tmp_path: Path) -> None:
    for attachment in from_everywhere(tmp_path):
        with attachment.open() as file:
            assert file.read() == PDF
        assert attachment.reference == f"llm_provider:sha256:{hashlib.sha256(PDF).hexdigest()}"
        assert attachment.reference.media_type == "application/pdf"
        assert attachment.encoded_size == len(URL.partition(",")[2])


def test_only_a_text_that_holds_the_content_can_be_sent(tmp_path: Path) -> None:
    assert [attachment.in_text for attachment in from_everywhere(tmp_path)] == [True, False, False]
    assert orjson.dumps(from_everywhere(tmp_path)[0]) == orjson.dumps(URL)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda attachment: pickle.loads(pickle.dumps(attachment))]
)
def test_copies_keep_their_file(tmp_path: Path, copied: Any) -> None:
    for attachment in from_everywhere(tmp_path):
        other = copied(attachment)
        assert (type(other), other) == (Attachment, attachment)
        assert (other.path, other.data) == (attachment.path, attachment.data)
        assert copied(attachment.reference).media_type == other.reference.media_type


def test_a_file_that_changed_is_not_uploaded(tmp_path: Path) -> None:
    attachment = from_everywhere(tmp_path)[2]
    assert attachment.reference
    path = Path(str(attachment.path))
    path.write_bytes(PDF + b"!")
    with pytest.raises(RequestError, match="has changed since the call began"):
        attachment.open()
    path.unlink()
    with pytest.raises(RequestError, match="cannot be read: No such file"):
        attachment.open()


def test_references_take_the_place_of_some_attachments(tmp_path: Path) -> None:
    attachment, other, _ = from_everywhere(tmp_path)
    part = {"type": "file", "file": {"filename": "document.pdf", "file_data": attachment}}
    image = {"type": "image_url", "image_url": {"url": other, "detail": "low"}}
    plain = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, part, image, plain]},
        {"role": "assistant", "tool_calls": []},
    ]
    paths = ["messages[1].content[1]", "messages[1].content[2]"]
    assert [path for path, _ in attachments_of(messages)] == paths
    system, user, answer = with_references(messages, {id(other): other.reference})
    assert (system, answer) == (messages[0], messages[2])
    uploaded = {"type": "image_url", "image_url": {"url": other.reference, "detail": "low"}}
    assert user["content"] == [{"type": "text", "text": "Hi"}, part, uploaded, plain]
    assert isinstance(user["content"][2]["image_url"]["url"], UploadReference)
    assert image["image_url"] == {"url": other, "detail": "low"}, "the caller's message is not changed"
