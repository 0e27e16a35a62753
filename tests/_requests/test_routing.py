"""Model names → who serves them, and which servers may be sent a key."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._errors import LLMError, RequestError, UnknownModelError
from llm_provider._requests.routing import ROUTES, known_models, priced_as, resolve

VARIABLES = {row.base_url_variable for row in ROUTES.values()} - {""}


@pytest.fixture(autouse=True)
def _no_base_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


class TestResolve:
    @pytest.mark.parametrize(
        ("model", "provider", "name"),
        [
            ("gpt-6.1-sol", "openai", "gpt-6.1-sol"),
            ("gpt-5.5-pro-2026-04-23", "openai", "gpt-5.5-pro-2026-04-23"),
            ("gpt-audio-2", "openai", "gpt-audio-2"),
            ("chatgpt-4o-latest", "openai", "chatgpt-4o-latest"),
            ("o3", "openai", "o3"),
            ("o4-mini", "openai", "o4-mini"),
            ("ft:gpt-5.4-mini:org::id", "openai", "ft:gpt-5.4-mini:org::id"),
            ("text-embedding-3-small", "openai", "text-embedding-3-small"),
            ("text-embedding-ada-002", "openai", "text-embedding-ada-002"),
            ("openai/gpt-oss-120b", "openai", "gpt-oss-120b"),
            ("claude-sonnet-5-5", "anthropic", "claude-sonnet-5-5"),
            ("anthropic/claude-opus-5-5", "anthropic", "claude-opus-5-5"),
            ("gemini-3.8-flash", "gemini", "gemini-3.8-flash"),
            ("gemini/gemini-3.8-flash", "gemini", "gemini-3.8-flash"),
            ("gemini-embedding-001", "gemini", "gemini-embedding-001"),
            ("together_ai/zai-org/GLM-5.3", "together_ai", "zai-org/GLM-5.3"),
            ("openrouter/anthropic/claude-opus-5-5", "openrouter", "anthropic/claude-opus-5-5"),
            ("groq/openai/gpt-oss-120b", "groq", "openai/gpt-oss-120b"),
            ("local/qwen2.5:7b", "local", "qwen2.5:7b"),
            ("litellm/claude-sonnet-5-5", "litellm", "claude-sonnet-5-5"),
            ("litellm/anthropic/claude-sonnet-5-5", "litellm", "anthropic/claude-sonnet-5-5"),
            ("bedrock/anthropic.claude-opus-5-5", "litellm", "bedrock/anthropic.claude-opus-5-5"),
            ("vertex_ai/gemini-3.8-flash", "litellm", "vertex_ai/gemini-3.8-flash"),
        ],
    )
    def test_every_route(self, model: str, provider: str, name: str) -> None:
        target = resolve(model)
        assert (target.provider, target.model) == (provider, name)
        assert target.base_url == ROUTES[provider].base_url
        assert not target.custom_base_url

    @pytest.mark.parametrize("provider", ROUTES)
    def test_any_route_can_be_forced(self, provider: str) -> None:
        assert resolve(f"{provider}/any-model").provider == provider

    @pytest.mark.parametrize(
        "model",
        [
            "gpt-oss-120b",
            "gpt-oss-20b",
            "gpt-neo",
            "gpt-j-6b",
            "gpt",
            "o1x",
            "o2",
            "o5-mini",
            "GPT-5.5",
            "xgpt-5.5",
            "llama-4",
            "claude",
            "gemini",
            "mistral-large-4",
            "openai",
            "ft:gpt-oss-20b",
        ],
    )
    def test_a_bare_name_is_never_guessed(self, model: str) -> None:
        with pytest.raises(UnknownModelError) as caught:
            resolve(model)
        assert "put the provider before the name" in str(caught.value)
        assert caught.value.model == model

    @pytest.mark.parametrize(
        ("model", "near"),
        [
            ("gpt-oss-120b", "groq/openai/gpt-oss-120b"),
            ("cluade-sonnet-5-5", "anthropic/claude-sonnet-5-5"),
            ("GPT-6.1-Sol", "openai/gpt-6.1-sol"),
            ("gemnii-3.8-flash", "gemini/gemini-3.8-flash"),
        ],
    )
    def test_near_names_are_suggested(self, model: str, near: str) -> None:
        with pytest.raises(UnknownModelError, match=f"did you mean .*{re.escape(near)}"):
            resolve(model)

    def test_a_provider_without_a_model_is_refused(self) -> None:
        with pytest.raises(UnknownModelError, match="no model"):
            resolve("groq/")

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
        models = list(known_models())
        assert len(models) > 100
        assert models == sorted(set(models))
        for model in models:
            assert resolve(model).model


class TestPricedAs:
    @pytest.mark.parametrize(
        ("model", "expected"),
        [
            ("gpt-6.1-sol", ("openai", "gpt-6.1-sol")),
            ("groq/openai/gpt-oss-120b", ("groq", "openai/gpt-oss-120b")),
            ("litellm/claude-sonnet-5-5", ("anthropic", "claude-sonnet-5-5")),
            ("litellm/gemini/gemini-3.8-flash", ("gemini", "gemini-3.8-flash")),
            ("bedrock/anthropic.claude-opus-5-5", ("bedrock", "anthropic.claude-opus-5-5")),
            ("litellm/some-model", ("litellm", "some-model")),
        ],
    )
    def test_what_goes_through_litellm_has_the_price_of_what_it_reaches(
        self, model: str, expected: tuple[str, str]
    ) -> None:
        assert priced_as(resolve(model)) == expected


class TestBaseURL:
    @pytest.mark.parametrize(
        "base_url",
        [
            "https://api.example.com/v1",
            "https://8.8.8.8/v1",
            "http://localhost:8000/v1",
            "http://127.0.0.1:8000",
            "http://[::1]:8000/v1",
            "http://10.1.2.3",
            "http://192.168.0.9:11434/v1",
            "http://172.16.0.1",
            "http://100.64.1.2:8000/v1",
            "http://gpu-box:8000/v1",
            "http://gpu.local/v1",
            "http://vllm.internal/v1",
            "http://a.localhost/v1",
            "http://2130706433/v1",
            "http://[::ffff:127.0.0.1]/v1",
            "http://0.0.0.0:8000",
        ],
    )
    def test_may_be_sent_a_key(self, base_url: str) -> None:
        target = resolve("local/m", base_url + "/")
        assert target.base_url == base_url
        assert target.custom_base_url

    @pytest.mark.parametrize(
        ("base_url", "problem"),
        [
            ("http://api.openai.com/v1", "use https"),
            ("http://8.8.8.8/v1", "use https"),
            ("http://134744072/v1", "use https"),
            ("http://localhost.example.com", "use https"),
            ("http://[2001:4860:4860::8888]/", "use https"),
            ("https://169.254.169.254/latest", "link-local"),
            ("http://169.254.169.254", "link-local"),
            ("http://169.254.169.254.", "link-local"),
            ("http://2852039166/", "link-local"),
            ("http://0xa9fea9fe/", "link-local"),
            ("http://0251.0376.0251.0376/", "link-local"),
            ("http://169.254.43518/", "link-local"),
            ("http://[fe80::1]/", "link-local"),
            ("http://[fe80::1%25eth0]/", "link-local"),
            ("http://[::ffff:169.254.169.254]/", "link-local"),
            ("http://metadata.google.internal/", "not the address of a provider"),
            ("ftp://localhost/", "not an http or https URL"),
            ("file:///etc/passwd", "not an http or https URL"),
            ("localhost:8000", "not an http or https URL"),
            ("https://", "not an http or https URL"),
            ("http://[::1/", "not a URL"),
            ("http://localhost:99999/", "not a URL"),
            ("http://localhost:8000/v1\n", "not an http or https URL"),
            ("http://localhost /v1", "not the address of a provider"),
            (" http://localhost/v1", "not the address of a provider"),
            ("https://good.example\\.evil.example/", "not the address of a provider"),
            ("https://user:secret@example.com/v1", "api_key="),
            ("https://user:secret@[/", "api_key="),
            ("https://example.com/v1?key=secret", "api_key="),
            ("https://example.com/v1#secret", "api_key="),
        ],
    )
    def test_may_not(self, base_url: str, problem: str) -> None:
        with pytest.raises(RequestError, match=problem) as caught:
            resolve("local/m", base_url)
        assert "secret" not in str(caught.value)

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

    @given(st.text(max_size=40) | st.text(max_size=20).map("http://".__add__))
    def test_any_text_is_a_url_or_our_error(self, base_url: str) -> None:
        try:
            resolve("local/m", base_url)
        except LLMError:
            return


class TestRoutes:
    def test_every_row_is_whole(self) -> None:
        for provider, row in ROUTES.items():
            assert row.provider == provider
            assert re.fullmatch(r"[a-z_]+", provider)
            assert row.key_variables or not row.key_required
            assert row.base_url is None or resolve("local/m", row.base_url).base_url == row.base_url

    def test_bare_names_belong_to_one_row(self) -> None:
        for model in ("gpt-6.1-sol", "o3", "claude-opus-5-5", "gemini-3.8-flash"):
            assert sum(bool(re.fullmatch(row.bare_names, model)) for row in ROUTES.values()) == 1

    def test_no_variable_is_shared(self) -> None:
        variables = [
            variable for row in ROUTES.values() for variable in (row.base_url_variable, *row.key_variables)
        ]
        named = [variable for variable in variables if variable]
        assert len(named) == len(set(named))
