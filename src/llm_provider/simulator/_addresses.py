"""Base URLs and environment variables that point SDKs at the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["environment", "provider_url"]

DUMMY_KEY = "simulator-key"
# The variable of each cloud's server, and that of its key; Vertex AI has no keys.
_CLOUDS = {
    "azure": (("AZURE_OPENAI_ENDPOINT",), ("AZURE_OPENAI_API_KEY",)),
    "azure_ai": (("ANTHROPIC_FOUNDRY_BASE_URL",), ("ANTHROPIC_FOUNDRY_API_KEY",)),
    "bedrock": (("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",), ("AWS_BEARER_TOKEN_BEDROCK",)),
    "bedrock_mantle": (("BEDROCK_MANTLE_API_BASE",), ("AWS_BEARER_TOKEN_BEDROCK",)),
    "vertex_ai": (("GOOGLE_VERTEX_BASE_URL",), ()),
}
_PLACES = {"AWS_REGION": "us-east-1", "GOOGLE_CLOUD_PROJECT": "simulator"}

PATH_WITHOUT_VERSION = ("anthropic", "gemini", *_CLOUDS)

# The providers with a wire format of their own: variables for the base URL, variables for the key.
_VARIABLES = {
    "openai": (("OPENAI_BASE_URL",), ("OPENAI_API_KEY",)),
    "anthropic": (("ANTHROPIC_BASE_URL",), ("ANTHROPIC_API_KEY",)),
    "gemini": (("GOOGLE_GEMINI_BASE_URL",), ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    **_CLOUDS,
}


def provider_url(root: str, provider: str) -> str:
    """The base URL of a provider. It ends in ``/v1`` except for Anthropic and Gemini, as their SDKs expect.

    That of a cloud is the server, without the paths of its resources and projects.

    >>> provider_url("http://127.0.0.1:8080", "groq"), provider_url("http://127.0.0.1:8080", "gemini")
    ('http://127.0.0.1:8080/groq/v1', 'http://127.0.0.1:8080/gemini')
    """
    return f"{root}/{provider}" if provider in PATH_WITHOUT_VERSION else f"{root}/{provider}/v1"


def environment(root: str, certificate: Path | None, hosts: Iterable[str] = ()) -> dict[str, str]:
    """Environment variables that point SDKs at a simulator, with keys that hold no secret.

    Args:
        root: scheme, host and port of the simulator.
        certificate: the authority to trust, where the simulator serves HTTPS.
        hosts: names of OpenAI-compatible hosts, in addition to OpenAI, Anthropic, Gemini and clouds. The
            variables of a host begin with its name without ``_ai``, in upper case.

    >>> environment("http://127.0.0.1:8080", None, ["example_ai"])["EXAMPLE_BASE_URL"]
    'http://127.0.0.1:8080/example_ai/v1'
    """
    variables: dict[str, str] = {}
    for provider in (*_VARIABLES, *hosts):
        prefix = provider.removesuffix("_ai").upper()
        urls, keys = _VARIABLES.get(provider, ((f"{prefix}_BASE_URL",), (f"{prefix}_API_KEY",)))
        variables.update(dict.fromkeys(urls, provider_url(root, provider)))
        variables.update(dict.fromkeys(keys, DUMMY_KEY))
    variables |= _PLACES
    if certificate is not None:
        variables["SSL_CERT_FILE"] = str(certificate)
    return variables
