"""Headers of the environment: they never replace the key, and what they change is not mixed up."""

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, RequestError
from llm_provider.simulator import Simulator

VARIABLES = {"gpt-6.1-sol": "OPENAI", "gpt-5.5-pro": "OPENAI", "claude-sonnet-5-5": "ANTHROPIC"}
OWN = ["Authorization", "authorization", "X-API-Key", "x-goog-api-key", "api-key", "Host", "Content-Length"]


USES: dict[str, Callable[[Client, str], object]] = {
    "call": lambda client, model: client.call(model, "Hi"),
    "stream": lambda client, model: list(client.stream(model, "Hi")),
    "acall": lambda client, model: asyncio.run(client.acall(model, "Hi")),
    "call_many": lambda client, model: client.call_many(model, ["Hi"], on_error="raise", progress=False),
    "batch": lambda client, model: client.call_many(
        model, ["Hi"], on_error="raise", delivery="batch", progress=False
    ),
    "models": lambda client, model: client.models(VARIABLES[model].lower(), live=True),
}


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("model", VARIABLES)
def test_no_variable_replaces_the_key(
    own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, model: str, use: Any, own: str
) -> None:
    monkeypatch.setenv(f"{VARIABLES[model]}_CUSTOM_HEADERS", f"X-Team: red\n{own}: Bearer sk-other")
    with (
        Client(cache_dir=own_cache) as client,
        pytest.raises(RequestError, match=r"CUSTOM_HEADERS cannot set.*api_key=") as caught,
    ):
        use(client, model)
    assert "sk-other" not in str(caught.value)
    assert not simulator.requests()


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("model", VARIABLES)
@pytest.mark.sampled(5)
def test_other_headers_are_sent_and_are_part_of_the_key(
    own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, model: str, use: Any
) -> None:
    monkeypatch.setenv(f"{VARIABLES[model]}_CUSTOM_HEADERS", "no header\nX-Team: red")
    with Client(cache_dir=own_cache) as client:
        use(client, model)
        first = simulator.requests()
        assert {request.headers.get("x-team") for request in first} == {"red"}
        monkeypatch.setenv(f"{VARIABLES[model]}_CUSTOM_HEADERS", "X-Team: blue")
        use(client, model)
        assert len(simulator.requests()) > len(first)
        assert client.call(model, "Hi", extra_headers={"X-TEAM": "green"}).cached is False
        assert simulator.requests()[-1].headers["x-team"] == "green"


@pytest.mark.parametrize("model", ["groq/openai/gpt-oss-120b", "local/m", "gemini/gemini-4-argon"])
def test_no_other_host_gets_them(
    own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", "Authorization: Bearer sk-other\nX-Team: red")
    with Client(cache_dir=own_cache) as client:
        client.call(model, "Hi")
    (request,) = simulator.requests()
    assert "x-team" not in request.headers
    assert "sk-other" not in repr(request)


@pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is not installed")
def test_litellm_is_not_called_with_such_a_variable(
    own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-other")
    with Client(cache_dir=own_cache) as client, pytest.raises(RequestError, match="cannot set"):
        client.call("litellm/openai/gpt-6.1-sol", "Hi", base_url=simulator.url("openai"), api_key="sk-test")
    assert not simulator.requests()
