"""Who answers behind a router, by the routing object of OpenRouter and the suffix of Hugging Face."""

from typing import Any

import pytest

from llm_provider.simulator._behaviour.upstreams import ENDPOINTS, serve
from llm_provider.simulator._settings import Settings
from llm_provider.simulator.formats.wire_format import Prompt, Request

HOSTS = {endpoint.slug for endpoint in ENDPOINTS}


@pytest.mark.parametrize(
    ("provider", "model", "wishes", "hosts", "quantizations"),
    [
        ("openrouter", "z/glm", None, HOSTS, 5),
        ("openrouter", "z/glm", {"order": ["novita"]}, HOSTS, 5),
        ("openrouter", "z/glm", {"order": ["novita"], "allow_fallbacks": False}, {"novita"}, 1),
        ("openrouter", "z/glm", {"only": ["deepinfra"]}, {"deepinfra"}, 2),
        ("openrouter", "z/glm", {"only": ["deepinfra/bf16"]}, {"deepinfra"}, 1),
        ("openrouter", "z/glm", {"only": ["deepinfra"], "quantizations": ["fp8"]}, {"deepinfra"}, 1),
        ("openrouter", "z/glm", {"ignore": ["novita"]}, HOSTS - {"novita"}, 5),
        ("openrouter", "z/glm", {"only": ["nobody"]}, None, 0),
        ("huggingface", "z/glm:fastest", None, HOSTS, 5),
        ("huggingface", "z/glm:novita", None, {"novita"}, 1),
        ("huggingface", "z/glm:nobody", None, None, 0),
    ],
)
def test_requests_reach_the_hosts_that_they_allow(
    provider: str, model: str, wishes: Any, hosts: set[str] | None, quantizations: int
) -> None:
    request = Request(provider, {"provider": wishes}, {}, "/chat/completions")
    prompt = Prompt(model=model, text="", characters=0, request=request)
    served = [serve(prompt, Settings(upstreams=9), number) for number in range(100)]
    reached = [each.endpoint for each in served if each.endpoint is not None]
    assert {endpoint.slug for endpoint in reached} == (hosts or set())
    assert len({endpoint.quantization for endpoint in reached}) == quantizations
    assert all(each.refused for each in served) is (hosts is None)
