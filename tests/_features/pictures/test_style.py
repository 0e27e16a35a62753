"""Colours that can be read on white and on black, sizes, and names of anyone as labels."""

import io
import pickle
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_provider._features.pictures import style
from support import RunScript, needs

pytestmark = needs("matplotlib")


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


COLOURS = sorted(
    {style.BLUE, style.GREEN, style.VERMILION, style.PURPLE, style.GREY, *style.MEANINGS.values()}
)


@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_can_be_read_on_white_and_on_black(colour: str) -> None:
    assert 1.05 / (luminance(colour) + 0.05) >= 3
    assert (luminance(colour) + 0.05) / 0.05 >= 3


def test_text_has_the_contrast_of_text() -> None:
    assert 1.05 / (luminance(style.GREY) + 0.05) >= 4.5 <= (luminance(style.GREY) + 0.05) / 0.05


def test_the_yellow_of_okabe_and_ito_would_fail() -> None:
    assert [1.05 / (luminance(colour) + 0.05) < 3 for colour in ("#F0E442", "#E69F00", "#56B4E9")] == [
        True
    ] * 3


def test_what_is_drawn_together_differs() -> None:
    looks = {name: (colour, name in style.PARTS) for name, colour in style.MEANINGS.items()}
    together = (
        ("spent", "wasted", "saved"), ("answered", "refused", "failed", "window"),
        ("input", "cache read", "cache write", "reasoning", "output"),
    )  # fmt: skip
    for names in together:
        assert len({looks[name] for name in names}) == len(names)
    marks = [(look["color"], look["marker"]) for look in map(style.mark, range(28))]
    assert all(one != other for one, other in combinations(marks, 2))
    # Beside the marker, which is small, eight differ in colour or are hollow.
    fills = [(look["color"], look["markerfacecolor"]) for look in map(style.mark, range(8))]
    assert all(one != other for one, other in combinations(fills, 2))


def test_a_figure_is_transparent_and_as_wide_as_a_column() -> None:
    from matplotlib import image

    figure, (axes,) = style.make_figure(1.0)
    axes.plot([1, 2])
    picture = image.imread(io.BytesIO(figure._repr_png_()))
    assert picture.shape == (200, 660, 4)
    assert picture[0, 0, 3] == picture[50, 330, 3] == 0
    assert len(pickle.loads(pickle.dumps(figure)).axes) == 1


def test_a_figure_needs_no_display(run_warm_script: RunScript) -> None:
    run_warm_script(
        """
        import sys
        from llm_provider import Ledger
        from llm_provider._core.money.totals import Totals
        Ledger(Totals()).plot()
        assert "matplotlib.pyplot" not in sys.modules
        """
    )


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("gpt-6.1-sol", "gpt-6.1-sol"), ("together_ai/zai-org/GLM-5.3", "together_a…g/GLM-5.3"), ("", ""),
        ("$x$", r"\$x\$"), ("_hidden", " _hidden"), ("a\x1b[31m\nb", "a?[31m?b"),
    ],
)  # fmt: skip
def test_a_name_is_a_label(name: str, label: str) -> None:
    assert style.write_name(name) == label


@settings(max_examples=4)
@given(st.lists(st.text("a$_\\{^}\0\n\u200d", max_size=60), min_size=3, max_size=3, unique=True))
@example(["\x1b", "\x1c", "\x1d"])
def test_any_names_are_rows_that_can_be_drawn(names: list[str]) -> None:
    figure, (axes,) = style.make_figure(1.0)
    style.name_rows(axes, names)
    figure.draw_without_rendering()
    assert len(axes.get_yticklabels()) == 3


def test_names_that_are_cut_alike_stay_longer() -> None:
    names = [f"fireworks_ai/accounts/fireworks/models/llama-v3p1-{size}b-instruct" for size in (8, 70, 405)]
    _, (axes,) = style.make_figure(1.0)
    style.name_rows(axes, names)
    labels: list[Any] = [label.get_text() for label in axes.get_yticklabels()]
    assert len(set(labels)) == 3
    assert max(map(len, labels)) < 60


@pytest.mark.parametrize("setting", [{"text.usetex": True}, {"font.size": 20, "figure.autolayout": True}])
def test_settings_of_the_user_stay_and_break_nothing(setting: dict[str, Any]) -> None:
    """No LaTeX is installed where tests run, and names with an underscore would be errors of LaTeX."""
    import matplotlib as mpl

    def read_settings() -> dict[str, Any]:
        # To read the backend chooses one.
        return {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}

    with mpl.rc_context(setting):
        before = read_settings()
        figure, (axes,) = style.make_figure(1.0)
        axes.plot([1, 100], label="a_name")
        style.name_rows(axes, ["50 % of my_model"])
        style.scale_x(axes, [1, 100], "${x:,.4g}")
        style.show_legend(axes)
        figure.draw_without_rendering()
        assert read_settings() == before
    assert axes.get_legend().get_texts()[0].get_fontsize() == style.POINTS
