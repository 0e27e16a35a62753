"""`make features` writes docs/features.md: what of each format passed the tests of this folder."""

from __future__ import annotations

import base64
import datetime
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pydantic

from conformance import defects
from conformance.checks import USER, singles, wrong_in_answer, wrong_in_return
from conformance.formats import ANTHROPIC, CHAT, FORMATS, GEMINI, RESPONSES, Format
from llm_provider import RequestError
from llm_provider._providers import registry
from llm_provider._providers.prompt_cache import mark_of_call
from llm_provider._requests.attachments import UploadReference
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve

DOCUMENT = Path(__file__).parents[2] / "docs" / "features.md"

YES, NO, LEFT_OUT, SEPARATE, NOT_YET = "yes", "no", "left out", "separate requests", "not yet"
IMPLICIT = "nothing to send"

_PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
_PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7").decode()
_NOTE = "data:text/plain;base64," + base64.b64encode(b"note").decode()
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Now", "parameters": _SCHEMA}}
_STRICT = {"type": "function", "function": {**TOOL["function"], "strict": True}}  # type: ignore[dict-item]  # JSON of any shape
_NAMED = {"type": "function", "function": {"name": "weather"}}
_JSON = {
    "type": "json_schema",
    "json_schema": {"name": "place", "schema": {**_SCHEMA, "additionalProperties": False}},
}


class City(pydantic.BaseModel):
    """A `response_format`."""

    city: str


def _weather(city: str, day: datetime.date = datetime.date(2026, 11, 22)) -> str:
    """The weather of a city.

    Args:
        city: Its name.
        day: The day.
    """
    return f"{city} {day}"


PARAMETERS: Mapping[str, dict[str, Any]] = {
    "`system`": {"system": "Be brief."},
    "`max_tokens`": {"max_tokens": 9000},
    "`temperature`": {"temperature": 0.5},
    "`top_p`": {"top_p": 0.5},
    "`stop`": {"stop": ["END"]},
    "`seed`": {"seed": 7},
    "`tools`": {"tools": [TOOL]},
    "`tools`, `strict`": {"tools": [_STRICT]},
    "`tools`, a Python function": {"tools": [_weather]},
    "`tools`, a pydantic model": {"tools": [City]},
    '`tools`, `"web_search"`': {"tools": ["web_search"]},
    '`tools`, `"code_execution"`': {"tools": ["code_execution"]},
    '`tools`, `"url_context"`': {"tools": ["url_context"]},
    '`tool_choice="auto"`': {"tools": [TOOL], "tool_choice": "auto"},
    '`tool_choice="none"`': {"tools": [TOOL], "tool_choice": "none"},
    '`tool_choice="required"`': {"tools": [TOOL], "tool_choice": "required"},
    "`tool_choice`, a function": {"tools": [TOOL], "tool_choice": _NAMED},
    "`response_format`, `json_object`": {"response_format": {"type": "json_object"}},
    "`response_format`, `json_schema`": {"response_format": _JSON},
    "`response_format`, a pydantic model": {"response_format": City},
    **{
        f'`reasoning_effort="{effort}"`': {"reasoning_effort": effort}
        for effort in ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    },
    "`logprobs`": {"logprobs": True},
    "`top_logprobs`": {"top_logprobs": 3},
    "`top_k`": {"top_k": 40},
    "`frequency_penalty`": {"frequency_penalty": 0.5},
    "`presence_penalty`": {"presence_penalty": -0.5},
    "`logit_bias`": {"logit_bias": {50256: -100}},
    "`allowed_tools`": {"tools": [TOOL], "allowed_tools": ["weather"]},
    '`allowed_tools`, `tool_choice="required"`': {
        "tools": [TOOL],
        "allowed_tools": ["weather"],
        "tool_choice": "required",
    },
    "`parallel_tool_calls=True`": {"tools": [TOOL], "parallel_tool_calls": True},
    "`parallel_tool_calls=False`": {"tools": [TOOL], "parallel_tool_calls": False},
    "`thinking_budget`": {"thinking_budget": 2048},
    "`thinking_budget=0`": {"thinking_budget": 0},
    '`thinking_budget="adaptive"`': {"thinking_budget": "adaptive"},
    "`reasoning_context`": {"reasoning_context": "all_turns"},
    "`cached_content`": {"cached_content": "cachedContents/abc"},
    '`reasoning_summary="auto"`': {"reasoning_summary": "auto", "reasoning_effort": "low"},
    '`reasoning_summary="detailed"`': {"reasoning_summary": "detailed"},
    "`verbosity`": {"verbosity": "low"},
    "`modalities`, text": {"modalities": ["text"]},
    "`modalities`, image": {"modalities": ["text", "image"]},
    "`safety_settings`": {"safety_settings": {"HARM_CATEGORY_HARASSMENT": "BLOCK_NONE"}},
    **{
        f'`service_tier="{tier}"`': {"service_tier": tier} for tier in ("auto", "default", "flex", "priority")
    },
    "`store=True`": {"store": True},
    "`previous_response_id`": {"previous_response_id": "resp_1"},
    "`prompt_cache_key`": {"prompt_cache_key": "mine"},
    "`user`": {"user": "user-1"},
    "`metadata`": {"metadata": {"run": "7"}},
}
"""What a row is about → the parameters that say it."""


def _user(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": "Look"}, *parts]}]


def _call(number: int) -> dict[str, Any]:
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city":"Bern"}'},
    }


def _called(*results: Any) -> list[dict[str, Any]]:
    asked = {"role": "assistant", "content": None, "tool_calls": [_call(n) for n, _ in enumerate(results)]}
    answers = ({"role": "tool", "tool_call_id": f"call_{n}", "content": one} for n, one in enumerate(results))
    return [USER, asked, *answers]


def _failed() -> list[dict[str, Any]]:
    *before, result = _called("no such city")[1:]
    return [*before, {**result, "is_error": True}]


def _uploaded(media_type: str) -> UploadReference:
    """A file that is too large for a request, as adapters see it."""
    return UploadReference("0" * 64, media_type)


_IMAGE = {"type": "image_url", "image_url": {"url": _PNG}}
MESSAGES: Mapping[str, list[dict[str, Any]]] = {
    "a text": [USER],
    "text parts": _user(),
    "a system message": [{"role": "system", "content": "Be brief."}, USER],
    "a developer message": [{"role": "developer", "content": "Be brief."}, USER],
    "a later system message": [
        USER,
        {"role": "assistant", "content": "Yes?"},
        USER,
        {"role": "system", "content": "x"},
    ],
    "an image": _user(_IMAGE),
    "an image's address": _user({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
    "an image's `detail`": _user({"type": "image_url", "image_url": {"url": _PNG, "detail": "low"}}),
    "a PDF": _user({"type": "file", "file": {"file_data": _PDF, "filename": "a.pdf"}}),
    "an image that is uploaded": _user({"type": "image_url", "image_url": {"url": _uploaded("image/png")}}),
    "a PDF that is uploaded": _user({"type": "file", "file": {"file_data": _uploaded("application/pdf")}}),
    "a video that is uploaded": _user({"type": "video_url", "video_url": {"url": _uploaded("video/mp4")}}),
    "a text file": _user({"type": "file", "file": {"file_data": _NOTE, "filename": "a.txt"}}),
    "audio": _user({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
    "a call and its result": _called("sunny"),
    "several calls and results": _called("sunny", "rain"),
    "a result with text parts": _called([{"type": "text", "text": "sunny"}]),
    "a result with an image": _called([_IMAGE]),
    "a result that is an error": [USER, *_failed()],
    "an empty result": _called(""),
    "`name`": [{**USER, "name": "Ann"}],
    "an earlier answer": [USER, {"role": "assistant", "content": "Yes?"}, USER],
    "a refusal": [USER, {"role": "assistant", "content": None, "refusal": "No."}, USER],
    "an empty answer": [USER, {"role": "assistant", "content": ""}, USER],
    "the beginning of the answer": [USER, {"role": "assistant", "content": "It"}],
}
"""What a row is about → a conversation that has it."""

_ANSWERS: Mapping[str, Mapping[Format, tuple[str, ...]]] = {
    "text": {CHAT: ("content",), RESPONSES: ("message",), ANTHROPIC: ("text",), GEMINI: ("text",)},
    "a refusal": {CHAT: ("refusal",), RESPONSES: ("message",), ANTHROPIC: ("ends with refusal",)},
    "a call of a function": {
        CHAT: ("tool_calls: function", "function_call"),
        RESPONSES: ("function_call",),
        ANTHROPIC: ("tool_use",),
        GEMINI: ("functionCall",),
    },
    "a call of another tool": {
        CHAT: ("tool_calls: custom",),
        RESPONSES: ("custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call", "computer_call",
                    "mcp_approval_request"),
    },
    "the provider's own tools": {
        RESPONSES: ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call",
                    "mcp_list_tools"),
        ANTHROPIC: ("server_tool_use", "web_search_tool_result", "web_fetch_tool_result",
                    "code_execution_tool_result", "bash_code_execution_tool_result",
                    "text_editor_code_execution_tool_result", "tool_search_tool_result", "container_upload"),
        GEMINI: ("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
    },
    "reasoning": {
        RESPONSES: ("reasoning",),
        ANTHROPIC: ("thinking", "redacted_thinking"),
        GEMINI: ("thought",),
    },
    "images": {RESPONSES: ("image_generation_call",), GEMINI: ("inlineData", "fileData")},
    "audio": {CHAT: ("audio",), GEMINI: ("inlineData",)},
    "compaction": {RESPONSES: ("compaction",)},
}  # fmt: skip
"""What a row is about → the cells of the matrix that hold it, by format."""


_APIS = {
    CHAT: "OpenAI's Chat Completions",
    RESPONSES: "OpenAI's Responses",
    ANTHROPIC: "Anthropic's Messages",
    GEMINI: "Gemini's `generateContent`",
}


def sent(form: Format, messages: Any, parameters: Mapping[str, Any]) -> str:
    """Whether a model of a format takes a request.

    Raises:
        AssertionError: the payload does not fit the SDK's types.
    """
    taken = NO
    for model in form.models:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                payload = form.encode(messages, model, **parameters)
            except RequestError:
                continue
        if form.turns not in payload:
            # Another format serves the model with these parameters.
            continue
        wrong = form.check(payload)
        assert not wrong, (model, wrong)
        lost = any("is left out of the request" in str(warning.message) for warning in caught)
        taken = LEFT_OUT if lost else YES
    return taken


def _message(form: Format, name: str, given: Any) -> str:
    return NOT_YET if (form.name, name) in defects.REQUESTS else sent(form, given, {})


def _samples(form: Format) -> str:
    target = resolve(form.models[0])
    request = Request.build(form.models[0], "Hi", {"n": 3})
    return YES if registry.load(target.route.adapter).encode(request, target).samples_field else SEPARATE


def _prompt_caching(form: Format) -> str:
    """How `prompt_caching` reaches the provider.

    Raises:
        AssertionError: the payload does not fit the SDK's types.
    """
    found = NO
    for model in form.models:
        target = resolve(model)
        cache = registry.load_prompt_cache(target)
        payload = form.encode("Why?", model, system="A long document. " * 5000)
        mark = None if cache is None else mark_of_call(cache, payload, target.model)
        if mark is None:
            continue
        marked = json.loads(json.dumps(mark.applied(payload)))
        wrong = form.check(marked)
        assert not wrong, (model, wrong)
        if marked != payload:
            return YES
        found = IMPLICIT
    return found


def _answers(form: Format, cells: tuple[str, ...]) -> str:
    found = dict(singles(form))
    if not cells:
        return NO
    if any((form.name, cell) in defects.ANSWERS for cell in cells):
        return NOT_YET
    for reply, content, finish in (one for cell in cells for one in found.get(cell, [])):
        if wrong_in_answer(form, reply, content, finish) or wrong_in_return(form, reply, form):
            return NOT_YET
    return YES


def _ends(form: Format) -> str:
    wrong = [
        cell for form_name, cell in defects.ANSWERS if form_name == form.name and cell.startswith("ends with")
    ]
    return NOT_YET if wrong else YES


def _table(rows: Mapping[str, list[str]]) -> Iterator[str]:
    yield "| | " + " | ".join(form.name for form in FORMATS) + " |"
    yield "|---|" + "---|" * len(FORMATS)
    for name, cells in rows.items():
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""


def document() -> str:
    """The whole page."""
    parameters = {name: [sent(form, "Hi", given) for form in FORMATS] for name, given in PARAMETERS.items()}
    parameters["`n`"] = [_samples(form) for form in FORMATS]
    parameters["`prompt_caching`"] = [_prompt_caching(form) for form in FORMATS]
    messages = {name: [_message(form, name, given) for form in FORMATS] for name, given in MESSAGES.items()}
    answers = {
        name: [_answers(form, cells.get(form, ())) for form in FORMATS] for name, cells in _ANSWERS.items()
    }
    answers["every word that ends an answer"] = [_ends(form) for form in FORMATS]
    return "\n".join(
        [
            "# Features by wire format",
            "",
            "Written by `make features` from tests/conformance, and held current by a test. Every request",
            'behind a "yes" fits the request types of the oldest and the newest supported SDK, and every',
            "answer behind one was made from the SDK's types of answers.",
            "",
            "| format | API | tried with |",
            "|---|---|---|",
            *(f"| {form.name} | {api} | {', '.join(form.models)} |" for form, api in _APIS.items()),
            "",
            "## Parameters",
            "",
            f'"{YES}": at least one model of the format takes it. "{NO}": refused by name. "{IMPLICIT}": the',
            "provider does it by itself.",
            "",
            *_table(parameters),
            "## Messages",
            "",
            '"left out": the format has no form for it. It is not sent, and a `UserWarning` says so.',
            "",
            *_table(messages),
            "## Answers",
            "",
            f'"{YES}": decoded without loss, and the message goes back to the same provider unchanged.',
            f'"{NO}": the format has no such content. "{NOT_YET}": a known defect.',
            "",
            *_table(answers),
        ]
    )


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
