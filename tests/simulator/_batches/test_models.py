"""The simulator's lists of models, read by the SDKs in pages."""

from __future__ import annotations

import anthropic
import openai
from google import genai

from llm_provider.simulator import Simulator
from llm_provider.simulator._batches.models import MODELS


def test_the_sdks_read_every_page(llm_simulator: Simulator) -> None:
    llm_simulator.clear()
    with anthropic.Anthropic(base_url=llm_simulator.url("anthropic"), api_key="k") as claude:
        assert tuple(one.id for one in claude.models.list(limit=2)) == MODELS["anthropic"]
    with openai.OpenAI(base_url=llm_simulator.url("openai"), api_key="k") as gpt:
        assert tuple(one.id for one in gpt.models.list()) == MODELS["openai"]
    options = genai.types.HttpOptions(base_url=llm_simulator.url("gemini"))
    google = genai.Client(api_key="k", http_options=options)
    names = [str(one.name).removeprefix("models/") for one in google.models.list(config={"page_size": 2})]
    assert tuple(names) == MODELS["gemini"]
    google.close()
