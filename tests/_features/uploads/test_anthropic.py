"""Uploads to Anthropic's files through its SDK."""

import anthropic

from llm_provider._features.uploads.anthropic import connect
from llm_provider.simulator import Simulator
from support import upload


def test_an_upload_keeps_its_content_and_kind(simulator: Simulator) -> None:
    uploaded = upload(connect, "claude-haiku-5-5", "image/png", b"\x89PNG")
    assert uploaded.expires is None, "Anthropic keeps it"
    (request,) = simulator.requests()
    assert request.headers["anthropic-beta"] == "files-api-2025-04-14"
    with anthropic.Anthropic(api_key="sk-files") as sdk:
        stored = sdk.beta.files.retrieve_metadata(uploaded.identifier)
    assert (stored.filename, stored.mime_type, stored.size_bytes) == ("llm_provider-1", "image/png", 4)
