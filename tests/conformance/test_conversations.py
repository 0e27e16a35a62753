"""A conversation of any route, or of a user's own, is sent to every route as its provider takes it.

The conversations are generated. The rules are the rows of `conversations`. Each call is about a city of
its own, and each result names the city of its call.
"""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.checks import examples
from conformance.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES, Format
from llm_provider._core.formats.shared import conversations as shared
from llm_provider._core.formats.shared.conversations import ConversationRules
from llm_provider._core.requests.routing import find_route
from llm_provider._features.quirks.any_server import find_chat_rules

JSON = dict[str, Any]

TARGETS = [
    (CHAT, "gpt-4.1"), (CHAT, "mistral/mistral-large-latest"), (CHAT, "deepseek/deepseek-v4-flash"),
    (CHAT, "zai/glm-5.2"), (CHAT, "cerebras/qwen-3-32b"), (CHAT, "groq/qwen3-32b"), (CHAT, "local/qwen3"),
    (CHAT, "openrouter/mistralai/devstral-medium"), (CHAT, "moonshot/kimi-k3"),
    (CHAT, "litellm/bedrock/anthropic.claude-haiku-4-5"), (RESPONSES, "gpt-5.5-pro"),
    (ANTHROPIC, "claude-haiku-4-5"), (GEMINI, "gemini-2.5-flash"), (GEMINI, "gemini-3.5-flash"),
]  # fmt: skip

DECLARED = "weather"
NAMES = (DECLARED, DECLARED, DECLARED, "browser.tabs.open", "the weather!", "7up", "x" * 90)
TOOL = {
    "type": "function",
    "function": {"name": DECLARED, "parameters": {"type": "object", "properties": {}}},
}

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}

# How a server or a model names its calls. The arguments are the numbers of the turn and of the call.
IDS: dict[str, Callable[[int, int], Any]] = {
    "distinct": lambda turn, call: f"call_{turn}{call}",
    "anew in each turn": lambda turn, call: f"call_{call}",
    "Kimi's": lambda turn, call: f"functions.weather:{call}",
    "equal in a turn": lambda turn, call: f"turn_{turn}",
    "equal": lambda turn, call: "call",
    "long": lambda turn, call: f"call_{turn}{call}_" + "x" * 90,
    "nine": lambda turn, call: f"aB3dE6g{turn % 10}{call}",
    "numbers": lambda turn, call: 10 * turn + call,
    "empty": lambda turn, call: "",
    "none": lambda turn, call: None,
}

BROKEN = ('{"city": "%s"', '"%s"', '["%s"]', "city: %s", r'{"city": "%s \ud83d"}')


# --- What a provider takes ----------------------------------------------------------------------------------


def city_in(value: Any) -> str:
    found = re.findall(r"City\d+", json.dumps(value))
    assert len(set(found)) == 1, value
    return str(found[0])


def is_object(arguments: Any) -> bool:
    """Whether arguments are a JSON object, or its text."""
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(arguments) if isinstance(arguments, str) else arguments, dict)
    return False


def problems_of_calls(calls: Sequence[tuple[Any, Any, Any]], rules: ConversationRules) -> Iterator[str]:
    """What is wrong with the (id, name, arguments) of one answer's calls. Gemini's have no id here."""
    ids = [identifier for identifier, _, _ in calls if identifier is not None]
    if len(set(ids)) < len(ids):
        yield f"equal ids in one answer: {ids}"
    for identifier, name, arguments in calls:
        if identifier is not None and not (
            isinstance(identifier, str) and re.fullmatch(rules.ids, identifier)
        ):
            yield f"id {identifier!r}"
        if not (isinstance(name, str) and re.fullmatch(rules.names, name)):
            yield f"name {name!r}"
        if not rules.any_arguments and not is_object(arguments):
            yield f"arguments {arguments!r}"


def problems_of_pairs(turns: Sequence[Any], once: bool) -> Iterator[str]:
    """What is wrong with a list of answers' calls and of results, each as its id and its city, in order."""
    waiting: dict[Any, str] = {}
    used: set[Any] = set()
    for kind, identifier, city in turns:
        if kind == "call":
            if once and identifier in used:
                yield f"id {identifier!r} twice"
            used.add(identifier)
            waiting[identifier] = city
        elif identifier not in waiting:
            yield f"a result for {identifier!r}, which waits for none"
        elif waiting.pop(identifier) != city:
            yield f"the result of another call for {city}"
    yield from (f"no result for {city}" for city in waiting.values())


def problems_in_chat(payload: JSON, rules: ConversationRules) -> Iterator[str]:
    before, turns, waiting = "", list[Any](), 0
    for message in payload["messages"]:
        role, calls, content = message["role"], message.get("tool_calls") or (), message.get("content")
        if role in ("tool", "function"):
            waiting -= 1
        elif waiting:
            yield f"role {role} between a call and its result"
        waiting += len(calls) or bool(message.get("function_call"))
        if content == [] or message.get("tool_calls") == []:
            yield "an empty list"
        says_nothing = role == "assistant" and not (content or calls or message.get("function_call"))
        is_blank = isinstance(content, list) and {"type": "text", "text": ""} in content
        if not rules.empty_texts and (says_nothing or is_blank):
            yield "an empty answer or text"
        if role == "tool" and rules.text_results and not isinstance(content, str):
            yield "a result in parts"
        if role == "developer" and not rules.developer:
            yield "role developer"
        if role in ("system", "developer") and not re.fullmatch(rules.system_after, before):
            yield f"role {role} after {before}"
        if role == "user" and before == "tool" and rules.answer_first:
            yield "a user's message after a result"
        entries = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
        if message.get("function_call"):
            if not rules.old_functions:
                yield "function_call"
            entries = [(None, message["function_call"]["name"], message["function_call"]["arguments"])]
        yield from problems_of_calls(entries, rules)
        if rules.typed_calls and not all(call.get("type") == "function" for call in calls):
            yield "a call without its type"
        turns += [("call", identifier, city_in(arguments)) for identifier, _, arguments in entries]
        if role in ("tool", "function"):
            if role == "function" and not isinstance(message["content"], str):
                yield "parts in a function's result"
            turns.append(("result", message.get("tool_call_id"), city_in(message["content"])))
        if calls and rules.reasoning is not None and not isinstance(message.get("reasoning_content"), str):
            yield "no reasoning_content"
        if rules.reasoning and message.get("reasoning_content") == "":
            yield "empty reasoning_content"
        yield from (f"field {name}" for name in rules.refused & message.keys())
        before = role
    yield from problems_of_pairs(turns, rules.ids_once)


def problems_in_responses(payload: JSON, rules: ConversationRules) -> Iterator[str]:
    turns = []
    for item, after in itertools.zip_longest(payload["input"], payload["input"][1:], fillvalue={}):
        if len(item.get("id", "")) > 64:
            yield "a long id of an item"
        if item.get("type") == "reasoning" and (not after or after.get("role", "assistant") != "assistant"):
            yield "reasoning that nothing follows"
        if item.get("type") == "function_call":
            yield from problems_of_calls([(item["call_id"], item["name"], item["arguments"])], rules)
            turns.append(("call", item["call_id"], city_in(item["arguments"])))
        elif item.get("type") == "function_call_output":
            turns.append(("result", item["call_id"], city_in(item["output"])))
    yield from problems_of_pairs(turns, rules.ids_once)


def problems_in_anthropic(payload: JSON, rules: ConversationRules) -> Iterator[str]:
    turns: list[Any] = []
    waiting: set[str] = set()
    running: set[str] = set()
    for role, group in itertools.groupby(payload["messages"], key=lambda message: message["role"]):
        blocks = [
            block
            for message in group
            for content in [message["content"]]
            for block in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
        ]
        kinds = [block["type"] == "tool_result" for block in blocks]
        if role == "user" and kinds != sorted(kinds, reverse=True):
            yield "a result behind something else"
        running |= {block["id"] for block in blocks if block["type"] == "server_tool_use"}
        running -= {block.get("tool_use_id") for block in blocks}
        if role == "user" and running and not all(kinds):
            yield "a tool of Anthropic's has not run"
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if results != waiting:
            yield "the results are not in the next message"
        calls = [
            (block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"
        ]
        waiting = {identifier for identifier, _, _ in calls}
        yield from problems_of_calls(calls, rules)
        turns += [("call", identifier, city_in(arguments)) for identifier, _, arguments in calls]
        turns += [
            ("result", block["tool_use_id"], city_in(block["content"]))
            for block in blocks
            if block["type"] == "tool_result"
        ]
    if role == "assistant" and blocks[-1].get("text", "").endswith((" ", "\n")):
        yield "white space at the end"
    yield from problems_of_pairs(turns, rules.ids_once)


def problems_in_gemini(payload: JSON, rules: ConversationRules) -> Iterator[str]:
    """Results are given to calls by their place, also where both have an id."""
    waiting: list[JSON] = []
    before, signed = "", False
    for content in payload["contents"]:
        of_calls = [part for part in content["parts"] if "functionCall" in part]
        if of_calls and before == "model":
            yield "a call behind another content of the model"
        signed = any(part.get("thoughtSignature") for part in of_calls)
        if of_calls and payload["of_gemini_3"] and not signed:
            yield "a call without a signature"
        before = content["role"]
        results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if len(results) != len(waiting):
            yield f"{len(results)} results for {len(waiting)} calls"
        for call, result in zip(waiting, results, strict=False):
            if call["name"] != result["name"] or call.get("id") != result.get("id"):
                yield f"{result} for {call}"
            if city_in(call["args"]) != city_in(result["response"]):
                yield "the result of another call"
            if "parts" in result and not payload["of_gemini_3"]:
                yield "media in a result"
        yield from problems_of_calls([(None, call["name"], call["args"]) for call in calls], rules)
        waiting = calls
        if content["role"] not in ("user", "model"):
            yield f"role {content['role']}"


CHECKS: dict[str, Callable[[JSON, ConversationRules], Iterator[str]]] = {
    "chat": problems_in_chat, "responses": problems_in_responses, "anthropic": problems_in_anthropic,
    "gemini": problems_in_gemini,
}  # fmt: skip


def problems(form: Format, model: str, payload: JSON) -> list[str]:
    target = find_route(model)
    rules = {
        "responses": shared.RESPONSES,
        "anthropic": shared.CLAUDE,
        "gemini": shared.GEMINI,
    }.get(form.name) or find_chat_rules(target.provider, target.model)
    payload = {**payload, "of_gemini_3": "gemini-3" in model}
    return list(CHECKS[form.name](payload, rules))


# --- Conversations ------------------------------------------------------------------------------------------


@st.composite
def conversations(draw: st.DrawFn, source: str) -> list[JSON]:
    """A conversation whose answers are of one source: a wire format, or what a user has written."""
    ids = IDS[draw(st.sampled_from(sorted(IDS)))]
    messages: list[JSON] = [{"role": draw(st.sampled_from(["system", "developer"])), "content": "Be brief."}]
    messages.append({"role": "user", "content": "Hi"})
    number = 0
    for turn in range(draw(st.integers(1, 6))):
        calls = []
        for position in range(draw(st.integers(1, 3))):
            number += 1
            city, name = f"City{number}", draw(st.sampled_from(NAMES))
            broken = "emini" not in source and draw(st.integers(0, 4)) == 0
            text = draw(st.sampled_from(BROKEN)) % city if broken else json.dumps({"city": city})
            calls.append((ids(turn, position), name, text, city))
        if draw(st.integers(0, 5)) == 0:
            messages.append({"role": "assistant", "content": "Let me look.", **draw(st.sampled_from(EMPTY))})
        messages += interrupted(draw, draw(SOURCES[source](turn, calls)))
        last = draw(st.sampled_from(["results", "user", "answer", "system"]))
        if last == "answer":
            messages.append({"role": "assistant", "content": "It is sunny."})
        if last == "system":
            messages.append({"role": draw(st.sampled_from(["system", "developer"])), "content": "Be kind."})
        if last == "answer" and draw(st.booleans()):
            # Answers that were cut, refused, or empty.
            messages += [{"role": "user", "content": "Go on."}, draw(st.sampled_from(UNFINISHED))]
        if last != "results":
            messages.append({"role": "user", "content": "And now?"})
    if draw(st.integers(0, 5)) == 0:
        messages.append({"role": "assistant", "content": "The answer is "})
    return messages


# Fields without a value, as `model_dump()` of an SDK writes them.
NULLS = dict.fromkeys(("refusal", "audio", "function_call", "tool_calls", "reasoning_content"))
EMPTY = ({}, {"tool_calls": []}, NULLS)

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "web_search", "input": {"query": "x"}}
REASONING = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "x"}
UNFINISHED: list[JSON] = [
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": []},
    {**NULLS, "role": "assistant", "content": None, "refusal": "No."},
    {"role": "assistant", "content": [{"type": "text", "text": ""}]},
    ANTHROPIC.decode({"type": "message", "stop_reason": "pause_turn", "content": [SEARCH]})
    .choices[0]
    .message,
    RESPONSES.decode(
        {"id": "r9", "object": "response", "status": "incomplete", "output": [REASONING]}
        | {"incomplete_details": {"reason": "max_output_tokens"}}
    )
    .choices[0]
    .message,
]


def interrupted(draw: st.DrawFn, messages: list[JSON]) -> list[JSON]:
    """An answer and its results, perhaps with something between them."""
    if "role" not in messages[-1] or "content" not in messages[-1] or draw(st.integers(0, 3)):
        return messages
    first = next(place for place, message in enumerate(messages) if is_result(message))
    between = draw(
        st.sampled_from([{"role": "user", "content": "Wait."}, {"role": "system", "content": "Be nice."}])
    )
    if (
        draw(st.booleans())
        and isinstance(messages[first]["content"], list)
        and messages[first]["role"] == "user"
    ):
        content = [{"type": "text", "text": "Here."}, *messages[first]["content"]]
        return [*messages[:first], {**messages[first], "content": content}]
    place = draw(st.integers(first, len(messages) - 1))
    return [*messages[:place], between, *messages[place:]]


def is_result(message: JSON) -> bool:
    blocks = message.get("content")
    return message["role"] in ("tool", "function") or (
        isinstance(blocks, list) and any(block.get("type") == "tool_result" for block in blocks)
    )


def results(draw: st.DrawFn, calls: Sequence[tuple[Any, str, str, str]], *, shuffled: bool) -> list[JSON]:
    """The results of calls, each as (id, name, arguments, city); `shuffled` if their ids tell them apart."""
    messages = []
    for identifier, name, _, city in draw(st.permutations(list(calls))) if shuffled else calls:
        content = draw(st.sampled_from([city, [{"type": "text", "text": city}, IMAGE]]))
        message = {"role": "tool", "tool_call_id": identifier, "content": content}
        if draw(st.booleans()):
            message["name"] = name
        messages.append(message)
    return messages


def answered_by(form: Format, reply: Callable[[int, Any, st.DrawFn], Any]) -> Any:
    """The message of a reply as the library gives it, and the results of its calls."""

    @st.composite
    def answer(draw: st.DrawFn, turn: int, calls: Sequence[tuple[Any, str, str, str]]) -> list[JSON]:
        choice = form.decode(reply(turn, calls, draw)).choices[0]
        assert len({call.id for call in choice.tool_calls}) == len(calls)
        told = [(call.id, call.name, call.arguments, city_in(call.arguments)) for call in choice.tool_calls]
        return [choice.message, *results(draw, told, shuffled=True)]

    return answer


def chat_reply(turn: int, calls: Any, draw: st.DrawFn) -> JSON:
    entries = [
        {"id": identifier, "type": "function", "function": {"name": name, "arguments": text}}
        for identifier, name, text, _ in calls
    ]
    for entry in entries:
        if draw(st.booleans()):
            del entry["type"]
    message: JSON = {"role": "assistant", "content": None, "tool_calls": entries}
    reasoning = draw(st.sampled_from([None, "", "Hm."]))
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def responses_reply(turn: int, calls: Any, draw: st.DrawFn) -> JSON:
    items: list[JSON] = [{"type": "reasoning", "id": f"rs_{turn}", "summary": [], "encrypted_content": "x"}]
    for position, (identifier, name, text, _) in enumerate(calls):
        # Servers that imitate the API give calls any ids, and arguments as an object.
        item = {"type": "function_call", "id": f"fc_{turn}{position}", "call_id": identifier}
        written = json.loads(text) if is_object(text) and draw(st.booleans()) else text
        items.append({**item, "name": name, "arguments": written, "status": "completed"})
    return {"id": "r1", "object": "response", "status": "completed", "output": items}


SERVER_TOOL = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
]


def anthropic_reply(turn: int, calls: Any, draw: st.DrawFn) -> JSON:
    blocks: list[JSON] = list(SERVER_TOOL) if draw(st.booleans()) else []
    for identifier, name, text, city in calls:
        try:
            written = json.loads(text)
        except ValueError:
            written = {"city": city}
        written = written if isinstance(written, dict) else {"city": city}
        blocks.append({"type": "tool_use", "id": identifier, "name": name, "input": written})
    return {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": blocks}


def gemini_reply(turn: int, calls: Any, draw: st.DrawFn) -> JSON:
    parts = []
    for identifier, name, text, _ in calls:
        call = {"name": name, "args": json.loads(text)}
        parts.append({"functionCall": {**call, "id": str(identifier)} if identifier else call})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    # The id of the answer, from which calls without one get theirs, is missing at some gateways.
    return {"candidates": [candidate], **draw(st.sampled_from([{}, {"responseId": f"r{turn}"}]))}


@st.composite
def written_for_openai(draw: st.DrawFn, turn: int, calls: Any) -> list[JSON]:
    """What a user keeps in OpenAI's form, also in the one before `tool_calls`."""
    told = [identifier for identifier, _, _, _ in calls]
    apart = len(set(map(str, told))) == len(told) and all(told)
    if len(calls) == 1 and draw(st.booleans()):
        _, name, text, city = calls[0]
        call = {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": text}}
        return [call, {"role": "function", "name": name, "content": city}]
    entries = []
    for identifier, name, text, _ in calls:
        entry = {"id": identifier, "type": "function", "function": {"name": name, "arguments": text}}
        if identifier is None and draw(st.booleans()):
            del entry["id"]
        entries.append(entry)
    answered = results(draw, calls, shuffled=apart)
    for message in answered:
        if not apart:
            # Results in their order need no names, and one of another function would mislead.
            message.pop("name", None)
        if not message["tool_call_id"] and draw(st.booleans()):
            del message["tool_call_id"]
    if apart and draw(st.booleans()):
        # One result has no id, or the name that another API gives the id.
        odd = draw(st.sampled_from(answered))
        odd.pop("name", None)
        name = draw(st.sampled_from(["", "tool_use_id", "call_id"]))
        odd.update({name: odd["tool_call_id"]} if name else {})
        del odd["tool_call_id"]
    if len(calls) == 1 and apart and draw(st.booleans()):
        # Some servers give a call twice.
        entries *= 2
    content = draw(st.sampled_from([None, "", [], [{"type": "text", "text": ""}], "Let me look."]))
    message = {**draw(st.sampled_from([{}, {"refusal": None, "audio": None}]))}
    message |= {"role": "assistant", "content": content, "tool_calls": entries}
    if draw(st.booleans()) and apart:
        # Some gateways repeat the calls as Anthropic's blocks.
        blocks = anthropic_reply(turn, calls, lambda _: False)["content"]  # type: ignore[arg-type]
        message["content"] = [{"type": "text", "text": "Let me look."}, *blocks]
    return [message, *answered]


@st.composite
def written_for_anthropic(draw: st.DrawFn, turn: int, calls: Any) -> list[JSON]:
    blocks = anthropic_reply(turn, calls, draw)["content"]
    for block, (_, _, text, _) in zip(blocks[-len(calls) :], calls, strict=True):
        block["input"] = draw(st.sampled_from([block["input"], text, [text]]))
    told = [identifier for identifier, _, _, _ in calls]
    apart = len(set(map(str, told))) == len(told) and all(told)
    answered = [
        {"type": "tool_result", "tool_use_id": identifier, "content": city}
        for identifier, _, _, city in (draw(st.permutations(calls)) if apart else calls)
    ]
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": answered}]


@st.composite
def written_for_gemini(draw: st.DrawFn, turn: int, calls: Any) -> list[JSON]:
    """Contents of google-genai. Its older models give calls without ids and without signatures."""
    parts = gemini_reply(turn, calls, draw)["candidates"][0]["content"]["parts"]
    told = [part["functionCall"] for part in parts]
    answered = [
        {
            "functionResponse": {
                **{name: call[name] for name in ("name", "id") if name in call},
                "response": city,
            }
        }
        for call, (_, _, _, city) in zip(told, [(*c[:3], {"output": c[3]}) for c in calls], strict=True)
    ]
    return [{"role": "model", "parts": parts}, {"role": "user", "parts": answered}]


@st.composite
def written_for_responses(draw: st.DrawFn, turn: int, calls: Any) -> list[JSON]:
    """Items, with the ids of a gateway."""
    items = responses_reply(turn, calls, draw)["output"]
    for item in items[1:]:
        item["id"] = draw(st.sampled_from([item["id"], f"fc_{item['id']}" + "x" * 90]))
        # What a user keeps has ids that tell the calls apart.
        item["call_id"] = str(item["call_id"] or f"call_{turn}")
        item["call_id"] += "" if len({str(call[0] or "") for call in calls}) == len(calls) else item["id"][:9]
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": city}
        for item, (_, _, _, city) in zip(items[1:], calls, strict=True)
    ]
    return [*items, *outputs]


SOURCES: dict[str, Callable[[int, Any], st.SearchStrategy[list[JSON]]]] = {
    "chat": answered_by(CHAT, chat_reply),
    "responses": answered_by(RESPONSES, responses_reply),
    "anthropic": answered_by(ANTHROPIC, anthropic_reply),
    "gemini": answered_by(GEMINI, gemini_reply),
    "a user of OpenAI": written_for_openai,
    "a user of Anthropic": written_for_anthropic,
    "a user of Gemini": written_for_gemini,
    "a user of Responses": written_for_responses,
}


@pytest.mark.filterwarnings("ignore:an earlier answer", "ignore:the arguments of", "ignore:a system message")
@pytest.mark.filterwarnings("ignore:a message or a tool")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.sampled(2)
@examples(40)
@given(data=st.data())
def test_a_conversation_is_sent_to_every_route_as_its_provider_takes_it(
    source: str, data: st.DataObject
) -> None:
    messages = data.draw(conversations(source))
    for form, model in TARGETS:
        payload = form.encode(messages, model, tools=[TOOL])
        assert not problems(form, model, payload), (model, messages, payload)
    # The same conversation is the same request.
    form, model = data.draw(st.sampled_from(TARGETS))
    payload = form.encode(messages, model, tools=[TOOL])
    assert form.encode(messages, model, tools=[TOOL]) == payload
