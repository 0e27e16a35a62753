"""Prefixes of other tools: the message for them, and those that litellm may know."""

from __future__ import annotations

import pytest

from llm_provider import UnknownModelError
from llm_provider._requests.foreign_prefixes import problem_with
from llm_provider._requests.routing import ROUTES, resolve


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
