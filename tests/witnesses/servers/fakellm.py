"""fakellm: Chat Completions and Messages by rules in YAML."""

from typing import Any

from witnesses.cells import ANSWERS_TO_SCHEMA, ERRORS, PROMPT, SCHEMA_PROMPT
from witnesses.witness import Place, Way, Witness

RULES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({"messages_contain": f"fail {status}"}, {"status": status}) for status in ERRORS),
    ({"tool_result_contains": "sunny"}, {"content": "It is sunny."}),
    ({"tools_include": "weather"},
     {"tool_calls": [{"name": "weather", "arguments": {"city": "Bern"}}], "content": ""}),
    ({"messages_contain": SCHEMA_PROMPT}, {"content": ANSWERS_TO_SCHEMA}),
    ({"messages_contain": PROMPT}, {"content": "Birds can fly."}),
]  # fmt: skip


def command(place: Place) -> list[str]:
    rules = [{"name": str(n), "when": when, "respond": then} for n, (when, then) in enumerate(RULES)]
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
