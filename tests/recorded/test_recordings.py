"""Each recording of this folder is played again: the library must make of it what the recording says."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client
from llm_provider._features.check.account import Case
from llm_provider._features.check.traffic import SERVER
from loop_support import LoopServer

CASES = [
    pytest.param(case, id=f"{path.stem}-{case['provider']}-{case['name']}".replace("/", "-"))
    for path in sorted(Path(__file__).parent.glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
]


class RecordedServer(LoopServer):
    """Answers requests by method and path, in the order of the recording; the last answer is repeated."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        super().__init__()
        self._left = list(exchanges)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        (method, path, *_), fields = head.split(maxsplit=2), head.lower()
        if "\r\ncontent-length:" in fields:
            await reader.readexactly(int(fields.partition("\r\ncontent-length:")[2].split()[0]))
        elif "chunked" in fields:
            await reader.readuntil(b"0\r\n\r\n")
        matching = [each for each in self._left if (each["method"], each["path"]) == (method, path)]
        assert matching, f"{method} {path} is not in the recording"
        if len(matching) > 1:
            self._left.remove(matching[0])
        headers = {**matching[0]["headers"], "connection": "close"}
        lines = [f"{name}: {value.replace(SERVER, self.root)}\r\n" for name, value in headers.items()]
        head = f"HTTP/1.1 {matching[0]['status']} Recorded\r\n{''.join(lines)}\r\n"
        writer.write(head.encode("latin-1") + matching[0]["body"].encode())
        await writer.drain()
        writer.close()


@pytest.fixture
def client(case: dict[str, Any], tmp_path: Path) -> Iterator[Client]:
    with RecordedServer(case["exchanges"]) as server:
        url = server.root + case["base"]
        with Client(
            base_url=url, cache="refresh", cache_dir=tmp_path, max_retries=0, max_tokens=400
        ) as client:
            yield client


@pytest.mark.parametrize("case", CASES)
@pytest.mark.sampled(3)
def test_a_recording_is_read_as_it_says(case: dict[str, Any], client: Client) -> None:
    played = Case(case["name"], case["operation"], case["model"], case["inputs"], case["parameters"])
    played.play(client)
    assert json.loads(json.dumps(played.result)) == case["result"]


def test_there_are_recordings() -> None:
    assert len(CASES) > 50
