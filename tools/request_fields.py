"""Fields of the SDKs' requests that no parameter writes, with a reason each: `make request-fields`.

The names come from the types of the installed SDKs, the reasons from `request_fields.csv`, which people
write. A field that is there in neither way fails the test of this module, so no SDK can bring one unseen.
"""

from __future__ import annotations

import contextlib
import csv
import json
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anthropic.types.beta.message_create_params import MessageCreateParamsBase as BetaMessages
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import types as google
from openai.types import EmbeddingCreateParams
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from conformance.features import MESSAGES, PARAMETERS
from conformance.formats import ANTHROPIC, CHAT, GEMINI, RESPONSES, Format
from llm_provider import RequestError
from llm_provider._core.formats import registry
from llm_provider._core.requests.request import EmbedRequest, Request
from llm_provider._core.requests.routing import resolve

ROOT = Path(__file__).parents[1]
REASONS = Path(__file__).with_name("request_fields.csv")
PAGE = ROOT / "docs" / "request-fields.md"

_SENT_BY_STREAMS = frozenset({"stream", "stream_options"})
"""Fields that the connection adds where an answer is streamed."""


class Row(NamedTuple):
    """A field that no parameter writes. `instead` is what does its work, or the way to send it."""

    api: str
    field: str
    instead: str
    reason: str


def _typed(kind: Any) -> set[str]:
    return set(typing.get_type_hints(kind, include_extras=True))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


_MODELS = dict.fromkeys((CHAT, RESPONSES), (*CHAT.models, *RESPONSES.models))
_ENDPOINTS = {CHAT: {"endpoint": "chat"}, RESPONSES: {"endpoint": "responses"}}


def _payloads(form: Format) -> Iterator[dict[str, Any]]:
    """What each parameter and each kind of message becomes, with each model that takes it."""
    inputs: list[tuple[Any, dict[str, Any]]] = [("Hi", given) for given in PARAMETERS.values()]
    for messages, given in (*inputs, *((messages, {}) for messages in MESSAGES.values())):
        for model in _MODELS.get(form, form.models):
            with warnings.catch_warnings(), contextlib.suppress(RequestError):
                # A model or its format may lack the parameter.
                warnings.simplefilter("ignore")
                payload = form.encode(messages, model, **_ENDPOINTS.get(form, {}), **given)
                if form.turns in payload:
                    yield payload


def _samples_field(form: Format) -> set[str]:
    target = resolve(form.models[0])
    request = Request.build(form.models[0], "Hi", {"n": 3})
    return set(registry.load(target.route.adapter).encode(request, target).samples_field[-1:])


def _chat_like(form: Format) -> set[str]:
    return {name for payload in _payloads(form) for name in payload} | _samples_field(form) | _SENT_BY_STREAMS


def _gemini() -> set[str]:
    """Fields of `GenerateContentConfig`, which are one level deeper on the wire."""
    names = _samples_field(GEMINI)
    for payload in _payloads(GEMINI):
        names |= payload.keys() | payload.get("generationConfig", {}).keys()
    return set(map(_snake, names))


def _embeddings(model: str) -> set[str]:
    target = resolve(model)
    form = registry.load_embeddings(target)
    request = EmbedRequest.build(model, ["Hi"], {"dimensions": 256})
    payload = form.payload_of(form.encode(request, target), ["Hi"])
    return set(map(_snake, payload.get("requests", [payload])[0]))


APIS: Mapping[str, tuple[Callable[[], set[str]], Callable[[], set[str]]]] = {
    "OpenAI Chat Completions": (
        lambda: _typed(CompletionCreateParamsNonStreaming),
        lambda: _chat_like(CHAT),
    ),
    "OpenAI Responses": (lambda: _typed(ResponseCreateParamsNonStreaming), lambda: _chat_like(RESPONSES)),
    "OpenAI embeddings": (
        lambda: _typed(EmbeddingCreateParams),
        lambda: _embeddings("text-embedding-3-small"),
    ),
    "Anthropic Messages": (
        lambda: _typed(MessageCreateParamsNonStreaming) | _typed(BetaMessages),
        lambda: _chat_like(ANTHROPIC),
    ),
    "Gemini generateContent": (lambda: set(google.GenerateContentConfig.model_fields), _gemini),
    "Gemini embeddings": (
        lambda: set(google.EmbedContentConfig.model_fields),
        lambda: _embeddings("gemini-embedding-001"),
    ),
}
"""API → the fields that the installed SDK has, and the fields that requests of this library have."""


def read_rows() -> list[Row]:
    """The reasons, as people wrote them."""
    with REASONS.open(encoding="utf-8", newline="") as file:
        return [Row(**row) for row in csv.DictReader(file)]


def unsent() -> dict[str, list[str]]:
    """API → the fields of the installed SDK that no parameter, message or stream writes."""
    return {api: sorted(known() - sent()) for api, (known, sent) in APIS.items()}


def page() -> str:
    """The whole page. It is made of the reasons alone, so it does not depend on the installed SDKs."""
    rows = read_rows()
    lines = [
        "# Request fields without a parameter",
        "",
        "The request types of the SDKs have these fields, and no parameter of a call writes them. The field",
        "names are those of openai 3.57, anthropic 2.14 (with its beta types) and google-genai 3.6. A test",
        "compares the types with this page, so a field of a new SDK cannot go unseen. `extra_body` sends",
        "a field of a request as it is, and is part of the cache key; Gemini's fields are then written as",
        "Google's REST API has them. Written by `make request-fields` from `tools/request_fields.csv`.",
        "",
    ]
    for api in APIS:
        lines += [f"## {api}", "", "| field | instead | why |", "|---|---|---|"]
        lines += [f"| `{row.field}` | {row.instead} | {row.reason} |" for row in rows if row.api == api]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    known = {(row.api, row.field) for row in read_rows()}
    missing = {api: [name for name in names if (api, name) not in known] for api, names in unsent().items()}
    print(json.dumps({api: names for api, names in missing.items() if names}, indent=2))
