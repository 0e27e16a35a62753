"""Objects of the providers' SDKs in a conversation are the same messages as the dicts of their fields."""

import base64
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from google.genai import types as google
from openai.types.chat import ChatCompletion
from openai.types.responses import Response as OpenAIResponse

from conformance.formats import CHAT, GEMINI, Format
from conformance.test_foreign_forms import on_every_route
from llm_provider import Choice, RequestError
from llm_provider._features.foreign.sdk_messages import is_foreign, plain_messages
from llm_provider._features.litellm.connection import load
from support import response

USER = {"role": "user", "content": "The weather in Bern?"}
ARGUMENTS = '{"city":"Bern"}'
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}

BLOCKS = [
    {"type": "text", "text": "Let me look"},
    {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bern", "day": None}},
]
ITEMS = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "Let me look", "annotations": []}]},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": ARGUMENTS},
]  # fmt: skip
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
PARTS: list[dict[str, Any]] = [
    {"text": "Let me look"},
    {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Bern"}}, "thoughtSignature": "c2ln"},
]


def completion() -> Any:
    choice = {"index": 0, "finish_reason": "tool_calls", "logprobs": None, "message": ASKED}
    fields = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return ChatCompletion.model_validate(fields)


def of_litellm() -> Any:
    if find_spec("litellm") is None:
        pytest.skip("the environment of openai 3 has no litellm")
    return load().Message(role="assistant", content=None, tool_calls=[CALL])


def of_anthropic() -> Any:
    fields = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": BLOCKS,
        "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    return AnthropicMessage.model_validate(fields)


def output() -> Any:
    fields = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": ITEMS, "tools": [],
        "tool_choice": "auto", "parallel_tool_calls": True, "status": "completed",
    }  # fmt: skip
    return OpenAIResponse.model_validate(fields).output


def of_gemini() -> Any:
    call = google.FunctionCall(id="c1", name="weather", args={"city": "Bern"})
    called = google.Part(function_call=call, thought_signature=b"sig")
    return google.Content(role="model", parts=[google.Part(text="Let me look"), called])


OBJECTS: dict[str, tuple[Callable[[], list[Any]], list[Any]]] = {
    "a message of openai": (lambda: [completion().choices[0].message], [ASKED]),
    "a message of litellm": (lambda: [of_litellm()], [ASKED]),
    "tool calls of openai": (
        lambda: [ASKED | {"tool_calls": completion().choices[0].message.tool_calls}],
        [ASKED],
    ),
    "a message of anthropic": (lambda: [of_anthropic()], [{"role": "assistant", "content": BLOCKS}]),
    "blocks of anthropic": (
        lambda: [{"role": "assistant", "content": of_anthropic().content}],
        [{"role": "assistant", "content": BLOCKS}],
    ),
    "items": (lambda: list(output()), ITEMS),
    "the list of items": (lambda: [output()], ITEMS),
    "a content": (lambda: [of_gemini()], [{"role": "model", "parts": PARTS}]),
    "a response": (lambda: [response(choices=(Choice(message=ASKED),))], [ASKED]),
}


@pytest.mark.filterwarnings("ignore:an earlier answer holds")
@on_every_route
@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.sampled(5)
def test_an_object_is_the_same_request_as_its_dict(form: Format, model: str, name: str) -> None:
    make, dicts = OBJECTS[name]
    payload = form.encode([USER, *make(), RESULT], model)
    assert payload == form.encode([USER, *dicts, RESULT], model)
    # The types of the SDK lack these two.
    assert all("encrypted_content" in problem or ".status" in problem for problem in form.check(payload))
    assert "Bern" in str(payload[form.turns][1:])
    assert "sunny" in str(payload[form.turns][2:])


@pytest.mark.filterwarnings("ignore:an earlier answer holds")
@on_every_route
def test_the_answers_to_items_and_parts_are_results(form: Format, model: str) -> None:
    plain = form.encode([USER, *ITEMS, RESULT], model)
    assert form.encode([USER, *ITEMS, OUTPUT], model) == plain
    answered = google.Part.from_function_response(name="weather", response={"output": "sunny"})
    called = {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Bern"}}}]}
    written = {"function_response": {"name": "weather", "response": {"output": "sunny"}}}
    for content in (google.Content(role="user", parts=[answered]), {"role": "user", "parts": [written]}):
        payload = form.encode([USER, called, content], model)
        assert not form.check(payload)
        assert "sunny" in str(payload)


def test_a_content_of_the_user_has_the_parts_of_a_message() -> None:
    data = b"\x89PNG\r\n\x1a\n\xff\xfe\xfd"
    image = google.Part.from_bytes(data=data, mime_type="image/png")
    encoded = base64.b64encode(data).decode()
    expected = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}},
    ]
    for parts in (
        [google.Part(text="Look"), image],
        [{"text": "Look"}, {"inline_data": {"mime_type": "image/png", "data": data}}],
        [{"text": "Look"}, {"inlineData": {"mimeType": "image/png", "data": encoded}}],
    ):
        is_object = isinstance(parts[0], google.Part)
        entry = google.Content(role="user", parts=parts) if is_object else {"role": "user", "parts": parts}
        assert plain_messages([entry]) == [{"role": "user", "content": expected}]


PNG = b"\x89PNG\r\n\x1a\n\xff\xfe\xfd"
AS_PARTS = {PNG: google.Part.from_bytes(data=PNG, mime_type="image/png"), "What?": google.Part(text="What?")}


@pytest.mark.parametrize("contents", [[PNG, "What?"], ["What?", PNG], ["What?", PNG, PNG, "What?"]])
@on_every_route
def test_parts_of_google_are_contents_beside_texts(form: Format, model: str, contents: list[Any]) -> None:
    expected = form.encode(contents, model)
    mixed = [AS_PARTS[each] if isinstance(each, bytes) else each for each in contents]
    parts = [AS_PARTS[each] for each in contents]
    content = google.Content(role="user", parts=parts)
    for prompt in (mixed, parts, [{"role": "user", "content": mixed}], [content]):
        payload = form.encode(prompt, model)
        assert payload == expected
        assert not form.check(payload)


def test_a_part_alone_is_told_to_go_into_a_list() -> None:
    with pytest.raises(RequestError, match=r"not Part: write \[value\]"):
        GEMINI.encode(AS_PARTS[PNG], "gemini-2.5-flash")


def test_a_result_beside_contents_answers_its_call() -> None:
    answered = google.Part.from_function_response(name="weather", response={"output": "sunny"})
    payload = GEMINI.encode(
        [google.Content(role="user", parts=[AS_PARTS["What?"]]), of_gemini(), answered], "gemini-2.5-flash"
    )
    assert "sunny" in str(payload["contents"][2])
    assert not GEMINI.check(payload)


SCHEMA = google.Schema(
    type=google.Type.OBJECT,
    properties={
        "city": google.Schema(type=google.Type.STRING, description="A city"),
        "days": google.Schema(type=google.Type.ARRAY, items=google.Schema(type=google.Type.INTEGER)),
        "unit": google.Schema(type=google.Type.STRING, enum=["C", "F"], nullable=True),
    },
    required=["city"],
)
AS_JSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "A city"},
        "days": {"type": "array", "items": {"type": "integer"}},
        "unit": {"type": ["null", "string"], "enum": ["C", "F"]},
    },
    "required": ["city"],
}


@pytest.mark.parametrize("schema", [{"parameters": SCHEMA}, {"parameters_json_schema": AS_JSON}, {}])
@on_every_route
def test_functions_that_google_declares_are_tools(form: Format, model: str, schema: dict[str, Any]) -> None:
    names = {"weather": "The weather", "news": None}
    declared = [
        google.FunctionDeclaration(name=name, description=said, **schema) for name, said in names.items()
    ]
    parameters = {"parameters": AS_JSON} if schema else {}
    functions = [
        {"name": name, **({"description": said} if said else {}), **parameters}
        for name, said in names.items()
    ]
    expected = form.encode("Hi", model, tools=[{"type": "function", "function": each} for each in functions])
    for tools in (
        [google.Tool(function_declarations=declared)],
        [google.Tool(function_declarations=[each]) for each in declared],
    ):
        payload = form.encode("Hi", model, tools=tools)
        assert payload == expected
        assert not form.check(payload)


def test_what_google_runs_stays_a_tool_of_google() -> None:
    searching = google.Tool(google_search=google.GoogleSearch())
    both = google.Tool(
        google_search=google.GoogleSearch(),
        function_declarations=[google.FunctionDeclaration(name="weather")],
    )
    search = {"googleSearch": {}}
    assert GEMINI.encode("Hi", "gemini-2.5-flash", tools=[searching])["tools"] == [search]
    assert GEMINI.encode("Hi", "gemini-2.5-flash", tools=[both])["tools"] == [
        {"functionDeclarations": [{"name": "weather"}]},
        search,
    ]
    with pytest.raises(RequestError, match="one of the provider 'gemini'"):
        CHAT.encode("Hi", "gpt-4.1", tools=[searching])


@pytest.mark.parametrize("entry", [USER, "Hi", {"type": "text", "text": "Hi"}, b"x", None, 5])
def test_messages_and_contents_are_not_foreign(entry: Any) -> None:
    assert not is_foreign(entry)


def test_a_signature_may_be_bytes() -> None:
    # As `model_dump()` gives it, which also has the names in snake case.
    part = google.Part(function_call=google.FunctionCall(name="f", args={}), thought_signature=b"sig")
    content = google.Content(role="model", parts=[part])
    dumped, written = plain_messages([content.model_dump(exclude_none=True)]), plain_messages([content])
    assert dumped[0]["provider_specific_fields"]["content"][0]["thoughtSignature"] == "c2ln"
    assert base64.b64decode(dumped[0]["provider_specific_fields"]["content"][0]["thoughtSignature"]) == b"sig"
    assert dumped[0]["tool_calls"] == written[0]["tool_calls"]
