"""Which files of a request are uploaded, by the documented limits of each provider, and their forms."""

from typing import Any

import anthropic
import openai
import pytest

from llm_provider import BadRequestError, RequestError
from llm_provider._core.formats import registry
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.requests.attachments import Attachment
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._features.uploads.references import (
    AnthropicFiles,
    GeminiFiles,
    OpenAIFiles,
    files_of,
    fill_references,
    refer_to_files,
)
from llm_provider.simulator import Fault, Simulator
from support import upload

MB = 1_000_000
FIELDS = {"image": ("image_url", "url"), "video": ("video_url", "url"), "audio": ("input_audio", "data")}


def part(kind: str, size: int, *, content: bytes | None = None) -> dict[str, Any]:
    """A file of a size, whose text is as long as its base64 where a request can hold it."""
    text = "x" * (-(-size // 3) * 4) if size <= 22 * MB and content is None else "large"
    data = (content or f"{kind} {size}".encode()) if text == "large" else None
    outer, inner = FIELDS.get(kind.partition("/")[0], ("file", "file_data"))
    more = {"format": kind.partition("/")[2]} if outer == "input_audio" else {}
    return {"type": outer, outer: {inner: Attachment(text, kind, size, data=data), **more}}


def uploaded(model: str, *parts: dict[str, Any]) -> list[int]:
    """The sizes of the files that are uploaded."""
    request = Request.build(model, [{"role": "user", "content": [*parts]}], {})
    return sorted(attachment.size for attachment in refer_to_files(request, resolve(model))[1])


CASES: list[tuple[str, list[tuple[str, int]], list[int]]] = [
    ("gpt-6.1-sol", [("application/pdf", 22 * MB)], []),
    ("gpt-6.1-sol", [("application/pdf", 22 * MB + 1)], [22 * MB + 1]),
    ("gpt-6.1-sol", [("application/pdf", 12 * MB), ("image/png", 12 * MB)], [12 * MB]),
    ("claude-haiku-5-5", [("image/png", 3_932_160)], []),
    ("claude-haiku-5-5", [("image/png", 3_932_161)], [3_932_161]),
    ("claude-haiku-5-5", [("application/pdf", 3_932_161)], []),
    ("claude-haiku-5-5", [("application/pdf", 11 * MB), ("application/pdf", 12 * MB)], [12 * MB]),
    ("claude-haiku-5-5", [("image/png", 2 * MB)] * 12, [2 * MB]),
    ("gemini-3.8-flash", [("application/pdf", 14 * MB)], []),
    ("gemini-3.8-flash", [("application/pdf", 15 * MB)], [15 * MB]),
    ("gemini-3.8-flash", [("video/mp4", 1900 * MB), ("audio/wav", 2 * MB)], [1900 * MB]),
    ("groq/openai/gpt-oss-120b", [("application/pdf", 22 * MB)], []),
]


@pytest.mark.parametrize(("model", "files", "expected"), CASES)
def test_what_does_not_fit_is_uploaded(model: str, files: list[tuple[str, int]], expected: list[int]) -> None:
    assert uploaded(model, *(part(kind, size) for kind, size in files)) == expected


@pytest.mark.parametrize(
    ("model", "kind", "size", "problem"),
    [
        (
            "groq/openai/gpt-oss-120b",
            "application/pdf",
            31 * MB,
            r"content\[0\] is a file .* of 31.0 MB.*groq",
        ),
        ("litellm/x/y", "image/png", 31 * MB, "litellm takes files of up to 22 MB, as it has no files API"),
        ("claude-haiku-5-5", "video/mp4", 31 * MB, "uploaded, which it has for PDF and images alone"),
        ("claude-haiku-5-5", "application/pdf", 501 * MB, "anthropic takes files of up to 500 MB"),
        ("gpt-6.1-sol", "audio/wav", 31 * MB, "holds files of up to 22 MB"),
        ("gpt-6.1-sol", "application/pdf", 513 * MB, "openai takes files of up to 512 MB"),
        ("gemini-3.8-flash", "video/mp4", 2001 * MB, "gemini takes files of up to 2,000 MB: make it smaller"),
    ],
)
def test_what_cannot_be_uploaded_is_refused(model: str, kind: str, size: int, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        uploaded(model, part(kind, size))


def encoded(model: str, part: dict[str, Any], **parameters: Any) -> EncodedRequest:
    request = Request.build(model, [{"role": "user", "content": [part]}], parameters)
    target = resolve(model)
    return CHAT.encode(request, target, registry.load(target.route.adapter))


PDF, IMAGE = (
    part("application/pdf", 23 * MB, content=b"%PDF-1.7"),
    part("image/png", 23 * MB, content=b"\x89PNG"),
)
REFERENCE = PDF["file"]["file_data"].reference


@pytest.mark.parametrize(
    ("model", "parameters", "form"),
    [
        ("gpt-6.1-sol", {}, {"type": "file", "file": {"file_id": REFERENCE}}),
        ("gpt-6.1-sol", {"endpoint": "responses"}, {"type": "input_file", "file_id": REFERENCE}),
        ("claude-haiku-5-5", {}, {"type": "document", "source": {"type": "file", "file_id": REFERENCE}}),
        ("gemini-3.8-flash", {}, {"fileData": {"mimeType": "application/pdf", "fileUri": REFERENCE}}),
    ],
)
def test_the_payload_names_the_content_and_not_the_id(model: str, parameters: Any, form: Any) -> None:
    made = encoded(model, PDF, **parameters)
    names = {name: made.payload.get(name) for name in ("messages", "input", "contents")}
    (turn,) = next(turns for turns in names.values() if turns)
    assert (turn.get("content") or turn["parts"]) == [form]
    assert [attachment.reference for attachment in made.uploads] == [REFERENCE]


def test_an_image_has_forms_of_its_own() -> None:
    reference = IMAGE["image_url"]["url"].reference
    (turn,) = encoded("gpt-6.1-sol", IMAGE, endpoint="responses").payload["input"]
    assert turn["content"] == [{"type": "input_image", "file_id": reference, "detail": "auto"}]
    (turn,) = encoded("claude-haiku-5-5", IMAGE).payload["messages"]
    assert turn["content"] == [{"type": "image", "source": {"type": "file", "file_id": reference}}]
    with pytest.raises(RequestError, match=r"Chat Completions takes no uploaded images: write endpoint="):
        encoded("gpt-6.1-sol", IMAGE)
    with pytest.raises(RequestError, match="is image/heic; Anthropic accepts image/jpeg"):
        encoded("claude-haiku-5-5", part("image/heic", 23 * MB))


def test_anthropics_beta_header_is_added_to_those_of_the_user() -> None:
    headers = {"anthropic-beta": "context-1m-2025-08-07"}
    made = encoded("claude-haiku-5-5", PDF, extra_headers=headers)
    assert made.headers["anthropic-beta"] == "context-1m-2025-08-07,files-api-2025-04-14"
    assert "anthropic-beta" not in encoded("claude-haiku-5-5", {"type": "text", "text": "Hi"}).headers


def test_the_id_takes_the_place_of_whole_texts_only() -> None:
    request = EncodedRequest("chat", {"text": f"I mean {REFERENCE}", "id": REFERENCE})
    body = b'{"id":"%s"}' % REFERENCE.encode()
    filled, body = fill_references(request, {REFERENCE: 'file-"1"'}, body)
    assert filled.payload == {"text": f"I mean {REFERENCE}", "id": 'file-"1"'}
    assert body == b'{"id":"file-\\"1\\""}'


def test_an_upload_has_the_purpose_of_model_input(simulator: Simulator) -> None:
    uploaded = upload(OpenAIFiles, "gpt-6.1-sol", "application/pdf", b"%PDF-1.7")
    assert uploaded.expires is None, "OpenAI keeps it"
    with openai.OpenAI(api_key="sk-files") as sdk:
        stored = sdk.files.retrieve(uploaded.identifier)
        assert (stored.purpose, stored.bytes, stored.filename) == ("user_data", 8, "llm_provider-1")
        assert sdk.files.content(uploaded.identifier).content == b"%PDF-1.7"


def test_compatible_hosts_have_no_such_files() -> None:
    assert files_of(resolve("gpt-6.1-sol")) is OpenAIFiles
    assert files_of(resolve("groq/openai/gpt-oss-120b")) is None


def test_an_upload_keeps_its_content_and_kind(simulator: Simulator) -> None:
    uploaded = upload(AnthropicFiles, "claude-haiku-5-5", "image/png", b"\x89PNG")
    assert uploaded.expires is None, "Anthropic keeps it"
    (request,) = simulator.requests()
    assert request.headers["anthropic-beta"] == "files-api-2025-04-14"
    with anthropic.Anthropic(api_key="sk-files") as sdk:
        stored = sdk.beta.files.retrieve_metadata(uploaded.identifier)
    assert (stored.filename, stored.mime_type, stored.size_bytes) == ("llm_provider-1", "image/png", 4)


def test_a_file_that_google_cannot_process_is_an_error(simulator: Simulator) -> None:
    simulator.configure(file_seconds=60.0)
    failed = '{"name": "files/a", "state": "FAILED", "error": {"code": 3, "message": "no frames"}}'
    simulator.inject(Fault(body=failed), match="files.retrieve")
    with pytest.raises(BadRequestError, match="Google cannot process the file: no frames"):
        upload(GeminiFiles, "gemini-3.8-flash", "video/mp4", b"\0\0\0\x18ftypisom")
