"""The parameters that few calls set: which formats have them, and what others say."""

from __future__ import annotations

from golden import Pair, golden
from llm_provider._providers.anthropic import adapter as anthropic
from llm_provider._providers.gemini import adapter as gemini
from llm_provider._providers.litellm import adapter as litellm
from llm_provider._providers.openai import chat, responses
from llm_provider._requests.parameter_table import PARAMETERS


@golden("parameters")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()


FORMATS = (chat, responses, anthropic, gemini, litellm)


def test_a_parameter_that_some_format_has_has_a_remedy_for_the_others() -> None:
    sent = {name for name, row in PARAMETERS.items() if row.remedy}
    assert set().union(*(form.ACCEPTS for form in FORMATS)) == sent
