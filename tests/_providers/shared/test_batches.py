"""The parts of a batch connection that all formats share."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from llm_provider._providers.anthropic import batches as anthropic
from llm_provider._providers.gemini import batches as gemini
from llm_provider._providers.openai import batches as openai
from llm_provider._providers.shared.batches import explain_unreached, limits_of, lines_of
from llm_provider._requests.routing import resolve

NAME = "0f" * 32


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_do_not_depend_on_the_pieces(size: int) -> None:
    whole = b'{"a":1}\n\n{"b":2}\n{"c":3}'

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(whole), size):
            yield whole[at : at + size]

    async def read() -> list[bytes]:
        return [line async for line in lines_of(pieces())]

    assert asyncio.run(read()) == [b'{"a":1}\n', b'{"b":2}\n', b'{"c":3}']


@pytest.mark.parametrize("form", [openai, anthropic, gemini])
@pytest.mark.parametrize("answer", [r'"\ud83d"', "NaN", "[" * 2_000, '"cut'])
def test_a_cut_line_is_read_again_and_a_broken_one_fails_alone(form: Any, answer: str) -> None:
    line = f'{{"custom_id":"{NAME}", "key": "{NAME}", "result":{{"type":{answer}'.encode()
    for cut in (line, b"<html>a proxy</html>\n"):
        with pytest.raises(ConnectionResetError):
            form._reply(cut)
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
