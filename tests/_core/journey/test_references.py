"""A request that refers to an uploaded file in a stored beginning: both are sent once."""

from pathlib import Path
from typing import Any

from contents_server import ContentsServer
from llm_provider import Client
from llm_provider._core.requests.attachments import Attachment

MODEL = "gemini-3.8-flash"
DOCUMENT = "The tenant pays the rent on the first day of each month. " * 400


def ask(server: ContentsServer, folder: Path, question: str) -> None:
    file = Attachment("large", "application/pdf", 23_000_000, data=b"%PDF-1.7 a")
    part = {"type": "file", "file": {"filename": "document.pdf", "file_data": file}}
    prompt: Any = [{"role": "user", "content": [DOCUMENT, part, question]}]
    keys = {"gemini": ["a-key-of-the-tests-0123456789"]}
    with Client(cache_dir=folder, base_url=f"{server.root}/v1beta", keys=keys) as client:
        answer = client.call(MODEL, prompt, prompt_caching="explicit", max_tokens=100)
        assert answer.usage.cache_read_input_tokens


def test_a_stored_beginning_names_an_uploaded_file(tmp_path: Path) -> None:
    with ContentsServer() as server:
        for question in "ab":
            ask(server, tmp_path, question)
        assert (server.uploaded, server.created) == (1, 1)
        server.contents.clear()
        ask(server, tmp_path, "c")
        assert (server.uploaded, server.created) == (1, 2)
        for _, whole in server.asked:
            (_, text), (_, file), _ = whole[-1]
            assert text == {"text": DOCUMENT}
            assert file["fileData"]["fileUri"].endswith("/files/1")
