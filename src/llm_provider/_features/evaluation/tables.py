"""Tables of scores as text, HTML and LaTeX, and as data frames."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ..._core import doors
from ..._core.hints import Hinting
from ..._core.runtime.imports import import_optional

_EMPTY = "\u2013"
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", _EMPTY: r"\textendash{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"}, **{mark: f"{{{mark}}}" for mark in "[]*"},
}  # fmt: skip
"""Marks that LaTeX reads as commands; brackets and stars only at the beginning of a row."""
_TWINS = re.compile(r"([-`'])(?=\1)")
"""LaTeX makes a longer dash of two, and a quote of two."""
_POWER = re.compile(r"e(?:\+|(-))0?(\d+)")
"""A power of ten as Python writes it."""
_CONTROLS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_TITLES = {"interval": "95 % interval", "error": "std. error", "p_value": "p"}


def escape_latex(text: str) -> str:
    r"""A text as LaTeX that prints the text and does nothing else.

    >>> print(escape_latex(r"50 % of $x_1$ & \input{a}"))
    50 \% of \$x\_1\$ \& \textbackslash{}input\{a\}
    """
    return _TWINS.sub(r"\1{}", "".join(_LATEX.get(mark, mark) for mark in _CONTROLS.sub(" ", text)))


def _math(number: str) -> str:
    number = _POWER.sub(r"\\cdot10^{\1\2}", number)
    return f"${number.replace(',', '{,}').replace('{,} ', ', ')}$"


@dataclass(frozen=True, slots=True, repr=False)
class ScoreTable(Hinting):
    """A table of scores. `print` shows it, and notebooks show it as HTML.

    `rows` has a dict for each row, with numbers in full precision; an `interval` is a pair of numbers.
    `words` are the columns of texts. `notes` say what is not in the numbers, such as calls that failed.
    """

    rows: Sequence[Mapping[str, Any]]
    words: Sequence[str]
    notes: Sequence[str]

    def to_pandas(self) -> Any:
        """A pandas DataFrame, whose columns `low` and `high` are the interval.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        rows = []
        for row in self.rows:
            low, high = row["interval"] or (None, None)
            rows.append({**row, "low": low, "high": high})
        frame = import_optional("pandas", "pip install pandas").DataFrame(rows)
        return frame.drop(columns="interval", errors="ignore")

    def to_html(self) -> str:
        """A table of HTML, in which every text is escaped."""
        html = doors.html
        cells = [
            [html.words(cell) if name in self.words else html.figure(cell) for name, cell in row.items()]
            for row in self.texts()
        ]
        return html.block(html.table(self._titles(), cells), *map(html.small, self._notes()))

    def to_latex(self) -> str:
        """A `tabular` for a paper, which needs the package booktabs. Every text is escaped."""
        lines = [[escape_latex(title) for title in self._titles()]]
        for row in self.texts():
            cells = ((cell, name in self.words or cell == _EMPTY) for name, cell in row.items())
            lines += [[escape_latex(cell) if is_text else _math(cell) for cell, is_text in cells]]
        sides = "".join("l" if name in self.words else "r" for name in self._columns())
        head, *body = [" & ".join(line) + r" \\" for line in lines]
        notes = [f"% {_CONTROLS.sub(' ', note)}" for note in self._notes()]
        begin, end = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule"], [r"\bottomrule", r"\end{tabular}", ""]
        return "\n".join([*notes, *begin, head, r"\midrule", *body, *end])

    def _columns(self) -> list[str]:
        """The columns that say something: not the name of an only score, nor counts of nothing."""
        silent = {"score": "score", "without": 0, "failed": 0}
        names = dict.fromkeys(name for row in self.rows for name in row)
        return [
            name for name in names
            if name not in silent or any(row.get(name) != silent[name] for row in self.rows)
        ]  # fmt: skip

    def _titles(self) -> list[str]:
        return [_TITLES.get(name, name) for name in self._columns()]

    def texts(self) -> list[dict[str, str]]:
        """The cells of each row as the table prints them, by their columns."""
        names, texts = self._columns(), []
        # A fourth decimal, if the printed means then have the printed differences.
        for digits in (3, 4, 3):
            texts = [
                {name: _write(name, row.get(name), _noise(row), digits) for name in names}
                for row in self.rows
            ]
            if all(map(_adds_up, texts)):
                break
        return texts

    def _notes(self) -> list[str]:
        rounded = ["each figure is rounded by itself, a difference too"]
        return [*self.notes, *(rounded if not all(map(_adds_up, self.texts())) else [])]

    def __str__(self) -> str:
        lines = [[_CONTROLS.sub(" ", cell) for cell in row.values()] for row in self.texts()]
        return "\n".join([*doors.html.align(self._titles(), lines, self.words), *self._notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_html()


def _noise(row: Mapping[str, Any]) -> float:
    """What is 0 but for rounding, beside the other numbers of a row."""
    values = (cell for name, cell in row.items() if name != "p_value")
    cells = (cell if isinstance(cell, tuple) else (cell,) for cell in values)
    return 1e-12 * max((abs(each) for cell in cells for each in cell if isinstance(each, float)), default=0.0)


def _adds_up(row: Mapping[str, str]) -> bool:
    """Whether the printed difference is that of the printed means."""
    names = ("mean a", "mean b", "difference")
    ours, theirs, difference = (Decimal(row.get(name, "0").replace(",", "")) for name in names)
    return ours - theirs == difference


def _write(name: str, value: Any, noise: float, digits: int) -> str:
    """A cell for people: three decimals, one from 100 on, and a power of ten where these say nothing."""
    if isinstance(value, tuple):
        return f"[{', '.join(_write('', bound, noise, digits) for bound in value)}]"
    if isinstance(value, float) and name == "p_value":
        return "<0.0001" if value < 0.0001 else f"{value:.2g}"
    if isinstance(value, float) and (noise < abs(value) < 0.0005 or abs(value) >= 1e15):
        return f"{value:.3g}"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.{digits}f}"
    if isinstance(value, int):
        return f"{value:,}"
    return _EMPTY if value is None else str(value)
