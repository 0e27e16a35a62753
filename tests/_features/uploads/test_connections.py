"""Uploads to the files of each provider through its SDK."""

import anthropic
import openai
import pytest

from llm_provider import BadRequestError
from llm_provider._core.requests.routing import resolve
from llm_provider._features.uploads.connections import AnthropicFiles, GeminiFiles, OpenAIFiles, files_of
from llm_provider.simulator import Fault, Simulator
from support import upload


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
