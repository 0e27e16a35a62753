"""`explain_miss` names what a question and the nearest stored one differ in."""

import contextlib
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from llm_provider import BadRequestError, CacheMissError, Client
from llm_provider._core.runtime import clock
from llm_provider._core.store.entry import NOT_KEPT
from llm_provider.simulator import Fault, Simulator

MODELS = ("gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash", "openai/gpt-6.1-sol")
PROMPT = "Name three birds of the Alps, and say in one sentence where each of them lives."
LONG = f"{PROMPT} {'It may be a common bird. ' * 200}"


def tool(description: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {}}
    return {
        "type": "function",
        "function": {"name": "find", "description": description, "parameters": schema},
    }


PARAMETERS: dict[str, Any] = {
    "max_tokens": 300,
    "system": "You know all birds.",
    "tools": [tool("Find a bird.")],
}
DISTRACTORS = (
    "Write a poem about the sea.",
    "What is 17 + 25?",
    "Name three fish of the North Sea, and say in two words what each of them eats.",
)

CHANGES: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    # The prompt, the parameters that differ, and a part of each path that may be named.
    "white space": (f" {PROMPT}\n", {}, ("text", "content", "parts", "input")),
    "case": (PROMPT.upper(), {}, ("text", "content", "parts", "input")),
    "one parameter": (PROMPT, {"max_tokens": 301}, ("max", "Max")),
    "system": (PROMPT, {"system": "Answer as a pirate."}, ("system", "messages[0]", "input[0]")),
    "no system": (PROMPT, {"system": None}, ("system", "messages[0]", "input[0]")),
    "draw": (PROMPT, {"draw": 2}, ("draw",)),
    "tool": (PROMPT, {"tools": [tool("Find a bird by its name.")]}, ("tools",)),
    "headers": (PROMPT, {"extra_headers": {"x-a": "b"}}, ("headers",)),
    "messages": (
        [
            {"role": "user", "content": PROMPT},
            {"role": "assistant", "content": "Chough."},
            {"role": "user", "content": "Two more?"},
        ],
        {},
        ("messages", "contents", "input"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(5)
def test_the_changed_field_is_named_among_distractors(client: Client, model: str, change: str) -> None:
    prompt, changed, paths = CHANGES[change]
    client.call(model, PROMPT, **PARAMETERS)
    parameters = {name: value for name, value in {**PARAMETERS, **changed}.items() if value is not None}
    # These are newer, and have the parameters of the question.
    for distractor in DISTRACTORS:
        client.call(model, distractor, **parameters)
    miss = client.explain_miss(model, prompt, **parameters)
    assert miss is not None
    assert miss.differences
    assert all(any(part in difference.path for part in paths) for difference in miss.differences), str(miss)
    assert ("only white space differs" in str(miss)) == (change == "white space")
    with pytest.raises(CacheMissError, match=r"; the nearest of \d+ stored requests"):
        client.call(model, prompt, cache="only", **parameters)


def test_another_model_and_another_server_are_named(simulator: Simulator, client: Client) -> None:
    client.call("gpt-6.1-sol", PROMPT)
    client.call("gpt-6.1-luna", DISTRACTORS[0])
    miss = client.explain_miss("gpt-6.1-luna", PROMPT)
    assert [difference.path for difference in miss.differences if miss] == ["payload.model"]
    miss = client.explain_miss("gpt-6.1-sol", PROMPT, base_url="https://example.com/v1")
    assert [difference.path for difference in miss.differences if miss] == ["base_url"]


def test_a_stored_question_is_said_to_be_stored(client: Client) -> None:
    for prompt in (PROMPT, LONG):
        client.call("gpt-6.1-sol", prompt)
        for model in ("gpt-6.1-sol", "openai/gpt-6.1-sol"):
            miss = client.explain_miss(model, prompt)
            assert str(miss).startswith("the question itself is stored under ")
            assert miss is not None
            assert (miss.stored, miss.differences) == (True, ())


@pytest.mark.parametrize("way", ["of the call", "of the client", "none", "long"])
def test_an_answer_that_is_too_old_is_told_with_its_age(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    ages: dict[str, Any] = {"of the call": timedelta(hours=1), "long": 1e6}
    own: dict[str, Any] = {"max_age": ages[way]} if way in ages else {}
    settings: dict[str, Any] = {"max_age": 3600.0} if way == "of the client" else {}
    with Client(cache_dir=tmp_path, **settings) as client:
        client.call("gpt-6.1-sol", PROMPT)
        now = time.time()
        monkeypatch.setattr(clock, "time", lambda: now + 3 * 86_400)
        miss = client.explain_miss("gpt-6.1-sol", PROMPT, **own)
        assert miss is not None
        assert miss.stored
        assert miss.age == pytest.approx(3 * 86_400, abs=100)
        is_old = way.startswith("of")
        assert miss.max_age == (3600 if is_old else None)
        assert str(miss).endswith(", but its answer is 72 h 0 min old, and max_age is 1 h 0 min") == is_old, (
            str(miss)
        )
        if is_old:
            with pytest.raises(CacheMissError, match="max_age is"):
                client.call("gpt-6.1-sol", PROMPT, cache="only", **own)
        else:
            assert client.call("gpt-6.1-sol", PROMPT, cache="only", **own).cached


SIBLING = "Which poetry was written by soldiers?"


@pytest.mark.parametrize("others", ["none", "other questions", "a row of the template"])
@pytest.mark.parametrize("end", ["fails", "length", "content_filter", "empty"])
def test_nothing_is_made_up_for_a_question_that_was_cut_or_failed(
    client: Client, simulator: Simulator, end: str, others: str
) -> None:
    rows = {"none": [], "other questions": DISTRACTORS[:3], "a row of the template": [SIBLING]}[others]
    for row in rows:
        client.call("gpt-6.1-sol", row)
    faults = {"fails": Fault(status=400), "empty": Fault(text="")}
    fault = faults.get(end) or Fault(finish=end)
    simulator.inject(fault, match="sailors", times=None)
    question = "Which poetry was written by sailors?"
    with contextlib.suppress(BadRequestError):
        client.call("gpt-6.1-sol", question)
    miss = client.explain_miss("gpt-6.1-sol", question)
    texts = {"none": "None", "other questions": f"none of 3 stored requests is similar; {NOT_KEPT}"}
    assert str(miss) == texts.get(others, str(miss))
    assert str(miss).endswith(f"; {NOT_KEPT}") == bool(rows)
    with pytest.raises(CacheMissError) as caught:
        client.call("gpt-6.1-sol", question, cache="only")
    assert ("differs" in str(caught.value)) == (others == "a row of the template")
    assert ("similar" in str(caught.value)) == (others == "other questions")
    assert str(caught.value).count(f"; {NOT_KEPT}") == 1


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ([0], "1 of 3 samples is stored; samples 1 and 2 are not"),
        ([0, 1], "2 of 3 samples are stored; sample 2 is not"),
        ([1], "1 of 3 samples is stored; samples 0 and 2 are not"),
        ([2], "1 of 3 samples is stored; samples 0 and 1 are not"),
    ],
)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(6)
def test_the_samples_that_are_stored_are_told(
    client: Client, model: str, stored: list[int], text: str
) -> None:
    for draw in stored:
        client.call(model, PROMPT, draw=draw, max_tokens=100)
    assert str(client.explain_miss(model, PROMPT, n=3, max_tokens=100)) == f"{text}; {NOT_KEPT}"
    with pytest.raises(CacheMissError) as caught:
        client.call(model, PROMPT, n=3, max_tokens=100, cache="only")
    assert f"sends nothing; {text}" in str(caught.value)


def test_a_stored_answer_that_is_not_kept_here_is_named(simulator: Simulator, own_cache: Path) -> None:
    simulator.inject(Fault(finish="length"), times=None)
    with Client(cache_dir=own_cache, cache_finish_reasons=("stop", "length")) as keeps:
        keeps.call("gpt-6.1-sol", PROMPT)
    with Client(cache_dir=own_cache) as client, pytest.raises(CacheMissError, match="not used: it is cut"):
        client.call("gpt-6.1-sol", PROMPT, cache="only")
