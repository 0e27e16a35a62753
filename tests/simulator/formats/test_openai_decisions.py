"""OpenAI's decisions, as its SDK reads them, and what they refuse."""

from typing import Any

import pytest

from llm_provider.simulator import Simulator

from ..conftest import Post

PATH = "/openai/v1/decisions"
QUESTIONS: list[Any] = [
    {"type": "predicate", "name": "polite", "instructions": "It is polite."},
    {"type": "choice", "instructions": "Which?", "choices": [{"value": "a"}, {"value": True}]},
    {"type": "score", "instructions": "How clear?", "levels": [{"label": "poor"}, {"label": "good"}]},
    {"type": "predicate", "instructions": "Please refuse this question."},
]


def test_the_sdk_reads_every_answer(llm_simulator: Simulator) -> None:
    openai = pytest.importorskip("openai")
    pytest.importorskip("openai.types.decision")
    with openai.OpenAI(base_url=llm_simulator.url("openai"), api_key="sk-test") as client:
        decision = client.decisions.create(model="gpt-6-luna", input="Come in.", questions=QUESTIONS)
    polite, which, clear, refused = decision.answers
    assert (polite.type, polite.name, 0 <= polite.probability <= 1) == ("predicate", "polite", True)
    assert {entry.value for entry in which.probabilities} == {"a", True}
    assert which.confidence == max(entry.probability for entry in which.probabilities)
    assert [(entry.label, entry.value) for entry in clear.probabilities] == [("poor", 0), ("good", 1)]
    assert clear.score == clear.probabilities[1].probability
    assert refused.type == "refusal"
    assert decision.usage.total_tokens == decision.usage.input_tokens > 0


def test_a_neighbour_changes_no_answer(post: Post) -> None:
    body = {"model": "gpt-6-luna", "input": "Come in.", "questions": QUESTIONS}
    together = post(PATH, body).json["answers"]
    assert [post(PATH, body | {"questions": [each]}).json["answers"][0] for each in QUESTIONS] == together


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": ""}, "model parameter"),
        ({"input": ""}, "Invalid value for 'input'"),
        ({"questions": []}, "from 1 to 400"),
        ({"questions": QUESTIONS[:1] * 401}, "from 1 to 400"),
        ({"questions": [{"type": "vector", "instructions": "x"}]}, "unknown type"),
        ({"questions": [{"type": "predicate"}]}, "instructions are missing"),
        ({"questions": [QUESTIONS[1] | {"choices": [{"value": "a"}]}]}, "from 2 to 255"),
        ({"questions": [QUESTIONS[1] | {"choices": [{"value": "a"}] * 2}]}, "unique"),
    ],
)
def test_wrong_requests_are_refused(post: Post, change: Any, says: str) -> None:
    answer = post(PATH, {"model": "gpt-6-luna", "input": "Hi", "questions": QUESTIONS} | change)
    assert answer.status == 400
    assert says in answer.json["error"]["message"]
