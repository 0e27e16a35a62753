"""Prefixes of model names that other tools use, and what to write here.

It is imported for a model whose prefix names no route.
"""

from __future__ import annotations

from collections.abc import Mapping

_PORTS = {
    "lmstudio": 1234,
    "lm-studio": 1234,
    "llamacpp": 8080,
    "llama.cpp": 8080,
    "llama_cpp": 8080,
    "llama-cpp": 8080,
    "localai": 8080,
    "tgi": 8080,
    "sglang": 30000,
    "localhost": 8000,
}
"""Servers on the user's machine that litellm does not know, each with its usual port."""


def problem_with(prefix: str, rest: str, routes: Mapping[str, tuple[str, ...]]) -> str | None:
    """The message for a model whose prefix is another tool's; None where litellm may know the prefix.

    Args:
        prefix: The part of the name before the slash.
        rest: The part behind it.
        routes: The other names of each provider.

    >>> problem_with("google", "gemini-3.8-flash", {"gemini": ("google",)})
    "model: there is no provider 'google'; write 'gemini/gemini-3.8-flash'"
    """
    name = prefix.lower()
    problem = f"model: there is no provider {prefix!r}"
    for provider, others in routes.items():
        if name == provider or name in others:
            return f"{problem}; write '{provider}/{rest}'"
    if name in _PORTS:
        return f"{problem}; write 'local/{rest}' and base_url='http://localhost:{_PORTS[name]}/v1'"
    return None
