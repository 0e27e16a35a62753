"""The parameters and messages that each format is tried with; `tools/features.py` makes a page of them."""

import base64
import datetime
import re
import warnings
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pydantic

from conformance.checks import USER
from conformance.formats import Format
from llm_provider import RequestError, mcp
from llm_provider._core.requests.attachments import UploadReference
from llm_provider._features.mcp.listing import make_tools

YES, NO, LEFT_OUT = "yes", "no", "left out"

_PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
_PDF = "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7").decode()
_NOTE = "data:text/plain;base64," + base64.b64encode(b"note").decode()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "description": "Now", "parameters": SCHEMA}}
_STRICT = {"type": "function", "function": {**TOOL["function"], "strict": True}}  # type: ignore[dict-item]  # JSON of any shape
_NAMED = {"type": "function", "function": {"name": "weather"}}
_JSON = {
    "type": "json_schema",
    "json_schema": {"name": "place", "schema": {**SCHEMA, "additionalProperties": False}},
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


def _of_a_server() -> list[Any]:
    """The functions that take the place of `mcp(...)` once its server has listed a tool."""
    listed = SimpleNamespace(
        name="files.read", description="Reads a file.", annotations=None,
        input_schema={"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMA},
    )  # fmt: skip
    return list(make_tools(lambda: None, mcp("server"), [listed]))


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
    "`tools`, `mcp(...)`": {"tools": _of_a_server()},
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
        f'`service_tier="{tier}"`': {"service_tier": tier}
        for tier in ("auto", "default", "flex", "priority", "fast", "ultrafast")
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
    question = {"role": "assistant", "content": None, "tool_calls": [_call(n) for n, _ in enumerate(results)]}
    answers = (
        {"role": "tool", "tool_call_id": f"call_{n}", "content": result} for n, result in enumerate(results)
    )
    return [USER, question, *answers]


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


def sent(form: Format, messages: Any, parameters: Mapping[str, Any]) -> str:
    """Whether a model of a format takes a request.

    Raises:
        AssertionError: the payload does not fit the SDK's types.
    """
    support = NO
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
        # openai 2.20 does not know two of the tiers.
        newer = re.compile(r"\.service_tier: '(ultra)?fast'")
        wrong = [each for each in form.check(payload) if not newer.match(each)]
        assert not wrong, (model, wrong)
        lost = any("is left out of the request" in str(warning.message) for warning in caught)
        support = LEFT_OUT if lost else YES
    return support
