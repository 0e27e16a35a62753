"""Items of the Responses format that are calls, and the items that answer them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._providers.openai import responses, responses_calls
from llm_provider._providers.openai.responses_stream import Assembler
from llm_provider._requests.request import Request
from llm_provider._types.messages import ToolCall, delta_of
from openai_support import PRO

CUSTOM = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c1", "name": "grep", "input": "a.*b"}
SHELL = {
    "id": "sh_1",
    "type": "shell_call",
    "call_id": "c2",
    "action": {"commands": ["ls"], "max_output_length": None, "timeout_ms": None},
    "environment": {"type": "local"},
    "status": "completed",
}
LOCAL_SHELL = {
    "id": "ls_1",
    "type": "local_shell_call",
    "call_id": "c3",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
    "status": "completed",
}
PATCH = {
    "id": "ap_1",
    "type": "apply_patch_call",
    "call_id": "c4",
    "operation": {"type": "delete_file", "path": "a.py"},
    "status": "completed",
}
APPROVAL = {
    "id": "mcpr_1",
    "type": "mcp_approval_request",
    "server_label": "docs",
    "name": "search",
    "arguments": '{"q":"x"}',
}
SEARCH = {
    "id": "ts_1",
    "type": "tool_search_call",
    "call_id": "c6",
    "execution": "client",
    "arguments": {"goal": "weather"},
    "status": "completed",
}
COMPUTER = {
    "id": "cu_1",
    "type": "computer_call",
    "call_id": "c7",
    "action": {"type": "screenshot"},
    "pending_safety_checks": [],
    "status": "completed",
}
CALLS = [
    (CUSTOM, ToolCall(id="c1", name="grep", arguments="a.*b", type="custom")),
    (
        SHELL,
        ToolCall(
            id="c2",
            name="shell",
            arguments='{"commands":["ls"],"max_output_length":null,"timeout_ms":null}',
            type="shell_call",
        ),
    ),
    (
        LOCAL_SHELL,
        ToolCall(
            id="c3",
            name="local_shell",
            arguments='{"type":"exec","command":["ls"],"env":{}}',
            type="local_shell_call",
        ),
    ),
    (
        PATCH,
        ToolCall(
            id="c4",
            name="apply_patch",
            arguments='{"type":"delete_file","path":"a.py"}',
            type="apply_patch_call",
        ),
    ),
    (APPROVAL, ToolCall(id="mcpr_1", name="search", arguments='{"q":"x"}', type="mcp_approval_request")),
    (
        SEARCH,
        ToolCall(id="c6", name="tool_search", arguments='{"goal":"weather"}', type="tool_search_call"),
    ),
    (COMPUTER, ToolCall(id="c7", name="computer", arguments='{"type":"screenshot"}', type="computer_call")),
]
KINDS = [item["type"] for item, _ in CALLS]


def reply(*items: Any) -> dict[str, Any]:
    return {"object": "response", "id": "resp_1", "status": "completed", "output": list(items), "usage": None}


def encoded(messages: list[Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = responses.encode(Request.build("gpt-5.5-pro", messages, {}), PRO).payload[
        "input"
    ]
    return items


@pytest.mark.parametrize(("item", "expected"), CALLS, ids=KINDS)
def test_every_call_is_visible(item: Any, expected: ToolCall) -> None:
    choice = responses.decode(reply({"type": "reasoning", "summary": []}, item)).choices[0]
    assert (choice.tool_calls, choice.finish_reason) == ((expected,), "tool_calls")


@pytest.mark.parametrize(("item", "expected"), CALLS, ids=KINDS)
def test_a_streamed_call_is_in_its_deltas(item: Any, expected: ToolCall) -> None:
    begun = {**item, "status": "in_progress"}
    function = {"type": "function_call", "call_id": "f", "name": "f", "arguments": "{}"}
    assembler = Assembler()
    steps = [
        assembler.feed(event)
        for event in (
            {"type": "response.output_item.added", "output_index": 0, "item": {**begun, "input": ""}},
            *(
                {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": piece}
                for piece in ("a.", "*b")
                if item is CUSTOM
            ),
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            # Some servers, such as LM Studio, have the arguments only in the last event.
            {"type": "response.output_item.added", "output_index": 1, "item": {**function, "arguments": ""}},
            {"type": "response.completed", "response": reply(item, function)},
        )
    ]
    calls: dict[int, list[str]] = {}
    for step in steps:
        for call in delta_of(step).tool_calls:
            found = calls.setdefault(call.index, ["", "", ""])
            found[:] = [found[0] + call.id, found[1] + call.name, found[2] + call.arguments]
    assert calls == {0: [expected.id, expected.name, expected.arguments], 1: ["f", "f", "{}"]}
    assert responses.decode(assembler.reply()).choices[0].tool_calls[0] == expected


@pytest.mark.parametrize(
    ("item", "content", "answer"),
    [
        (CUSTOM, "found", {"type": "custom_tool_call_output", "call_id": "c1", "output": "found"}),
        (
            SHELL,
            "a.py",
            {
                "type": "shell_call_output",
                "call_id": "c2",
                "output": [{"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
        ),
        (
            SHELL,
            '{"output": [], "max_output_length": 5}',
            {"type": "shell_call_output", "call_id": "c2", "output": [], "max_output_length": 5},
        ),
        (LOCAL_SHELL, "a.py", {"type": "local_shell_call_output", "id": "c3", "output": "a.py"}),
        (
            PATCH,
            "deleted",
            {"type": "apply_patch_call_output", "call_id": "c4", "status": "completed", "output": "deleted"},
        ),
        (
            PATCH,
            '{"status": "failed"}',
            {"type": "apply_patch_call_output", "call_id": "c4", "status": "failed"},
        ),
        (
            APPROVAL,
            "true",
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ),
        (
            APPROVAL,
            '{"approve": false, "reason": "no"}',
            {
                "type": "mcp_approval_response",
                "approval_request_id": "mcpr_1",
                "approve": False,
                "reason": "no",
            },
        ),
        (
            SEARCH,
            '{"tools": [], "execution": "client", "status": "completed"}',
            {
                "type": "tool_search_output",
                "call_id": "c6",
                "tools": [],
                "execution": "client",
                "status": "completed",
            },
        ),
        (
            COMPUTER,
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
            {
                "type": "computer_call_output",
                "call_id": "c7",
                "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"},
            },
        ),
    ],
)
def test_a_tool_message_answers_every_call(item: Any, content: Any, answer: Any) -> None:
    choice = responses.decode(reply(item)).choices[0]
    message = {**choice.message, "content": choice.message["content"] or "."}
    message["provider_specific_fields"] = {
        "provider": "openai",
        "content": [{"type": "message", "content": [{"type": "output_text", "text": "."}]}, item],
    }
    result = {"role": "tool", "tool_call_id": choice.tool_calls[0].id, "content": content}
    assert encoded([{"role": "user", "content": "Go"}, message, result])[-2:] == [item, answer]


@pytest.mark.parametrize(("item", "content"), [(APPROVAL, "perhaps"), (SEARCH, "none"), (COMPUTER, "done")])
def test_an_answer_that_fits_no_call_is_refused(item: Any, content: str) -> None:
    with pytest.raises(RequestError, match=r"messages\[2\]"):
        responses_calls.output_item(item["type"], "c", content, "messages[2]")


def test_the_providers_own_calls_are_not_the_users() -> None:
    hosted = {**SHELL, "environment": {"type": "container_reference", "container_id": "c"}}
    answered = {"type": "shell_call_output", "call_id": "c2", "output": []}
    for items in ([hosted, answered], [SHELL, answered], [{**SEARCH, "execution": "server"}]):
        text = {"type": "message", "content": [{"type": "output_text", "text": "Done."}]}
        choice = responses.decode(reply(*items, text)).choices[0]
        assert (choice.tool_calls, choice.finish_reason, choice.text) == ((), "stop", "Done.")


def test_a_custom_call_goes_back_in_the_form_of_chat_completions() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [responses_calls.entry_of(CALLS[0][1])]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "found"}
    call, output = encoded([message, result])
    assert call == {"type": "custom_tool_call", "call_id": "c1", "name": "grep", "input": "a.*b"}
    assert output == {"type": "custom_tool_call_output", "call_id": "c1", "output": "found"}


ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]}
CALLED = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}


@pytest.mark.parametrize("streamed", ["whole", "stream", "stream without places", "last event only"])
@pytest.mark.parametrize("kind", ["function_call", "custom_tool_call"])
@pytest.mark.parametrize("fields", list(itertools.product(("", None, ...), repeat=2)))
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("called", [False, True])
def test_a_call_without_a_name_and_arguments_is_none(
    streamed: str, kind: str, fields: tuple[Any, Any], place: int, called: bool
) -> None:
    name = "input" if kind == "custom_tool_call" else "arguments"
    blank = {"type": kind, "id": "b", **dict(zip(("name", name), fields, strict=True))}
    blank = {field: value for field, value in blank.items() if value is not ...}
    real = [ANSWER, *([CALLED] if called else [])]
    items = [*real[:place], blank, *real[place:]]
    reply = {"object": "response", "status": "completed", "output": items}
    shown: dict[int, str] = {}
    if streamed != "whole":
        assembler = Assembler()
        events: list[dict[str, Any]] = []
        for index, item in enumerate(items if streamed != "last event only" else ()):
            where = {"output_index": index} if streamed == "stream" else {}
            opened = {**item, "arguments": ""} if item is CALLED else item
            events.append({"type": "response.output_item.added", "item": opened, **where})
            if item is CALLED:
                events.append({"type": "response.function_call_arguments.delta", "delta": "{}", **where})
            events.append({"type": "response.output_item.done", "item": item, **where})
        for event in [*events, {"type": "response.completed", "response": reply}]:
            for call in delta_of(assembler.feed(event)).tool_calls:
                shown[call.index] = shown.get(call.index, "") + call.name + call.arguments
        assert shown == ({0: "weather{}"} if called else {})
        reply = assembler.reply()
    choice = responses.decode(reply).choices[0]
    assert [call.name for call in choice.tool_calls] == ["weather"] * called
    assert (choice.text, choice.finish_reason) == ("4", "tool_calls" if called else "stop")
    assert choice.message["provider_specific_fields"]["content"] == real


@pytest.mark.parametrize("way", ["deltas", "finished item", "last event"])
def test_calls_that_are_named_late_are_shown_in_their_order(way: str) -> None:
    calls = [{**CALLED, "call_id": str(number), "arguments": f"[{number}]"} for number in range(2)]
    assembler, shown = Assembler(), ["", ""]
    events: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        opened, where = {**call, "arguments": "", "name": ""}, {"output_index": index}
        events.append({"type": "response.output_item.added", "item": opened, **where})
        if way == "deltas":
            piece = {"delta": call["arguments"], **where}
            events.append({"type": "response.function_call_arguments.delta", **piece})
        if way != "last event":
            events.append({"type": "response.output_item.done", "item": call, **where})
    end = {"object": "response", "status": "completed", "output": calls}
    for event in [*events, {"type": "response.completed", "response": end}]:
        for delta in delta_of(assembler.feed(event)).tool_calls:
            shown[delta.index] += delta.name + delta.arguments
    assert [call.arguments for call in responses.decode(assembler.reply()).choices[0].tool_calls] == [
        "[0]",
        "[1]",
    ]
    assert [sorted(text) for text in shown] == [sorted(f"weather[{number}]") for number in range(2)]
