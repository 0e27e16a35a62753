"""Replies of the endpoints for decisions, changed at any place: an answer or a typed error."""

import contextlib
import copy
import functools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decision_server import serving
from llm_provider import LLMError, choice, predicate, score_levels
from llm_provider._core.requests.routing import resolve
from llm_provider._features.decide import gemini, openai
from llm_provider._features.decide.native import from_weights

QUESTIONS = (predicate("Polite?"), choice("Which?", ["a", "b"]), score_levels("How?", ["poor", "good"]))
FORMATS: dict[str, Any] = {"gpt-6-luna": openai, "gemini-decision-1": gemini}
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
    st.sampled_from([[], {}, [None], {"a": 1}, "a", "choice", "refusal", 1e400, 10**400]),
)  # fmt: skip


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from list_paths(inner, (*path, name))


@functools.cache
def answer(model: str) -> Any:
    """A reply of the server, which its tests share."""
    form = FORMATS[model]
    path = "/v1beta/decisions" if form is gemini else "/v1/decisions"
    with serving() as server:
        return server.answer(path, {}, form.write(resolve(model, None), "Hello", QUESTIONS))[2]


@pytest.mark.parametrize("model", FORMATS)
@given(data=st.data())
def test_a_changed_reply_is_an_answer_or_a_typed_error(model: str, data: st.DataObject) -> None:
    form, reply = FORMATS[model], answer(model)
    assert len(form.read(reply, QUESTIONS)) == 3
    changed = copy.deepcopy(reply)
    *parents, last = data.draw(st.sampled_from(sorted(list_paths(reply), key=repr)), "place")
    inner = changed
    for name in parents:
        inner = inner[name]
    inner[last] = data.draw(VALUES, "value")
    for read in (lambda: form.read(changed, QUESTIONS), lambda: form.usage(changed)):
        with contextlib.suppress(LLMError):
            read()


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(any))
def test_weights_become_probabilities(weights: list[float]) -> None:
    judged = from_weights(score_levels("How?", ["a", "b", "c"]), weights)
    assert sum(judged.probabilities.values()) == pytest.approx(1)
    assert judged.score is not None
    assert 0 <= judged.score <= 2 + 1e-9
    assert judged.confidence == max(judged.probabilities.values())
