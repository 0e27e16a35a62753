"""Citations, media, tools and searches of interactions, whole and streamed."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from interactions_server import (
    HERE,
    MODEL,
    InteractionsServer,
    serving,
    text_step,
    usage,
)
from llm_provider import (
    Client,
)
from support import ask

SEARCH = {
    "type": "google_search_call", "id": "s1", "arguments": {"queries": ["a"]}, "signature": "c2ln"
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[InteractionsServer]:
    with serving() as server:
        yield server


@pytest.fixture
def client(own_cache: Path, server: InteractionsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.root)
    with Client(cache_dir=own_cache, keys={"gemini": "key-1"}) as client:
        yield client


def test_citations_media_tools_and_searches(server: InteractionsServer, client: Client) -> None:
    cited = "Bern ist schön."
    note = {"type": "url_citation", "url": "https://a.org", "title": "A", "start_index": 0,
            "end_index": len(cited.encode())}  # fmt: skip
    steps = [
        SEARCH,
        {"type": "google_search_result", "call_id": "s1", "result": [{"search_suggestions": "b"}]},
        text_step("Ja. "),
        text_step(cited, annotations=[note]),
        {"type": "model_output", "content": [
            {"type": "image", "data": base64.b64encode(b"png").decode(), "mime_type": "image/png"},
            {"type": "audio", "data": base64.b64encode(b"\0\1").decode(), "mime_type": "audio/l16",
             "sample_rate": 16000},
        ]},
    ]  # fmt: skip
    grounding = [{"type": "google_search", "count": 2}, {"type": "google_maps", "count": 1}]
    server.answer = lambda body: {
        "status": "completed", "steps": steps, "usage": usage(grounding_tool_count=grounding)
    }  # fmt: skip
    for answered in (client.call(MODEL, "Hi", **HERE), ask(client, "stream", MODEL, "Hi 2", **HERE)):
        (citation,) = answered.citations
        assert (citation.url, answered.text[citation.start : citation.end]) == ("https://a.org", cited)
        assert answered.images[0].data == b"png"
        assert (answered.audio.data, answered.audio.sample_rate) == (b"\0\1", 16000)
        (tool,) = answered.server_tool_calls
        assert (tool.name, tool.arguments, tool.id) == ("google_search", {"queries": ["a"]}, "s1")
        assert (answered.usage.web_searches, answered.usage.unpriced_tools) == (2, 1)
        assert answered.served_by.request_id == answered.id
