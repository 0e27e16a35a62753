"""The days of models' retirement without a live list, and the warning of a run."""

import warnings
from datetime import UTC, datetime

import pytest

from llm_provider import models as list_models
from llm_provider._core.requests.routing import ROUTES, Target
from llm_provider._core.runtime import clock
from llm_provider._features.models import retirements


def test_models_have_the_day_without_a_list() -> None:
    days = {model.name: model.retires_at for model in list_models()}
    assert days["claude-opus-4-5"] == "2027-01-22"
    assert days["gemini/gemini-2.5-pro"] == "2026-12-01"
    assert days["claude-haiku-5-5"] is None


NAMES = {
    "near": ("claude-opus-4-5-20251101", "retires on 2027-01-22"),
    "the answer's name": ("claude-opus-latest", "retires on 2027-01-22"),
    "far": ("gemini-embedding-001", None),
    "past": ("gpt-3.5-turbo", None),
    "unknown": ("claude-haiku-5-5", None),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("custom", [False, True])
def test_a_run_is_warned_once_at_the_providers_own_server(
    monkeypatch: pytest.MonkeyPatch, name: str, custom: bool
) -> None:
    model, words = NAMES[name]
    route = ROUTES["gemini" if "gemini" in model else "openai" if "gpt" in model else "anthropic"]
    target = Target(route, model, "http://127.0.0.1:9" if custom else route.base_url, custom)
    answered = "claude-opus-4-5" if name == "the answer's name" else None
    monkeypatch.setattr(clock, "time", datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp)
    retirements._retiring_soon.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        retirements.warn_of_retirement(target, (model, answered))
        retirements.warn_of_retirement(target, (model, answered))
    retirements._retiring_soon.cache_clear()
    assert len(caught) == (words is not None and not custom)
    assert all(words is not None and words in str(each.message) for each in caught)
