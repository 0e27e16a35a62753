"""Payloads and replies of Gemini for tests without a network."""

from typing import Any

from llm_provider._providers.adapter import EncodedRequest
from llm_provider._providers.gemini import adapter
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical

MODEL = "gemini-3.1-pro-preview"


def encode(prompt: Any = "Hi", model: str = MODEL, **parameters: Any) -> EncodedRequest:
    made = adapter.encode(Request.build(model, prompt, parameters), resolve(model))
    canonical(made.payload)
    return made


def payload_of(prompt: Any = "Hi", model: str = MODEL, **parameters: Any) -> dict[str, Any]:
    return encode(prompt, model, **parameters).payload


def user(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def reply(*parts: dict[str, Any], finish: str | None = "STOP", **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r1", "modelVersion": "gemini-3.1-pro", **fields}
