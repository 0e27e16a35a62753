"""Base URLs and environment variables that lead SDKs to a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llm_provider.simulator._addresses import environment
from llm_provider.simulator._records.prices import list_priced_providers

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

ROOT = "http://127.0.0.1:8080"


def test_addresses_of_a_running_simulator(simulator: Simulator) -> None:
    root = f"http://127.0.0.1:{simulator.port}"
    paths = {
        "openai": "openai/v1",
        "together_ai": "together_ai/v1",
        "anthropic": "anthropic",
        "gemini": "gemini",
    }
    assert {name: simulator.url(name) for name in paths} == {name: f"{root}/{paths[name]}" for name in paths}
    variables = simulator.environment()
    assert variables == environment(root, None, (*list_priced_providers(), "local"))
    # Hosts with a price are always there, others where they are named.
    assert variables["GROQ_BASE_URL"] == simulator.url("groq") == f"{root}/groq/v1"
    assert simulator.environment("groq", "example_ai") == variables | {
        "EXAMPLE_BASE_URL": simulator.url("example_ai"),
        "EXAMPLE_API_KEY": "simulator-key",
    }


def test_every_provider_has_a_url_and_a_key() -> None:
    key, names = "simulator-key", ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    variables = {
        "OPENAI_BASE_URL": f"{ROOT}/openai/v1",
        "ANTHROPIC_BASE_URL": f"{ROOT}/anthropic",
        "GOOGLE_GEMINI_BASE_URL": f"{ROOT}/gemini",
        **dict.fromkeys(names, key),
    }
    assert environment(ROOT, None) == variables
    certificate = Path("/tmp/certificate.pem")
    assert environment(ROOT, certificate) == {**variables, "SSL_CERT_FILE": str(certificate)}
