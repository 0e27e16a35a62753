"""Uploads to Gemini's files through its SDK."""

import asyncio

import pytest

from llm_provider import BadRequestError
from llm_provider._providers.gemini.files import connect
from llm_provider._providers.shared.files import UploadedFile
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.attachments import Attachment
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Fault, Simulator

VIDEO = Attachment("large", "video/mp4", 12, data=b"\0\0\0\x18ftypisom")


def upload(attachment: Attachment) -> UploadedFile:
    async def work() -> UploadedFile:
        connection = connect(resolve("gemini-3.8-flash"), APIKey("k"))
        try:
            return await connection.upload(attachment, "llm_provider-1.mp4")
        finally:
            await connection.close()

    return asyncio.run(work())


def test_a_file_that_google_cannot_process_is_an_error(simulator: Simulator) -> None:
    simulator.configure(file_seconds=60.0)
    failed = '{"name": "files/a", "state": "FAILED", "error": {"code": 3, "message": "no frames"}}'
    simulator.inject(Fault(body=failed), match="files.retrieve")
    with pytest.raises(BadRequestError, match="Google cannot process the file: no frames"):
        upload(VIDEO)
