"""Which providers list their models, and the fields of compatible hosts."""

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
def test_hosts_have_own_fields(simulator: Simulator, body: str, expected: list[ListedModel] | None) -> None:
    simulator.inject(Fault(body=body), match="models.list")
    work = list_models("groq/any")
    if expected is None:
        with pytest.raises(APIResponseValidationError, match="is no list"):
            asyncio.run(work)
    else:
        assert asyncio.run(work) == expected
