"""Answers that vary, and those of a changed model."""

import pytest

from llm_provider.simulator._behaviour.variation import vary
from llm_provider.simulator._settings import Settings
from llm_provider.simulator.formats.wire_format import Prompt


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, {"a"}), ({"changed": 1.0}, {"a Changed."}), ({"border": 1.0}, {"Yes.a", "No. a"})],
)
def test_answers_differ_as_the_settings_say(settings: dict[str, float], expected: set[str]) -> None:
    prompt = Prompt(model="m", text="a", characters=1, request=None)
    assert {vary("a", prompt, Settings(**settings), str(number)) for number in range(50)} == expected  # type: ignore[arg-type]  # all are numbers
    noisy = [vary("a", prompt, Settings(noise=0.5), str(number)) for number in range(400)]
    assert 150 < noisy.count("a") < 250
