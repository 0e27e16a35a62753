"""The HTTP client that carries the SDKs' requests straight to aiohttp."""

import asyncio
import random
import select
import ssl
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import test_utils, web

from llm_provider import BadRequestError, Client, LLMError
from llm_provider._core.formats.transport import http_client
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer
from wire_shapes import SHAPES, TEXT

ANSWERS = {
    "gpt-6.1-sol": SHAPES["openai"][0].whole,
    "claude-sonnet-5-5": SHAPES["anthropic"][0].whole,
    "gemini-3.8-flash": SHAPES["gemini"][0].whole,
}


def test_a_class_of_neither_library_is_refused() -> None:
    with pytest.raises(TypeError, match="not built on httpx"):
        http_client.library_of(int)


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash"])
def test_a_large_body_is_sent_without_a_warning(client: Client, simulator: Simulator, model: str) -> None:
    prompt = "x" * 3_000_000
    assert client.call(model, prompt, cache="off").text.startswith("echo: xxx")
    assert prompt in str(simulator.requests()[0].body)


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash"])
def test_one_connection_serves_calls_streams_and_failures(
    client: Client, simulator: Simulator, model: str
) -> None:
    for number in range(3):
        client.call(model, f"What is {number}+1?", cache="off")
        with client.stream(model, f"Say {number}", cache="off") as stream:
            list(stream)
        simulator.inject(Fault(status=400), times=1)
        with pytest.raises(BadRequestError):
            client.call(model, "Hi", cache="off")
    assert simulator.ledger().connections == 1


async def answer_and_close(writer: asyncio.StreamWriter) -> None:
    """A whole answer on a connection that could be kept, and its end."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nOK")
    await writer.drain()


@pytest.mark.skipif(not hasattr(select, "poll"), reason="nothing else tells before the event loop does")
def test_a_kept_connection_that_its_server_has_closed_gets_no_request() -> None:
    async def ask(root: str) -> list[bytes]:
        session = http_client.session(ssl.create_default_context())
        answers = []
        async with session:
            for _ in range(3):
                async with session.post(root) as answer:
                    answers.append(await answer.read())
                # The end arrives while the event loop does something else. An `await` would let it notice.
                time.sleep(0.2)  # noqa: ASYNC251 - blocks the loop on purpose
        return answers

    with RawServer(answer_and_close) as raw:
        assert asyncio.run(ask(raw.root)) == [b"OK"] * 3
        assert raw.requests == 3


@pytest.fixture(autouse=True)
def forget_servers() -> None:
    """A server of another test may have had the same port."""
    http_client._answer_class.cache_clear()


DATE = {"date": "Fri, 27 Nov 2026 00:00:00 GMT"}


async def ask(texts: str, answer: Any, headers: dict[str, str] | None = None) -> list[str]:
    """What a server answers to some texts over one connection, unless the client ends it."""
    app, answers = web.Application(), []
    app.router.add_post("/", answer)
    async with (
        test_utils.TestServer(app) as server,
        http_client.session(ssl.create_default_context()) as session,
    ):
        for text in texts:
            async with session.post(server.make_url("/"), data=text, headers=headers) as read:
                answers.append(await read.text())
    return answers


@pytest.mark.parametrize("headers", [{}, {"X-Request-Id": "f" * 32}, {"x-other": "1"}, {"request-id": "1"}])
@pytest.mark.parametrize("name", ["x-request-id", "request-id", "apim-request-id", "cf-ray"])
def test_one_id_in_all_answers_is_no_answer_that_comes_again(name: str, headers: dict[str, str]) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="as always", headers={**DATE, name: "f" * 32})

    assert asyncio.run(ask("abcd", answer, headers)) == ["as always"] * 4


@pytest.mark.parametrize("headers", [{}, {"X-Request-Id": "1" * 32}, {"x-other": "1"}])
def test_an_answer_that_comes_again_is_refused_unless_it_has_the_requests_id(headers: dict[str, str]) -> None:
    async def answer(request: web.Request) -> web.Response:
        # The third answer is the second one again.
        text = min(await request.text(), "1")
        return web.Response(text=text, headers={**DATE, "x-request-id": text * 32})

    if headers.get("X-Request-Id"):
        assert asyncio.run(ask("012", answer, headers)) == ["0", "1", "1"]
    else:
        with pytest.raises(aiohttp.ClientConnectionError, match="to an earlier request"):
            asyncio.run(ask("012", answer, headers))


async def ask_gateway(
    model: str, transport: str, answer: Any, calls: list[dict[str, str]], folder: str = ""
) -> list[Any]:
    """The texts and errors of some calls to a server that answers every path."""
    app, results = web.Application(), []
    app.router.add_post("/{path:.*}", answer)
    # A server of an earlier test may have had the same port, and other ids: an address of its own.
    host = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.1"
    async with test_utils.TestServer(app, host=host) as server:
        with Client(cache="off", transport=transport) as client:
            root = str(server.make_url("/")) + folder + ("/v1" if model.startswith("gpt") else "")
            for call in calls:
                try:
                    results.append((await client.acall(model, **call, base_url=root)).text)
                except LLMError as error:
                    results.append(type(error))
    return results


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("model", ANSWERS)
def test_four_calls_of_a_gateway_with_one_id_are_four_requests(
    own_cache: Path, model: str, transport: str
) -> None:
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(await request.text())
        return web.json_response(ANSWERS[model], headers={**DATE, "x-request-id": "f" * 32})

    calls = [{"messages": each, "api_key": "key"} for each in "abcd"]
    assert asyncio.run(ask_gateway(model, transport, answer, calls)) == [TEXT] * 4
    assert len(asked) == 4


@pytest.mark.parametrize(
    "headers",
    [{"x-policy": "a" * 20_000}, {f"x-{number}": "a" for number in range(200)}],
    ids=["long", "many"],
)
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("model", ANSWERS)
def test_headers_of_gateways_cost_neither_an_answer_nor_a_status(
    own_cache: Path, model: str, transport: str, headers: dict[str, str]
) -> None:
    async def answer(request: web.Request) -> web.Response:
        fails = "refuse this" in await request.text()
        body = {"error": {"message": "no"}} if fails else ANSWERS[model]
        return web.json_response(body, status=400 if fails else 200, headers=headers)

    calls = [{"messages": each, "api_key": "key"} for each in ("refuse this", "Hi")]
    assert asyncio.run(ask_gateway(model, transport, answer, calls)) == [BadRequestError, TEXT]


@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
@pytest.mark.parametrize("model", ANSWERS)
def test_no_cookie_of_one_key_goes_with_another(own_cache: Path, model: str, transport: str) -> None:
    """A gateway writes the session of a key into a cookie, and one HTTP client sends for all keys."""
    cookies = []

    async def answer(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("cookie"))
        return web.json_response(ANSWERS[model], headers={"set-cookie": "session=of-the-first; Path=/"})

    calls = [{"messages": "Hi", "api_key": key} for key in ("first", "second")]
    assert asyncio.run(ask_gateway(model, transport, answer, calls)) == [TEXT] * 2
    assert cookies == [None, None]


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("model", ANSWERS)
def test_a_base_url_may_have_any_letter(own_cache: Path, model: str, transport: str) -> None:
    paths = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.raw_path)
        return web.json_response(ANSWERS[model])

    calls = [{"messages": each, "api_key": "key"} for each in "ab"]
    assert asyncio.run(ask_gateway(model, transport, answer, calls, "übung")) == [TEXT] * 2
    assert len(paths) == 2
    assert all(path.startswith("/%C3%BCbung/v1") for path in paths)
