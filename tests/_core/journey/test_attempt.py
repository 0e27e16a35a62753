"""The timeouts of an attempt: each has an error of its own, on every route and transport."""

import gc
import itertools
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import raw_server
import support
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import (
    APITimeoutError,
    Client,
    Delta,
    Response,
    Timeouts,
    TokenLogprob,
    ToolCallDelta,
    UnsupportedParameterError,
)
from llm_provider._core.journey.stream import HalfJoiner, may_be_cut
from llm_provider._core.requests.routing import Transport
from llm_provider._core.types.messages import Step, delta_of
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer

THROUGH_LITELLM = "litellm/openai/gpt-6.1-sol"
SERVERS = {
    "gpt-6.1-sol": "openai",
    "claude-sonnet-5-5": "anthropic",
    "gemini-3.8-flash": "gemini",
    THROUGH_LITELLM: "openai",
}
# openai and anthropic share their connection, which stands on httpx for the one and on httpx2 for the other.
WAYS: list[tuple[str, Transport]] = [
    ("gpt-6.1-sol", "aiohttp"),
    ("gpt-6.1-sol", "http1"),
    ("claude-sonnet-5-5", "aiohttp"),
    ("claude-sonnet-5-5", "http2"),
    ("gemini-3.8-flash", "aiohttp"),
    ("gemini-3.8-flash", "http1"),
    ("gemini-3.8-flash", "http2"),
]
every_way = pytest.mark.parametrize(
    ("model", "transport"),
    [*WAYS, pytest.param(THROUGH_LITELLM, "aiohttp", marks=(needs_litellm, *IGNORED_WARNINGS))],
)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Client]]:
    options: dict[str, Any] = {
        "cache": "off",
        "cache_dir": tmp_path_factory.mktemp("unused"),
        "keys": dict.fromkeys(("openai", "anthropic", "gemini", "litellm"), "key"),
        "max_retries": 0,
    }
    with (
        Client(transport="aiohttp", **options) as aiohttp,
        Client(transport="http2", **options) as http2,
        Client(transport="http1", **options) as http1,
    ):
        yield {"aiohttp": aiohttp, "http2": http2, "http1": http1}


def ask(client: Client, model: str, how: str, root: str, **parameters: Any) -> Response:
    where = f"{root}/v1" if SERVERS[model] == "openai" else root
    return support.ask(client, how, model, "one two three", base_url=where, **parameters)


def missed(client: Client, model: str, how: str, root: str, **limits: float) -> APITimeoutError:
    with pytest.raises(APITimeoutError) as caught:
        ask(client, model, how, root, timeout=Timeouts(**{"total": 30, **limits}))
    assert caught.value.attempts == 1
    return caught.value


def limit_of(error: APITimeoutError) -> tuple[str | None, float | None, bool, str]:
    return error.phase, error.limit, error.maybe_billed, error.message


@every_way
@pytest.mark.sampled(3)
def test_a_connection_that_does_not_open(clients: Mapping[str, Client], model: str, transport: str) -> None:
    # Takes connections and never speaks: TLS cannot be opened, and nothing was sent yet.
    with socket.create_server(("127.0.0.1", 0)) as mute:
        root = f"https://127.0.0.1:{mute.getsockname()[1]}"
        error = missed(clients[transport], model, "call", root, connect=0.2)
    assert limit_of(error) == ("connect", 0.2, False, "no connection within 0.2 s")


@pytest.mark.parametrize("how", ["call", "astream"])
@every_way
@pytest.mark.sampled(3)
def test_an_answer_that_does_not_begin(
    clients: Mapping[str, Client], simulator: Simulator, model: str, transport: str, how: str
) -> None:
    if model == THROUGH_LITELLM and how == "call":
        pytest.skip("litellm returns an answer only as a whole")
    # litellm loads and builds what its first call needs.
    ask(clients[transport], model, how, simulator.root)
    simulator.inject(Fault(hang=True))
    error = missed(clients[transport], model, how, simulator.root, first_byte=0.3)
    assert limit_of(error) == ("first_byte", 0.3, True, "no first byte within 0.3 s")


@pytest.mark.parametrize(("model", "transport"), WAYS)
@pytest.mark.sampled(3)
def test_an_answer_that_stalls(clients: Mapping[str, Client], model: str, transport: str) -> None:
    with RawServer(raw_server.stall_mid_body) as raw:
        error = missed(clients[transport], model, "call", raw.root, idle=0.3)
        assert raw.requests == 1
    assert limit_of(error) == ("idle", 0.3, True, "stalled: nothing for 0.3 s after 1 piece of the answer")


@every_way
@pytest.mark.sampled(3)
def test_a_stream_that_stalls(
    clients: Mapping[str, Client], simulator: Simulator, model: str, transport: str
) -> None:
    simulator.inject(Fault(stall_after=1))
    error = missed(clients[transport], model, "astream", simulator.root, idle=0.3)
    assert (error.phase, error.limit, error.maybe_billed) == ("idle", 0.3, True)
    assert error.message.startswith("stalled: nothing for 0.3 s after ")


def test_an_answer_that_never_ends(clients: Mapping[str, Client]) -> None:
    with RawServer(raw_server.slow_drip) as raw:
        limits = {"first_byte": 20, "idle": 20, "total": 0.5}
        error = missed(clients["aiohttp"], "gpt-6.1-sol", "call", raw.root, **limits)
    assert limit_of(error) == ("total", 0.5, True, "no complete answer within 0.5 s")


@pytest.mark.parametrize("how", ["call", "stream"])
@every_way
@pytest.mark.sampled(3)
def test_an_answer_in_time_is_the_same(
    clients: Mapping[str, Client], simulator: Simulator, model: str, transport: str, how: str
) -> None:
    limits = Timeouts(connect=20, first_byte=20, idle=20, total=20)
    if model == THROUGH_LITELLM and how == "call":
        with pytest.raises(UnsupportedParameterError, match=r"first_byte or idle .* use stream") as caught:
            ask(clients[transport], model, how, simulator.root, timeout=limits)
        assert (caught.value.parameter, caught.value.model) == ("timeout", model)
        assert simulator.requests() == []
    else:
        watched = ask(clients[transport], model, how, simulator.root, timeout=limits)
        plain = ask(clients[transport], model, how, simulator.root)
        assert (watched.text, watched.usage) == (plain.text, plain.usage)
        assert watched.text == "echo: one two three"


@pytest.mark.parametrize("how", ["call", "stream", "acall", "astream"])
@pytest.mark.sampled(4)
def test_many_log_probabilities_are_read_without_collections_of_garbage(tmp_path: Path, how: str) -> None:
    token = {"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": [{"token": "a", "logprob": -1.0}]}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": {"content": [token] * 20_000}}
    message = {"role": "assistant", "content": "a"}
    if how.endswith("stream"):
        behaviour = raw_server.streaming([{"choices": [{**choice, "delta": message}]}])
    else:
        behaviour = raw_server.answering(json.dumps({"choices": [{**choice, "message": message}]}).encode())
    collected: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        collected.append(threading.current_thread().name)

    logprob = TokenLogprob(token="a", logprob=-1.0)
    with RawServer(behaviour) as server, Client(cache_dir=tmp_path, keys={"openai": "key"}) as client:
        gc.callbacks.append(note)
        try:
            answers = [ask(client, "gpt-6.1-sol", how, server.root) for _ in range(2)]
        finally:
            gc.callbacks.remove(note)
    assert [response.cached for response in answers] == [False, True]
    # Without a pause they are some hundred.
    assert collected.count("llm_provider-decode") < 10
    for response in answers:
        assert response.logprobs == (replace(logprob, top=(logprob,)),) * 20_000


TEXTS = st.text(st.sampled_from("aé\u4e00\U0001f600\U0001f9d1"), max_size=8)


def cut(text: str, places: list[int]) -> list[str]:
    """A text in pieces as a server may cut it: between the units of UTF-16, some of which are halves."""
    units = text.encode("utf-16-le")
    edges = [0, *sorted(2 * min(place, len(units) // 2) for place in places), len(units)]
    pieces = [units[start:end] for start, end in itertools.pairwise(edges)]
    return [piece.decode("utf-16-le", "surrogatepass") for piece in pieces if piece]


@given(TEXTS, TEXTS, st.lists(st.integers(0, 16), max_size=4), st.integers(0, 1))
def test_what_is_shown_is_the_text_whichever_way_it_is_cut(
    text: str, thoughts: str, places: list[int], index: int
) -> None:
    joiner = HalfJoiner()
    steps: list[Step] = [
        *cut(text, places),
        *(Delta(reasoning=piece, index=index) for piece in cut(thoughts, places)),
    ]
    calls = [Delta(tool_calls=(ToolCallDelta(index=0, arguments=piece),)) for piece in cut(text, places)]
    shown = [delta_of(step) for each in [*steps, *calls] for step in joiner.join([each])]
    shown += [delta_of(step) for step in joiner.end()]
    assert "".join(delta.text for delta in shown) == text
    assert "".join(delta.reasoning for delta in shown) == thoughts
    assert "".join(call.arguments for delta in shown for call in delta.tool_calls) == text
    # No delta has a half, as all of them met.
    assert all(delta.text.encode() or not delta.text for delta in shown)


def test_a_half_without_its_other_half_comes_last() -> None:
    joiner = HalfJoiner()
    assert joiner.join(["a\ud83d"]) == [Delta(text="a")]
    assert joiner.join(["b"]) == [Delta(text="\ud83db")]
    assert joiner.join([Delta(reasoning="\ud83d")]) == []
    assert list(joiner.end()) == [Delta(reasoning="\ud83d")]


def test_plain_steps_need_no_joining() -> None:
    assert not may_be_cut(["a", "b"])
    assert may_be_cut(["a", "é"])
    assert may_be_cut([Delta(text="a")])
