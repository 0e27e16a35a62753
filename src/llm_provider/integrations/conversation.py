"""Parts of conversations that all integrations translate between OpenAI's form and the form of a tool."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache
from typing import Any, TypedDict

from .._core.client.client import Client
from .._core.client.functions import default_client
from .._core.errors import ToolArgumentsError
from .._core.json_values import JSONMapping, JSONObject
from .._core.requests.parameters import Parameters
from .._core.types.messages import Message, ToolCall
from .._core.types.response import Response
from .._core.types.usage import TokenLogprob

NAME = "llm_provider"
"""The key under which the messages and the metadata of another tool hold values of this library."""

_HAVE_A_PLACE = frozenset({"role", "content", "tool_calls"})
"""The fields of an assistant message that every tool has."""


class Function(TypedDict):
    """The name of a function, and its arguments as JSON text."""

    name: str
    arguments: str


class CallOfFunction(TypedDict):
    """A call of a function in an assistant message."""

    id: str
    type: str
    function: Function


@cache
def parameter_names() -> frozenset[str]:
    """The names of the parameters of a call, besides the model and the messages."""
    return frozenset(Parameters.__annotations__)


class Variant:
    """The client of the module's functions, with other defaults.

    It is made when it is first used, and once for each process: a pickle has its defaults alone. Its budget
    holds for all calls together, with the calls of its own variants.
    """

    def __init__(self, defaults: JSONMapping, parent: Variant | None = None) -> None:
        self._own = {name: value for name, value in defaults.items() if value is not None}
        self._parent = parent
        self._made: tuple[int, Client] | None = None

    @property
    def defaults(self) -> JSONObject:
        """The parameters of calls that do not set them."""
        return {**(self._parent.defaults if self._parent else {}), **self._own}

    @property
    def client(self) -> Client:
        """The client. A default that is not valid is an error now."""
        process = os.getpid()
        if self._made is None or self._made[0] != process:
            original = self._parent.client if self._parent else default_client()
            self._made = (process, original.with_options(**self._own))
        return self._made[1]

    def __getstate__(self) -> JSONObject:
        return {"_own": self._own, "_parent": self._parent, "_made": None}


def extract_state(message: Message) -> JSONObject | None:
    """The fields of an assistant message that a tool cannot hold, such as signatures of reasoning.

    They go back with the message, so that the model continues its reasoning between calls of tools. The calls
    are among them, because a tool keeps their arguments as values, and not the text that the model wrote.
    """
    state = {name: value for name, value in message.items() if name not in _HAVE_A_PLACE}
    if state and message.get("tool_calls"):
        state["tool_calls"] = message["tool_calls"]
    return state or None


def assistant_message(text: str | None, calls: list[CallOfFunction], state: JSONMapping | None) -> Message:
    """An assistant message with a text, tool calls and the result of `extract_state`."""
    fields = dict(state or {})
    originals = {call["id"]: call for call in fields.pop("tool_calls", ())}
    message: JSONObject = {"role": "assistant", "content": text or None, **fields}
    if calls:
        message["tool_calls"] = [_restore(call, originals.get(call["id"])) for call in calls]
    elif message["content"] is None and state is None:
        message["content"] = ""
    return message


def _restore(call: CallOfFunction, original: CallOfFunction | None) -> CallOfFunction:
    """The call as the model wrote it, unless it was edited since."""
    if original is None or original.get("type") != "function":
        return original or call
    before, now = original["function"], call["function"]
    same = before["name"] == now["name"] and _parse(before["arguments"]) == _parse(now["arguments"])
    return original if same else call


def _parse(arguments: str) -> object:
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def tool_call(call_id: str, name: str, arguments: object) -> CallOfFunction:
    """A call of a function in an assistant message; `arguments` are JSON text, or values."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def parse_arguments(call: ToolCall) -> object:
    """The arguments of a call as values, or their text where they are not valid."""
    try:
        return call.parsed_arguments
    except ToolArgumentsError:
        return {"_raw": call.arguments}


def tool_message(call_id: str, content: object, *, is_error: bool) -> Message:
    """The message with the result of a tool."""
    message = {"role": "tool", "tool_call_id": call_id, "content": content}
    return {**message, "is_error": True} if is_error else message


def media_part(kind: str, address: str, **fields: str | None) -> dict[str, object]:
    """A part of a message: an image, a recording, a video or a document, by its address or data URL."""
    details = {name: value for name, value in fields.items() if value is not None}
    if kind == "audio":
        header, _, data = address.partition(",")
        subtype = header.partition(";")[0].rpartition("/")[2].removeprefix("x-")
        form = {"mpeg": "mp3", "wave": "wav"}.get(subtype, subtype)
        return {"type": "input_audio", "input_audio": {"data": data, "format": form, **details}}
    if kind == "document":
        return {"type": "file", "file": {"file_data": address, **details}}
    name = "video_url" if kind == "video" else "image_url"
    return {"type": name, name: {"url": address, **details}}


def function_tool(name: str, description: str | None, parameters: JSONMapping) -> dict[str, object]:
    """A tool in OpenAI's form."""
    purpose = {"description": description} if description else {}
    return {"type": "function", "function": {"name": name, **purpose, "parameters": dict(parameters)}}


def answer_metadata(response: Response) -> dict[str, object]:
    """What a tool shows of an answer besides its text: its cost in USD, and where it came from."""
    about = {name: getattr(response, name) for name in ("cost", "cached", "provider", "model")}
    return {**about, "attempts": response.timing.attempts, "dropped": list(response.dropped)}


def token_logprobs(tokens: Sequence[TokenLogprob] | None) -> list[dict[str, object]]:
    """Log probabilities in OpenAI's form."""

    def describe(token: Any) -> dict[str, object]:
        return {"token": token.token, "logprob": token.logprob, "bytes": None}

    return [{**describe(token), "top_logprobs": list(map(describe, token.top))} for token in tokens or ()]
