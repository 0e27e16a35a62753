"""Uploaded files: each once for a key, remembered, and uploaded again where the provider lost them."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from llm_provider import (
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    CacheMissError,
    Client,
    InternalServerError,
    NotFoundError,
    RequestError,
    Response,
)
from llm_provider._core.formats import registry
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.attachments import Attachment
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._features.uploads.uploads import (
    AnthropicFiles,
    GeminiFiles,
    OpenAIFiles,
    files_of,
    fill_references,
    refer_to_files,
)
from llm_provider.simulator import Fault, RecordedRequest, Simulator
from support import upload, wait_until

GPT, CLAUDE, GEMINI = "gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash"


def prompt(question: str, content: bytes = b"%PDF-1.7 a", kind: str = "application/pdf") -> list[Any]:
    """A question about a file that no request can hold, as far as the library is told."""
    file = Attachment("large", kind, 23_000_000, data=content)
    if kind.startswith("video/"):
        return [question, {"type": "video_url", "video_url": {"url": file}}]
    return [question, {"type": "file", "file": {"filename": "document.pdf", "file_data": file}}]


def kind_of(request: RecordedRequest) -> str:
    return "upload" if "/files" in request.path else "call"


def paths(simulator: Simulator) -> list[str]:
    """The requests so far: uploads, and everything else."""
    return [kind_of(request) for request in simulator.requests()]


@pytest.mark.parametrize("model", [GPT, CLAUDE, GEMINI])
def test_a_file_is_uploaded_once(client: Client, simulator: Simulator, own_cache: Path, model: str) -> None:
    steps = ["upload"] * (2 if model == GEMINI else 1)
    answer = client.call(model, prompt("What?"))
    assert (answer.text, answer.cached, paths(simulator)) == ("echo: What?", False, [*steps, "call"])
    assert client.call(model, prompt("What?")).cached
    with Client(cache_dir=own_cache) as other:
        assert other.call(model, prompt("What?"), cache="only").cached
        assert not other.call(model, prompt("Why?")).cached
        assert other.call(model, prompt("Why?", b"%PDF-1.7 b")).cached is False
        with pytest.raises(CacheMissError):
            other.call(model, prompt("Who?"), cache="only")
    assert paths(simulator) == [*steps, "call", "call", *steps, "call"]


def test_calls_at_the_same_time_share_one_upload(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(delay=0.1), match="files.upload", times=None)
    answers = client.call_many(GPT, [prompt(str(number)) for number in range(8)])
    assert [answer.text for answer in answers] == [f"echo: {number}" for number in range(8)]
    assert paths(simulator).count("upload") == 1


def test_a_lost_file_is_uploaded_again_once(client: Client, simulator: Simulator) -> None:
    for model in (GPT, CLAUDE, GEMINI):
        client.call(model, prompt("What?"))
        steps = paths(simulator)[:-1]
        simulator.clear()  # which also loses the files
        answer = client.call(model, prompt("Why?"), max_retries=0)
        assert (answer.text, answer.timing.attempts) == ("echo: Why?", 2)
        assert paths(simulator) == ["call", *steps, "call"]
        simulator.clear()
    simulator.inject(Fault(status=404, message="File not found: file_0"), match="Who?", times=None)
    with pytest.raises(NotFoundError) as caught:
        client.call(CLAUDE, prompt("Who?"))
    assert caught.value.attempts == 2


def test_an_expiring_file_is_uploaded_again(client: Client, simulator: Simulator, own_cache: Path) -> None:
    client.call(GEMINI, prompt("What?"))
    (remembered,) = (own_cache / "uploads").iterdir()
    stored = json.loads(remembered.read_text())
    assert abs(stored["expires"] - time.time() - 48 * 3600) < 600
    for content in (json.dumps({**stored, "expires": time.time() + 60}), "damaged"):
        remembered.write_text(content)
        with Client(cache_dir=own_cache) as other:
            other.call(GEMINI, prompt(content))
    assert paths(simulator).count("upload") == 6


def test_each_key_has_files_of_its_own(client: Client, simulator: Simulator) -> None:
    client.call(GPT, prompt("What?"), api_key="sk-one")
    client.call(GPT, prompt("Why?"), api_key="sk-two")
    client.call(GPT, prompt("Who?"), api_key="sk-one")
    assert paths(simulator) == ["upload", "call", "upload", "call", "call"]
    assert "sk-" not in "".join(path.read_text() for path in client.cache.directory.glob("uploads/*"))


@pytest.mark.parametrize("model", [GPT, CLAUDE, GEMINI])
def test_a_call_that_moves_to_another_account_uploads_its_file_there(
    model: str, simulator: Simulator, own_cache: Path
) -> None:
    provider = {GPT: "openai", CLAUDE: "anthropic", GEMINI: "gemini"}[model]
    keys = ["sk-first-account", "sk-second-account"]
    fingerprints = {APIKey(key).identity[:8]: key for key in keys}

    def senders(kind: str) -> list[str]:
        sent = [request for request in simulator.requests() if kind_of(request) == kind]
        texts = [str(dict(each.headers)) for each in sent if kind == "upload" or "What?" in str(each.body)]
        return [key for text in texts for name, key in fingerprints.items() if name in text]

    async def run(client: Client) -> Response:
        simulator.inject(Fault(delay=1.0), match="files.upload")
        asked = asyncio.create_task(client.acall(model, prompt("What?")))
        while not simulator.requests():
            await asyncio.sleep(0.01)
        # Its account is refused for minutes while the file is on its way there.
        account, *_ = senders("upload")
        simulator.inject(Fault(status=429, retry_after="300"), match="busy", key=account, times=None)
        await asyncio.gather(*(client.acall(model, f"busy {number}") for number in range(8)))
        return await asked

    with Client(cache_dir=own_cache, keys={provider: keys}) as client:
        assert asyncio.run(run(client)).text == "echo: What?"
    [account] = senders("call")
    assert [key == account for key in dict.fromkeys(senders("upload"))] == [False, True]


def test_a_video_is_sent_once_it_is_processed(client: Client, simulator: Simulator) -> None:
    simulator.configure(file_seconds=0.15)
    assert client.call(GEMINI, prompt("What?", b"\0\0\0\x18ftypisom", "video/mp4")).text == "echo: What?"
    assert paths(simulator)[:4] == ["upload"] * 4 or paths(simulator)[:3] == ["upload"] * 3
    (part,) = [part for part in simulator.requests()[-1].body["contents"][0]["parts"] if "fileData" in part]
    assert part["fileData"]["mimeType"] == "video/mp4"


def test_failed_uploads_are_tried_again_and_have_typed_errors(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=503), match="files.upload", times=2)
    assert client.call(CLAUDE, prompt("What?")).timing.attempts == 1
    simulator.inject(Fault(status=500), match="files.upload", times=None)
    with pytest.raises(InternalServerError, match=r"the upload of a file .* of 23.0 MB failed") as caught:
        client.call(CLAUDE, prompt("What?", b"%PDF-1.7 b"), max_retries=1)
    assert not caught.value.maybe_billed
    assert caught.value.cost in (None, 0.0)
    assert (caught.value.provider, caught.value.model) == ("anthropic", CLAUDE)
    simulator.clear()
    simulator.configure(require_key="sk-right")
    answers = client.call_many(CLAUDE, [prompt("1", b"c"), prompt("2", b"c")], api_key="sk-wrong")
    assert all(isinstance(answer, AuthenticationError) for answer in answers)
    assert answers[0] is not answers[1]


def test_the_deadline_counts_the_upload(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(hang=True), match="files.upload")
    with pytest.raises(APITimeoutError, match="nothing was sent") as caught:
        client.call(GPT, prompt("What?"), deadline=0.2)
    assert (caught.value.attempts, caught.value.maybe_billed) == (0, False)
    assert wait_until(lambda: simulator.ledger().in_flight == 0), "the upload has ended"
    simulator.clear()  # on a slow machine the deadline may pass before the upload begins
    assert client.call(GPT, prompt("What?")).text == "echo: What?"


async def test_a_cancelled_call_leaves_the_upload_to_the_others(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(delay=0.2), match="files.upload")
    first = asyncio.create_task(client.acall(GPT, prompt("1")))
    second = asyncio.create_task(client.acall(GPT, prompt("2")))
    while not simulator.requests():
        await asyncio.sleep(0.01)
    first.cancel()
    assert isinstance((await asyncio.gather(first, return_exceptions=True))[0], asyncio.CancelledError)
    assert (await second).text == "echo: 2"
    assert paths(simulator) == ["upload", "call"]


async def test_no_slot_is_held_during_an_upload(simulator: Simulator, own_cache: Path) -> None:
    simulator.inject(Fault(hang=True), match="files.upload")

    async with Client(cache_dir=own_cache, max_concurrent=1) as client:
        waiting = asyncio.create_task(client.acall(GPT, prompt("1")))
        while not simulator.requests():
            await asyncio.sleep(0.01)
        assert (await client.acall(GPT, "2")).text == "echo: 2"
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


@pytest.mark.parametrize("model", [CLAUDE, GEMINI])
def test_a_batch_refers_to_uploads_too(client: Client, simulator: Simulator, model: str) -> None:
    inputs = [prompt("1"), prompt("2"), prompt("3", b"%PDF-1.7 b"), "4"]
    answers = client.call_many(model, inputs, delivery="batch")
    assert [answer.text for answer in answers] == [f"echo: {number}" for number in range(1, 5)]
    assert client.call(model, prompt("3", b"%PDF-1.7 b")).cached, "the key is that of a live call"
    simulator.inject(Fault(status=400), match="files.upload", times=None)
    (error,) = client.call_many(model, [prompt("5", b"%PDF-1.7 c")], delivery="batch")
    assert isinstance(error, RequestError)
    assert "the upload of a file" in error.message


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A real image that is just above Anthropic's limit."""
    path = tmp_path / "a.png"
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(3_932_161)
    return path


def test_a_file_above_the_limit_arrives_as_it_is(
    client: Client, simulator: Simulator, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(large.parent)
    assert client.call(CLAUDE, ["What is this?", Path(large.name)]).text == "echo: What is this?"
    upload, call = simulator.requests()
    assert call.headers["anthropic-beta"] == "files-api-2025-04-14"
    (_, image) = call.body["messages"][0]["content"]
    with anthropic.Anthropic() as sdk:
        metadata = sdk.beta.files.retrieve_metadata(image["source"]["file_id"])
    assert upload.path.endswith("/v1/files")
    assert (metadata.size_bytes, metadata.mime_type) == (3_932_161, "image/png")
    assert metadata.filename.startswith("llm_provider-")
    assert client.call(CLAUDE, ["What is this?", large.read_bytes()]).cached, "the key is that of the content"


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
