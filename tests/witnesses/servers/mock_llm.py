"""mock-llm, on npm: Chat Completions by rules, whose bodies are ours and whose streams are its own."""

import json
from typing import Any

from witnesses.cells import ANSWERS_TO_SCHEMA, SCHEMA_PROMPT
from witnesses.witness import Place, Way, Witness

SAID = "body.messages[-1].content"
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
ANSWERS: dict[str, dict[str, Any]] = {
    "@": {"content": "Birds can fly."},
    "body.tools": {"content": None, "tool_calls": [CALL]},
    "body.messages[-1].role == 'tool'": {"content": "It is sunny."},
    f"contains({SAID}, '{SCHEMA_PROMPT}')": {"content": ANSWERS_TO_SCHEMA},
}
"""Which request → the message. Of those that match, the last one counts."""
CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded", 500: None}


def body(message: dict[str, Any]) -> dict[str, Any]:
    end = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": end}
    usage = {"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}
    named = {"id": "chatcmpl-{{timestamp}}", "model": "{{jmes request body.model}}", "created": 1}
    return {**named, "object": "chat.completion", "choices": [choice], "usage": usage}


def command(place: Place) -> list[str]:
    replies = [(match, 200, body(message)) for match, message in ANSWERS.items()]
    for status, code in CODES.items():
        error = {"message": "Refused", "type": "refused", "param": None, "code": code}
        replies.append((f"contains({SAID}, 'fail {status}')", status, {"error": error}))
    rules = [
        {"path": "/v1/chat/completions", "match": match,
         "response": {"status": status, "content": json.dumps(content)}}
        for match, status, content in replies
    ]  # fmt: skip
    return ["mock-llm", "--config", place.write("rules.yaml", {"rules": rules})]


WITNESS = Witness(
    "mock-llm",
    "@dwmkerr/mock-llm",
    command,
    {"chat": Way("local/any", "/v1", embeds="local/any")},
    cannot={
        ("chat", "embeddings"): "it has no embeddings, but for bodies written by hand",
        ("chat", "usage of a stream"): "its streams have no usage",
        ("chat", "streamed tool"): "it answers 500, as it cuts the text of a message that has none",
    },
    health="/health",
    variables=lambda place: {"PORT": str(place.port), "HOST": "127.0.0.1"},
)
