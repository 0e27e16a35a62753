"""Gemini's implicit cache needs no field, and the common part first."""

from llm_provider._features.prompt_caching import gemini as prompt_cache

from .test_settings import LONG, TOOL, encoded

MODEL = "gemini-3.8-flash"


def test_nothing_is_sent() -> None:
    request = encoded(MODEL, "Hi", system=LONG)
    assert (
        request.add_labels(request.payload) == encoded(MODEL, "Hi", system=LONG, prompt_caching=False).payload
    )


def test_the_system_prompt_and_the_tools_come_first() -> None:
    units = prompt_cache.units(encoded(MODEL, "Hi", system=LONG, tools=[TOOL]).payload)
    assert [unit.instructs for unit in units] == [True, True, False]
    assert [unit.text for unit in units] == [LONG, None, "Hi"]
