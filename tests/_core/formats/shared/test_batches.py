"""The parts of a batch connection that all formats share."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from llm_provider import APIResponseValidationError
from llm_provider._core.formats.anthropic import batches as anthropic
from llm_provider._core.formats.gemini import batches as gemini
from llm_provider._core.formats.openai import batches as openai
from llm_provider._core.formats.shared import batches
from llm_provider._core.formats.shared.batches import explain_unreached, limits_of, lines_of
from llm_provider._core.requests.routing import resolve

NAME = "0f" * 32


def read_lines(whole: bytes, size: int, longest: int) -> list[bytes]:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(whole), size):
            yield whole[at : at + size]

    async def read() -> list[bytes]:
        return [line async for line in lines_of(pieces(), longest)]

    return asyncio.run(read())


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_do_not_depend_on_the_pieces(size: int) -> None:
    whole = b'{"a":1}\n\n{"b":2}\n{"c":3}'
    assert read_lines(whole, size, 100) == [b'{"a":1}\n', b'{"b":2}\n', b'{"c":3}']


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_that_is_too_long_is_cut_and_the_next_ones_are_whole(
    size: int, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_MOST_SKIPPED", 3000)
    long = b'{"custom_id":"%s", "a":"%s"}' % (NAME.encode(), b"x" * 2000)
    lines = read_lines(b'{"a":1}\n' + long + b'\n{"b":2}\n' + long + end, size, 1000)
    assert (lines[0], lines[2]) == (b'{"a":1}\n', b'{"b":2}\n')
    if size < 100:
        assert all(len(line) <= 1001 + size for line in lines)
        assert [openai._reply(line).custom_id for line in lines[1::2]] == [NAME, NAME if end else ""]
    with pytest.raises(APIResponseValidationError, match="more than 1,000 bytes"):
        read_lines(long * 2, size, 1000)


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (1.5, 1.5),
        (7, 7.0),
        ("7", 7.0),
        ("7.5", 7.5),
        ("2026-11-28T00:00:00Z", 1_795_824_000.0),
        ("2026-11-28", 1_795_824_000.0),
        (datetime(2026, 11, 28, tzinfo=UTC), 1_795_824_000.0),
        *((value, 0.0) for value in (None, "", "soon", [], {}, 10**400)),
    ],
)
def test_a_date_may_be_a_number_or_a_text(value: object, time: float) -> None:
    assert batches.time_of(value) == time


@pytest.mark.parametrize("form", [openai, anthropic, gemini])
@pytest.mark.parametrize("answer", [r'"\ud83d"', "NaN", "[" * 2_000, '"cut'])
def test_a_cut_line_is_that_of_no_row_and_a_broken_one_fails_alone(form: Any, answer: str) -> None:
    line = f'{{"custom_id":"{NAME}", "key": "{NAME}", "result":{{"type":{answer}'.encode()
    for cut in (line, b"<html>a proxy</html>\n"):
        assert form._reply(cut).custom_id == ""
    assert form._reply(line + b"\n") == (NAME, line + b"\n", None, None)


@pytest.mark.parametrize(
    ("model", "operation", "served"),
    [
        ("gpt-5.5", "responses", True),
        ("gpt-5.5", "unknown", False),
        ("claude-haiku-5-5", "messages", True),
        ("claude-haiku-5-5", "embeddings", False),
        ("gemini/gemini-3.8-flash", "any", True),
        ("groq/x", "chat/completions", True),
        ("groq/x", "embeddings", False),
        ("deepseek/x", "chat/completions", False),
        ("litellm/x/y", "chat/completions", False),
    ],
)
def test_some_hosts_have_batches(model: str, operation: str, served: bool) -> None:
    assert (limits_of(resolve(model), operation) is not None) == served


def test_rows_that_were_not_reached_cost_nothing() -> None:
    expired, cancelled = explain_unreached("batch_expired"), explain_unreached("cancelled")
    assert expired is not None
    assert cancelled is not None
    assert (expired.retryable, expired.maybe_billed) == (True, False)
    assert (cancelled.retryable, cancelled.maybe_billed) == (False, False)
    assert explain_unreached("completed") is None
