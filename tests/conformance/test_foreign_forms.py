"""What one format calls by its own words is translated for every other one, or refused by name.

The requests that result are checked against the types of the SDKs.
"""

import json
from typing import Any

import pytest

from conformance.checks import USER
from conformance.features import SCHEMA
from conformance.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES, Format
from llm_provider import RequestError

ROUTES = [
    (CHAT, "gpt-4.1"),
    (CHAT, "mistral/mistral-large-latest"),
    (CHAT, "openrouter/moonshotai/kimi-k2.5"),
    (CHAT, "local/qwen3"),
    (CHAT, "litellm/bedrock/anthropic.claude-haiku-4-5"),
    (RESPONSES, "gpt-5.5-pro"),
    (ANTHROPIC, "claude-haiku-4-5"),
    (GEMINI, "gemini-2.5-flash"),
]
"""(format, model) of every kind of route."""

on_every_route = pytest.mark.parametrize(("form", "model"), ROUTES, ids=[model for _, model in ROUTES])

NESTED = {
    "type": "function",
    "function": {"name": "weather", "description": "Now", "parameters": SCHEMA, "strict": True},
}
FLAT = {"type": "function", "name": "weather", "description": "Now", "parameters": SCHEMA, "strict": True}
ANTHROPICS = {"name": "weather", "description": "Now", "input_schema": SCHEMA, "strict": True}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}


@on_every_route
@pytest.mark.parametrize("tool", [FLAT, ANTHROPICS, {**ANTHROPICS, "type": "custom"}])
@pytest.mark.parametrize("choice", [None, "any", {"type": "tool", "name": "weather"}])
def test_every_form_of_a_function_is_the_same_request(
    form: Format, model: str, tool: dict[str, Any], choice: Any
) -> None:
    encoded = form.encode("Hi", model, tools=[tool], tool_choice=choice)
    same = {"type": "function", "function": {"name": "weather"}}
    if not isinstance(choice, dict):
        same = {None: None, "any": "required"}[choice]
    expected = form.encode("Hi", model, tools=[NESTED], tool_choice=same)
    for payload in (encoded, expected):
        for declared in payload["tools"]:
            # Anthropic's default.
            form is ANTHROPIC and declared.pop("type", None)
    assert encoded == expected
    assert not form.check(encoded)


@on_every_route
@pytest.mark.parametrize("arguments", [{}, {"arguments": None}])
def test_a_call_without_arguments_has_an_empty_object(form: Format, model: str, arguments: Any) -> None:
    without = {**CALL, "function": {"name": "weather", **arguments}}
    messages = [USER, {"role": "assistant", "content": "Let me look", "tool_calls": [without]}, RESULT]
    expected = [USER, {**messages[1], "tool_calls": [CALL]}, RESULT]
    payload = form.encode(messages, model)
    assert payload == form.encode(expected, model)
    assert not form.check(payload)


BLANK = ("", "\n\n", " \t", "\u00a0\n")


@pytest.mark.parametrize("blank", BLANK)
@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
@pytest.mark.parametrize("index", [0, 1])
def test_blank_texts_do_not_go_to_anthropic(blank: str, role: str, index: int) -> None:
    parts = [{"type": "text", "text": "Hello"}]
    parts.insert(index, {"type": "text", "text": blank})
    call = {"role": "assistant", "content": blank or None, "tool_calls": [CALL]}
    before = [USER, call] if role == "tool" else []
    after = [USER, *([call, RESULT] if role == "assistant" else [])]
    fields = {"tool_call_id": "c1"} if role == "tool" else {}
    payload = ANTHROPIC.encode([*before, {"role": role, "content": parts, **fields}, *after])
    assert not ANTHROPIC.check(payload)
    assert json.dumps(blank) not in json.dumps(payload)
    assert "Hello" in json.dumps(payload)


@pytest.mark.filterwarnings("ignore:an earlier answer is empty")
@pytest.mark.parametrize("blank", BLANK)
def test_a_turn_of_blank_texts_is_not_sent_to_anthropic(blank: str) -> None:
    alone = {"role": "assistant", "content": [{"type": "text", "text": blank}]}
    for turn in (alone, {"role": "assistant", "content": blank}):
        assert ANTHROPIC.encode([USER, turn, USER])["messages"] == [USER, USER]


@on_every_route
@pytest.mark.parametrize("text", ["", [{"type": "text", "text": ""}]])
def test_an_empty_text_is_sent_to_openai(form: Format, model: str, text: Any) -> None:
    conversation = [{"role": "user", "content": text}]
    if form is CHAT:
        payload = form.encode(conversation, model)
        assert payload["messages"] == conversation
        assert not form.check(payload)
    elif form is ANTHROPIC or (text == "" and form is GEMINI):
        with pytest.raises(ValueError, match=r"messages\[0\] has empty content"):
            form.encode(conversation, model)
    else:
        assert not form.check(form.encode(conversation, model))


_URL = "https://example.com/cat.png"
_PNG = "iVBORw0KGgo="
_PDF = "JVBERi0xLjc="
_PDF_URL = f"data:application/pdf;base64,{_PDF}"
PARTS: dict[str, dict[str, dict[str, Any]]] = {
    "text": {
        "chat": {"type": "text", "text": "Look"},
        "responses": {"type": "input_text", "text": "Look"},
        "anthropic": {"type": "text", "text": "Look", "citations": None},
    },
    "an image": {
        "chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG}"}},
        "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{_PNG}", "detail": "auto"},
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}},
    },
    "an image at a URL": {
        "chat": {"type": "image_url", "image_url": {"url": _URL}},
        "responses": {"type": "input_image", "image_url": _URL, "detail": "auto"},
        "anthropic": {"type": "image", "source": {"type": "url", "url": _URL}},
    },
    "a document": {
        "chat": {"type": "file", "file": {"filename": "a.pdf", "file_data": _PDF_URL}},
        "responses": {"type": "input_file", "filename": "a.pdf", "file_data": _PDF_URL},
        "anthropic": {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": _PDF},
            "title": "a.pdf",
        },
    },
}
SAID = {
    "responses": {"type": "output_text", "text": "Aha", "annotations": [], "logprobs": []},
    "anthropic": {"type": "text", "text": "Aha", "citations": None},
}


def _without_detail(payload: Any) -> Any:
    """A payload without the default of `detail`, which one form names and another does not."""
    if isinstance(payload, list):
        return [_without_detail(entry) for entry in payload]
    if not isinstance(payload, dict):
        return payload
    return {
        name: _without_detail(value)
        for name, value in payload.items()
        if name != "detail" and not (name == "citations" and value is None)
    }


@on_every_route
@pytest.mark.parametrize("written", ["responses", "anthropic"])
@pytest.mark.parametrize("content", PARTS)
@pytest.mark.parametrize("location", ["user", "result", "result block"])
def test_a_part_in_the_words_of_any_format_is_the_same_request(
    form: Format, model: str, written: str, content: str, location: str
) -> None:
    def conversation(part: dict[str, Any], block: bool) -> list[Any]:
        if location == "user":
            return [{"role": "user", "content": [part, {"type": "text", "text": "What?"}]}]
        turn = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        if block and form is not ANTHROPIC:
            result = {"type": "tool_result", "tool_use_id": "c1", "content": [part]}
            return [USER, turn, {"role": "user", "content": [result]}]
        return [USER, turn, {**RESULT, "content": [part]}]

    encoded = form.encode(conversation(PARTS[content][written], location == "result block"), model)
    expected = form.encode(conversation(PARTS[content]["chat"], False), model)
    assert _without_detail(encoded) == _without_detail(expected)
    # Some hosts take more in the results of tools than OpenAI, whose types these are.
    assert (form is CHAT and location != "user") or not form.check(encoded)


@on_every_route
@pytest.mark.parametrize("part", SAID.values(), ids=SAID)
def test_an_answer_of_any_format_is_the_same_request(form: Format, model: str, part: dict[str, Any]) -> None:
    encoded = form.encode([USER, {"role": "assistant", "content": [part]}, USER], model)
    plain = [USER, {"role": "assistant", "content": [{"type": "text", "text": "Aha"}]}, USER]
    expected = form.encode(plain, model)
    for payload in (encoded, expected):
        assert "Aha" in json.dumps(payload[form.turns])
    if form is not RESPONSES:
        assert _without_detail(encoded) == _without_detail(expected)
    assert not form.check(encoded)


@pytest.mark.filterwarnings("ignore:an earlier answer holds")
@on_every_route
@pytest.mark.parametrize("beside", ["", "Sunny?"])
@pytest.mark.parametrize("thinking", [True, False])
def test_anthropics_blocks_reach_every_route(form: Format, model: str, beside: str, thinking: bool) -> None:
    blocks = [
        *([{"type": "thinking", "thinking": "Hm", "signature": "c2ln"}] if thinking else []),
        *([{"type": "redacted_thinking", "data": "ZGF0YQ=="}] if thinking else []),
        {"type": "text", "text": "Let me look"},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"}},
        {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no city", "is_error": True},
    ]
    rest = [{"type": "text", "text": beside}] if beside else []
    payload = form.encode(
        [USER, {"role": "assistant", "content": blocks}, {"role": "user", "content": [*results, *rest]}],
        model,
    )
    assert not form.check(payload)
    text = json.dumps(payload)
    assert text.count("sunny") == text.count("no city") == 1
    assert beside in text
    if form is not ANTHROPIC:
        assert "tool_use" not in text
        assert '"Hm"' not in text


OTHERS = (
    {"type": "search_result", "source": "x", "title": "x", "content": [{"type": "text", "text": "x"}]},
    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
    {"type": "container_upload", "file_id": "file_1"},
)


@on_every_route
@pytest.mark.parametrize("part", OTHERS, ids=lambda part: part["type"])
def test_what_only_anthropic_has_is_refused_by_name(form: Format, model: str, part: dict[str, Any]) -> None:
    conversation = [{"role": "user", "content": [{"type": "text", "text": "Look"}, part]}]
    if form is ANTHROPIC:
        assert form.encode(conversation, model)["messages"][0]["content"][1] == part
    else:
        with pytest.raises(RequestError, match=r"messages\[0\]\.content\[1\]"):
            form.encode(conversation, model)


CALL_ITEMS = [(kind.name, sample) for kind in RESPONSES.kinds if kind.call for sample in kind.samples[::7]]
CALL_ITEMS += [
    (kind.name, {**sample, "execution": "client", "call_id": "z_c1"})
    for kind in RESPONSES.kinds
    if kind.name == "tool_search_call"
    for sample in kind.samples[:1]
]


@pytest.mark.filterwarnings("ignore:an earlier answer holds")
@on_every_route
@pytest.mark.parametrize(("kind", "item"), CALL_ITEMS)
@pytest.mark.parametrize("edited", [False, True])
def test_every_result_goes_with_its_call(
    form: Format, model: str, kind: str, item: dict[str, Any], edited: bool
) -> None:
    """Whichever tool of OpenAI's was called, and wherever the conversation goes on."""
    answer = RESPONSES.decode(RESPONSES.reply([(RESPONSES.kinds[0], item)], RESPONSES.done)).choices[0]
    (call,) = answer.tool_calls
    message = {**answer.message, "content": "Edited"} if edited else answer.message
    if form is RESPONSES and kind in ("computer_call", "tool_search_call") and not edited:
        pytest.skip("its result has a form of its own, which other tests check")
    content = "true" if kind == "mcp_approval_request" else "done"
    payload = form.encode([USER, message, {**RESULT, "tool_call_id": call.id, "content": content}], model)
    if not (form is RESPONSES and not edited):
        assert not form.check(payload)
    turns = payload[form.turns]
    assert content in json.dumps(turns[1:], ensure_ascii=False)
    calls, results = _calls_and_results(form, turns)
    assert calls == results != []


def _calls_and_results(form: Format, turns: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    if form is CHAT:
        calls = [call["id"] for turn in turns for call in turn.get("tool_calls", ())]
        return calls, [turn["tool_call_id"] for turn in turns if turn["role"] == "tool"]
    if form is RESPONSES:
        calls, results = [], []
        for turn in turns:
            identifier = turn.get("call_id") or turn.get("approval_request_id") or turn.get("id")
            if str(turn.get("type")).endswith(("_output", "_response")):
                results.append(identifier)
            elif identifier and turn.get("type") != "message":
                calls.append(identifier)
        return calls, results
    blocks = [
        block for turn in turns for block in turn.get("content" if form is ANTHROPIC else "parts") or ()
    ]
    if form is ANTHROPIC:
        blocks = [block for block in blocks if isinstance(block, dict)]
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        return calls, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    calls = [block["functionCall"]["name"] for block in blocks if "functionCall" in block]
    return calls, [block["functionResponse"]["name"] for block in blocks if "functionResponse" in block]
