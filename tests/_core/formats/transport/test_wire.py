"""Answers that are larger than a client reads, events that arrive together, and requests that never left.

Requests that are given up, or killed, while they wait for a token or a connection cost nothing. Golden pairs
have the events of streams.
"""

import asyncio
import contextlib
import gzip
import itertools
import json
import signal
import socket
import subprocess
import threading
import time
import types
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import (
    APIResponseValidationError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    Budget,
    Client,
    InternalServerError,
    LLMError,
    NotFoundError,
    RateLimitError,
)
from llm_provider._core.formats.transport import wire
from llm_provider._core.formats.transport.wire import events
from llm_provider.simulator import Fault, Simulator
from raw_server import Behaviour, RawServer, answering, expanding
from support import RunScript, ask, wait_until
from wire_shapes import SHAPES as WIRE_SHAPES
from wire_shapes import TEXT

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
    wire.limit_httpx(library, response, most)
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
    # Nothing decodes an encoding that was not accepted, which would be without a limit.
    with pytest.raises(APIResponseValidationError, match="encoded as br, for which no request asks"):
        asyncio.run(read(library, [b"\x8b\x03\x80"], "br"))
    with pytest.raises(APIResponseValidationError, match="more than 399,999 bytes"):
        asyncio.run(read(library, [twice], "gzip, deflate", 399_999))
    with pytest.raises(library.DecodingError):
        asyncio.run(read(library, [b"not gzip"], "gzip"))


WRONG_KEY = b'{"error": {"message": "Invalid API key", "type": "invalid_request_error"}}'
UNREADABLE: dict[str, tuple[bytes, dict[str, str]]] = {
    # What proxies do: plain bytes under the name of an encoding, and encodings that nobody asked for.
    "plain as gzip": (WRONG_KEY, {"content-encoding": "gzip"}),
    "plain as br": (WRONG_KEY, {"content-encoding": "br"}),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(range(128, 180)), {"content-encoding": "zstd"}),
    "br": (b"\x8b\x02\x80abc\xff", {"content-encoding": "br"}),
    "half gzip": (gzip.compress(WRONG_KEY)[:-20], {"content-encoding": "gzip"}),
    "cut": (WRONG_KEY[:9], {}),
    "cut gzip": (gzip.compress(WRONG_KEY)[:20], {"content-encoding": "gzip"}),
    "text": (b"RBAC: access denied", {}),
}
STATUSES = {400: BadRequestError, 401: AuthenticationError, 404: NotFoundError, 429: RateLimitError}


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("body", UNREADABLE)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(16)
def test_a_failure_keeps_its_status_whatever_its_body_is(
    model: str, body: str, transport: Any, how: str
) -> None:
    content, headers = UNREADABLE[body]
    for status, kind in STATUSES.items():
        told = {**headers, "retry-after": "300"}
        more = b"content-length: 500\r\n" if "cut" in body else b"content-length: %d\r\n" % len(content)
        lines = "".join(f"{name}: {value}\r\n" for name, value in told.items()).encode()

        async def answer(writer: asyncio.StreamWriter, head: bytes = lines + more) -> None:
            writer.write(b"HTTP/1.1 %d Said\r\n%b\r\n%b" % (status, head, content))  # noqa: B023  # called below
            writer.close()

        with RawServer(answer) as server, Client(cache="off", transport=transport) as client:
            with pytest.raises(LLMError) as caught:
                ask(client, how, model, base_url=server.root + MODELS[model])
            error = caught.value
            expected = AuthenticationError if "plain" in body and status == 400 else kind
            assert (type(error), error.status, error.maybe_billed) == (expected, status, False)
            assert (server.requests, error.retry_after) == (1, 300)
            if "plain" in body or body == "text":
                assert "Invalid API key" in str(error) or "RBAC: access denied" in str(error)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("how", ["call", "stream"])
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("status", [200, 201, 202, 203, 206])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(12)
def test_a_success_of_any_number_is_an_answer(
    simulator: Simulator, model: str, status: int, transport: Any, how: str
) -> None:
    shape = WIRE_SHAPES[{"gpt-5.5-pro": "responses"}.get(model, provider(model))][0]
    content = shape.stream() if how == "stream" else json.dumps(shape.whole).encode()
    kind = "text/event-stream" if how == "stream" else "application/json"
    packed = gzip.compress(content)
    # A proxy that has decoded a body may leave the name of the encoding.
    for body, coded in (
        (content, {}),
        (packed, {"content-encoding": "gzip"}),
        (content, {"content-encoding": "br"}),
        (packed, {"content-encoding": "gzip, zstd"}),
    ):
        behaviour = answering(body, status=status, headers={"content-type": kind, **coded})
        with RawServer(behaviour) as server, Client(cache="off", transport=transport) as client:
            assert ask(client, how, model, base_url=server.root + MODELS[model]).text == TEXT
            assert server.requests == 1


SHAPES = {
    "lists": (b"[" * 3_000_000, 1),
    "objects": (b'{"a":' * 300_000, 1),
    "lists in an answer": (b'{"choices":[{"index":0,"message":' + b"[" * 1_200_000, 1),
    "a text without end": (b'{"id":"' + b"\\n" * 600_000, 2),
    "a cut list": (b"[[]" + b",[0,0,0,0,0]" * 100_000, 2),
    "garbage": (b'\x00{"]' * 300_000, 2),
    "only closed": (b"1" + b"]" * 1_200_000, 2),
}
"""Name → a body, and the requests that it is asked for at most."""


def compress_by_runs(body: bytes) -> bytes:
    """A body as zstd (RFC 8878): a block that repeats one byte is 4 bytes, and any other is as it was."""
    coded, most = b"\x28\xb5\x2f\xfd\x00\x58", 2**17
    for start in range(0, len(body), most):
        block = body[start : start + most]
        repeats = len(set(block)) == 1
        head = len(block) << 3 | repeats << 1 | (start + most >= len(body))
        coded += head.to_bytes(3, "little") + (block[:1] if repeats else block)
    return coded


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, 1),
    "deflate": lambda body: zlib.compress(body, 1),
    "zstd": compress_by_runs,
}
"""Every shape comes in each of these encodings, of which no request accepts the last."""

BROTLI = {
    "br, 3 MB of lists": "9bbfc62df825b6e2b14020cfb705",
    "br, an answer": (
        "1b5f00609c077633c707aaa9e192914e13b5c8de16cc9aa36b1d96aebe2df2f506d76d6c5dc7ba7e97d0092288"
        "5ee431762e141139dcf1783f0b6348da469125e244acf5ac4c554200eede01"
    ),
}
"""Bodies that another library has encoded, in hexadecimal digits."""

ASK_ALL = """
    import asyncio, itertools, resource, sys

    from llm_provider import APIResponseValidationError, Client, InternalServerError

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    async def ask(client, model, streamed, url):
        try:
            if not streamed:
                return await client.acall(model, "Hi", base_url=url)
            async with client.astream(model, "Hi", base_url=url) as deltas:
                return [delta async for delta in deltas]
        except (APIResponseValidationError, InternalServerError) as error:
            return error

    async def ask_all():
        async with Client(cache="off", transport={transport!r}) as client:
            for model, path, usual in {models!r}:
                await ask(client, model, False, usual)
            before = peak()
            # How a body is decoded does not depend on the model, for which one encoding stands.
            first, *others = {models!r}
            plan = [(first, servers) for servers in {groups!r}]
            plan += itertools.product(others, {groups!r}[::3])
            for (model, path, usual), servers in plan:
                cells = [(*server, streamed) for server in servers for streamed in (False, True)]
                asked = (ask(client, model, streamed, root + path) for _, root, _, streamed in cells)
                for cell, error in zip(cells, await asyncio.gather(*asked)):
                    assert isinstance(error, APIResponseValidationError), (model, cell, error)
                    assert error.attempts <= cell[2], (model, cell, error)
                    unasked = cell[0].startswith(("zstd", "br"))
                    assert ("for which no request asks" in str(error)) == unasked, (model, cell, error)
            for model, path, usual in {models!r}:
                failed = await ask(client.with_options(max_retries=0), model, False, {failing!r} + path)
                assert type(failed) is InternalServerError and len(str(failed)) < 2000, failed
            print(peak() - before)

    asyncio.run(ask_all())
"""


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.sampled(2)
def test_no_shape_of_a_reply_takes_more_memory_than_its_bytes(
    simulator: Simulator, run_script: RunScript, transport: str
) -> None:
    with contextlib.ExitStack() as stack:

        def serve(name: str, body: bytes, attempts: int) -> tuple[str, str, int]:
            packed = answering(body, headers={"content-encoding": name.partition(",")[0]})
            return name, stack.enter_context(RawServer(packed)).root, attempts

        # Those of one group are asked for at once.
        groups = [
            [
                serve(f"{encoding}, {name}", pack(body), attempts if encoding != "zstd" else 1)
                for name, (body, attempts) in SHAPES.items()
            ]
            for encoding, pack in PACKERS.items()
        ]
        groups.append([serve(name, bytes.fromhex(coded), 1) for name, coded in BROTLI.items()])
        plain = stack.enter_context(RawServer(answering(SHAPES["lists"][0])))
        groups[-1].append(("plain", plain.root, 1))
        failing = stack.enter_context(RawServer(answering(SHAPES["lists"][0], status=500)))
        models = [(model, path, simulator.url(provider(model))) for model, path in MODELS.items()]
        if transport == "http1":
            many = gzip.compress(b"[0" + b",0" * 10_500_000, 1)
            groups[0].append(serve("gzip, many values", many, 1))
        code = ASK_ALL.format(
            transport=transport, models=models if transport == "aiohttp" else models[:1], groups=groups,
            failing=failing.root,
        )  # fmt: skip
        # The bodies that are read at once have 28 MB, and two more of 21 MB with HTTP/1.1. A list for each
        # bracket would take 500 MB.
        assert int(run_script(code).stdout) < (120 if transport == "aiohttp" else 220) * MEGABYTE


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.usefixtures("keys")
def test_a_large_reply_of_any_shape_is_an_answer(simulator: Simulator, model: str) -> None:
    with Client(cache="off", base_url=simulator.url(provider(model))) as client:
        reply = client.call(model, "What is 2 + 2?").raw
    deep: list[Any] = []
    for _ in range(190):
        deep = [deep]
    reply["more"] = {
        "lists": [[]] * 300_000,
        "deep": deep,
        "text": '"[\\é' * 700_000,
        **dict.fromkeys(map(str, range(9999))),
    }
    with RawServer(answering(json.dumps(reply).encode())) as server, Client(cache="off") as client:
        answer = client.call(model, "What is 2 + 2?", base_url=server.root + MODELS[model])
    assert (answer.text, answer.raw) == ("4", reply)


async def arriving(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_what_comes_before_a_broken_event_is_handed_on() -> None:
    seen: list[object] = []
    with pytest.raises(APIResponseValidationError, match="not JSON"):
        async for batch in events(arriving([b"data: 1\n\ndata: 2\n\ndata: {\n\ndata: 4\n\n"])):
            seen.extend(batch)
    assert seen == [1, 2]


async def test_what_arrives_together_is_handed_on_together() -> None:
    stream = events(arriving([b"data: 1\n\ndata: 2\n\nda", b"ta: 3\n\n"]))
    assert [list(batch) async for batch in stream] == [[1, 2], [3]]


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><p>Sign in", b"null", b": waiting\n\n"])
async def test_a_body_that_is_no_stream_is_named(body: bytes) -> None:
    stream = events(arriving([body[:3], body[3:]]))
    if body.startswith(b":"):
        assert [batch async for batch in stream] == []
    else:
        with pytest.raises(APIResponseValidationError, match=r"the answer is not JSON: '(<!D|nul)"):
            _ = [batch async for batch in stream]


KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
ROUTES: dict[str, dict[str, Any]] = {
    "chat": {"model": "gpt-6.1-sol"},
    "responses": {"model": "gpt-6.1-sol", "endpoint": "responses"},
    "anthropic": {"model": "claude-haiku-5-5"},
    "gemini": {"model": "gemini-3.5-flash"},
}


@pytest.fixture
def silent_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server whose queue of connections is full, so that no other one is opened."""
    for name in KEYS:
        monkeypatch.setenv(name, "sk-test")
    server = socket.create_server(("127.0.0.1", 0), backlog=0)
    waiting = []
    for _ in range(4):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(server.getsockname())
        waiting.append(client)
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    for each in (server, *waiting):
        each.close()


def by_deadline(client: Client, options: dict[str, Any]) -> LLMError:
    error = client.call_many(inputs=[f"Hi {number}" for number in range(5)], deadline=0.3, **options)[4]
    assert isinstance(error, APITimeoutError)
    # On a busy machine the SDK may take that long to load.
    assert error.message.startswith("not answered by the deadline of 0.3 s: nothing was sent")
    return error


def by_timeout(client: Client, options: dict[str, Any]) -> LLMError:
    with pytest.raises(APITimeoutError) as raised:
        client.call(messages="Hi", timeout=0.3, max_retries=0, outage_patience=0, **options)
    return raised.value


def by_cancellation(client: Client, options: dict[str, Any]) -> None:
    stream = client.stream(messages="Hi", **options)
    thread = threading.Timer(0.3, stream.close)
    thread.start()
    with pytest.raises(RuntimeError, match="the stream was closed"):
        list(stream)
    thread.join()


Way = Callable[[Client, dict[str, Any]], LLMError | None]
WAYS: list[Way] = [by_deadline, by_timeout, by_cancellation]


@pytest.mark.parametrize("transport", ["aiohttp", "http2"])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_waits_for_a_connection_costs_nothing(
    way: Way, route: str, transport: Any, silent_server: str, tmp_path: Path
) -> None:
    budget, ledger = Budget(0.50, path=tmp_path / "budget"), tmp_path / "ledger.jsonl"
    with Client(budget=budget, transport=transport, ledger=ledger) as client:
        error = way(client, ROUTES[route] | {"base_url": silent_server, "max_tokens": 9})
        assert error is None or (not error.maybe_billed and error.cost == 0)
        assert wait_until(lambda: not budget.reserved)
        assert not budget.spent
    assert not ledger.exists() or not ledger.read_text()


@pytest.mark.parametrize("route", ["chat", "responses"])
def test_what_waits_for_a_token_costs_nothing(route: str, silent_server: str, tmp_path: Path) -> None:
    answer, budget = threading.Event(), Budget(0.50, path=tmp_path / "budget")

    def hang() -> str:
        answer.wait(30)
        return "a token"

    with Client(budget=budget, keys={"openai": [hang]}) as client:
        by_deadline(client, ROUTES[route] | {"base_url": silent_server, "max_tokens": 9})
        assert not budget.reserved
        assert not budget.spent
        answer.set()


def test_a_killed_process_that_waits_for_a_token_has_spent_nothing(
    tmp_path: Path, warm_python: list[str], silent_server: str
) -> None:
    code = f"""
import time
from llm_provider import Budget, Client

def hang():
    print("asked", flush=True)
    time.sleep(60)

with Client(budget=Budget(0.50, path={str(tmp_path / "budget")!r}), keys={{"openai": [hang]}}) as client:
    client.call_many("gpt-6.1-sol", ["Hi"] * 100, max_tokens=9, base_url={silent_server!r})
"""
    program = subprocess.Popen([*warm_python, "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "asked\n"
    time.sleep(0.2)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    budget = Budget(0.50, path=tmp_path / "budget")
    budget.check(budget.limit)
    assert not budget.spent


def test_a_source_that_fails_is_asked_once_for_each_attempt(silent_server: str) -> None:
    asked = 0

    def fail() -> str:
        nonlocal asked
        asked += 1
        raise OSError("no identity here")

    client = Client(budget=5, keys={"openai": [fail]}, max_retries=0, outage_patience=0)
    with client, pytest.raises(LLMError, match="no identity here") as raised:
        client.call("gpt-6.1-sol", "Hi", max_tokens=9, base_url=silent_server)
    assert asked == 1
    assert raised.value.attempts == 1
    assert not raised.value.maybe_billed
