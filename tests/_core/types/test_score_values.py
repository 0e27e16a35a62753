"""Scores go with their results: through copies, pickles and files. What has none is as it was before."""

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    Choice,
    Decision,
    Decisions,
    LLMError,
    RateLimitError,
    RequestError,
    Response,
    Results,
    Usage,
)

PARTS: dict[str, Any] = {"usage": Usage(), "model": "m", "provider": "p", "cost": 0.0}


def answer(*texts: str, **more: Any) -> Response[Any]:
    choices = tuple(Choice(text=text) for text in texts)
    return Response(choices=choices, **{**PARTS, **more})  # type: ignore[arg-type]  # one at least


def failed(**more: Any) -> LLMError:
    error = RateLimitError("slow down", provider="p", model="m")
    for name, value in more.items():
        setattr(error, name, value)
    return error


def decided(**probabilities: float) -> Decisions:
    each = [
        Decision(name=name, kind="predicate", instructions="…", probability=value)
        for name, value in probabilities.items()
    ]
    return Decisions(input="text", decisions=tuple(each), **PARTS)


def values(results: list[Any]) -> list[Any]:
    return [result.score_values for result in results]


MIXED = Results([answer("4", "5"), failed(samples=(answer("4"),)), decided(a=0.5), answer("4")])


@pytest.mark.parametrize("function", [lambda _: 0.5, lambda _: {"a": 1, "b": None}])
@pytest.mark.parametrize(
    "carry",
    [
        copy.copy, copy.deepcopy, lambda each: each[:], lambda each: Results(iter(each)), lambda each: each +
        Results(), lambda each: sum([each[:2], each[2:]], Results()), lambda each: each.copy(), lambda each:
        pickle.loads(pickle.dumps(each)), lambda each: pickle.loads(pickle.dumps(each, 2)),
    ],
)  # fmt: skip
def test_scores_go_with_their_results(function: Any, carry: Any) -> None:
    scored = MIXED.score(function, failed=0)
    assert values(carry(scored)) == values(scored)
    assert values(carry(MIXED)) == [()] * 4
    assert values(scored.ok) == values([each for each in scored if not isinstance(each, LLMError)])


def test_results_without_scores_are_written_and_pickled_as_before(tmp_path: Path) -> None:
    for each in MIXED:
        assert "score_values" not in each.to_dict()
        assert b"score_values" not in pickle.dumps(each)
        assert b"scored" not in pickle.dumps(each)


def test_scores_are_in_the_lines_of_to_jsonl(tmp_path: Path) -> None:
    scored = MIXED.score(lambda _: {"a": 1, "b": None}, failed=0)
    scored.to_jsonl(tmp_path / "a.jsonl")
    assert values(Results.from_jsonl(tmp_path / "a.jsonl")) == values(scored)
    assert Response.from_dict(scored[0].to_dict()).score_values == scored[0].score_values
    for wrong in (7, ["x"], [{"a": "b"}], [math.inf]):
        fields = {**answer("4").to_dict(), "score_values": wrong}
        (tmp_path / "b.jsonl").write_text(json.dumps(fields))
        with pytest.raises(RequestError, match="line 1"):
            Results.from_jsonl(tmp_path / "b.jsonl")
