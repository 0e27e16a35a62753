"""What boxes before a provider do by themselves: pages, redirects, packing, broken answers."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

import llm_provider as llm
from llm_provider.simulator import Fault
from witnesses.servers.nginx import WAYS
from witnesses.witness import Running, Start

pytestmark = pytest.mark.integration

PAGES: Mapping[str, tuple[type[llm.LLMError], str]] = {
    "401": (llm.AuthenticationError, "401 Authorization Required"),
    "403": (llm.PermissionDeniedError, "403 Forbidden"),
    "413": (llm.BadRequestError, "413 Request Entity Too Large"),
    "429": (llm.RateLimitError, "429 Too Many Requests"),
    "502": (llm.InternalServerError, "502 Bad Gateway"),
    "503": (llm.OverloadedError, "503 Service Temporarily Unavailable"),
    "504": (llm.InternalServerError, "504 Gateway Time-out"),
    "page": (llm.APIResponseValidationError, "Sign in"),
    "empty": (llm.APIResponseValidationError, "empty|was cut"),
    "login": (llm.APIResponseValidationError, "redirects to http://127.0.0.1:[0-9]+/page/"),
    "moved": (
        llm.APIResponseValidationError,
        "redirects to http://127.0.0.1:[0-9]+/(openai|anthropic|gemini)/",
    ),
}
"""The first part of a path → the error, and what its message has of the box's page."""


def ask(server: Running, client: llm.Client, part: str, way: str, *, streamed: bool) -> str:
    """The text of an answer whose request has this path before its own."""
    place = WAYS[way]
    arguments = server.arguments(place._replace(path=f"{part}{place.path}"))
    if not streamed:
        return client.call(place.model, "one two three", **arguments).text
    with client.stream(place.model, "one two three", **arguments) as stream:
        pieces = [delta.text for delta in stream if delta.text]
    assert len(pieces) == 4
    return stream.response.text


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", PAGES)
def test_a_page_of_nginx_is_its_status(servers: Start, part: str, way: str, streamed: bool) -> None:
    server, (kind, text) = servers("nginx"), PAGES[part]
    assert server.place.upstream is not None
    server.place.upstream.clear()
    with llm.Client(cache="off") as client:
        if part == "504":
            server.place.upstream.inject(Fault(delay=2))
        if part in ("429", "503"):
            # The first request a minute passes.
            with suppress(llm.LLMError):
                ask(server, client, f"/{part}", way, streamed=streamed)
        before = server.wire.requests
        with pytest.raises(kind, match=text) as caught:
            ask(server, client, f"/{part}", way, streamed=streamed)
    assert type(caught.value) is kind
    assert caught.value.status == (int(part) if part.isdigit() else caught.value.status)
    assert server.wire.requests == before + 1
    assert "<" not in caught.value.message or part == "page"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", ["gzip", "unbuffered", "http10", "closed"])
def test_an_answer_is_the_same_however_it_is_packed(
    servers: Start, part: str, way: str, streamed: bool, tmp_path: Path
) -> None:
    server = servers("nginx")
    begin = len(server.wire.received)
    with llm.Client(cache_dir=tmp_path) as client:
        assert ask(server, client, f"/{part}", way, streamed=streamed) == "echo: one two three"
    reply = bytes(server.wire.received[begin:]).lower()
    assert (b"content-encoding: gzip" in reply) == (part == "gzip")
    assert (b"connection: close" in reply) == (part == "closed")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("box", "part"), [("nginx", ""), ("nginx", "/http10"), ("nginx", "/gzip"), ("mitmproxy", "")]
)
def test_a_part_of_an_answer_is_never_taken_for_the_whole(
    servers: Start, box: str, part: str, way: str, streamed: bool
) -> None:
    server = servers(box)
    assert server.place.upstream is not None
    server.place.upstream.clear()
    server.place.upstream.inject(Fault(abort_after=2), times=3)
    kinds = (llm.APIConnectionError, llm.APIResponseValidationError, llm.InternalServerError)
    try:
        with llm.Client(cache="off") as client, pytest.raises(kinds):
            ask(server, client, part, way, streamed=streamed)
    finally:
        server.place.upstream.clear()
