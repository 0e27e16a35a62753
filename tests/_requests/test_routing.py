"""Model names → the provider that serves them, and the table of providers."""

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._errors import RequestError, UnknownModelError
from llm_provider._requests.routing import ROUTES, list_known_models, price_names, resolve

VARIABLES = {row.base_url_variable for row in ROUTES.values()} - {""}


@pytest.fixture(autouse=True)
def _no_base_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


ROUTED = {
    "openai": "gpt-5.5-pro-2026-04-23 chatgpt-4o-latest o3 o4-mini ft:gpt-5.4-mini:org::id "
    "text-embedding-3-small openai/gpt-oss-120b",
    "anthropic": "claude-sonnet-5-5 anthropic/claude-opus-5-5",
    "gemini": "gemini-3.8-flash gemini-embedding-001",
    "groq": "groq/openai/gpt-oss-120b",
    "local": "local/qwen2.5:7b",
    "litellm": "litellm/claude-sonnet-5-5 litellm/gemini/gemini-3.8-flash litellm/some-model "
    "litellm/bedrock/anthropic.claude-opus-5-5 bedrock/amazon.nova-2-pro-v1:0",
}
PRICED = {
    "litellm/claude-sonnet-5-5": ("anthropic", "claude-sonnet-5-5"),
    "litellm/gemini/gemini-3.8-flash": ("gemini", "gemini-3.8-flash"),
    "litellm/bedrock/anthropic.claude-opus-5-5": ("bedrock", "anthropic.claude-opus-5-5"),
    "bedrock/amazon.nova-2-pro-v1:0": ("bedrock", "amazon.nova-2-pro-v1:0"),
}
"""What goes through litellm has the price of what it reaches."""
NEAR = {
    "gpt-oss-120b": "groq/openai/gpt-oss-120b",
    "cluade-sonnet-5-5": "anthropic/claude-sonnet-5-5",
    "GPT-6.1-Sol": "openai/gpt-6.1-sol",
    "gemnii-3.8-flash": "gemini/gemini-3.8-flash",
}


class TestResolve:
    @pytest.mark.parametrize(
        ("provider", "model"),
        [(provider, model) for provider in ROUTED for model in ROUTED[provider].split()],
    )
    def test_every_route(self, provider: str, model: str) -> None:
        target = resolve(model)
        assert (target.provider, target.model) == (provider, model.removeprefix(f"{provider}/"))
        assert target.base_url == ROUTES[provider].base_url
        assert not target.custom_base_url
        assert price_names(target) == PRICED.get(model, (provider, target.model))

    @pytest.mark.parametrize(
        "model",
        [
            *NEAR, "gpt-oss-20b", "gpt", "o1x", "o2", "xgpt-5.5", "claude", "openai", "ft:gpt-oss-20b",
        ],
    )  # fmt: skip
    def test_a_bare_name_is_never_guessed_and_near_names_are_suggested(self, model: str) -> None:
        near = (
            f"did you mean .*{re.escape(NEAR[model])}"
            if model in NEAR
            else "put the provider before the name"
        )
        with pytest.raises(UnknownModelError, match=near) as caught:
            resolve(model)
        assert caught.value.model == model

    @settings(deadline=None, max_examples=8)  # suggestions take long
    @given(
        st.text(st.sampled_from(string.ascii_letters + string.digits + "._:/@+-"), min_size=1, max_size=20)
    )
    def test_any_name_has_a_route_or_our_error(self, model: str) -> None:
        try:
            target = resolve(model)
        except UnknownModelError:
            return
        assert target.provider in ROUTES
        assert target.model
        assert model.endswith(target.model)

    def test_models_known_by_name_have_a_route_of_their_own(self) -> None:
        models = list(list_known_models())
        assert len(models) > 100
        assert models == sorted(set(models))
        for model in models:
            assert resolve(model).model


class TestBaseURL:
    def test_the_environment_points_a_route_elsewhere_and_the_call_wins(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GROQ_BASE_URL", " https://proxy.example.com/groq/ ")
        target = resolve("groq/llama")
        assert (target.base_url, target.custom_base_url) == ("https://proxy.example.com/groq", True)
        assert resolve("groq/llama", "http://localhost/v1").base_url == "http://localhost/v1"
        monkeypatch.setenv("GROQ_BASE_URL", "http://169.254.169.254/")
        with pytest.raises(RequestError):
            resolve("groq/llama")
        monkeypatch.setenv("GROQ_BASE_URL", "  ")
        assert not resolve("groq/llama").custom_base_url


class TestRoutes:
    def test_every_row_is_whole_and_shares_no_variable(self) -> None:
        variables = [
            name
            for row in ROUTES.values()
            for name in (row.base_url_variable, *row.key_variables)
            if name and row.provider != "bedrock_mantle"  # Bedrock's other server
        ]
        assert len(variables) == len(set(variables))
        for provider, row in ROUTES.items():
            assert row.provider == provider
            if row.cloud is None:
                assert resolve(f"{provider}/any-model").provider == provider
            with pytest.raises(UnknownModelError, match="no model"):
                resolve(f"{provider}/")
            assert re.fullmatch(r"[a-z][a-z0-9_]*", provider)
            assert row.key_variables or not row.key_required or row.cloud is not None
            assert row.base_url is None or resolve("local/m", row.base_url).base_url == row.base_url
        # A bare name belongs to one row.
        for model in ("gpt-6.1-sol", "o3", "claude-opus-5-5", "gemini-3.8-flash"):
            assert sum(bool(re.fullmatch(row.bare_names, model)) for row in ROUTES.values()) == 1
