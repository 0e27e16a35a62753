"""Names of other libraries get the parameter to write instead."""

import pytest

from llm_provider._core.requests.parameters import BatchParameters
from llm_provider._core.requests.routing import ROUTES, resolve
from llm_provider._features.foreign.remedies import describe_unexpected, problem_with, remedies_of


def test_embeddings_have_fewer_parameters() -> None:
    assert "write base_url=" in describe_unexpected("embed", "api_base", ["base_url"])
    assert "write" not in describe_unexpected("embed", "max_output_tokens", ["base_url"])
    assert "write" not in describe_unexpected("embed", "stream", ["base_url"])


def test_no_parameter_is_taken_for_a_foreign_one() -> None:
    assert not remedies_of("call").keys() & BatchParameters.__annotations__.keys()


def test_servers_that_litellm_knows_go_through_litellm() -> None:
    assert problem_with("ollama/llama3", {"openai": ()}) is None
    assert resolve("ollama/llama3").provider == "litellm"


def test_litellm_knows_none_of_them() -> None:
    litellm = pytest.importorskip("litellm")
    known = {str(getattr(provider, "value", provider)) for provider in litellm.provider_list}
    assert not known & {name for route in ROUTES.values() for name in route.other_names}
