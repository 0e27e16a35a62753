"""What stands in the place of a format's functions at servers other than its maker's."""

import pytest

from llm_provider._core.formats import registry
from llm_provider._core.formats.openai import encode as adapter
from llm_provider._core.requests.routing import resolve


@pytest.mark.parametrize(
    ("model", "base_url", "module"),
    [
        ("gpt-6.1-sol", None, ""),
        ("gpt-6.1-sol", "http://127.0.0.1:1/v1", None),
        ("groq/openai/gpt-oss-120b", None, None),
        ("openrouter/openai/gpt-oss-120b", None, "routers"),
        ("openrouter/openai/gpt-oss-120b", "http://127.0.0.1:1/v1", "routers"),
        ("local/m", None, None),
    ],
)
def test_the_row_names_the_module(model: str, base_url: str | None, module: str | None) -> None:
    target = resolve(model, base_url)
    assert target.quirks == module
    found = registry.load("openai", target.quirks)
    standard = [name for name in adapter.__all__ if getattr(found, name) is getattr(adapter, name)]
    changed = set() if module == "" else {"encode", "decode", "assembler"}
    assert set(adapter.__all__) - set(standard) == changed
