"""llm-katan with its echo: Chat Completions, Messages and Gemini. It counts tokens in books of its own."""

from collections.abc import Mapping
from typing import Any

from witnesses.witness import KEY, Place, Running, Way, Witness


def command(place: Place) -> list[str]:
    keys = ",".join(f"{name}={KEY}" for name in ("openai", "anthropic", "vertexai"))
    return [
        "llm-katan", "--model", "echo", "--backend", "echo", "--host", "127.0.0.1", "--port", str(place.port),
        "--providers", "openai,anthropic,vertexai", "--validate-keys", "--api-keys", keys,
        "--stats-file", str(place.folder / "stats.json"),
    ]  # fmt: skip


def refuse(server: Running, status: int) -> Mapping[str, Any]:
    return {"api_key": "sk-wrong-88"} if status == 401 else {}


WITNESS = Witness(
    "llm-katan",
    "llm-katan",
    command,
    {
        "chat": Way("local/any", "/v1", embeds="local/any"),
        "messages": Way("claude-sonnet-5-5", ""),
        "gemini": Way("gemini-3.8-flash", "/v1beta", {"extra_headers": {"Authorization": f"Bearer {KEY}"}}),
    },
    cannot={
        ("gemini", "*"): "it takes a key as a Bearer token or in the URL, and no x-goog-api-key",
        ("*", "embeddings"): "it has no embeddings",
        ("chat", "404"): "it answers for every model",
        ("messages", "404"): "it answers for every model",
        ("*", "429"): "429 comes only after a number of requests, to all that follow",
        ("*", "429 of a stream"): "429 comes only after a number of requests, to all that follow",
        ("*", "500"): "500 comes only to a share of all requests",
        ("*", "schema"): "it knows json_object alone",
        ("*", "tool result"): "it calls the first tool again, also after its result",
    },
    refuse=refuse,
)
