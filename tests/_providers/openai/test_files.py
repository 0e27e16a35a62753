"""Uploads to OpenAI's files through its SDK."""

import asyncio

import openai

from llm_provider._providers.openai.files import connect, limits
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.attachments import Attachment
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Simulator


def test_an_upload_has_the_purpose_of_model_input(simulator: Simulator) -> None:
    async def upload() -> str:
        connection = connect(resolve("gpt-6.1-sol"), APIKey("sk-files"))
        file = Attachment("large", "application/pdf", 8, data=b"%PDF-1.7")
        uploaded = await connection.upload(file, "llm_provider-1.pdf")
        await connection.close()
        assert uploaded.expires is None, "OpenAI keeps it"
        return uploaded.identifier

    identifier = asyncio.run(upload())
    with openai.OpenAI(api_key="sk-files") as sdk:
        stored = sdk.files.retrieve(identifier)
        assert (stored.purpose, stored.bytes, stored.filename) == ("user_data", 8, "llm_provider-1.pdf")
        assert sdk.files.content(identifier).content == b"%PDF-1.7"


def test_compatible_hosts_have_no_such_files() -> None:
    assert limits(resolve("gpt-6.1-sol")) is not None
    assert limits(resolve("groq/openai/gpt-oss-120b")) is None
