"""Names of other libraries get the parameter to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider import RequestError, UnknownModelError
from llm_provider._requests.foreign_names import _PARAMETERS, describe_unexpected, problem_with
from llm_provider._requests.parameters import BatchParameters
from llm_provider._requests.request import Request
from llm_provider._requests.routing import ROUTES, resolve


def message(error: type[Exception] = TypeError, **parameters: Any) -> str:
    with pytest.raises(error) as caught:
        Request.build("gpt-5.5", "Hi", parameters)  # type: ignore[arg-type]  # on purpose
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("stream", True, "stream()"),
        ("api_base", "https://x", "base_url="),
        ("engine", "gpt-5.5", "first argument"),
        ("functions", [], "tools="),
        ("max_completion_tokens", 5, "max_tokens="),
        ("max_output_tokens", 5, "max_tokens="),
        ("stop_sequences", ["x"], "stop="),
        ("generation_config", {}, "temperature="),
        ("thinking", {"type": "enabled"}, "thinking_budget="),
        ("drop_params", True, "unsupported='drop'"),
        ("max_concurrent", 5, "call_many()"),
        ("keys", {}, "Client(keys=...)"),
        ("temprature", 0, "did you mean 'temperature'?"),
    ],
)
def test_the_right_parameter_is_named(name: str, value: Any, remedy: str) -> None:
    text = message(**{name: value})
    assert text.startswith(f"call() got an unexpected parameter {name!r}")
    assert remedy in text


def test_values_of_other_libraries_say_what_to_write() -> None:
    assert "Timeouts(connect=5, first_byte=60)" in message(RequestError, timeout=(5, 60))
    assert "leave it out to use the key of the environment" in message(RequestError, api_key="")


def test_embeddings_have_fewer_parameters() -> None:
    assert "write base_url=" in describe_unexpected("embed", "api_base", ["base_url"])
    assert "write" not in describe_unexpected("embed", "max_output_tokens", ["base_url"])
    assert "write" not in describe_unexpected("embed", "stream", ["base_url"])


def test_no_parameter_is_taken_for_a_foreign_one() -> None:
    assert not _PARAMETERS.keys() & BatchParameters.__annotations__.keys()


def test_the_prefix_of_this_library_is_named() -> None:
    with pytest.raises(UnknownModelError, match="write 'xai/grok-4'"):
        resolve("x-ai/grok-4")
    with pytest.raises(UnknownModelError, match=r"write 'local/a/b' and base_url='http://localhost:1234/v1'"):
        resolve("lmstudio/a/b")


def test_servers_that_litellm_knows_go_through_litellm() -> None:
    assert problem_with("ollama", "llama3", {"openai": ()}) is None
    assert resolve("ollama/llama3").provider == "litellm"


def test_no_name_has_two_meanings() -> None:
    names = [name for route in ROUTES.values() for name in route.other_names]
    assert len(names) == len(set(names))
    assert not set(names) & ROUTES.keys()


def test_litellm_knows_none_of_them() -> None:
    litellm = pytest.importorskip("litellm")
    known = {str(getattr(provider, "value", provider)) for provider in litellm.provider_list}
    assert not known & {name for route in ROUTES.values() for name in route.other_names}
