"""Tables of scores as text, HTML, LaTeX and data frames, with names that mean something to these."""

import re
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Choice, Response, Results, ScoreTable, Usage, compare
from llm_provider._features.evaluation.tables import escape_latex

EN_DASH = "\u2013"
HOSTILE = [
    r"\input{/etc/passwd}", "50 % & more", "[2pt]", "*", "a_b^c~d", "{", "}", "$x$", "#1",
    "<script>alert(1)</script>", "a\nb", "\u2028", "x--y---z", "``quoted''", '"', "\\\\", "|", EN_DASH,
    "\x1b[31m", "Zürich 東京", "&amp;", "%",
]  # fmt: skip


def table(name: str) -> ScoreTable:
    parts: dict[str, Any] = {"usage": Usage(), "model": name, "provider": "p", "metadata": {"group": name}}
    answers = [Response(choices=(Choice(text=text),), **parts) for text in "aabbbb"]
    return Results(answers).score(lambda sample: sample.text == "a").summarize_scores("group")


READ = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<",
    r"\textgreater{}": ">", r"\textbar{}": "|", r"\textquotedbl{}": '"', r"\textendash{}": EN_DASH,
    **{f"\\{mark}": mark for mark in "&%$#_{}"}, **{f"{{{mark}}}": mark for mark in "[]*"}, "{}": "",
}  # fmt: skip
"""What LaTeX prints, by what is written."""
_PIECE = re.compile("|".join(map(re.escape, READ)) + "|(.)", re.DOTALL)


def printed(latex: str) -> str:
    """What LaTeX prints of a text; an error for a mark that it would execute."""
    pieces = []
    for match in _PIECE.finditer(latex):
        assert match[1] is None or match[1] not in '\\~^<>|&%$#_{}[]*"\n', f"{match[1]!r} in {latex!r}"
        pieces.append(READ.get(match[0], match[0]))
    assert not re.search(r"--|``|''", latex)
    return "".join(pieces)


@given(st.text(max_size=30) | st.sampled_from(HOSTILE))
def test_latex_prints_the_text_and_executes_nothing(text: str) -> None:
    shown = printed(escape_latex(text))
    assert shown == re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_of_latex_has_the_same_cells_in_every_row(name: str) -> None:
    lines = table(name).to_latex().splitlines()
    begin, end = lines.index(r"\toprule"), lines.index(r"\bottomrule")
    sides = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[begin - 1])
    assert sides is not None
    assert lines[end + 1] == r"\end{tabular}"
    for line in [lines[begin + 1], *lines[begin + 3 : end]]:
        assert line.endswith(r" \\")
        assert not line.startswith(("[", "*"))
        assert len(re.findall(r"(?<!\\)&", line)) + 1 == len(sides[1])


@pytest.mark.parametrize("name", HOSTILE)
def test_html_shows_the_text_and_has_no_other_tags(name: str) -> None:
    tags, texts = set[str](), list[str]()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.add(tag)

        def handle_data(self, data: str) -> None:
            texts.append(data)

    Reader().feed(table(name).to_html())
    assert tags <= {"div", "table", "style", "thead", "tbody", "tr", "th", "td", "small"}
    assert texts.count(name) >= 2


def test_text_has_what_the_rows_have() -> None:
    shown = table("m").rows[0]
    lines = str(table("m")).splitlines()
    assert lines[0].split() == [
        "model",
        "group",
        "mean",
        "95",
        "%",
        "interval",
        "std.",
        "error",
        "questions",
        "samples",
    ]
    low, high = shown["interval"]
    values = f"{shown['mean']:.3f} [{low:.3f}, {high:.3f}] {shown['error']:.3f} 6 6"
    assert " ".join(lines[1].split()) == f"m m {values}"
    assert "\n" not in " ".join(str(table("a\nb")).splitlines()[1:2])


def test_a_data_frame_has_numbers_in_full() -> None:
    frame = table("m").to_pandas()
    assert list(frame) == [
        "model", "group", "score", "mean", "error", "questions", "samples", "without", "failed",
        "low", "high",
    ]  # fmt: skip
    assert frame["mean"][0] == pytest.approx(1 / 3)
    assert frame["low"][0] < 1 / 3 < frame["high"][0]


def test_a_comparison_is_a_table_of_one_row() -> None:
    parts: dict[str, Any] = {"usage": Usage(), "provider": "p"}
    sides = [
        Results(Response(choices=(Choice(text=text),), model=name, **parts) for text in texts).score(
            lambda sample: sample.text == "a"
        )
        for name, texts in (("new_1", "aaab" * 500), ("old", "aabb" * 500))
    ]
    compared = compare(*sides)
    assert r"new\_1 & old & $0.750$ & $0.500$ & $0.250$" in compared.to_latex()
    assert "$<0.0001$ & $2{,}000$" in compared.to_latex()
    assert "<0.0001" in str(compared)
    assert compared.to_pandas()["difference"].tolist() == [0.25]
    assert "&lt;0.0001" in compared._repr_html_()
    assert compare(sides[0][:1], sides[1][:1]).to_pandas()["low"].tolist() == [None]


def test_the_repr_is_the_table_and_not_its_fields() -> None:
    """A shell, a log and a list show it."""
    for shown in (table("m"), compare(*[scored_run(text) for text in ("aab", "abb")])):
        assert repr(shown) == str(shown)
        assert "rows=" not in repr([shown])


def scored_run(texts: str) -> Any:
    parts: dict[str, Any] = {"usage": Usage(), "model": "m", "provider": "p"}
    answers = [Response(choices=(Choice(text=text),), **parts) for text in texts]
    return Results(answers).score(lambda sample: sample.text == "a")


@pytest.mark.parametrize(
    ("scores", "mean", "latex"),
    [
        ([2e-5, 1e-5], "1.5e-05", r"$1.5\cdot10^{-5}$"), ([1e300, 3e300], "2e+300", r"$2\cdot10^{300}$"),
        ([2.5, -2.5], "0.000", "$0.000$"), ([0.1 + 0.2, -0.3], "0.000", "$0.000$"),
    ],
)  # fmt: skip
def test_a_number_is_as_short_as_it_can_be_read(scores: list[float], mean: str, latex: str) -> None:
    answers = (Response(choices=(Choice(text="a"),), usage=Usage(), model="m", provider="p") for _ in scores)
    table = Results(answers).score(scores=scores).summarize_scores()
    assert str(table).split("\n")[1].split()[1] == mean
    assert latex in table.to_latex()


@given(st.lists(st.tuples(*[st.integers(0, 80)] * 2), min_size=2, max_size=20), st.sampled_from([3, 7, 80]))
def test_a_printed_difference_is_that_of_the_printed_means_or_says_so(
    pairs: list[tuple[int, int]], parts: int
) -> None:
    runs = [
        Results(
            Response(choices=(Choice(text="a"),), usage=Usage(), model="m", provider="p", prompt=f"{index}")
            for index in range(len(pairs))
        ).score(scores=[count / parts for count in side])
        for side in zip(*pairs, strict=True)
    ]
    compared = compare(*runs)
    (cells,) = compared.texts()
    a, b, difference = (Decimal(cells[name]) for name in ("mean a", "mean b", "difference"))
    for shown in (str(compared), compared.to_html(), compared.to_latex()):
        assert ("rounded by itself" in shown) == (a - b != difference)


def test_a_fourth_decimal_where_three_do_not_add_up() -> None:
    """0.738 and 0.700 made 0.037."""
    runs = [scored_run("a" * count + "b" * (80 - count)) for count in (59, 56)]
    (cells,) = compare(*runs).texts()
    assert [cells[name] for name in ("mean a", "mean b", "difference")] == ["0.7375", "0.7000", "0.0375"]
    assert "rounded" not in str(compare(*runs))
