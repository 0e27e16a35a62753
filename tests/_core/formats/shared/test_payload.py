"""The parameters that few calls set: which formats have them, and what others say."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.formats.anthropic import encode as anthropic
from llm_provider._core.formats.gemini import encode as gemini
from llm_provider._core.formats.openai_chat import encode as chat
from llm_provider._core.formats.openai_responses import encode as responses
from llm_provider._core.formats.shared import payload
from llm_provider._core.requests.parameter_table import PARAMETERS
from llm_provider._features.litellm import encode as litellm
from openai_support import JSON_VALUES

FORMATS = (chat, responses, anthropic, gemini, litellm)


def test_a_parameter_that_some_format_has_has_a_remedy_for_the_others() -> None:
    sent = {name for name, row in PARAMETERS.items() if row.remedy}
    assert set().union(chat.OF_HOSTS, *(form.ACCEPTS for form in FORMATS)) == sent


OBJECTS = st.dictionaries(st.text(max_size=2), JSON_VALUES, max_size=3)


@given(OBJECTS, OBJECTS)
def test_the_users_value_wins_and_nothing_else_is_lost(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    before = repr((ours, theirs))
    merged = payload.merge(ours, theirs)
    assert repr((ours, theirs)) == before
    assert merged.keys() == ours.keys() | theirs.keys()
    for name, value in merged.items():
        if name not in theirs:
            assert value is ours[name]
        elif not isinstance(ours.get(name), dict) or not isinstance(theirs[name], dict):
            assert value is theirs[name]
        else:
            assert value.keys() == ours[name].keys() | theirs[name].keys()
