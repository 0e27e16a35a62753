"""Base URLs and environment variables that lead SDKs to a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llm_provider.simulator._addresses import environment

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

ROOT = "http://127.0.0.1:8080"


def test_addresses_of_a_running_simulator(simulator: Simulator) -> None:
    root = f"http://127.0.0.1:{simulator.port}"
    assert simulator.url("openai") == f"{root}/openai/v1"
    assert simulator.url("together_ai") == f"{root}/together_ai/v1"
    assert simulator.url("anthropic") == f"{root}/anthropic"
    assert simulator.url("gemini") == f"{root}/gemini"
    variables = simulator.environment()
    assert variables["OPENAI_BASE_URL"] == simulator.url("openai")
    assert variables["ANTHROPIC_BASE_URL"] == simulator.url("anthropic")
    assert variables["GOOGLE_GEMINI_BASE_URL"] == simulator.url("gemini")
    assert {value for name, value in variables.items() if name.endswith("_API_KEY")} == {"simulator-key"}
    # Hosts with a price are always there, others where they are named.
    assert variables["GROQ_BASE_URL"] == simulator.url("groq")
    assert variables["LOCAL_BASE_URL"] == simulator.url("local")
    assert simulator.environment("groq", "example_ai") == variables | {
        "EXAMPLE_BASE_URL": simulator.url("example_ai"),
        "EXAMPLE_API_KEY": "simulator-key",
    }


def test_every_provider_has_a_url_and_a_key() -> None:
    variables = environment(ROOT, None)
    urls = {name.removesuffix("_BASE_URL") for name in variables if name.endswith("_BASE_URL")}
    keys = {name.removesuffix("_API_KEY") for name in variables if name.endswith("_API_KEY")}
    # The google-genai SDK takes one URL and either of two keys.
    assert keys == urls - {"GOOGLE_GEMINI"} | {"GEMINI", "GOOGLE"}
    assert all(variables[f"{name}_BASE_URL"].startswith(f"{ROOT}/") for name in urls)


def test_a_certificate_is_one_more_variable() -> None:
    certificate = Path("/tmp/certificate.pem")
    assert environment(ROOT, certificate) == {**environment(ROOT, None), "SSL_CERT_FILE": str(certificate)}
