"""The table of providers, and any model name; golden pairs have the route of each kind of name."""

import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._core.errors import RequestError, UnknownModelError
from llm_provider._core.requests.routing import ROUTES, list_known_models, resolve

VARIABLES = {row.base_url_variable for row in ROUTES.values()} - {""}


@pytest.fixture(autouse=True)
def _no_base_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


class TestResolve:
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
    def test_a_variable_points_elsewhere_and_the_call_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_name_beside_base_url_is_offered_with_local() -> None:
    with pytest.raises(UnknownModelError, match="write 'local/company-gpt'"):
        resolve("company-gpt", "http://127.0.0.1:9/v1")
    with pytest.raises(UnknownModelError) as caught:
        resolve("company-gpt")
    assert "docs/" not in str(caught.value)
