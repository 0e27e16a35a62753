"""Which providers list their models, and the fields of compatible hosts."""

from __future__ import annotations

import asyncio

import pytest

from llm_provider import APIResponseValidationError
from llm_provider._providers.model_lists import LISTS, ListedModel
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.routing import ROUTES, resolve
from llm_provider.simulator import Fault, Simulator


def test_every_format_but_litellm_has_a_list() -> None:
    assert LISTS.keys() == {route.adapter for route in ROUTES.values()} - {"litellm"}


async def list_models(model: str) -> list[ListedModel]:
    target = resolve(model)
    return await LISTS[target.route.adapter](target, APIKey("k"))


def test_retired_models_of_anthropic_are_left_out(simulator: Simulator) -> None:
    models = asyncio.run(list_models("anthropic/any"))
    assert [model.name for model in models] == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert models[0] == ListedModel("claude-sonnet-5-5", 900_000, 100_000, None, embeds=False)


def test_models_of_gemini_for_other_tasks_are_left_out(simulator: Simulator) -> None:
    assert asyncio.run(list_models("gemini/any")) == [
        ListedModel("gemini-3.8-flash", 1_000_000, 60_000, None, embeds=False),
        ListedModel("gemini-embedding-2", 1_000_000, 60_000, None, embeds=True),
    ]


def test_models_of_openai_of_other_kinds_are_left_out(simulator: Simulator) -> None:
    models = asyncio.run(list_models("openai/any"))
    assert [model.name for model in models] == [
        "gpt-6.1-sol",
        "gpt-6.1-sol-2026-10-21",
        "text-embedding-3-small",
    ]


ROUTER = (
    '{"data": [{"id": "a", "context_length": 9, "top_provider": {"max_completion_tokens": 4},'
    ' "architecture": {"input_modalities": ["text", "image"]}}]}'
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ROUTER, [ListedModel("a", 9, 4, ("text", "image"))]),
        ('[{"id": "a", "type": "embedding", "context_length": 0}, 3]', [ListedModel("a", embeds=True)]),
        ('{"data": [{"id": "a", "max_model_len": 7}]}', [ListedModel("a", 7)]),
        ('{"data": 3}', None),
    ],
)
def test_hosts_tell_more_in_their_own_fields(
    simulator: Simulator, body: str, expected: list[ListedModel] | None
) -> None:
    simulator.inject(Fault(body=body), match="models.list")
    work = list_models("groq/any")
    if expected is None:
        with pytest.raises(APIResponseValidationError, match="is no list"):
            asyncio.run(work)
    else:
        assert asyncio.run(work) == expected
