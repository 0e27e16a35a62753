"""HTML for notebooks: the blocks that make up each view of a value, and tables as text.

Every block escapes its text and cuts a long one. Colours and fonts are those of the page. Styles are
attributes, because viewers remove style sheets; that of a table is for those without a style of their own.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape
from typing import Any

from ..._core.words import format_cost
from . import markdown

ROWS = 20
"""Rows of a table."""
_CELL, _CELL_LINES = 200, 4
"""Characters and lines of a table's cell."""
_BLOCK, _BLOCK_LINES = 5_000, 100
"""Characters and lines of a block of text."""

_ROOM = "<style>@scope{:scope{border-collapse:collapse}th,td{padding:0.3em 0.6em}}</style>"
_WRAP = "white-space: pre-wrap; overflow-wrap: anywhere"
_CODE = "font-family: monospace; margin: 0.5em 1em; white-space: pre-wrap"
_WIDE = ' style="text-align: start"'
_SHORT = 24
"""Characters of a text that has a line of its own in a table."""
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)(?:^```[ \t]*$\n?|\Z)", re.DOTALL | re.MULTILINE)
"""Code of a Markdown text, which may be cut before the end of the code."""


def align(header: Sequence[str], lines: Iterable[Sequence[str]], left: Collection[str]) -> Iterator[str]:
    """A table as lines of text. Columns are right-aligned unless `left` has their titles."""
    table = [header, *lines]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    columns = [(width, "<" if title in left else ">") for title, width in zip(header, widths, strict=True)]
    for line in table:
        cells = (f"{cell:{side}{width}}" for cell, (width, side) in zip(line, columns, strict=True))
        yield "  ".join(cells).rstrip()


def block(*parts: str) -> str:
    return f"<div>{''.join(parts)}</div>"


def text(content: str) -> str:
    """A text with its line breaks, in the direction of its script. Code in Markdown is set as code."""
    beginning = "\n".join(content[:_BLOCK].split("\n")[:_BLOCK_LINES])
    rest = len(content) - len(beginning)
    more = small(f"… {rest:,} more characters") if rest else ""
    if (rendered := markdown.render(beginning.encode("utf-8", "replace").decode())) is not None:
        return f'<div dir="auto" style="max-width: 60em">{rendered}</div>{more}'
    parts = []
    # Texts and codes alternate.
    for number, piece in enumerate(_FENCED.split(beginning)):
        if piece.strip() and number % 2:
            parts.append(f'<pre style="{_CODE}">{safe(piece.rstrip())}</pre>')
        elif piece.strip():
            prose = safe(piece.strip("\n"))
            parts.append(f'<div dir="auto" style="{_WRAP}">{prose}</div>')
    return f'<div style="max-width: 60em">{"".join(parts)}</div>{more}'


def code(content: str) -> str:
    return f'<div><code style="{_WRAP}">{safe(cut(content))}</code></div>'


def narrow(picture: str) -> str:
    """A picture, as HTML, in a block of limited width. The pages of notebooks scale it down to the block."""
    return f'<div style="max-width: 32em">{picture}</div>'


def small(*texts: str) -> str:
    """A line of texts in small type. Empty ones are left out."""
    return f'<div><small style="opacity: 0.75">{safe(" · ".join(filter(None, texts)))}</small></div>'


def warning(title: str, message: str) -> str:
    """The name of an error, and its message."""
    return f'<div style="{_WRAP}"><b>⚠ {safe(title)}</b> {safe(cut(message, _BLOCK))}</div>'


def fold(title: str, content: str) -> str:
    """A block that opens when its title is clicked. `content` is HTML."""
    return f"<details><summary><small>{safe(title)}</small></summary>{content}</details>"


def figure(content: str) -> str:
    return f"<td>{safe(content)}</td>"


def words(content: str) -> str:
    return f'<td dir="auto" style="{_style(content)}">{safe(cut(content, lines=_CELL_LINES))}</td>'


def failure(content: str) -> str:
    return f'<td style="{_style(content)}"><b>⚠</b> <i>{safe(cut(content, lines=_CELL_LINES))}</i></td>'


def _style(content: str) -> str:
    if len(content) <= _SHORT:
        # Else a long text beside it would leave it no room.
        return "text-align: start; white-space: pre"
    return f"text-align: start; {_WRAP}; min-width: 12em; max-width: 40em"


def table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "", wide: Collection[str] = (),
    left_out: int = 0,
) -> str:  # fmt: skip
    """A table of cells that are HTML. Without titles it has no head.

    `wide` has the titles of columns of long texts, and `left_out` the number of rows that are not in it.
    """
    heading = f'<caption style="text-align: start">{safe(caption)}</caption>' if caption else ""
    head = "".join(f"<th{_WIDE if title in wide else ''}>{safe(title)}</th>" for title in titles)
    head = f'<thead style="text-align: end"><tr>{head}</tr></thead>' if titles else ""
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    body = f'<tbody style="text-align: end">{body}</tbody>'
    more = small(f"… {left_out:,} more are not shown") if left_out else ""
    return f"<table>{heading}{_ROOM}{head}{body}</table>{more}"


def error_view(error: Any) -> str:
    """An `LLMError` that is a value. An error that is raised is shown by its traceback."""
    line = small(
        error.provider or "",
        error.model or "",
        f"HTTP {error.status}" if error.status is not None else "",
        str(error.code or ""),
        f"request {error.request_id}" if error.request_id else "",
        f"{error.attempts} attempts" if error.attempts > 1 else "",
        "may succeed later" if error.retryable else "",
        format_cost(error.cost, error.cost_bounds) if error.cost != 0 else "",
    )
    return block(warning(type(error).__name__, error.message), line)


def cut(content: str, most: int = _CELL, lines: int = _BLOCK_LINES) -> str:
    beginning = "\n".join(content[:most].split("\n")[:lines])
    return content if beginning == content else f"{beginning[: most - 1]}…"


def safe(content: str) -> str:
    """A text as HTML that shows the text and nothing else."""
    # A notebook's messages are UTF-8, which has no half surrogate pairs.
    return escape(content.encode("utf-8", "replace").decode())
