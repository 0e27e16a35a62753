"""The list of models that a key reaches, through the SDK."""

from __future__ import annotations

import asyncio

from llm_provider._providers.anthropic.model_list import list_models
from llm_provider._providers.model_lists import ListedModel
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Simulator


def test_retired_models_are_left_out(simulator: Simulator) -> None:
    found = asyncio.run(list_models(resolve("anthropic/any"), APIKey("k")))
    assert [one.name for one in found] == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert found[0] == ListedModel("claude-sonnet-5-5", 900_000, 100_000, None, embeds=False)
