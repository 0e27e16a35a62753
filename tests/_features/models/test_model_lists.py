"""Which providers list their models, and the fields of compatible hosts."""

import asyncio

import pytest

from llm_provider import APIResponseValidationError
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.routing import ROUTES, resolve
from llm_provider._core.settings import MAX_RESPONSE_BYTES
from llm_provider._features.models.model_lists import LISTS, ListedModel
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


PAGES = {
    "anthropic/any": (
        '{"data": [{"type": "model", "id": "m", "display_name": "m", "created_at": "2020-01-01T00:00:00Z"}],'
        ' "has_more": true, "first_id": "m", "last_id": "m"}'
    ),
    "gemini/any": (
        '{"models": [{"name": "models/m", "supportedGenerationMethods": ["generateContent"]}],'
        ' "nextPageToken": "t"}'
    ),
}


@pytest.mark.parametrize("model", PAGES)
def test_a_list_whose_cursor_stands_still_ends(simulator: Simulator, model: str) -> None:
    simulator.inject(Fault(body=PAGES[model]), match="models.list", times=None)
    assert [each.name for each in asyncio.run(list_models(model))] == ["m"]
    assert len(simulator.requests()) == 2


@pytest.mark.parametrize("model", [*PAGES, "groq/any"])
def test_a_list_has_a_number_of_bytes(simulator: Simulator, model: str) -> None:
    simulator.inject(Fault(body=b" " * (MAX_RESPONSE_BYTES + 1) + b"{}"), match="models.list", times=None)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # those of the SDKs, which the caller maps
        asyncio.run(list_models(model))
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, APIResponseValidationError):
        error = error.__cause__ or error.__context__
    assert "more than 64,000,000 bytes" in str(error)


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
