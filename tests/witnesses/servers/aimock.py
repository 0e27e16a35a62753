"""aimock, on npm: Chat Completions, Responses, Messages and Gemini by fixtures in JSON."""

from typing import Any

from witnesses.cells import ANSWERS_TO_SCHEMA, ERRORS, PROMPT, SCHEMA_PROMPT
from witnesses.witness import Place, Way, Witness

USAGE = {"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}
FIXTURES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({"userMessage": f"fail {status}"}, {"error": {"message": "Refused"}, "status": status})
      for status in ERRORS),
    ({"toolResultContains": "sunny"}, {"content": "It is sunny."}),
    ({"toolName": "weather"}, {"toolCalls": [{"name": "weather", "arguments": '{"city": "Bern"}'}]}),
    ({"userMessage": SCHEMA_PROMPT}, {"content": ANSWERS_TO_SCHEMA}),
    ({"userMessage": PROMPT}, {"content": "Birds can fly.", "usage": USAGE}),
]  # fmt: skip


def command(place: Place) -> list[str]:
    fixtures = [{"match": match, "response": response} for match, response in FIXTURES]
    file = place.write("fixtures.json", {"fixtures": fixtures})
    return ["llmock", "--port", str(place.port), "--fixtures", file, "--log-level", "warn"]


WITNESS = Witness(
    "aimock",
    "@copilotkit/aimock",
    command,
    {
        "chat": Way("local/any", "/v1", embeds="local/any"),
        "responses": Way("gpt-6.1-sol", "/v1", {"endpoint": "responses"}, "text-embedding-3-small"),
        "messages": Way("claude-sonnet-5-5", ""),
        "gemini": Way("gemini-3.8-flash", "/v1beta", embeds="gemini-embedding-001"),
        "interactions": Way("gemini-3.8-flash", "", {"endpoint": "interactions"}),
    },
    cannot={
        ("gemini", "embeddings"): "it has embedContent and no batchEmbedContents",
    },
)
