"""Base URLs and environment variables that lead SDKs to the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["environment", "provider_url"]

DUMMY_KEY = "simulator-key"
PATH_WITHOUT_VERSION = ("anthropic", "gemini")

# Each row: the provider, the variables for its base URL, the variables for its key.
_VARIABLES = (
    ("openai", ("OPENAI_BASE_URL",), ("OPENAI_API_KEY",)),
    ("anthropic", ("ANTHROPIC_BASE_URL",), ("ANTHROPIC_API_KEY",)),
    ("gemini", ("GOOGLE_GEMINI_BASE_URL",), ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    ("together_ai", ("TOGETHER_BASE_URL",), ("TOGETHER_API_KEY",)),
    ("openrouter", ("OPENROUTER_BASE_URL",), ("OPENROUTER_API_KEY",)),
    ("groq", ("GROQ_BASE_URL",), ("GROQ_API_KEY",)),
    ("deepseek", ("DEEPSEEK_BASE_URL",), ("DEEPSEEK_API_KEY",)),
    ("xai", ("XAI_BASE_URL",), ("XAI_API_KEY",)),
    ("mistral", ("MISTRAL_BASE_URL",), ("MISTRAL_API_KEY",)),
    ("fireworks_ai", ("FIREWORKS_BASE_URL",), ("FIREWORKS_API_KEY",)),
    ("sambanova", ("SAMBANOVA_BASE_URL",), ("SAMBANOVA_API_KEY",)),
    ("local", ("LOCAL_BASE_URL",), ("LOCAL_API_KEY",)),
)


def provider_url(root: str, provider: str) -> str:
    """The base URL of a provider as its SDK expects it: it ends in ``/v1`` except for Anthropic and Gemini.

    >>> provider_url("http://127.0.0.1:8080", "groq"), provider_url("http://127.0.0.1:8080", "gemini")
    ('http://127.0.0.1:8080/groq/v1', 'http://127.0.0.1:8080/gemini')
    """
    return f"{root}/{provider}" if provider in PATH_WITHOUT_VERSION else f"{root}/{provider}/v1"


def environment(root: str, certificate: Path | None) -> dict[str, str]:
    """Environment variables that direct every SDK to a simulator, with API keys that are no secrets."""
    variables: dict[str, str] = {}
    for provider, urls, keys in _VARIABLES:
        variables.update(dict.fromkeys(urls, provider_url(root, provider)))
        variables.update(dict.fromkeys(keys, DUMMY_KEY))
    if certificate is not None:
        variables["SSL_CERT_FILE"] = str(certificate)
    return variables
