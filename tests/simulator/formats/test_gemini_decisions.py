"""Gemini's decisions, as its SDK reads them, and what they refuse."""

from typing import Any

import pytest

from llm_provider.simulator import Simulator

from ..conftest import Post

PATH = "/gemini/v1beta/decisions"
QUESTIONS: dict[str, Any] = {
    "polite": {"type": "noul", "instructions": "It is polite."},
    "which": {"type": "choice", "instructions": "Which?", "criteria": {"a": "the first", "b": ""}},
    "clear": {"type": "score", "instructions": "How clear?", "criteria": ["poor", "good"]},
}


def test_the_sdk_reads_every_answer(llm_simulator: Simulator) -> None:
    pytest.importorskip("google.genai.decisions")
    from google import genai

    client = genai.Client(api_key="test", http_options={"base_url": llm_simulator.url("gemini")})
    reply = client.decisions.create(model="models/gemini-decision-1", input="Come in.", questions=QUESTIONS)
    polite, which, clear = (reply.answers[name] for name in QUESTIONS)
    assert polite.confidence == max(polite.noul, 1 - polite.noul)
    assert which.confidence == which.probabilities[which.choice]
    assert clear.legend == {"0": "poor", "1": "good"}
    assert clear.score == clear.probabilities["1"]
    assert reply.usage.total_input_tokens > 0


def test_a_blocked_input_has_no_answers(post: Post) -> None:
    questions = {"x": {"type": "noul", "instructions": "refuse this question"}}
    body = {"model": "models/gemini-decision-1", "input": "Hi", "questions": questions}
    reply = post(PATH, body).json
    assert reply["prompt_feedback"] == {"block_reason": "safety"}
    assert "answers" not in reply


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "gemini-decision-1"}, "unexpected model name format"),
        ({"input": ""}, "input is not specified"),
        ({"questions": {}}, "from 1 to 1000"),
        ({"questions": {"x": {"type": "vector", "instructions": "x"}}}, "questions[x]: invalid"),
        ({"questions": {"x": QUESTIONS["which"] | {"criteria": {"a": ""}}}}, "questions[x]: invalid"),
    ],
)
def test_wrong_requests_are_refused(post: Post, change: Any, says: str) -> None:
    body = {"model": "models/gemini-decision-1", "input": "Hi", "questions": QUESTIONS} | change
    answer = post(PATH, body)
    assert answer.status == 400
    assert says in answer.json["error"]["message"]
