"""Calls as rows, and rows as calls."""

import itertools

import pytest

from llm_provider import Client
from llm_provider._batches.rows import call_of, header_of, rows_of_call
from llm_provider._calls.call import Call
from llm_provider._calls.operations.chat import CHAT
from llm_provider._calls.operations.embed import EMBED
from llm_provider._limits.concurrency import UNBOUNDED
from llm_provider._requests.embed_request import EmbedRequest
from llm_provider._requests.request import Request


def chat(client: Client, model: str, n: int = 1) -> Call:  # type: ignore[type-arg]  # of any result
    request = Request.build(model, "Hi", {"n": n, "max_tokens": 9})
    return client._engine.prepare(CHAT, request, UNBOUNDED)


def embed(client: Client, model: str, *texts: str) -> Call:  # type: ignore[type-arg]  # of any result
    return client._engine.prepare(EMBED, EmbedRequest.build(model, texts, {}), UNBOUNDED)


@pytest.mark.parametrize(
    ("model", "n", "rows"),
    [("gpt-5.5", 1, 1), ("gpt-5.5", 3, 1), ("claude-haiku-5-5", 3, 3), ("gemini/gemini-2.5-flash", 2, 2)],
)
def test_a_call_comes_back_from_its_rows(model: str, n: int, rows: int) -> None:
    with Client() as client:
        call = chat(client, model, n)
        most = 1 if model.startswith("gemini") else None
        lines = rows_of_call(call, call.parts, most)
        assert len(lines) == rows
        header = header_of(call, name="id", job="job", account="acc")
        again = [call_of(header, line) for line, _, _ in lines]
        keys = [each.key(part) for each in again for part in each.parts]
        assert keys == [call.key(part) for part in call.parts]
        assert all(each.build_question(each.parts[0]) == call.build_question(each.parts[0]) for each in again)
        bodies = [each.operation.body(each, each.parts) for each in again]
        assert bodies == [call.operation.body(call, group) for _, group, _ in lines]


@pytest.mark.parametrize("most", [None, 1])
def test_texts_come_back_from_their_rows(most: int | None) -> None:
    with Client() as client:
        call = embed(client, "text-embedding-3-small", "a", "b", "a")
        rows = rows_of_call(call, call.parts, most)
        assert len(rows) == (2 if most else 1)
        header = header_of(call, name="id", job="job", account="acc")
        again = [call_of(header, line) for line, _, _ in rows]
        keys = list(itertools.chain(*([each.key(part) for part in each.parts] for each in again)))
        assert keys == [call.key(part) for part in call.parts]
