"""Uploads to Anthropic's files through its SDK."""

import asyncio

import anthropic

from llm_provider._providers.anthropic.files import connect
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.attachments import Attachment
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Simulator


def test_an_upload_keeps_its_content_and_kind(simulator: Simulator) -> None:
    async def upload() -> str:
        connection = connect(resolve("claude-haiku-5-5"), APIKey("sk-files"))
        file = Attachment("large", "image/png", 4, data=b"\x89PNG")
        uploaded = await connection.upload(file, "llm_provider-1.png")
        await connection.close()
        assert uploaded.expires is None, "Anthropic keeps it"
        return uploaded.identifier

    identifier = asyncio.run(upload())
    (request,) = simulator.requests()
    assert request.headers["anthropic-beta"] == "files-api-2025-04-14"
    with anthropic.Anthropic(api_key="sk-files") as sdk:
        stored = sdk.beta.files.retrieve_metadata(identifier)
    assert (stored.filename, stored.mime_type, stored.size_bytes) == ("llm_provider-1.png", "image/png", 4)
