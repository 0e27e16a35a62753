"""Uploads to Gemini's files through its SDK."""

import pytest

from llm_provider import BadRequestError
from llm_provider._features.uploads.gemini import connect
from llm_provider.simulator import Fault, Simulator
from support import upload


def test_a_file_that_google_cannot_process_is_an_error(simulator: Simulator) -> None:
    simulator.configure(file_seconds=60.0)
    failed = '{"name": "files/a", "state": "FAILED", "error": {"code": 3, "message": "no frames"}}'
    simulator.inject(Fault(body=failed), match="files.retrieve")
    with pytest.raises(BadRequestError, match="Google cannot process the file: no frames"):
        upload(connect, "gemini-3.8-flash", "video/mp4", b"\0\0\0\x18ftypisom")
