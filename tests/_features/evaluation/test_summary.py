"""Means by model and group, and comparisons: what is counted, what is left out, and who is paired."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import (
    Choice,
    Client,
    LLMError,
    PassedOver,
    RateLimitError,
    RequestError,
    Response,
    Results,
    Usage,
    compare,
)
from llm_provider._features.evaluation.statistics import measure
from llm_provider._features.evaluation.summary import find_score, read_samples, report_runs


def answer(*texts: str, **more: Any) -> Response[Any]:
    parts: dict[str, Any] = {"usage": Usage(), "model": "m", "provider": "p", "cost": 0.0}
    choices = tuple(Choice(text=text) for text in texts)
    return Response(choices=choices, **(parts | more))  # type: ignore[arg-type]  # one at least


def failed(model: str = "m", **more: Any) -> LLMError:
    error = RateLimitError("slow down", provider="p", model=model)
    for name, value in more.items():
        setattr(error, name, value)
    return error


def run(*rows: Any, **more: Any) -> Results[Any]:
    """Results with the given scores: a list for samples, "failed" for an error."""
    results = [
        failed(metadata={"id": index})
        if row == "failed"
        else answer(*map(str, row), prompt=f"question {index}", metadata={"id": index}, **more)
        for index, row in enumerate(rows)
    ]
    return Results(results).score(
        scores=[None if row == "failed" else [None if each is None else each for each in row] for row in rows]
    )


def test_means_are_by_model_and_group_and_say_what_they_leave_out() -> None:
    results = Results([
        answer("a", "b", metadata={"level": 1}), answer("a", "a", metadata={"level": 2}),
        answer("a", "?", metadata={"level": 2}, model="n"), failed("n", metadata={"level": 1}),
        failed("n", metadata=None),
    ])  # fmt: skip
    scored = results.score(lambda sample: None if sample.text == "?" else sample.text == "a")
    rows = [
        {name: row[name] for name in ("model", "mean", "questions", "samples", "without", "failed")}
        for row in scored.summarize_scores().rows
    ]
    assert rows == [
        {"model": "m", "mean": 0.75, "questions": 2, "samples": 4, "without": 0, "failed": 0},
        {"model": "n", "mean": 1.0, "questions": 1, "samples": 1, "without": 1, "failed": 2},
    ]
    table = scored.summarize_scores("level")
    assert [(row["model"], row["level"], row["mean"], row["failed"]) for row in table.rows] == [
        ("m", "1", 0.5, 0), ("m", "2", 1.0, 0), ("n", "2", 1.0, 0), ("n", "1", None, 1), ("n", None, None, 1),
    ]  # fmt: skip
    assert list(table.notes) == [
        "failed calls left out: 2; score(..., failed=0) counts each as 0",
        "samples without a score, left out: 1",
        "no interval where there is one question",
    ]  # fmt: skip
    same = "the same mean, or the same 'level'"
    rated = results.score(lambda _: 3).summarize_scores(cluster="level")
    assert rated.notes[-2:] == [
        "no interval where there is one question",
        f"no interval where all questions have {same}: nothing tells how much it varies",
    ]
    zero = results.score(lambda sample: sample.text == "a", failed=0).summarize_scores()
    assert [(row["mean"], row["failed"]) for row in zero.rows] == [(0.75, 0), (pytest.approx(1 / 6), 0)]
    assert list(zero.notes) == ["failed calls with a score: 2"]


@pytest.mark.parametrize(
    "end", ["", "-2026-05-01", "-20260501", "@20260501", "-0501", "-2605", "-001", "-0501-v1:0"]
)
@pytest.mark.parametrize("path", ["", "maker/"])
def test_a_failed_call_is_of_the_model_that_answers_under_the_name_that_was_asked(
    end: str, path: str
) -> None:
    served = answer("a", model=f"{path}big{end}")
    for asked in ("big", "p/big", "big-latest", f"openrouter/{path}big", served.model):
        assert groups([served, failed(asked)]) == [served.model]
    for other in ("bi", "big-mini", "big-1", "bigger", "other/big", "big-2026-06-01", "big-mini-latest"):
        is_same = other == "other/big" and not path
        assert groups([served, failed(other)]) == [served.model, other][: 2 - is_same]
        answers = answer("a", model=f"{other}{end}")
        is_same = other == "other/big" or f"{other}{end}" == "big-2026-06-01"
        assert groups([answers, failed("big")])[1:] == ["big"] * (not is_same)
    second = answer("a", model=f"{path}big-2026-06-01")
    assert groups([served, second, failed("big-latest")])[2:] == ["big-latest"]
    # The samples that were answered tell which of two it was.
    assert groups([served, second, failed("big-latest", samples=(second,))])[2:] == []


def groups(results: list[Any]) -> list[Any]:
    return [row["model"] for row in Results(results).score(lambda _: 1).summarize_scores().rows]


def test_repeated_questions_are_one_question_and_clusters_hold_several() -> None:
    same = Results([answer(text, prompt="q", metadata="x") for text in "aab"] + [answer("b", prompt="r")])
    [row] = same.score(lambda sample: sample.text == "a").summarize_scores().rows
    assert (row["questions"], row["samples"], row["mean"]) == (2, 4, pytest.approx(1 / 3))
    texts = Results([
        answer(letter, prompt=f"{number}", metadata={"passage": text})
        for number, (letter, text) in enumerate(zip("aabbab", ["x", "x", "y", "y", None, None], strict=True))
    ])  # fmt: skip
    scored = texts.score(lambda sample: sample.text == "a")
    plain, clustered = (scored.summarize_scores(cluster=name).rows[0] for name in (None, "passage"))
    assert plain["mean"] == clustered["mean"] == 0.5
    assert plain["questions"] == clustered["questions"] == 6
    assert clustered["error"] == pytest.approx(
        measure({i: [v] for i, v in enumerate([1, 1, 0, 0, 1, 0])}, dict(enumerate("xxyyab"))).error
    )
    assert clustered["error"] > plain["error"]


@pytest.mark.parametrize("repeats", [1, 2, 5])
@pytest.mark.parametrize("models", ["m", "mn"])
@pytest.mark.parametrize("errors", [0, 2])
def test_a_note_counts_rows_that_repeat_a_question(repeats: int, models: str, errors: int) -> None:
    rows = [answer("a", prompt=prompt, model=model) for model in models for prompt in "pqr" * repeats]
    results = Results(rows + [failed(model) for model in models] * errors).score(lambda _: 1)
    table = results.summarize_scores()
    assert [(row["questions"], row["samples"]) for row in table.rows] == [(3, 3 * repeats)] * len(models)
    more = len(rows) - 3 * len(models)
    note = f"rows that repeat a question, counted as its samples: {more} of {len(results)}"
    assert (note in table.notes) == (repeats > 1)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda scored: scored.summarize_scores("colour"), "no column 'colour' in the metadata; it has: id"),
        (lambda scored: scored.summarize_scores("model"), "has a row for each model without it"),
        (lambda scored: scored.summarize_scores(cluster="colour"), "no column 'colour'"),
        (lambda scored: compare(scored, scored, by="colour"), "no column 'colour'"),
        (lambda scored: compare(scored, scored, cluster="colour"), "no column 'colour'"),
        (lambda scored: compare(scored, scored, score="style"), "no score 'style'; the results have: score"),
        (lambda _: Results([answer("a")]).summarize_scores(), "score them first"),
        (lambda _: Results().summarize_scores(), "score them first"),
        (lambda scored: compare(scored, Results([answer("a")])), "score them first"),
        (lambda scored: compare(scored, run("failed", "failed", [1])), "no question has a score in both"),
        (lambda scored: compare(scored, scored).count_questions(0.1), "differ by one amount"),
        (lambda scored: compare(scored, run([1], [1])).count_questions(0), "other than 0"),
        (lambda scored: compare(scored, run([1], [1])).count_questions(1e-200), "too far from the variance"),
        (lambda scored: compare(run([1e300], [0]), scored).count_questions(1), "too far from the var"),
        (lambda _: compare(run([1.7e308]), run([-1.7e308])), "divide the scores by a constant"),
        (lambda scored: scored.score(lambda _: {"a": None}).summarize_scores(), "all 2 scores are missing"),
        (lambda scored: scored.score(lambda _: math.nan).summarize_scores(), "all 2 scores are missing"),
        (lambda scored: compare(scored, run([1], [1])).count_questions(math.nan), "other than 0"),
        (lambda scored: compare(scored, run([1], [1])).count_questions(0.1, power=1), "between 0.05 and 1"),
        *[
            (lambda scored, wrong=wrong: compare(scored, run([1], [1])).count_questions(wrong), problem)
            for wrong, problem in [
                (3, "differ by 3: 3 points of 100 are 0.03"), (np.float64(-1.5), "do not differ by -1.5"),
                (True, "other than 0"), ("x", "other than 0"), (None, "other than 0"),
            ]
        ],
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused_with_a_remedy(act: Callable[[Any], object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        act(run([1], [0]))


@pytest.mark.parametrize("wrong", [["id"] * 2, [1], 3, ("id",), {"id": 1}, len])
@pytest.mark.parametrize("name", ["by", "cluster"])
def test_what_is_no_name_of_a_column_is_refused(name: str, wrong: Any) -> None:
    if name == "by" and wrong in (["id"] * 2, ("id",)):
        return  # several columns
    scored = run([1], [0])
    for act in (scored.summarize_scores, lambda **given: compare(scored, scored, **given)):
        for value in (wrong, pd.Series([1, 2]), pd.DataFrame({"id": [1]})):
            with pytest.raises(RequestError, match=r"it has: id; by= and cluster= take names of columns"):
                act(**{name: value})


WRONG = [{"m": run([1])}, [run([1])], None, "results", run([1])[0], run([1]).summarize_scores(), [{}], ()]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("side", ["a", "b"])
def test_what_are_no_results_of_one_run_is_refused(side: str, wrong: Any) -> None:
    other = run([1])
    sides = (wrong, other) if side == "a" else (other, wrong)
    with pytest.raises(RequestError, match=rf"^{side} of compare\(a, b\) takes the Results of one run"):
        compare(*sides)


def test_the_results_of_several_models_say_how_to_take_one() -> None:
    sweep: Any = {"new": run([1]), "old": run([0])}
    with pytest.raises(RequestError, match=r"of one run, such as results\['new'\], not"):
        compare(sweep)


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize(
    "mixed", [run([1], [0]) + run([1], [1], model="n"), run([1]) + run("failed", model="n")]
)
def test_a_run_has_one_model_for_each_question(side: str, mixed: Results[Any]) -> None:
    one = run([1], [1])
    sides = (mixed, one) if side == "a" else (one, mixed)
    if len(mixed.ok) < 4:
        assert compare(*sides).questions == 1
        return
    with pytest.raises(
        RequestError, match=rf"^{side} has answers of 'm' and 'n' to one question: "
    ) as caught:
        compare(*sides)
    code = str(caught.value).partition(", as ")[2]
    assert compare(one, eval(code, {"Results": Results, side: mixed})).questions == 2


def test_other_questions_and_other_samples_may_have_another_model() -> None:
    halves = run([1], model="n") + run([0], [1], [0])[1:]
    assert compare(run([1], [1], [1]), halves).questions == 3
    instead = (PassedOver(model="m", error="RateLimitError"),)
    stood_in = run([1]) + run([0], model="n", passed_over=instead)
    assert compare(run([1]), stood_in).difference == 0.5


def test_a_difference_above_1_is_possible_where_scores_are() -> None:
    assert compare(run([5], [1]), run([1], [2])).count_questions(3) == 11


def test_a_name_is_needed_among_several_scores() -> None:
    scored = run([1], [0]).score(lambda sample: {"right": sample.text == "1", "length": 3})
    assert [row["score"] for row in scored.summarize_scores().rows] == ["score.right", "score.length"]
    with pytest.raises(RequestError, match=r"several scores: give one of score\.right, score\.length"):
        compare(scored, scored)
    assert (
        compare(scored, scored, score="right").p_value
        == compare(scored, scored, score="score.right").p_value
        == 1
    )
    assert (name := find_score(scored, "length"))
    assert [list(read_samples(each.score_values, name, failed=False)) for each in scored] == [[3.0], [3.0]]
    assert find_score(Results([answer("a")]), None) is None
    assert list(read_samples((1.0, None, 0.0), "score", failed=True)) == [0.0]


def test_what_one_run_lacks_is_left_out_and_counted() -> None:
    a, b = run([1, 0], [1], "failed", [0], [1]), run([0], "failed", [1], [0, 0], [None])
    compared = compare(a, b)
    assert (compared.questions, compared.difference) == (2, 0.25)
    assert list(compared.notes) == ["left out, without a score in one of the runs: 3 of 5 questions"]
    assert compared.rows[0]["mean a"] == 0.25
    assert compared.rows[0]["mean b"] == 0


@pytest.mark.parametrize("longer", ["a", "b", "both"])
def test_questions_that_a_run_repeats_are_samples_of_one(longer: str) -> None:
    def rows(name: str, *scores: float) -> Results[Any]:
        numbers = [*range(4), 0, 0] if longer in (name, "both") else range(4)
        values = [scores[0], 1.0, 0.0, 1.0, *scores[1:]]
        results = [answer("x", prompt=f"question {number}", metadata={"id": number}) for number in numbers]
        return Results(results).score(scores=values[: len(results)])

    compared = compare(rows("a", 1.0, 0.0, 0.5), rows("b", 0.0, 0.5, 0.25))
    first = {"a": 1.0, "b": 0.0} | {"a": {"a": 0.5}, "b": {"b": 0.25}, "both": {"a": 0.5, "b": 0.25}}[longer]
    assert compared.questions == 4
    assert not any("left out" in note for note in compared.notes)
    assert compared.difference == pytest.approx((first["a"] - first["b"]) / 4)
    lacking = compare(rows("a", 1.0, 0.0, 0.5), Results(rows("b", 0.0, 0.5, 0.25)[1:4]))
    assert lacking.notes[0] == "left out, without a score in one of the runs: 1 of 4 questions"


def test_a_comparison_has_a_row_for_each_group() -> None:
    def rows(*scores: float) -> Results[Any]:
        topics = ["x", "x", "x", "y", "y", "y"]
        results = [
            answer("?", prompt=f"{number}", metadata={"topic": topic, "difference": number % 2})
            for number, topic in enumerate(topics)
        ]
        return Results(results).score(scores=list(scores))

    a, b = rows(1, 1, 0, 1, 0, 1), rows(0, 1, 0, 0, 0, 0)
    compared = compare(a, b, by="topic")
    assert [(row["topic"], row["difference"], row["questions"]) for row in compared.rows] == [
        ("x", pytest.approx(1 / 3), 3), ("y", pytest.approx(2 / 3), 3),
    ]  # fmt: skip
    whole = compare(a, b)
    fields = ("difference", "interval", "p_value", "questions", "variance")
    assert all(getattr(compared, name) == getattr(whole, name) for name in fields)
    parts = [compare(Results(a[start : start + 3]), Results(b[start : start + 3])) for start in (0, 3)]
    assert list(whole.notes) == []
    assert list(compared.notes) == [
        "all 6 questions: difference 0.500, 95 % interval [-0.075, 1.075], p 0.076"
    ]
    for row, part in zip(compared.rows, parts, strict=True):
        assert {name: value for name, value in row.items() if name != "topic"} == part.rows[0]
    assert list(compare(a, b, by=["topic", "difference"]).words) == [
        "a", "b", "topic", "metadata_difference", "score",
    ]  # fmt: skip
    reported = report_runs({"one": a, "two": b}, ["topic"], None, None, compares=True)
    assert [(row["a"], row["b"], row["topic"]) for row in reported.rows] == [
        ("one", "two", "x"), ("one", "two", "y"),
    ]  # fmt: skip


def test_runs_whose_scores_have_other_names_say_which_run_has_which() -> None:
    plain = run([1], [0])
    right, both = (
        plain.score(function) for function in (lambda _: {"right": 1}, lambda _: {"right": 1, "style": 0})
    )
    with pytest.raises(
        RequestError, match=r"a has score, and b has score\.right; score both by one function"
    ):
        compare(plain, right)
    for name in (None, "style"):
        with pytest.raises(
            RequestError,
            match=r"a has score\.right, and b has score\.right, score\.style: give score=, one of 'right'",
        ):
            compare(right, both, score=name)
    assert compare(right, both, score="right").difference == 0


def test_runs_in_another_order_are_paired_by_their_questions() -> None:
    a, b = run([1], [1], [0], [1], [0.5]), run([0], [1], [0], [0.5], [1])
    turned = Results(b[::-1])
    assert compare(a, turned).rows == compare(a, b).rows


def test_one_pair_and_equal_differences_tell_no_p_value() -> None:
    one = compare(run([1]), run([0]))
    assert (one.difference, one.interval, one.p_value, one.questions) == (1.0, None, None, 1)
    shifted = compare(run([1], [0.5], [0.9]), run([0.9], [0.4], [0.8]))
    assert (shifted.interval, shifted.p_value) == (None, None)
    assert list(one.notes) == ["no interval where there is one question"]
    assert "no interval where all questions have the same difference" in str(shifted)
    assert shifted.difference == pytest.approx(0.1)
    same = compare(run([1], [0.5]), run([1], [0.5]))
    assert (same.difference, same.interval, same.p_value) == (0.0, None, 1.0)


ROWS = st.lists(
    st.tuples(*[st.just("failed") | st.lists(st.floats(-5, 5) | st.none(), min_size=1, max_size=3)] * 2),
    min_size=1, max_size=10,
)  # fmt: skip


@given(ROWS)
def test_a_comparison_turned_around_is_the_same_with_the_other_sign(rows: list[tuple[Any, Any]]) -> None:
    """Whatever failed or has no score: each question is compared, or counted as left out."""
    sides = [run(*side) for side in zip(*rows, strict=True)]
    if any(all(value is None for each in side for value in each.score_values) for side in sides):
        return
    means = [
        [None if row == "failed" else [each for each in row if each is not None] for row in side]
        for side in zip(*rows, strict=True)
    ]
    both = [
        sum(ours) / len(ours) - sum(theirs) / len(theirs)
        for ours, theirs in zip(*means, strict=True)
        if ours and theirs
    ]
    if not both:
        with pytest.raises(RequestError, match="no question has a score in both"):
            compare(*sides)
        return
    there, back = compare(*sides), compare(*sides[::-1])
    assert there.difference == pytest.approx(sum(both) / len(both), abs=1e-9)
    assert back.difference == pytest.approx(-there.difference, abs=1e-12)
    assert there.questions == back.questions == len(both)
    left_out = len(rows) - len(both)
    told = [note for note in there.notes if "left out" in note]
    assert [f"{left_out:,} of {len(rows):,}" in note for note in told] == [True] * bool(left_out)
    assert any("no interval" in note for note in there.notes) == (there.interval is None)
    assert (there.p_value is None) == (back.p_value is None)
    assert (there.interval is None) == (back.interval is None)
    if there.p_value is not None and back.p_value is not None:
        assert 0 <= there.p_value <= 1
        assert there.p_value == pytest.approx(back.p_value)
    if there.interval is not None and back.interval is not None:
        assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))
        # A difference is significant at 5 % if its interval at 95 % does not hold 0.
        assert there.p_value is not None
        if abs(there.p_value - 0.05) > 1e-6:
            assert (there.p_value < 0.05) == (not there.interval[0] <= 0 <= there.interval[1])


@given(ROWS)
def test_every_sample_is_counted_in_the_table(rows: list[tuple[Any, Any]]) -> None:
    results = run(*(row for row, _ in rows))
    if all(value is None for each in results for value in each.score_values):
        return
    [row] = results.summarize_scores().rows
    calls = [row for row, _ in rows if row != "failed"]
    assert row["failed"] == len(rows) - len(calls)
    assert row["samples"] + row["without"] == sum(map(len, calls))
    assert row["questions"] == sum(any(each is not None for each in call) for call in calls)


@pytest.mark.parametrize(
    ("count", "score", "problem"),
    [
        (2, None, r"results = results\.score\(function\).*map --score MODULE:FUNCTION"),
        (2, lambda _: None, "all 2 scores are missing"),
        (2, lambda _: float("nan"), "all 2 scores are missing"),
        (0, lambda _: 1, "all 2 calls failed"),
    ],
)
def test_why_no_result_has_a_score(client: Client, count: int, score: Any, problem: str) -> None:
    cache: Any = "use" if count else "only"
    results = client.call_many("gpt-6.1-sol", ["1+1?", "1+2?"], max_tokens=50, cache=cache)
    with pytest.raises(RequestError, match=problem):
        (results if score is None else results.score(score)).summarize_scores()


@pytest.mark.parametrize("expected", [42, np.int64(42), 42.5])
def test_zeros_of_texts_that_are_compared_with_numbers_are_explained(expected: Any) -> None:
    def notes(*answers: Response[Any]) -> Any:
        scored = Results(answers).score(lambda sample: sample.text == sample.metadata["expected"])
        return scored.summarize_scores().notes

    wrong = answer(str(expected), metadata={"expected": expected})
    (note,) = notes(wrong)
    assert "'expected' is the number" in note
    assert "str(sample.metadata['expected'])" in note
    assert not notes(wrong, answer("7", metadata={"expected": "7"}))
    assert "'expected' is the number" in notes(failed(metadata={"expected": expected}), wrong)[-1]
    assert not notes(answer("7", metadata={"expected": "8"}))
