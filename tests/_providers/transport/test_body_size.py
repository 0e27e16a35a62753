"""Answers that are larger than a client reads."""

import asyncio
import contextlib
import gzip
import itertools
import types
import zlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import APIResponseValidationError, Client, InternalServerError
from llm_provider._providers.transport import body_size
from llm_provider.simulator import Fault, Simulator
from raw_server import Behaviour, RawServer, expanding
from support import RunScript, ask

MEGABYTE = 2**20

MODELS = {"gpt-6.1-sol": "/v1", "gpt-5.5-pro": "/v1", "claude-sonnet-5-5": "", "gemini/gemini-4-argon": ""}
# Each takes a second of CPU.
LARGE = ["gpt-6.1-sol", *(pytest.param(model, marks=pytest.mark.long) for model in list(MODELS)[1:])]

SIMPLE_EVENTS = {
    "gpt-6.1-sol": b'data: {"choices":[{"index":0,"delta":{"content":"four"}}]}\n\n',
    "gpt-5.5-pro": b'data: {"type":"response.output_text.delta","output_index":0,"delta":"four"}\n\n',
    "claude-sonnet-5-5": b'data: {"type":"ping"}\n\n',
    "gemini/gemini-4-argon": b'data: {"candidates":[{"index":0,"content":{"parts":[{"text":"four"}]}}]}\n\n',
}

ASK = """
    import asyncio, resource, sys

    from llm_provider import APIResponseValidationError, Client, InternalServerError

    def read_all(client, **where):
        for _ in client.stream({model!r}, "Hi", **where):
            pass

    async def read_all_soon(client, **where):
        async with client.astream({model!r}, "Hi", **where) as deltas:
            async for _ in deltas:
                pass

    WAYS = {{
        "call": lambda client, **where: client.call({model!r}, "Hi", **where),
        "stream": read_all,
        "acall": lambda client, **where: asyncio.run(client.acall({model!r}, "Hi", **where)),
        "astream": lambda client, **where: asyncio.run(read_all_soon(client, **where)),
    }}

    def peak():
        # Linux counts in kB, macOS in bytes.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    for transport in {transports}:
        with Client(cache="off", transport=transport, max_response_bytes={limit}) as client:
            WAYS["call"](client, base_url={usual!r})
            before = peak()
            for how in {hows}:
                for base_url in {huge!r}:
                    # The first of two is an answer of status 200, the other an error.
                    retries = {{}} if base_url == {huge!r}[0] else {{"max_retries": 0}}
                    try:
                        WAYS[how](client, base_url=base_url, **retries)
                    except InternalServerError as error:
                        assert retries
                    except APIResponseValidationError as error:
                        assert "Client(max_response_bytes=...)" in str(error), str(error)
                        assert (error.attempts, error.maybe_billed) == (1, True), (how, error.attempts)
                    else:
                        raise AssertionError("answered")
            print(peak() - before)
"""


def provider(model: str) -> str:
    return {"g": "openai", "c": "anthropic"}[model[0]] if "/" not in model else "gemini"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-test")


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("model", LARGE)
def test_a_small_body_that_decodes_to_a_quarter_of_a_gigabyte_takes_little_memory(
    simulator: Simulator, run_script: RunScript, model: str
) -> None:
    check_memory(
        simulator, run_script, model, 100 * MEGABYTE, 64 * MEGABYTE,
        expanding(b'data: {"id":"', b"x" * MEGABYTE, 256),
        expanding(b'{"id":"', b"x" * MEGABYTE, 256, status=500),
    )  # fmt: skip


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("model", LARGE)
@pytest.mark.long
def test_small_events_take_little_memory(simulator: Simulator, run_script: RunScript, model: str) -> None:
    events = SIMPLE_EVENTS[model]
    # Each event of 60 bytes is a text, which takes more memory than its letters.
    behaviour = expanding(b"", events * (MEGABYTE // len(events)), 1024)
    check_memory(simulator, run_script, model, 40 * MEGABYTE, 4 * MEGABYTE, behaviour)


def check_memory(
    simulator: Simulator, run_script: RunScript, model: str, most: int, limit: int, *behaviours: Behaviour
) -> None:
    """Ask servers again and again; the memory of all answers together stays below `most` bytes.

    `limit` is the clients' `max_response_bytes`.
    """
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(RawServer(behaviour)) for behaviour in behaviours]
        code = ASK.format(
            model=model, limit=limit, usual=simulator.url(provider(model)),
            huge=[server.root + MODELS[model] for server in servers],
            transports=["aiohttp", "http2"], hows=["call", "astream"],
        )  # fmt: skip
        grown = [int(line) for line in run_script(code).stdout.split()]
        assert len(grown) == 2
        assert max(grown) < most
        # Once for each transport and each way of asking: none was sent again.
        assert {server.requests for server in servers} == {4}


@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
@pytest.mark.parametrize("model", MODELS)
def test_the_limit_is_a_setting(simulator: Simulator, model: str, transport: Any, how: str) -> None:
    simulator.configure(answer="x" * 5000)

    with (
        Client(cache="off", max_response_bytes=4000, transport=transport) as strict,
        Client(cache="off", max_response_bytes=50_000, transport=transport) as lenient,
    ):
        with pytest.raises(APIResponseValidationError, match="more than 4,000 bytes") as caught:
            ask(strict, how, model)
        assert (caught.value.attempts, caught.value.retryable, caught.value.maybe_billed) == (1, False, True)
        assert len(simulator.requests()) == 1
        assert len(ask(lenient, how, model).text) > 4000
        simulator.inject(Fault(status=500, message="y" * 5000))
        # Of an error the beginning is read, so its status says what failed.
        with pytest.raises(InternalServerError):
            ask(strict, how, model, max_retries=0)


async def read(library: types.ModuleType, pieces: list[bytes], encoding: str, most: int = 10**9) -> bytes:
    async def arriving() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    response = library.Response(200, headers={"content-encoding": encoding}, content=arriving())
    body_size.limit_httpx(library, response, most)
    body: bytes = await response.aread()
    return body


@given(
    st.binary(max_size=2000),
    st.integers(0, 600),
    st.sampled_from([16, 0, -1]),
    st.lists(st.integers(0, 3000)),
)
def test_decoding_in_pieces_changes_nothing(block: bytes, times: int, window: int, cuts: list[int]) -> None:
    encoder = zlib.compressobj(
        6, zlib.DEFLATED, {16: zlib.MAX_WBITS | 16, 0: zlib.MAX_WBITS, -1: -zlib.MAX_WBITS}[window]
    )
    body = encoder.compress(block * times) + encoder.flush()
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    pieces = [body[start:end] for start, end in itertools.pairwise(edges)]
    encoding = "gzip" if window == 16 else "deflate"
    assert asyncio.run(read(httpx2, pieces, encoding)) == block * times


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_encodings_are_undone_in_their_order_and_within_the_limit(library: types.ModuleType) -> None:
    body = b"told" * 100_000
    twice = zlib.compress(gzip.compress(body))
    assert asyncio.run(read(library, [twice], "gzip, deflate")) == body
    # An encoding that was not accepted is left as it is, so that nothing decodes it without a limit.
    assert asyncio.run(read(library, [b"\x8b\x03\x80"], "br")) == b"\x8b\x03\x80"
    with pytest.raises(APIResponseValidationError, match="more than 399,999 bytes"):
        asyncio.run(read(library, [twice], "gzip, deflate", 399_999))
    with pytest.raises(library.DecodingError):
        asyncio.run(read(library, [b"not gzip"], "gzip"))
