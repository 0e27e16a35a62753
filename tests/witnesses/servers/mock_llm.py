"""mock-llm, on npm: Chat Completions by rules, whose bodies are ours and whose streams are its own."""

import json
from typing import Any

from witnesses.cells import ANSWERS_TO_SCHEMA, SCHEMA_PROMPT
from witnesses.witness import Place, Way, Witness

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}


def rule(match: str, message: dict[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    """A rule; of those that match, the last one counts."""
    body = {
        "id": "chatcmpl-{{timestamp}}",
        "object": "chat.completion",
        "created": 1,
        "model": "{{jmes request body.model}}",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16},
    }
    response = {"status": 200, "content": json.dumps(body)}
    return {"path": "/v1/chat/completions", "match": match, "response": response}


def command(place: Place) -> list[str]:
    said = "body.messages[-1].content"
    rules = [
        rule("@", {"content": "Birds can fly."}),
        rule("body.tools", {"content": None, "tool_calls": [CALL]}, "tool_calls"),
        rule("body.messages[-1].role == 'tool'", {"content": "It is sunny."}),
        rule(f"contains({said}, '{SCHEMA_PROMPT}')", {"content": ANSWERS_TO_SCHEMA}),
    ]
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded", 500: None}
    for status, code in codes.items():
        error = {"error": {"message": "Refused", "type": "refused", "param": None, "code": code}}
        refusal = {"status": status, "content": json.dumps(error)}
        rules.append(
            {
                "path": "/v1/chat/completions",
                "match": f"contains({said}, 'fail {status}')",
                "response": refusal,
            }
        )
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
