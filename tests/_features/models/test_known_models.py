"""The list of models: the price table, the table of limits and the routes, joined."""

import asyncio

import pytest

from llm_provider import (
    APIResponseValidationError,
    AuthenticationError,
    Client,
    InternalServerError,
    MissingAPIKeyError,
    Model,
    RequestError,
    models,
)
from llm_provider._core.money.price_rows import CLOUDS
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.routing import ROUTES, find_route, resolve
from llm_provider._core.settings import MAX_RESPONSE_BYTES
from llm_provider._features.models.known_models import LISTS, ListedModel, list_models
from llm_provider.simulator import Fault, Simulator


@pytest.fixture(scope="module")
def listed() -> list[Model]:
    return list_models(PriceTable.load())


def test_a_model_has_its_limits_and_prices(listed: list[Model]) -> None:
    models = {model.name: model for model in listed}
    assert models["claude-haiku-5-5"].input_price == 0.1
    assert models["claude-haiku-5-5"].output_price == 0.5
    assert models["claude-haiku-5-5"].kind == "chat"
    assert models["claude-haiku-4-5"].context_window == 200_000
    assert models["claude-haiku-4-5"].max_output_tokens == 64_000
    assert models["text-embedding-3-small"].kind == "embedding"
    assert "audio" in models["gpt-audio"].modalities
    assert "gemini/gemini-3.8-flash" in models


def test_every_name_reaches_its_provider(listed: list[Model]) -> None:
    assert len({model.name for model in listed}) == len(listed) > 1000
    for model in listed:
        # litellm has more of the clouds' models.
        reached = {model.provider, "litellm"} if model.provider in CLOUDS else {model.provider}
        assert find_route(model.name).provider in reached
    assert [(model.provider, model.name) for model in listed] == sorted(
        (model.provider, model.name) for model in listed
    )


def test_one_provider() -> None:
    assert {model.provider for model in models("groq")} == {"groq"}
    assert models("local") == []
    assert set(ROUTES) >= {model.provider for model in models()}


@pytest.mark.parametrize(
    ("provider", "hint"),
    [
        ("opnai", "; did you mean openai"), ("together", "; did you mean together_ai"),
        ("x-ai", "; did you mean xai"), ("google", "; did you mean gemini"),
        ("Anthropic", "; did you mean anthropic"), ("qqqq", "; one of openai, anthropic"),
    ],
)  # fmt: skip
def test_an_unknown_provider_is_an_error_with_near_names(provider: str, hint: str) -> None:
    with pytest.raises(RequestError, match=f"there is no provider {provider!r}{hint}"):
        models(provider)


def test_a_client_lists_the_models_of_its_own_prices(tmp_path: object) -> None:
    path = f"{tmp_path}/own.csv"
    with open(path, "w") as file:  # noqa: PTH123 - as users write it
        file.write("provider,model,input,output\nlocal,tiny,0.5,2\n")
    with Client(prices=path) as client:
        (tiny,) = client.models("local")
    assert (tiny.name, tiny.input_price, tiny.output_price) == ("local/tiny", 0.5, 2.0)
    assert (tiny.context_window, tiny.cached_input_price) == (None, None)


def test_every_format_but_litellm_has_a_list() -> None:
    assert LISTS.keys() == {route.adapter for route in ROUTES.values()} - {"litellm"}


async def listed_models(model: str) -> list[ListedModel]:
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
    assert [each.name for each in asyncio.run(listed_models(model))] == ["m"]
    assert len(simulator.requests()) == 2


@pytest.mark.parametrize("model", [*PAGES, "groq/any"])
def test_a_list_has_a_number_of_bytes(simulator: Simulator, model: str) -> None:
    simulator.inject(Fault(body=b" " * (MAX_RESPONSE_BYTES + 1) + b"{}"), match="models.list", times=None)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # those of the SDKs, which the caller maps
        asyncio.run(listed_models(model))
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
    work = listed_models("groq/any")
    if expected is None:
        with pytest.raises(APIResponseValidationError, match="is no list"):
            asyncio.run(work)
    else:
        assert asyncio.run(work) == expected


def test_a_provider_lists_what_can_be_called(client: Client) -> None:
    sol, dated, small = client.models("openai", live=True)
    assert [model.name for model in (sol, dated)] == ["gpt-6.1-sol", "gpt-6.1-sol-2026-10-21"]
    assert sol.input_price == dated.input_price == 2.0
    assert (sol.kind, small.kind) == ("chat", "embedding")
    (known,) = [model for model in client.models("openai") if model.name == "gpt-6.1-sol"]
    assert known == sol, "OpenAI tells nothing but names"


def test_its_own_limits_come_first(client: Client) -> None:
    haiku, sonnet = client.models("anthropic", live=True)
    assert (haiku.name, sonnet.name) == ("claude-haiku-5-5", "claude-sonnet-5-5")
    assert (haiku.context_window, haiku.max_output_tokens, haiku.input_price) == (900_000, 100_000, 0.1)
    flash, embedding = client.models("gemini", live=True)
    assert (flash.name, flash.kind, flash.max_output_tokens) == ("gemini/gemini-3.8-flash", "chat", 60_000)
    assert (embedding.name, embedding.kind) == ("gemini/gemini-embedding-2", "embedding")
    known, new = client.models("groq", live=True)
    assert (known.name, new.name) == ("groq/openai/gpt-oss-120b", "groq/some-new-model")
    assert known.input_price is not None
    assert (new.context_window, new.input_price) == (131_072, None)


def test_the_client_says_which_key_and_server(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    simulator.configure(require_key="sk-right")
    url = simulator.url("openai")
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    with Client(keys={"openai": ["sk-right"]}, base_url=url) as client:
        assert client.models("openai", live=True)
        assert client.with_options(api_key="sk-right").models("openai", live=True)
        with pytest.raises(AuthenticationError, match="the list of models failed") as caught:
            client.with_options(api_key="sk-wrong").models("openai", live=True)
        assert "sk-wrong" not in str(caught.value)
        assert caught.value.provider == "openai"
    with Client() as client, pytest.raises(MissingAPIKeyError, match="set OPENAI_API_KEY"):
        client.models("openai", live=True)


def test_a_failure_is_tried_again(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=503), match="models.list")
    assert client.models("groq", live=True)
    simulator.inject(Fault(status=500), match="models.list", times=None)
    with Client(max_retries=1) as other, pytest.raises(InternalServerError) as caught:
        other.models("groq", live=True)
    assert (caught.value.attempts, caught.value.maybe_billed) == (2, False)
