"""The list of models that a key reaches, through the SDK."""

from __future__ import annotations

import asyncio

from llm_provider._providers.openai.model_list import list_models
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Simulator


def test_models_of_other_kinds_are_left_out(simulator: Simulator) -> None:
    found = asyncio.run(list_models(resolve("openai/any"), APIKey("k")))
    assert [one.name for one in found] == ["gpt-6.1-sol", "gpt-6.1-sol-2026-10-21", "text-embedding-3-small"]
