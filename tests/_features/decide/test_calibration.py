"""Brier scores, reliability and Cohen's kappa beside published figures and simulations."""

import math
import random
from typing import Any

import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import RequestError, brier_score, cohen_kappa, reliability

PROBABILITIES = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50)


class TestBrier:
    def test_a_perfect_and_a_useless_judge(self) -> None:
        assert brier_score([1.0, 0.0], [True, False]) == 0
        assert brier_score([0.5] * 4, [1, 0, 1, 0]) == 0.25
        assert brier_score([math.nan, None, 1], [True, True, False]) == 1
        column = pandas.Series([0.5, None, 1.0], dtype="Float64")
        assert brier_score(column, pandas.Series([True, True, True])) == 0.125

    @pytest.mark.parametrize(
        ("probabilities", "outcomes", "says"),
        [
            ([0.5], [True, False], "probabilities and outcomes are 1 and 2"),
            ([1.5], [True], "1.5 is no probability"),
            (["a"], [True], "'a' is no probability"),
            ([0.5], ["yes"], "'yes' is no outcome"),
            ([None], [True], "no pair of probabilities and outcomes is left"),
            (numpy.array([[0.1], [0.9]]), [0, 1], "are two columns or lists"),
            ([0.1, 0.9], numpy.array([[0], [1]]), "are two columns or lists"),
            (numpy.array(0.5), [1], "are two columns or lists"),
        ],
    )
    def test_wrong_values_get_a_sentence(self, probabilities: Any, outcomes: Any, says: str) -> None:
        for function in (brier_score, reliability):
            with pytest.raises(RequestError, match=says):
                function(probabilities, outcomes)

    @pytest.mark.parametrize(
        "gap", [None, math.nan, pandas.NA, pandas.NaT, "", numpy.float32("nan"), numpy.array(math.nan)]
    )
    def test_a_pair_with_an_empty_side_is_not_counted(self, gap: Any) -> None:
        for pairs in ([(0.5, True), (0.9, gap)], [(gap, True), (0.5, True), (gap, gap)]):
            columns: Any = list(zip(*pairs, strict=True))
            assert brier_score(*columns) == 0.25
            assert reliability(*columns).count == 1
        with pytest.raises(RequestError, match="no pair of probabilities and outcomes is left"):
            brier_score([0.5], [gap])


LABELS = {
    "texts": ["a", "b", "c", "d"],
    "numbers": [3, 1, 2, 0],
    "times": list(pandas.date_range("2026-01-01", periods=4, tz="UTC")),
    "with a gap": [1.5, math.nan, 2.5, 3.5],
    "with nothing": ["a", pandas.NA, "b", "c"],
    "levels": pandas.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1), ("b", math.nan)]),
    "categories": pandas.CategoricalIndex(["a", "b", "c", "d"]),
}


class TestPairs:
    @pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
    @given(st.permutations(range(4)), st.permutations(range(4)))
    def test_columns_are_paired_by_their_labels(
        self, labels: Any, ours: list[int], theirs: list[int]
    ) -> None:
        frame = pandas.DataFrame(
            {"said": [0.9, 0.8, 0.3, 0.1], "true": [True, False, True, False], "who": list("xyxy")},
            index=labels,
        )
        first, second = frame.iloc[ours], frame.iloc[theirs]
        assert brier_score(first["said"], second["true"]) == brier_score(frame["said"], frame["true"])
        assert reliability(first["said"], second["true"]) == reliability(frame["said"], frame["true"])
        assert cohen_kappa(first["who"], second["who"]).agreement == 1
        # What has no index is paired by position.
        expected = sum(place % 2 == other % 2 for place, other in zip(ours, theirs, strict=True)) / 4
        for given_by in (list, tuple, pandas.Series.to_numpy, pandas.Index):
            assert cohen_kappa(first["who"], given_by(second["who"])).agreement == expected

    @pytest.mark.parametrize(
        ("ours", "theirs", "says"),
        [
            (["a", "b"], ["a", "c"], "only one has 'b'"),
            ([0, 1], [5, 6], "only one has 0"),
            (["a", "a"], ["a", "b"], "one has a label twice"),
            (["a", "a", "b"], ["a", "b", "a"], "one has a label twice"),
        ],
    )
    def test_labels_that_tell_no_pairs_are_an_error(self, ours: Any, theirs: Any, says: str) -> None:
        first = pandas.Series([True, False, True][: len(ours)], index=ours)
        second = pandas.Series([True, False, True][: len(ours)], index=theirs)
        for function in (brier_score, reliability, cohen_kappa):
            with pytest.raises(RequestError, match=f"paired by their indexes, and {says}"):
                function(first.astype(float) if function is not cohen_kappa else first, second)
        assert cohen_kappa(first, second.to_numpy()).agreement == 1

    def test_a_label_may_be_there_twice_in_one_order(self) -> None:
        labels = numpy.array(["a", "a", "b"])
        first = pandas.Series([1.0, 0.0, 1.0], index=labels)
        assert brier_score(first, pandas.Series([True, False, True], index=labels)) == 0


class TestReliability:
    @given(PROBABILITIES, st.integers(1, 20))
    def test_bins_hold_every_pair_once(self, pairs: list[tuple[float, bool]], bins: int) -> None:
        found = reliability(*zip(*pairs, strict=True), bins=bins)
        assert sum(entry.count for entry in found.bins) == found.count == len(pairs)
        assert 0 <= found.error <= 1
        for entry in found.bins:
            assert entry.low <= entry.mean + 1e-9
            assert entry.mean <= entry.high + 1e-9
            assert entry.interval[0] - 1e-9 <= entry.share <= entry.interval[1] + 1e-9

    def test_a_calibrated_judge_has_a_small_error(self) -> None:
        numbers = random.Random(7)
        probabilities = [numbers.random() for _ in range(20_000)]
        outcomes = [numbers.random() < probability for probability in probabilities]
        found = reliability(probabilities, outcomes)
        assert found.error < 0.02
        assert len(found.bins) == 10
        assert found.to_pandas()["count"].sum() == 20_000

    def test_it_is_drawn(self) -> None:
        pytest.importorskip("matplotlib")
        figure = reliability([0.1, 0.9, 0.8], [False, True, False]).plot()
        (axes,) = figure.axes
        assert (axes.get_xlabel(), axes.get_title()) == ("probability", "calibration error 0.333, 3 answers")
        assert reliability([0.1], [False]).plot(axes) is figure

    @pytest.mark.parametrize("bins", [0, 1.5, True, 2_000])
    def test_a_wrong_number_of_bins_is_refused(self, bins: Any) -> None:
        with pytest.raises(RequestError, match="bins must be an int from 1 to 1000"):
            reliability([0.5], [True], bins=bins)


class TestKappa:
    def test_the_example_of_wikipedia(self) -> None:
        # 50 grants: 20 both yes, 5 and 10 differ, 15 both no. kappa = 0.4.
        first = ["yes"] * 25 + ["no"] * 25
        second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
        found = cohen_kappa(first, second)
        assert (found.kappa, found.agreement, found.count) == (pytest.approx(0.4), 0.7, 50)
        # `cohens_kappa([[20, 5], [10, 15]])` of statsmodels tells the same bounds.
        assert found.interval == pytest.approx((0.151092290476661, 0.6489077095233389), abs=1e-12)

    def test_three_labels(self) -> None:
        counts = [[20, 5, 3], [10, 15, 2], [1, 2, 9]]
        cells = [(row, column) for row in range(3) for column in range(3) for _ in range(counts[row][column])]
        found = cohen_kappa(*zip(*cells, strict=True))
        # By statsmodels too.
        assert found.kappa == pytest.approx(0.4610003497726478, abs=1e-12)
        assert found.interval == pytest.approx((0.2802529155936036, 0.6417477839516921), abs=1e-12)

    def test_the_interval_holds_the_truth_in_19_of_20_samples(self) -> None:
        numbers, held = random.Random(3), 0
        for _ in range(400):
            first = [numbers.random() < 0.5 for _ in range(200)]
            second = [label if numbers.random() < 0.8 else not label for label in first]
            low, high = cohen_kappa(first, second).interval
            held += low <= 0.6 <= high
        assert 0.91 <= held / 400 <= 0.99

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
    def test_it_is_symmetric_and_bounded(self, pairs: list[tuple[str, str]]) -> None:
        first, second = zip(*pairs, strict=True)
        one, two = cohen_kappa(first, second), cohen_kappa(second, first)
        assert one.kappa == pytest.approx(two.kappa, nan_ok=True)
        if math.isnan(one.kappa):
            return
        assert -1 <= one.interval[0] <= one.kappa + 1e-9
        assert one.kappa - 1e-9 <= one.interval[1] <= 1

    def test_one_label_tells_nothing(self) -> None:
        measured = cohen_kappa(["a"] * 5, ["a"] * 5)
        assert (measured.agreement, measured.count, math.isnan(measured.kappa)) == (1.0, 5, True)
        assert cohen_kappa(["a"] * 5, ["a"] * 4 + ["b"]).kappa == 0

    def test_empty_labels_are_left_out(self) -> None:
        assert cohen_kappa(["a", None, "b", ""], ["a", "b", math.nan, ""]).count == 1
        with pytest.raises(RequestError, match="no pair of labels is left"):
            cohen_kappa([None], ["a"])
        with pytest.raises(RequestError, match="labels are 1 and 2"):
            cohen_kappa(["a"], ["a", "b"])


def test_a_reliability_is_shown_as_a_table_of_its_bins() -> None:
    shown = reliability([0.1, 0.15, 0.8, 0.9], [False, False, True, True], bins=2)
    lines = ["calibration error 0.137, 4 answers",
             "from     to  answers   mean  share   95 % interval",
             "0.000  0.500        2  0.125  0.000  [0.000, 0.658]",
             "0.500  1.000        2  0.850  1.000  [0.342, 1.000]"]  # fmt: skip
    assert [line.strip() for line in repr(shown).splitlines()] == lines
    assert str(shown) == repr(shown)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([True, False, True], ["True", "False", "True"]),
        ([1, 0], ["1", "0"]),
        ([True, False], ["right", "wrong"]),
    ],
)
def test_labels_of_two_types_that_share_none_are_a_mistake(first: list[Any], second: list[Any]) -> None:
    with pytest.raises(RequestError, match="share no label"):
        cohen_kappa(first, second)
    assert cohen_kappa(["a", "a"], ["b", "c"]).agreement == 0


@pytest.mark.parametrize("change", [str.title, str.upper, "{} ".format, " {}".format])
@pytest.mark.parametrize("kind", [list, numpy.array, pandas.Series])
def test_labels_in_two_spellings_are_shown_as_texts(change: Any, kind: Any) -> None:
    labels = ["no", "yes", "no"]
    for pair in ((kind(labels), list(map(change, labels))), (list(map(change, labels)), kind(labels))):
        with pytest.raises(RequestError, match="differ in case or spaces: write both in one way") as raised:
            cohen_kappa(*pair)
        assert repr("no") in str(raised.value)
        assert repr(change("no")) in str(raised.value)
        assert "np." not in str(raised.value)


def test_labels_that_are_equal_are_of_one_type() -> None:
    assert cohen_kappa([1, 0, 1], [1.0, 0.0, True]).kappa == 1
