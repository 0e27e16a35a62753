"""Tokens of a call before it is sent: cheap guesses, estimates, and bounds that hold."""

import base64
import struct
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client, RequestError
from llm_provider._core.formats.shared.request_facts import RequestFacts
from llm_provider._core.journey.call import Call
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.pace.call_limits import Concurrency
from llm_provider._core.requests.request import Request
from llm_provider._core.tokens import counting
from llm_provider._core.tokens.counting import Range, image_tokens, most_image_tokens, size_of
from llm_provider._core.tokens.tokenizer import counter_for

ROOT = Path(__file__).parents[3]
PICTURE = base64.b64encode(bytes(30_000)).decode()
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
LOOK = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]}]
PARAMETERS = {"type": "object", "properties": {}}
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
WIRES = ["gpt-6.1-sol", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash", "litellm/gpt-6.1-sol"]


@pytest.fixture(scope="module")
def maker() -> Client:
    return Client(cache="off")


def made(client: Client, model: str, messages: Any, **parameters: Any) -> Call:
    return client._engine.prepare(CHAT, Request.build(model, messages, parameters), Concurrency(1, 1))


def likely_input_tokens(call: Call) -> int:
    return counting.likely_input_tokens(call.body, call.facts)


def input_tokens(call: Call, count: Callable[[str], int] | None = None) -> Range:
    return counting.input_tokens(call.facts(), call.target, count)


def most_input_tokens(call: Call) -> int | None:
    return counting.most_input_tokens(call.facts(), call.body, call.target)


def test_a_short_body_without_an_image_is_all_that_the_cheap_guess_looks_at() -> None:
    def read_facts() -> RequestFacts:
        raise AssertionError("facts take longer than the guess")

    assert counting.likely_input_tokens(b"x" * 400, read_facts) == 101


@pytest.mark.parametrize("model", WIRES)
def test_a_picture_is_not_read_as_text(maker: Client, model: str) -> None:
    call = made(maker, model, LOOK)
    assert 500 < likely_input_tokens(call) < 3000
    most = most_input_tokens(call)
    assert most is not None
    assert likely_input_tokens(call) < most < 60_000


@pytest.mark.parametrize("model", WIRES)
@pytest.mark.parametrize("text", ["word " * 40, "word " * 4000, "слово " * 4000, "字" * 9000])
def test_the_cheap_guess_lies_below_the_bound(maker: Client, model: str, text: str) -> None:
    call = made(maker, model, text)
    most = most_input_tokens(call)
    assert most is not None
    assert len(text.encode()) // 6 <= likely_input_tokens(call) < most


@given(st.text(min_size=1), st.sampled_from(["gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash"]))
def test_no_text_has_more_tokens_than_bytes(text: str, model: str) -> None:
    try:
        call = made(Client(cache="off"), model, text)
    except RequestError:  # what cannot be sent has no tokens
        return
    most = most_input_tokens(call)
    assert most is not None
    assert most >= len(text.encode())
    assert most >= len(unicodedata.normalize("NFKC", text).encode())


def test_a_ligature_that_a_tokenizer_takes_apart_is_counted_in_full(maker: Client) -> None:
    # Three bytes, of which a normalizing tokenizer makes eighteen characters.
    assert (most_input_tokens(made(maker, "claude-sonnet-5-5", "\ufdfa" * 1000)) or 0) >= 33_000


@pytest.mark.parametrize("model", WIRES)
def test_an_address_of_data_is_text_where_text_is(maker: Client, model: str) -> None:
    text = f"data:image/png;base64,{PICTURE * 3}"
    for messages in (text, [{"role": "user", "content": [{"type": "text", "text": text}]}]):
        call = made(maker, model, messages)
        assert call.facts().media == []
        assert (most_input_tokens(call) or 0) >= len(text)


@pytest.mark.parametrize(
    "path", ["docs/design.md", "docs/prices.md", "src/llm_provider/_core/tokens/counting.py", "prices.csv"]
)
def test_the_count_lies_in_the_estimate(maker: Client, path: str) -> None:
    counter = counter_for("openai", "gpt-5.5")
    if counter is None:
        pytest.skip("the encoding is not on this machine")
    call = made(maker, "gpt-5.5", (ROOT / path).read_text(encoding="utf-8")[:15_000])
    counted, estimated = input_tokens(call, counter), input_tokens(call)
    assert estimated.low <= counted.likely <= estimated.high
    assert counted.high - counted.low < estimated.high - estimated.low
    assert (most_input_tokens(call) or 0) > counted.high


@pytest.mark.parametrize("model", WIRES)
def test_more_of_anything_is_more_tokens(maker: Client, model: str) -> None:
    plain = input_tokens(made(maker, model, "Hello"))
    turns = [{"role": role, "content": "Hello"} for role in ("user", "assistant", "user")]
    more = [
        made(maker, model, "Hello " * 50),
        made(maker, model, turns),
        made(maker, model, "Hello", tools=[WEATHER]),
        made(maker, model, "Hello", system="Be brief."),
        made(maker, model, LOOK),
    ]
    for call in more:
        assert most_input_tokens(call) is not None
        assert input_tokens(call).likely > plain.likely
        assert input_tokens(call).low <= input_tokens(call).likely <= input_tokens(call).high


SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
ADDRESS = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


@pytest.mark.parametrize(
    ("model", "part"),
    [("gpt-6.1-sol", SOUND), ("gemini-3.8-flash", SOUND), *((model, ADDRESS) for model in WIRES[:4])],
)
def test_what_is_not_text_counts(maker: Client, model: str, part: dict[str, Any]) -> None:
    call = made(maker, model, [{"role": "user", "content": [part]}])
    tokens = input_tokens(call)
    assert tokens.likely > 500
    assert likely_input_tokens(call) > 500 or part["type"] == "input_audio"
    assert (most_input_tokens(call) or 0) > tokens.likely


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + bytes(9)


def encode(file: bytes) -> str:
    return base64.b64encode(file).decode()


@given(st.binary(max_size=200), st.sampled_from([b"", b"\x89PNG", b"GIF8", b"\xff\xd8", b"RIFF0000WEBPVP8X"]))
def test_what_is_no_image_has_the_size_of_a_guess(noise: bytes, start: bytes) -> None:
    width, height = size_of(encode(start + noise))
    assert width > 0
    assert height > 0


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-6.1-sol", "claude-opus-5-5", "gemini-3.8-flash"])
def test_no_image_exceeds_the_bound(provider: str, model: str) -> None:
    most = most_image_tokens(provider, model)
    assert most is not None
    for size in ((64, 64), (1024, 1024), (8000, 8000), (9000, 300)):
        for detail in ("auto", "high", "ultra_high"):
            assert image_tokens(provider, model, encode(png(*size)), detail=detail).high <= most
