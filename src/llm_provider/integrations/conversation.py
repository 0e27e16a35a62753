"""Parts of conversations that all integrations translate between OpenAI's form and that of a tool."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from .._client.functions import default_client
from .._requests.parameters import Parameters

if TYPE_CHECKING:
    from .._client.client import Client
    from .._types.messages import Message
    from .._types.response import Response

NAME = "llm_provider"
"""The key under which the messages and the metadata of another tool hold values of this library."""

_TRANSLATED = frozenset({"role", "content", "tool_calls"})


@cache
def parameter_names() -> frozenset[str]:
    """The names of the parameters of a call, besides the model and the messages."""
    return frozenset(Parameters.__annotations__)


class Variant:
    """The client of the module's functions, with other defaults.

    It is made when it is first used, and once for each process: a pickle has its defaults alone. It has one
    budget for all calls, also for those of its own variants.
    """

    def __init__(self, defaults: Mapping[str, Any], parent: Variant | None = None) -> None:
        self._own = {name: value for name, value in defaults.items() if value is not None}
        self._parent = parent
        self._made: tuple[int, Client] | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters of calls that do not set them."""
        return {**(self._parent.defaults if self._parent else {}), **self._own}

    @property
    def client(self) -> Client:
        """The client.

        Raises:
            RequestError: a default is not valid.
            TypeError: a default is no parameter of a call.
        """
        process = os.getpid()
        if self._made is None or self._made[0] != process:
            original = self._parent.client if self._parent else default_client()
            self._made = (process, original.with_options(**self._own))
        return self._made[1]

    def __getstate__(self) -> dict[str, Any]:
        return {"_own": self._own, "_parent": self._parent, "_made": None}


def kept_state(message: Message) -> dict[str, Any] | None:
    """The fields of an assistant message that a tool has no place for, such as signatures of reasoning.

    They go back with the message, so that the model continues its reasoning between calls of tools. The calls
    are among them, because a tool keeps their arguments as values, and not the text that the model wrote.

    >>> kept_state({"role": "assistant", "content": "Hi", "reasoning_content": "They greet me."})
    {'reasoning_content': 'They greet me.'}
    >>> kept_state({"role": "assistant", "content": "Hi"}) is None
    True
    """
    state = {name: value for name, value in message.items() if name not in _TRANSLATED}
    if state and message.get("tool_calls"):
        state["tool_calls"] = message["tool_calls"]
    return state or None


def assistant_message(
    text: str | None, calls: list[dict[str, Any]], state: Mapping[str, Any] | None
) -> dict[str, Any]:
    """An assistant message of its text, its tool calls and the state that `kept_state` kept.

    >>> assistant_message("Hi", [], None)
    {'role': 'assistant', 'content': 'Hi'}
    """
    kept = dict(state or {})
    original = {call["id"]: call for call in kept.pop("tool_calls", ())}
    message: dict[str, Any] = {"role": "assistant", "content": text or None, **kept}
    if calls:
        message["tool_calls"] = [_original(call, original.get(call["id"])) for call in calls]
    elif message["content"] is None and state is None:
        message["content"] = ""
    return message


def _original(call: dict[str, Any], original: dict[str, Any] | None) -> dict[str, Any]:
    """The call as the model wrote it, unless it was edited since."""
    if original is None or original.get("type") != "function":
        return original or call
    written, now = original["function"], call["function"]
    same = written["name"] == now["name"] and _values(written["arguments"]) == _values(now["arguments"])
    return original if same else call


def _values(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def tool_call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """A call of a function in an assistant message; `arguments` are JSON text, or values.

    >>> tool_call("1", "weather", {"city": "Bern"})["function"]
    {'name': 'weather', 'arguments': '{"city": "Bern"}'}
    """
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def media_part(kind: str, address: str, **facts: Any) -> dict[str, Any]:
    """A part of a message: an image, a recording, a video or a document, by its address or data URL.

    >>> media_part("image", "https://x/a.png", detail="low")
    {'type': 'image_url', 'image_url': {'url': 'https://x/a.png', 'detail': 'low'}}
    >>> media_part("audio", "data:audio/wav;base64,UklGRg==")
    {'type': 'input_audio', 'input_audio': {'data': 'UklGRg==', 'format': 'wav'}}
    """
    given = {name: value for name, value in facts.items() if value is not None}
    if kind == "audio":
        header, _, data = address.partition(",")
        subtype = header.partition(";")[0].rpartition("/")[2].removeprefix("x-")
        form = {"mpeg": "mp3", "wave": "wav"}.get(subtype, subtype)
        return {"type": "input_audio", "input_audio": {"data": data, "format": form, **given}}
    if kind == "document":
        return {"type": "file", "file": {"file_data": address, **given}}
    name = "video_url" if kind == "video" else "image_url"
    return {"type": name, name: {"url": address, **given}}


def function_tool(name: str, description: str | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in OpenAI's form."""
    described = {"description": description} if description else {}
    return {"type": "function", "function": {"name": name, **described, "parameters": dict(parameters)}}


def named_schema(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A `response_format` that asks for JSON of a schema.

    >>> named_schema("City", {"type": "object"})
    {'type': 'json_schema', 'json_schema': {'name': 'City', 'schema': {'type': 'object'}}}
    """
    return {"type": "json_schema", "json_schema": {"name": name, "schema": dict(schema)}}


def facts_of(response: Response) -> dict[str, Any]:
    """The facts about an answer that a tool shows as metadata: its cost in USD, and where it came from."""
    return {
        "cost": response.cost,
        "cached": response.cached,
        "provider": response.provider,
        "model": response.model,
        "attempts": response.timing.attempts,
        "dropped": list(response.dropped),
    }


def token_logprobs(logprobs: Any) -> list[dict[str, Any]]:
    """Log probabilities in OpenAI's form, of an answer in the form of Chat Completions or Gemini.

    >>> token_logprobs({"chosenCandidates": [{"token": "Hi", "logProbability": -0.1}]})
    [{'token': 'Hi', 'logprob': -0.1, 'bytes': None, 'top_logprobs': []}]
    """
    if not isinstance(logprobs, Mapping):
        return []
    if "chosenCandidates" in logprobs:
        tops = logprobs.get("topCandidates") or []
        chosen = [
            {**token, "top_logprobs": tops[place].get("candidates", []) if place < len(tops) else []}
            for place, token in enumerate(logprobs["chosenCandidates"])
        ]
    else:
        chosen = list(logprobs.get("content") or [])
    return [
        {**_token(entry), "top_logprobs": list(map(_token, entry.get("top_logprobs") or []))}
        for entry in chosen
    ]


def _token(entry: Mapping[str, Any]) -> dict[str, Any]:
    value = entry.get("logprob", entry.get("logProbability"))
    return {"token": entry.get("token", ""), "logprob": value, "bytes": entry.get("bytes")}
