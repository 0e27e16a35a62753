"""fakellm: Chat Completions and Messages by rules in YAML."""

from witnesses.cells import ANSWERS_TO_SCHEMA, ERRORS, PROMPT, SCHEMA_PROMPT
from witnesses.witness import Place, Way, Witness


def command(place: Place) -> list[str]:
    refusals = [
        {"name": str(status), "when": {"messages_contain": f"fail {status}"}, "respond": {"status": status}}
        for status in ERRORS
    ]
    rules = [
        *refusals,
        {"name": "result", "when": {"tool_result_contains": "sunny"}, "respond": {"content": "It is sunny."}},
        {
            "name": "tool",
            "when": {"tools_include": "weather"},
            "respond": {"tool_calls": [{"name": "weather", "arguments": {"city": "Bern"}}], "content": ""},
        },
        {
            "name": "schema",
            "when": {"messages_contain": SCHEMA_PROMPT},
            "respond": {"content": ANSWERS_TO_SCHEMA},
        },
        {"name": "text", "when": {"messages_contain": PROMPT}, "respond": {"content": "Birds can fly."}},
    ]
    file = place.write("fakellm.yaml", {"version": 1, "rules": rules})
    return ["fakellm", "serve", "--port", str(place.port), "--config", file]


WITNESS = Witness(
    "fakellm",
    "fakellm",
    command,
    {"chat": Way("local/any", "/v1", embeds="local/any"), "messages": Way("claude-sonnet-5-5", "")},
    cannot={
        ("*", "embeddings"): "it has no embeddings",
        ("*", "429 of a stream"): "it answers a stream that it should refuse with 200 and a text",
        ("chat", "usage of a stream"): "it ignores stream_options",
        ("messages", "usage of a stream"): "its streams count one token of input, whatever was sent",
    },
)
