"""The list of models: the price table, the table of limits and the routes, joined."""

import pytest

from llm_provider import Client, Model, RequestError, models
from llm_provider._core.money.price_rows import CLOUDS
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.requests.routing import ROUTES, find_route
from llm_provider._features.models.known_models import list_models


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
