"""Base URLs and environment variables that lead SDKs to a simulator."""

from llm_provider.simulator import Simulator
from llm_provider.simulator._addresses import environment
from llm_provider.simulator._records.prices import list_priced_providers


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
