"""Interactions as answers: usage, divided answers, failures and finish reasons."""

from typing import Any

import pytest

from interactions_server import (
    AGENT,
    HERE,
    MODEL,
    SOME,
    InteractionsServer,
    call_step,
    text_step,
    usage,
)
from llm_provider import (
    AuthenticationError,
    BadRequestError,
    Client,
    Delta,
    InternalServerError,
    LLMError,
    RateLimitError,
    RefusalError,
)
from llm_provider._core.formats.gemini_interactions.decode import decode_usage, read_error
from support import WAYS, ask


def test_a_price_is_that_of_generate_content(server: InteractionsServer, client: Client) -> None:
    from llm_provider._core.formats.gemini.decode import decode_usage as decode_other

    server.answer = lambda body: {
        "status": "completed",
        "steps": [text_step("Yes")],
        "usage": usage(1000, 100, total_thought_tokens=50, total_cached_tokens=400, total_tool_use_tokens=20),
    }
    answered = client.call(MODEL, "Hello", **HERE)
    counts = {"promptTokenCount": 1000, "candidatesTokenCount": 100, "thoughtsTokenCount": 50}
    counts |= {"cachedContentTokenCount": 400, "toolUsePromptTokenCount": 20}
    assert answered.usage == decode_other(counts)
    assert answered.cost == answered.price is not None


def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is fine"


def _divided(body: Any) -> dict[str, Any]:
    if "continuation_token" not in body:
        return {"status": "requires_continuation", "continuation_token": "t1", "steps": [text_step("One ")]}
    stored = body["store"]
    assert ("input" in body) is not stored
    assert body.get("previous_interaction_id") == ("v1_0" if stored else None)
    calls = [call_step("look", {"place": "A"})]
    return {
        "status": "requires_action",
        "steps": [{"type": "user_input", "content": []}, text_step("two"), *calls],
    }


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_answer_in_two_parts_is_one(
    server: InteractionsServer, client: Client, way: str, store: bool
) -> None:
    server.answer = _divided
    deltas: list[Delta] = []
    answered = ask(client, way, MODEL, "Count", deltas, store=store, tools=[look], **HERE)
    assert (answered.text, answered.finish_reason, answered.id) == ("One two", "tool_calls", "v1_1")
    assert (answered.usage.input_tokens, answered.usage.output_tokens) == (14, 10)
    assert [call.name for call in answered.tool_calls] == ["look"]
    if deltas:
        assert "".join(delta.text for delta in deltas) == "One two"
    assert ask(client, way, MODEL, "Count", store=store, tools=[look], **HERE).cached


FAILURES: list[tuple[int, str, type[LLMError]]] = [
    (400, "invalid_request", BadRequestError),
    (400, "content_blocked", RefusalError),
    (401, "unauthenticated", AuthenticationError),
    (429, "resource_exhausted", RateLimitError),
    (500, "internal", InternalServerError),
]


@pytest.mark.parametrize(("status", "code", "kind"), FAILURES)
@pytest.mark.parametrize("way", SOME)
def test_failures_are_typed(
    server: InteractionsServer, client: Client, way: str, status: int, code: str, kind: type[LLMError]
) -> None:
    server.fault = lambda number, body: (status, {}, {"error": {"code": code, "message": "Because."}})
    with pytest.raises(kind) as caught:
        ask(client, way, MODEL, "Hello", **HERE)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert "Because." in str(caught.value)


@pytest.mark.parametrize("way", SOME)
@pytest.mark.parametrize("model", [MODEL, AGENT])
def test_an_interaction_that_fails_is_an_error(
    server: InteractionsServer, client: Client, way: str, model: str
) -> None:
    server.answer = lambda body: {
        "status": "failed",
        "errors": [{"code": "content_blocked", "message": "Not this."}],
        "steps": [],
    }
    with pytest.raises(RefusalError, match="Not this"):
        ask(client, way, model, "Hello", **(HERE if model == MODEL else {}))
    assert len(server.bodies) == 1


STATUSES = {"incomplete": "length", "budget_exceeded": "length", "completed": "stop"}


@pytest.mark.parametrize("status", STATUSES)
def test_finish_reasons(server: InteractionsServer, client: Client, status: str) -> None:
    server.answer = lambda body: {"status": status, "steps": [text_step("Some")]}
    answered = client.call(MODEL, "Hi", **HERE)
    assert answered.finish_reason == STATUSES[status]
    assert client.call(MODEL, "Hi", **HERE).cached is (status == "completed")


COUNTS: list[tuple[dict[str, int], tuple[int, int]]] = [
    ({"total_output_tokens": 5}, (0, 0)),
    ({"total_tokens": 5}, (5, 0)),
    ({"total_tokens": 9, "total_output_tokens": 2, "total_thought_tokens": 3}, (4, 5)),
    ({"total_input_tokens": 3}, (3, 0)),
]


@pytest.mark.parametrize(("reported", "counted"), COUNTS)
def test_a_part_of_the_counts_is_no_price(reported: dict[str, int], counted: tuple[int, int]) -> None:
    usage = decode_usage(reported)
    assert (usage.input_tokens, usage.output_tokens) == counted


def test_the_code_of_an_error_may_be_a_uri() -> None:
    body = {"error": {"code": "https://ai.google.dev/errors/content_blocked", "message": "No."}}
    error = read_error(body, status=400)
    assert (type(error), error.code) == (RefusalError, "content_blocked")


def test_a_broken_step_ends_an_answer(server: InteractionsServer, client: Client) -> None:
    broken = {"error": {"code": 8, "message": "Too many."}}
    server.answer = lambda body: {"status": "completed", "steps": [{**text_step("Some"), **broken}]}
    with pytest.warns(UserWarning, match="Too many"):
        assert client.call(MODEL, "Hi", **HERE).finish_reason == "unknown"
    server.answer = lambda body: {"status": "completed", "steps": [{"type": "model_output", **broken}]}
    with pytest.raises(RateLimitError, match="Too many"):
        client.call(MODEL, "Hi", **HERE)
