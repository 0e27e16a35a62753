"""llmock, on PyPI: the formats of several providers, with faults in the order in which they are asked for."""

from collections.abc import Mapping
from typing import Any

from witnesses.witness import Place, Running, Way, Witness, post


def command(place: Place) -> list[str]:
    return ["llmock", "serve", "--port", str(place.port), "--log-level", "warning"]


def refuse(server: Running, status: int) -> Mapping[str, Any]:
    post(server, "/_llmock/reset", {})
    post(server, "/_llmock/scenario", {"behaviors": [{"type": "fail", "status": status}]})
    return {}


WITNESS = Witness(
    "llmock",
    "llmock",
    command,
    {
        "chat": Way("local/any", "/v1", embeds="local/any"),
        "responses": Way("gpt-6.1-sol", "/v1", {"endpoint": "responses"}, "text-embedding-3-small"),
        "messages": Way("claude-sonnet-5-5", "/anthropic"),
        "gemini": Way("gemini-3.8-flash", "/gemini/v1beta", embeds="gemini-embedding-001"),
        "groq": Way("groq/any", "/groq/openai/v1"),
        "mistral": Way("mistral/any", "/mistral/v1", embeds="mistral/mistral-embed"),
        "together": Way("together_ai/any", "/together/v1"),
        "xai": Way("xai/any", "/xai/v1"),
    },
    cannot={
        ("gemini", "embeddings"): "it has no batchEmbedContents",
        ("mistral", "embeddings"): "it has Mistral's embeddings under the path of OpenAI alone",
        ("messages", "schema"): "it ignores output_config",
        ("mistral", "usage of a stream"): "it ignores stream_options under the path of Mistral",
    },
    refuse=refuse,
    health="/health",
)
