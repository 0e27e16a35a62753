"""Gemini's implicit cache for interactions needs no field, and the common part first."""

from llm_provider._core.requests.routing import resolve
from llm_provider._features.prompt_caching import gemini_interactions as prompt_cache
from llm_provider._features.prompt_caching.settings import mark_of_call

TOOL = {"type": "function", "name": "f"}
PAYLOAD = {
    "system_instruction": "Long. " * 9000,
    "tools": [TOOL],
    "input": [{"type": "user_input", "content": [{"type": "text", "text": "Hi"}]}, {"type": "thought"}],
}


def test_the_system_prompt_and_the_tools_come_first() -> None:
    units = prompt_cache.units(PAYLOAD)
    assert [unit.instructs for unit in units] == [True, True, False, False]
    assert [unit.text for unit in units] == [PAYLOAD["system_instruction"], None, "Hi", None]


def test_nothing_is_sent() -> None:
    mark = mark_of_call(prompt_cache, PAYLOAD, "gemini-3.8-flash")
    assert mark is None or prompt_cache.mark_prefix(PAYLOAD, mark) is PAYLOAD


def test_agents_have_none() -> None:
    assert prompt_cache.serves(resolve("gemini-3.8-flash", endpoint="interactions"))
    assert not prompt_cache.serves(resolve("deep-research-preview-04-2026"))
