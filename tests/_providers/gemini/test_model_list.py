"""The list of models that a key reaches, through the SDK."""

from __future__ import annotations

import asyncio

from llm_provider._providers.gemini.model_list import list_models
from llm_provider._providers.model_lists import ListedModel
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Simulator


def test_models_for_other_tasks_are_left_out(simulator: Simulator) -> None:
    assert asyncio.run(list_models(resolve("gemini/any"), APIKey("k"))) == [
        ListedModel("gemini-3.8-flash", 1_000_000, 60_000, None, embeds=False),
        ListedModel("gemini-embedding-2", 1_000_000, 60_000, None, embeds=True),
    ]
