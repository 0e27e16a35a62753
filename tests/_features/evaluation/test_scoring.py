"""`Results.score`: what a score may be, what a function may do, and where the scores go."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import (
    BatchError,
    Choice,
    Client,
    Decision,
    Decisions,
    LengthFinishReasonError,
    LLMError,
    OutputError,
    RateLimitError,
    RequestError,
    Response,
    Results,
    Score,
    Scores,
    Usage,
    verify,
)
from llm_provider._core.types.results_table import columns
from llm_provider._core.types.usage import RowLabel
from llm_provider._features.evaluation.scoring import read_score
from llm_provider.simulator import Fault, Simulator

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


def is_four(sample: Response[Any]) -> bool:
    return sample.text == "4"


def values(results: list[Any]) -> list[Any]:
    return [result.score_values for result in results]


def test_a_function_scores_each_sample_and_leaves_the_results_as_they_are() -> None:
    results = Results([answer("4", "5"), failed(), answer("4")])
    scored = results.score(is_four)
    assert values(scored) == [(1.0, 0.0), (None,), (1.0,)]
    assert values(results) == [(), (), ()]
    assert [sample.score_values for sample in scored[0].samples] == [(1.0,), (0.0,)]
    assert values(results.score(is_four, failed=0)) == [(1.0, 0.0), (0.0,), (1.0,)]
    again = scored.score(lambda _: {"length": 3})
    assert values(again) == [({"length": 3.0},) * 2, (None,), ({"length": 3.0},)]


def test_the_answered_samples_of_a_failed_call_are_not_scored() -> None:
    error = failed(samples=(answer("4"), answer("4")))
    scored = Results([error]).score(is_four, failed={"correct": False})
    assert values(scored) == [(None, None, {"correct": 0.0})]
    assert columns(scored)["score.correct"] == [None, None, 0.0]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (True, 1.0), (0, 0.0), (0.5, 0.5), (np.True_, 1.0), (np.float32(0.1), 0.1), (np.int64(3), 3.0),
        (np.array(0.5), 0.5), (None, None), (math.nan, None), (np.float32("nan"), None), (pd.NA, None),
        (failed(), None), ({}, None), ({"a": True, "b": None, "c": math.nan}, {"a": 1.0, "b": None, "c":
        None}), (decided(polite=0.9, short=0.2), {"polite": 0.9, "short": 0.2}), (Decision(name="x",
        kind="score", instructions="…", score=2.5), 2.5), (Decision(name="x", kind="choice", instructions="…",
        refusal="refusal"), None),
    ],
)  # fmt: skip
def test_what_a_score_may_be(given: Any, read: Any) -> None:
    assert read_score(given) == read


@pytest.mark.parametrize(
    "given",
    ["1", b"1", math.inf, -math.inf, 1j, [1.0], {1: 2.0}, {"": 1.0}, {"a": "b"}, {"a": {"b": 1}}, object(),
     np.array([1.0, 2.0]), Decision(name="x", kind="choice", instructions="…", choice="a")],
)  # fmt: skip
def test_what_is_no_score_names_its_result_and_the_remedy(given: Any) -> None:
    with pytest.raises(RequestError, match=r"a score is a number|name of a score|give another question"):
        read_score(given)
    with pytest.raises(BatchError, match=r"results\[1\], sample 0"):
        Results([answer("4"), answer("5")]).score(lambda sample: given if sample.text == "5" else 1)
    with pytest.raises(RequestError, match=r"scores\[1\]"):
        Results([answer("4"), answer("5")]).score(
            scores=[1, [given, given] if isinstance(given, list) else given]
        )


def test_an_exception_names_its_sample_and_the_others_keep_their_scores() -> None:
    results = Results([answer("4", "x"), failed(), answer("y"), answer("5")])
    with pytest.raises(
        BatchError, match=r"failed for 2 samples; the first is results\[0\], sample 1"
    ) as caught:
        results.score(lambda sample: int(sample.text))
    assert isinstance(caught.value.__cause__, ValueError)
    assert values(caught.value.results) == [(4.0, None), (None,), (None,), (5.0,)]
    assert values(results.score(lambda sample: int(sample.text), on_error="return"))[0] == (4.0, None)
    with pytest.raises(KeyboardInterrupt):
        results.score(interrupt)


def interrupt(_: object) -> None:
    raise KeyboardInterrupt


def test_an_answer_that_cannot_be_parsed_has_failed_and_not_the_function() -> None:
    def parse(sample: Response[Any]) -> float:
        if sample.text == "4":
            raise LengthFinishReasonError("the answer was cut")
        return 1.0

    results = Results([answer("4", "5")])
    assert values(results.score(parse)) == [(None, 1.0)]
    assert values(results.score(parse, failed=0)) == [(0.0, 1.0)]


async def asynchronous(_: object) -> float:
    return 1.0


class Judge:
    async def __call__(self, _: object) -> float:
        return 1.0


@pytest.mark.parametrize("function", [asynchronous, Judge(), lambda _: asynchronous(0)])
def test_an_asynchronous_function_is_refused_by_name(function: Callable[..., Any]) -> None:
    with pytest.raises(LLMError, match="ask the judge first"):
        Results([answer("4")]).score(function)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "one of them"),
        ({"function": is_four, "scores": [1]}, "one of them"),
        ({"function": "exact"}, "not 'exact'"),
        ({"function": is_four, "on_error": "skip"}, "on_error"),
        ({"function": is_four, "failed": "0"}, "a score is a number"),
        ({"scores": "12"}, "takes a list"),
        ({"scores": 3}, "takes a list"),
        ({"scores": [1, 2, 3, 4, 5]}, "5 scores came for 2 results with 3 rows"),
        ({"scores": [1, 2]}, r"scores\[0\] has 1 scores for 2 samples"),
        ({"scores": {2: 1}}, "an index 2"),
        ({"scores": {"a": 1}}, "an index 'a'"),
        ({"scores": [[1, 2], [1, 2]]}, r"scores\[1\] has 2 scores for 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Results([answer("4", "5"), answer("4")]).score(**arguments)


@pytest.mark.parametrize(
    "scores",
    [
        [[1, 0], None, 0.5], [1, 0, None, 0.5], pd.Series([1, 0, math.nan, 0.5]),
        np.array([1, 0, math.nan, 0.5]),
        {0: [True, False], 2: 0.5}, iter([1, 0, None, 0.5]), ([1, 0], math.nan, [0.5]),
    ],
)  # fmt: skip
def test_given_scores_are_those_of_rows_or_of_results(scores: Any) -> None:
    results = Results([answer("4", "5"), failed(), answer("4")])
    assert values(results.score(scores=scores)) == [(1.0, 0.0), (None,), (0.5,)]


def test_a_given_score_of_a_failed_call_is_kept() -> None:
    results = Results([failed(samples=(answer("4"),)), answer("4")])
    assert values(results.score(scores=[0, 1], failed=0.5)) == [(None, 0.0), (1.0,)]
    assert values(results.score(scores=[1, 0, 1])) == [(1.0, 0.0), (1.0,)]
    assert values(results.score(scores=[None, 1], failed=0.5)) == [(None, 0.5), (1.0,)]


def test_the_answers_of_a_judge_are_scores() -> None:
    judged = Results([decided(polite=0.9), failed(), decided(polite=0.1)])
    scored = Results([answer("a"), answer("b"), answer("c")]).score(scores=judged)
    assert values(scored) == [({"polite": 0.9},), (None,), ({"polite": 0.1},)]


@pytest.mark.parametrize("worst", [None, 0, 0.5])
@pytest.mark.parametrize("answered_only", [True, False], ids=["the answers", "all"])
@pytest.mark.parametrize("labels", [None, "abc", "cab"], ids=["no labels", "in order", "in another order"])
def test_a_judge_gives_no_score_to_a_failed_call(worst: Any, answered_only: bool, labels: Any) -> None:
    """Whether it was asked about the answers alone, or about an empty text in the place of the failed one."""
    label: Any = RowLabel if labels else lambda _: None
    results = Results([
        answer("4", row_label=label("a")), failed(row_label=label("b")), answer("5", row_label=label("c")),
    ])  # fmt: skip
    by_name = {"a": 0.9, "b": 0.3, "c": 0.1}
    asked = [name for name in labels or "abc" if not (answered_only and name == "b")]
    judged = [replace(decided(polite=by_name[name]), row_label=label(name)) for name in asked]
    rows = values(results.score(scores=Results(judged), failed=worst))
    assert rows == [({"polite": 0.9},), (None if worst is None else {"polite": worst},), ({"polite": 0.1},)]


@pytest.mark.parametrize(
    "gap", [np.float16("nan"), np.float32("nan"), np.longdouble("nan"), np.array(np.nan)]
)
def test_a_gap_of_numpy_is_missing_in_every_precision(gap: Any) -> None:
    several = Results([answer("4", "5"), answer("6")])
    for scores in ([gap, 1], [[gap, gap], 1], [gap, gap, 1]):
        assert values(several.score(scores=scores)) == [(None, None), (1.0,)] or scores == [gap, 1]
    assert values(several.score(scores=[gap, 1])) == [(None,), (1.0,)]
    assert values(several.score(lambda _: {"a": gap, "b": 1}))[1] == ({"a": None, "b": 1.0},)
    grouped = Results([answer("4", metadata={"level": gap}), answer("5", metadata={"level": None})])
    assert len(grouped.score(scores=[0, 1]).summarize_scores("level").rows) == 1


@pytest.mark.parametrize("index", [[0, 2], [2, 0], [0, 1]])
def test_a_column_of_the_answers_alone_is_placed_by_its_index(index: list[int]) -> None:
    results = Results([answer("4"), failed(), answer("5")])
    column = pd.Series([0.25 * (1 + place) for place in index], index=index)
    if index == [0, 1]:
        with pytest.raises(RequestError, match="is not the index of"):
            results.score(scores=column)
        assert values(results.score(scores=column.to_numpy())) == [(0.25,), (None,), (0.5,)]
    else:
        assert values(results.score(scores=column, failed=0)) == [(0.25,), (0.0,), (0.75,)]


@pytest.mark.parametrize("way", ["function", "scores"])
def test_one_number_for_failed_calls_is_that_of_each_name(way: str) -> None:
    results = Results([answer("4", "x"), failed(), answer("5")])

    def judge(sample: Any) -> Any:
        if sample.text == "x":
            raise OutputError("no JSON")
        return {"correct": is_four(sample), "length": 1}

    given: Any = {"function": judge} if way == "function" else {
        "scores": [[{"correct": 1, "length": 1}, None], None, {"correct": 0, "length": 1}]
    }  # fmt: skip
    rows = values(results.score(**given, failed=0))
    worst = {"correct": 0.0, "length": 0.0}
    second = worst if way == "function" else None
    assert rows == [({"correct": 1.0, "length": 1.0}, second), (worst,), ({"correct": 0.0, "length": 1.0},)]
    assert values(results.score(**given, failed={"correct": 0}))[1] == ({"correct": 0.0},)


def test_decisions_and_scores_of_texts_can_be_scored_themselves() -> None:
    score = Score(text="a", logprob=-0.5, tokens=("a",), token_logprobs=(-0.5,), bytes=1)
    scores = Scores(context="x", scores=(score, score), **PARTS)
    results: Results[Any] = Results([decided(a=0.9, b=0.2), scores])
    scored = results.score(lambda each: 1 if isinstance(each, Decisions) else {"best": each.best.logprob})
    table = columns(scored)
    assert table["score.value"] == [1.0, None, None, None]
    assert table["score.best"] == [None, None, -0.5, None]
    assert json.loads(json.dumps(scored[0].to_dict()))["score_values"] == [1.0]


def test_every_table_has_a_column_and_metadata_keep_theirs() -> None:
    results = Results(
        [answer("4", "5", metadata={"score": "hard", "id": 1}), failed(metadata={"score": "easy"})]
    )
    scored = results.score(is_four)
    table = scored.to_pandas()
    assert table["score"].tolist()[:2] == [1.0, 0.0]
    assert math.isnan(table["score"][2])
    assert table["metadata_score"].tolist() == ["hard", "hard", "easy"]
    assert list(table).index("score") == list(table).index("text") + 1
    assert results.to_pandas()["score"].tolist() == ["hard", "hard", "easy"]
    named = results.score(lambda _: {"correct": True, "length": 1})
    assert {"score.correct", "score.length"} <= {*named.to_pandas()}


@given(st.lists(st.lists(st.sampled_from("45x"), min_size=1, max_size=3), min_size=1, max_size=8), st.data())
def test_the_column_is_what_the_function_says_of_each_row(
    texts: list[list[str]], data: st.DataObject
) -> None:
    results = Results([failed() if each[0] == "x" else answer(*each) for each in texts])
    scored = results.score(is_four, failed=data.draw(st.sampled_from([None, 0.25])))
    table = columns(scored)
    for text, error, score in zip(table["text"], table["error"], table["score"], strict=True):
        assert score == (text == "4") if error is None else score in (None, 0.25)


def test_the_cause_of_a_failed_call_stays() -> None:
    error = failed()
    error.__cause__ = ValueError("why")
    assert Results([error]).score(is_four)[0].__cause__ is error.__cause__


def test_a_run_that_goes_on_is_scored_as_one_that_was_whole(tmp_path: Path, simulator: Simulator) -> None:
    """Several models and samples, a call that fails at first, and the evidence of the whole."""
    numbers = range(10, 16)
    expected = [str(number + 5 + (number == 14)) for number in numbers]
    models = ["gpt-6.1-sol", "claude-haiku-5-5"]

    def ask() -> dict[str, Results[Any]]:
        sweep = client.call_many(
            models, [f"What is {number} + 5?" for number in numbers], metadata=expected, n=3, max_tokens=200
        )
        right: Callable[[Response[Any]], bool] = lambda sample: sample.text == sample.metadata  # noqa: E731
        return {model: results.score(right) for model, results in sweep.items()}

    with Client(cache_dir=tmp_path / "cache", max_retries=0) as client:
        simulator.inject(Fault(status=400), match="12 + 5")
        first = ask()
        simulator.drop_faults()
        second, stored = ask(), ask()
        everything: Results[Any] = sum(second.values(), Results())
        evidence = everything.export(tmp_path / "a.zip", client=client)
    failed_rows = [each.score_values for results in first.values() for each in results.errors]
    assert failed_rows
    assert {each[-1] for each in failed_rows} == {None}
    assert sum(row["failed"] for row in sum(first.values(), Results()).summarize_scores().rows) == len(
        failed_rows
    )
    assert [values(each) for each in stored.values()] == [values(each) for each in second.values()]
    table = everything.to_pandas().groupby("model")["score"].mean()
    summary = everything.summarize_scores()
    assert [row["mean"] for row in summary.rows] == pytest.approx(
        [table[row["model"]] for row in summary.rows]
    )
    assert [row["mean"] for row in summary.rows] == pytest.approx([5 / 6] * 2)
    assert verify(evidence.path).manifest["figures"]["total"]["scored"] == len(everything)


@given(st.data())
def test_a_column_is_put_in_order_by_its_index(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    labelled = data.draw(st.booleans())
    labels = [RowLabel(f"q{place}") for place in range(len(counts))]
    results = Results(
        answer(*map(str, range(count)), row_label=label if labelled else None)
        for count, label in zip(counts, labels, strict=True)
    )
    table = results.to_pandas()
    wanted = results.score(scores=list(range(len(table)))).to_pandas()["score"].tolist()
    column = pd.Series(range(len(table)), index=table.index)
    shuffled = column.iloc[data.draw(st.permutations(range(len(table))))]
    if shuffled.index.equals(table.index) or table.index.is_unique:
        assert results.score(scores=shuffled).to_pandas()["score"].tolist() == (
            wanted if table.index.is_unique else shuffled.tolist()
        )
    else:
        with pytest.raises(RequestError, match="to_numpy"):
            results.score(scores=shuffled)
    other = pd.Series(range(len(table)), index=[("x", place) for place in range(len(table))])
    with pytest.raises(RequestError, match="to_numpy"):
        results.score(scores=other)
    assert results.score(scores=other.to_numpy()).to_pandas()["score"].tolist() == wanted


def test_judgements_are_put_in_order_by_the_labels_of_their_rows() -> None:
    results = Results(answer(str(number)) for number in range(4))
    judged = [replace(decided(good=number / 4), row_label=RowLabel(number)) for number in (2, 0, 3, 1)]
    scores = results.score(scores=Results(judged)).to_pandas()["score.good"].tolist()
    assert scores == [0, 0.25, 0.5, 0.75]
    unlabelled = [replace(each, row_label=None) for each in judged]
    assert results.score(scores=Results(unlabelled)).to_pandas()["score.good"].tolist() == [
        0.5,
        0,
        0.75,
        0.25,
    ]


def test_judgements_with_a_choice_are_told_how_to_take_one_question() -> None:
    chosen = Decision(name="k", kind="choice", instructions="…", choice="full")
    judged = [
        Decisions(input="text", decisions=(*decided(c=good).decisions, chosen), **PARTS)
        for good in (0.25, 0.75)
    ]
    results = Results(answer(str(number)) for number in range(2))
    with pytest.raises(RequestError, match=r"scores\[0\]: the question 'k' has the choice 'full'") as caught:
        results.score(scores=judged)
    for remedy in re.findall(r"\[each.*?judged\]", str(caught.value)):
        scores = eval(remedy.replace("NAME", "c"), {"judged": judged})  # what the message says to write
        assert values(results.score(scores=scores)) in ([(0.25,), (0.75,)], [(1.0,), (1.0,)])
