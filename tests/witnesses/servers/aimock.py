"""aimock, on npm: Chat Completions, Responses, Messages and Gemini by fixtures in JSON."""

from witnesses.cells import ANSWERS_TO_SCHEMA, ERRORS, PROMPT, SCHEMA_PROMPT
from witnesses.witness import Place, Way, Witness


def command(place: Place) -> list[str]:
    refusals = [
        {
            "match": {"userMessage": f"fail {status}"},
            "response": {"error": {"message": "Refused", "type": "refused"}, "status": status},
        }
        for status in ERRORS
    ]
    usage = {"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}
    fixtures = [
        *refusals,
        {"match": {"toolResultContains": "sunny"}, "response": {"content": "It is sunny."}},
        {
            "match": {"toolName": "weather"},
            "response": {"toolCalls": [{"name": "weather", "arguments": '{"city": "Bern"}'}]},
        },
        {"match": {"userMessage": SCHEMA_PROMPT}, "response": {"content": ANSWERS_TO_SCHEMA}},
        {"match": {"userMessage": PROMPT}, "response": {"content": "Birds can fly.", "usage": usage}},
    ]
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
