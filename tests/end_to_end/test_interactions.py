"""Gemini's Interactions from end to end: the real SDK over real sockets against a server of our own."""

import asyncio
import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from interactions_server import (
    InteractionsServer,
    call_step,
    frames,
    serving,
    stream_of,
    text_step,
    thought,
    usage,
)
from llm_provider import (
    AuthenticationError,
    BadRequestError,
    BudgetExceededError,
    CacheMissError,
    Client,
    Delta,
    InternalServerError,
    Ledger,
    LLMError,
    RateLimitError,
    RefusalError,
    RequestError,
    UnsupportedParameterError,
    verify,
)
from llm_provider._features.recheck.run import StoredRequest
from support import WAYS, ask

MODEL, AGENT = "gemini-3.8-flash", "deep-research-preview-04-2026"
HERE = {"endpoint": "interactions"}
STREAMS = ("stream", "astream")


@pytest.fixture
def server() -> Iterator[InteractionsServer]:
    with serving() as server:
        yield server


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def client(
    own_cache: Path, ledger: Path, server: InteractionsServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.root)
    monkeypatch.setenv("GEMINI_API_KEY", "key-1")
    with Client(cache_dir=own_cache, max_retries=0, ledger=ledger) as client:
        yield client


@pytest.mark.parametrize("way", WAYS)
def test_a_model_and_an_agent_answer_in_every_way(
    server: InteractionsServer, client: Client, ledger: Path, way: str
) -> None:
    answered = ask(client, way, MODEL, "Hello", **HERE)
    assert (answered.text, answered.finish_reason, answered.id) == ("You said: Hello", "stop", "v1_0")
    assert not server.bodies[0]["store"]
    assert "agent" not in server.bodies[0]
    again = ask(client, way, MODEL, "Hello", **HERE)
    assert again.cached
    assert (again.text, again.usage, again.price) == (answered.text, answered.usage, answered.price)
    researched = ask(client, way, AGENT, "Hello")
    assert (researched.text, researched.model) == ("You said: Hello", AGENT)
    assert server.bodies[1]["agent"] == AGENT
    assert len(server.bodies) == 2
    headers = server.headers[0]
    assert headers["x-goog-api-key"] == "key-1"
    assert headers["user-agent"].startswith("google-genai-sdk/")
    assert headers["accept"] == ("text/event-stream" if way in STREAMS else "application/json")
    assert Ledger.read(ledger).spent == pytest.approx(Decimal(str(answered.price + researched.price)))


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


def test_the_keys_of_both_endpoints_differ(server: InteractionsServer, client: Client) -> None:
    client.call(MODEL, "Hello", **HERE)
    with pytest.raises(CacheMissError):
        client.call(MODEL, "Hello", cache="only")
    assert client.call(MODEL, "Hello", cache="only", **HERE).cached
    client.call(MODEL, "Hello", cache="refresh", **HERE)
    client.call(MODEL, "Hello", cache="off", **HERE)
    assert len(server.bodies) == 3


# --- any answer, whole and streamed -------------------------------------------------------------------------
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=4,
)
SEARCH = {
    "type": "google_search_call", "id": "s1", "arguments": {"queries": ["a"]}, "signature": "c2ln"
}  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.builds(thought, st.just("c2ln"), TEXTS),
        st.builds(text_step, TEXTS),
        st.builds(
            text_step,
            TEXTS,
            annotations=st.just(
                [{"type": "url_citation", "url": "https://a.org", "start_index": 0, "end_index": 1}]
            ),
        ),
        st.builds(call_step, st.just("look"), st.dictionaries(TEXTS, JSON, max_size=2), TEXTS),
        st.just(SEARCH),
        st.just({"type": "google_search_result", "call_id": "s1", "result": [{"search_suggestions": "b"}]}),
    ),
    min_size=1,
    max_size=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(steps=STEPS, size=st.integers(1, 5), status=st.sampled_from(["completed", "incomplete"]))
def test_a_stream_adds_up_to_the_answer_that_a_call_gets(steps: list[Any], size: int, status: str) -> None:
    from llm_provider._core.formats.gemini_interactions.decode import decode
    from llm_provider._core.formats.gemini_interactions.stream import Assembler
    from llm_provider._core.types.messages import delta_of

    calls = any(step["type"] == "function_call" for step in steps)
    whole = {
        "id": "v1",
        "model": MODEL,
        "status": "requires_action" if calls and status == "completed" else status,
        "steps": steps,
        "usage": usage(),
    }
    assembler, deltas = Assembler(), list[Delta]()
    for event in json.loads(json.dumps(list(stream_of(whole, size)))):
        deltas.append(delta_of(assembler.feed(event)))
    (streamed,), (called,) = decode(assembler.reply()).choices, decode(whole).choices
    assert streamed == called
    assert "".join(delta.text for delta in deltas) == called.text
    assert "".join(delta.reasoning for delta in deltas) == called.reasoning
    shown: dict[int, list[str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls):
        known = shown.setdefault(call.index, ["", "", ""])
        shown[call.index] = [a + b for a, b in zip(known, (call.id, call.name, call.arguments), strict=True)]
    told = [[call.id, call.name, json.loads(call.arguments)] for call in called.tool_calls]
    assert [[*rest, json.loads(text)] for *rest, text in (shown[index] for index in sorted(shown))] == told


# --- tools and conversations --------------------------------------------------------------------------------
def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is fine"


def _with_tool(body: Any) -> dict[str, Any]:
    results = [step for step in body["input"] if step["type"] == "function_result"]
    if not results:
        calls = [call_step("look", {"place": place}, f"c{place}") for place in ("A", "B")]
        return {"status": "requires_action", "steps": [thought("c2ln", "Look first."), *calls]}
    return {
        "status": "completed",
        "steps": [thought(), text_step("; ".join(step["result"] for step in results))],
    }


@pytest.mark.parametrize("way", WAYS)
def test_functions_are_run_and_signatures_go_back(
    server: InteractionsServer, client: Client, way: str
) -> None:
    server.answer = _with_tool
    answered = ask(client, way, MODEL, "Look", tools=[look], max_tool_rounds=2, **HERE)
    assert answered.text == "A is fine; B is fine"
    first, second = server.bodies
    assert first["tools"][0]["name"] == "look"
    kinds = [step["type"] for step in second["input"]]
    assert kinds == ["user_input", "thought", "function_call", "function_call", *["function_result"] * 2]
    assert second["input"][1] == thought("c2ln", "Look first.")
    assert [step["call_id"] for step in second["input"][-2:]] == ["cA", "cB"]
    assert ask(client, way, MODEL, "Look", tools=[look], max_tool_rounds=2, **HERE).cached


def test_calls_of_other_models_get_a_signature_and_an_id(server: InteractionsServer, client: Client) -> None:
    function = {"name": "look", "arguments": '{"place": "A"}'}
    call = {"id": "call_x", "type": "function", "function": function}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_x", "content": "fine"}
    conversation = [{"role": "user", "content": "Look"}, turn, result, turn, result]
    client.call(MODEL, conversation, **HERE)
    steps = server.bodies[0]["input"]
    kinds = ["user_input", *["thought", "function_call", "function_result"] * 2]
    assert [step["type"] for step in steps] == kinds
    assert base64.b64decode(steps[1]["signature"]) == b"skip_thought_signature_validator"
    calls, results = steps[2::3], steps[3::3]
    assert [step["id"] for step in calls] == [step["call_id"] for step in results]
    assert calls[0]["id"] != calls[1]["id"]
    # Gemini 2.5 asks for none.
    client.call("gemini-2.5-flash", conversation, **HERE)
    assert "thought" not in [step["type"] for step in server.bodies[1]["input"]]


def test_an_edited_answer_is_sent_as_it_was_edited(server: InteractionsServer, client: Client) -> None:
    answered = client.call(MODEL, "Hello", **HERE)
    message = dict(answered.message)
    turn = {"role": "user", "content": "Go on"}
    client.call(MODEL, [{"role": "user", "content": "Hello"}, message, turn], **HERE)
    assert server.bodies[1]["input"][1:3] == [thought(), text_step("You said: Hello")]
    client.call(MODEL, [{"role": "user", "content": "Hello"}, {**message, "content": "No"}, turn], **HERE)
    assert server.bodies[2]["input"][1:2] == [text_step("No")]


def test_system_messages_and_media(server: InteractionsServer, client: Client) -> None:
    png = "data:image/png;base64,iVBORw0KGgo="
    note = "data:text/plain;base64," + base64.b64encode("Grüße".encode()).decode()
    content = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": png, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
        {"type": "document_url", "document_url": {"url": "https://example.org/a.pdf"}},
        {"type": "file", "file": {"file_data": note, "filename": "a.txt"}},
    ]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
    client.call(MODEL, messages, system="First.", **HERE)
    body = server.bodies[0]
    assert body["system_instruction"] == "First.\n\nBe brief."
    assert body["input"][0]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png", "resolution": "low"},
        {"type": "image", "uri": "https://example.org/a"},
        {"type": "audio", "data": "AAAA", "mime_type": "audio/wav"},
        {"type": "video", "uri": "https://example.org/a.mp4", "mime_type": "video/mp4"},
        {"type": "document", "uri": "https://example.org/a.pdf", "mime_type": "application/pdf"},
        {"type": "text", "text": "Grüße"},
    ]


# --- parameters ---------------------------------------------------------------------------------------------
class City(BaseModel):
    name: str
    mayor: str | None = None


@pytest.mark.parametrize("way", WAYS)
def test_structured_output_is_asked_for_checked_and_repaired(
    server: InteractionsServer, client: Client, way: str
) -> None:
    server.answer = lambda body: {
        "status": "completed",
        "steps": [text_step('{"name": "Bern"}' if len(body["input"]) > 1 or way in STREAMS else '{"n": 1}')],
    }
    answered = ask(client, way, MODEL, "Which?", response_format=City, **HERE)
    assert answered.parsed == City(name="Bern")
    form = server.bodies[0]["response_format"]
    assert (form["type"], form["mime_type"]) == ("text", "application/json")
    assert list(form["schema"]["properties"]) == ["name", "mayor"]
    assert len(server.bodies) == (1 if way in STREAMS else 2)


def test_every_parameter_has_its_place(server: InteractionsServer, client: Client) -> None:
    client.call(
        "gemini-2.5-flash", "Hi", temperature=0.5, top_p=0.9, max_tokens=50, stop=["END"], seed=7,
        reasoning_effort="low", tools=["google_search", {"url_context": {}}, look], tool_choice="required",
        safety_settings={"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}, service_tier="flex", store=True,
        previous_response_id="v1_before", metadata={"run": "7"}, modalities=["text", "image"], **HERE,
    )  # fmt: skip
    (body,) = server.bodies
    assert body["generation_config"] == {
        "max_output_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"], "seed": 7,
        "tool_choice": "any", "thinking_level": "low", "thinking_summaries": "auto",
    }  # fmt: skip
    assert [tool["type"] for tool in body["tools"]] == ["google_search", "url_context", "function"]
    assert body["safety_settings"] == [{"type": "harassment", "threshold": "block_none"}]
    others = {"store": True, "previous_interaction_id": "v1_before", "labels": {"run": "7"}}
    others |= {"service_tier": "flex", "response_format": [{"type": "text"}, {"type": "image"}]}
    assert {name: body[name] for name in others} == others


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "top_k": (MODEL, {"top_k": 3}),
    "logprobs": (MODEL, {"logprobs": True}),
    "thinking_budget": (MODEL, {"thinking_budget": 100}),
    "reasoning_effort='none'": ("gemini-2.5-flash", {"reasoning_effort": "none"}),
    "temperature": (MODEL, {"temperature": 1}),
    "frequency_penalty": ("gemini-2.5-flash", {"frequency_penalty": 1}),
    "metadata['Run']": (MODEL, {"metadata": {"Run": "7"}}),
    "max_tokens": (AGENT, {"max_tokens": 10}),
    "store=False": (AGENT, {"store": False}),
    "endpoint='chat'": (AGENT, {"endpoint": "chat"}),
    "endpoint": (MODEL, {"endpoint": "responses"}),
    "endpoint='interactions'": ("gpt-4.1", HERE),
}


@pytest.mark.parametrize("parameter", REFUSED)
def test_what_the_api_does_not_take_is_refused_by_name(
    server: InteractionsServer, client: Client, parameter: str
) -> None:
    model, given = REFUSED[parameter]
    with pytest.raises(UnsupportedParameterError) as caught:
        client.call(model, "Hi", **{**({} if "endpoint" in given or model == AGENT else HERE), **given})
    assert caught.value.parameter == parameter
    assert not server.bodies


@pytest.mark.parametrize(
    "model", ["claude-sonnet-5-5", "groq/llama", "local/mine", "vertex_ai/gemini-3.8-flash"]
)
def test_no_other_server_has_the_endpoint(client: Client, model: str) -> None:
    where = {} if model.startswith("vertex") else {"base_url": "http://127.0.0.1:9", "api_key": "k"}
    with pytest.raises((UnsupportedParameterError, RequestError)):
        client.call(model, "Hi", **HERE, **where)


def test_an_empty_required_is_left_out(server: InteractionsServer, client: Client) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "object", "required": []}}, "required": []}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    client.call(MODEL, "Hi", tools=[tool], **HERE)
    assert "required" not in json.dumps(server.bodies[0])


# --- samples, continuations, the background -------------------------------------------------------------
def test_samples_are_requests(server: InteractionsServer, client: Client) -> None:
    assert len(client.call(MODEL, "Hi", n=3, **HERE).choices) == 3
    assert len(server.bodies) == 3
    assert client.call(MODEL, "Hi", n=3, **HERE).cached


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


def test_a_model_works_in_the_background_too(server: InteractionsServer, client: Client) -> None:
    answered = client.call(MODEL, "Hello", extra_body={"background": True}, **HERE)
    assert answered.text == "You said: Hello"
    assert server.bodies[0]["store"]
    assert server.fetched == ["v1_0", "v1_0"]


@pytest.mark.parametrize("way", [way for way in WAYS if way not in STREAMS])
def test_a_call_that_broke_off_goes_on_with_its_interaction(
    server: InteractionsServer, client: Client, way: str
) -> None:
    server.fetch_fault = lambda number: (503, {}, {"error": {"code": "unavailable", "message": "later"}})
    with pytest.raises(LLMError) as caught:
        ask(client, way, AGENT, "Hello")
    assert "v1_0" in "".join(getattr(caught.value, "__notes__", ()))
    server.fetch_fault = lambda number: None
    assert ask(client, way, AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == 1


def test_a_cancellation_loses_no_interaction(server: InteractionsServer, client: Client) -> None:
    server.questions = 10**6

    async def cancelled() -> None:
        task = asyncio.create_task(client.acall(AGENT, "Hello", cache="off"))
        while not server.fetched:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    server.questions = 1
    assert client.call(AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == 1


def test_samples_of_an_agent_are_interactions_of_their_own(
    server: InteractionsServer, client: Client
) -> None:
    server.fetch_fault = lambda number: (503, {}, {}) if number < 3 else None
    with pytest.raises(LLMError):
        client.call(AGENT, "Hello", n=2)
    answered = client.call(AGENT, "Hello", n=2)
    assert len(answered.choices) == 2
    assert len(server.bodies) == 2
    assert set(server.fetched) == {"v1_0", "v1_1"}


def test_an_interaction_that_is_gone_is_made_anew(server: InteractionsServer, client: Client) -> None:
    server.fetch_fault = lambda number: (404, {}, {"error": {"code": "not_found", "message": "gone"}})
    with pytest.raises(LLMError):
        client.call(AGENT, "Hello")
    server.fetch_fault = lambda number: None
    client.call(AGENT, "Hello")
    assert len(server.bodies) == 2


# --- failures -----------------------------------------------------------------------------------------------
FAILURES: list[tuple[int, str, type[LLMError]]] = [
    (400, "invalid_request", BadRequestError),
    (400, "content_blocked", RefusalError),
    (401, "unauthenticated", AuthenticationError),
    (429, "resource_exhausted", RateLimitError),
    (500, "internal", InternalServerError),
]


@pytest.mark.parametrize(("status", "code", "kind"), FAILURES)
@pytest.mark.parametrize("way", WAYS)
def test_failures_are_typed(
    server: InteractionsServer, client: Client, way: str, status: int, code: str, kind: type[LLMError]
) -> None:
    server.fault = lambda number, body: (status, {}, {"error": {"code": code, "message": "Because."}})
    with pytest.raises(kind) as caught:
        ask(client, way, MODEL, "Hello", **HERE)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert "Because." in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
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


@pytest.mark.parametrize("way", WAYS)
def test_a_refused_and_a_cut_request_are_sent_again(
    own_cache: Path, server: InteractionsServer, client: Client, way: str
) -> None:
    def fault(number: int, body: Any) -> Any:
        whole = {"id": "v", "status": "completed", "steps": [text_step("x" * 30)]}
        if number == 1:
            return 429, {"retry-after": "0"}, {"error": {"code": "resource_exhausted", "message": "no"}}
        if number == 0 and not body.get("stream"):
            return 503, {"retry-after": "0"}, {"error": {"code": "unavailable", "message": "no"}}
        if number == 0:
            events = list(stream_of(whole))[:2]
            return 200, {"content-type": "text/event-stream"}, b"".join(list(frames(iter(events)))[:2])
        return None

    server.fault = fault
    answered = ask(client.with_options(max_retries=3), way, MODEL, "Hello", **HERE)
    assert answered.text == "You said: Hello"
    assert len(server.bodies) == 3


def test_an_error_event_ends_a_stream(server: InteractionsServer, client: Client) -> None:
    def fault(number: int, body: Any) -> Any:
        error = {"event_type": "error", "error": {"code": "internal", "message": "Broken."}}
        begun = list(stream_of({"id": "v", "status": "completed", "steps": [text_step("Hello")]}))[:5]
        data = b"".join(list(frames(iter([*begun, error])))[:-1])
        return 200, {"content-type": "text/event-stream"}, data

    server.fault = fault
    with pytest.raises(InternalServerError, match="Broken"), client.stream(MODEL, "Hi", **HERE) as stream:
        list(stream)


STATUSES = {"incomplete": "length", "budget_exceeded": "length", "completed": "stop"}


@pytest.mark.parametrize("status", STATUSES)
def test_finish_reasons(server: InteractionsServer, client: Client, status: str) -> None:
    server.answer = lambda body: {"status": status, "steps": [text_step("Some")]}
    answered = client.call(MODEL, "Hi", **HERE)
    assert answered.finish_reason == STATUSES[status]
    assert client.call(MODEL, "Hi", **HERE).cached is (status == "completed")


def test_a_budget_is_not_exceeded(server: InteractionsServer, client: Client) -> None:
    with pytest.raises(BudgetExceededError):
        client.call(MODEL, "Hi", max_tokens=1000, budget=Decimal("0.000001"), **HERE)
    assert not server.bodies


# --- what else answers hold -------------------------------------------------------------------------------
def test_citations_media_tools_and_searches(server: InteractionsServer, client: Client) -> None:
    cited = "Bern ist schön."
    note = {"type": "url_citation", "url": "https://a.org", "title": "A", "start_index": 0,
            "end_index": len(cited.encode())}  # fmt: skip
    steps = [
        SEARCH,
        {"type": "google_search_result", "call_id": "s1", "result": [{"search_suggestions": "b"}]},
        text_step("Ja. "),
        text_step(cited, annotations=[note]),
        {"type": "model_output", "content": [
            {"type": "image", "data": base64.b64encode(b"png").decode(), "mime_type": "image/png"},
            {"type": "audio", "data": base64.b64encode(b"\0\1").decode(), "mime_type": "audio/l16",
             "sample_rate": 16000},
        ]},
    ]  # fmt: skip
    grounding = [{"type": "google_search", "count": 2}, {"type": "google_maps", "count": 1}]
    server.answer = lambda body: {
        "status": "completed", "steps": steps, "usage": usage(grounding_tool_count=grounding)
    }  # fmt: skip
    for answered in (client.call(MODEL, "Hi", **HERE), ask(client, "stream", MODEL, "Hi 2", **HERE)):
        (citation,) = answered.citations
        assert (citation.url, answered.text[citation.start : citation.end]) == ("https://a.org", cited)
        assert answered.images[0].data == b"png"
        assert (answered.audio.data, answered.audio.sample_rate) == (b"\0\1", 16000)
        (tool,) = answered.server_tool_calls
        assert (tool.name, tool.arguments, tool.id) == ("google_search", {"queries": ["a"]}, "s1")
        assert (answered.usage.web_searches, answered.usage.unpriced_tools) == (2, 1)
        assert answered.served_by.request_id == answered.id


def test_evidence_estimates_and_stored_questions(
    tmp_path: Path, server: InteractionsServer, client: Client
) -> None:
    model = "gemini-2.5-flash"
    results = client.call_many(model, ["Hello", "Bye"], **HERE)
    assert client.estimate(model, ["Hello", "Bye"], **HERE).cached == 2
    assert client.estimate(AGENT, ["Hello"]).requests == 1
    researched = client.call_many(AGENT, ["Hello"])
    for name, answered in (("a", results), ("b", researched)):
        answered.export(tmp_path / f"{name}.zip", client=client)
        assert verify(tmp_path / f"{name}.zip")
    for operation, endpoint in (
        ("v1beta/interactions", "interactions"),
        ("v1/models/m:generateContent", None),
    ):
        question = {"operation": operation, "payload": {}}
        assert StoredRequest.build_stored(model, question, {}, "recheck").endpoint == endpoint
