"""Portkey's gateway, on npm, before the simulator: three formats, and providers named in headers.

Its package allows newer releases of `@hono/node-server`, under which it answers 500 to each stream that it
passes on unchanged. The lock file overrides that dependency.
"""

from witnesses.witness import Place, Way, Witness, refuse_upstream


def to(provider: str, host: str) -> dict[str, dict[str, str]]:
    return {"extra_headers": {"x-portkey-provider": provider, "x-portkey-custom-host": host}}


def command(place: Place) -> list[str]:
    return ["gateway", f"--port={place.port}", "--headless"]


OPENAI, ANTHROPIC, GEMINI = (
    to("openai", "{openai}"),
    to("anthropic", "{anthropic}/v1"),
    to("google", "{gemini}"),
)

WITNESS = Witness(
    "portkey",
    "@portkey-ai/gateway",
    command,
    {
        "chat": Way("local/gpt-6.1-sol", "/v1", OPENAI, "local/text-embedding-3-small"),
        "chat to Claude": Way("local/claude-sonnet-5-5", "/v1", {"max_tokens": 100, **ANTHROPIC}),
        "chat to Gemini": Way("local/gemini-3.8-flash", "/v1", GEMINI),
        "responses": Way("gpt-6.1-sol", "/v1", {"endpoint": "responses", **OPENAI}),
        "messages": Way("claude-sonnet-5-5", "", ANTHROPIC),
    },
    cannot={
        ("messages", "schema"): "it leaves output_config out",
        ("chat to Claude", "schema"): "it translates no response_format for Claude",
    },
    refuse=refuse_upstream,
    gateway=True,
)
