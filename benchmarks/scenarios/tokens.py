"""The error of estimated input tokens, by kind of text, against the counts of OpenAI's tokenizers.

The texts are pieces of this repository. No piece was used to fit the weights of the estimate.
"""

from __future__ import annotations

import importlib.metadata
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from llm_provider._tokens.text import text_tokens
from llm_provider._tokens.tokenizer import encoding_counter

from ..fleet import WorkerError
from ..report import Cell, Result, Table
from . import Options

ROOT = Path(__file__).parents[2]
ENCODINGS = ("o200k_base", "cl100k_base")
PIECE = 2000
FILES = {
    "English (this project's pages)": ("*.md", "docs/*.md", "benchmarks/*.md"),
    "Python": ("src/**/*.py", "tests/*.py"),
    "JSON": ("tests/data/peer_costs.json", "benchmarks/results/*.json"),
    "tables (CSV)": ("*.csv", "docs/*.csv"),
}
LATIN_LETTERS = frozenset(
    {"Czech", "French", "German", "Indonesian", "Polish", "Portuguese", "Spanish", "Turkish", "Vietnamese"}
)

TEXT = (
    "The error is the estimate minus the count, divided by the count, for pieces of 2,000 characters; for "
    "other languages, for one paragraph of 150 to 250 characters. The last column is the error of the rule "
    "of thumb that a token has four bytes."
)

Counter = Callable[[str], int]


def run(options: Options) -> Result:
    """Compare estimates with counts."""
    tables = []
    for name in ENCODINGS:
        counter = encoding_counter(name)
        if counter is None:
            raise WorkerError(f"the encoding {name} is not on this machine; litellm brings it")
        tables.append(_table(name, counter, dict(_texts(options))))
    tables.append(_speed(options))
    versions = {name: importlib.metadata.version(name) for name in ("tiktoken", "litellm")}
    return Result(
        title="Estimated tokens", text=TEXT, tables=tables, versions={"tokenizers": versions}, rounds=1
    )


def _texts(options: Options) -> Iterator[tuple[str, list[str]]]:
    for kind, patterns in FILES.items():
        paths = sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
        pieces = [piece for path in paths for piece in _pieces(path.read_text(encoding="utf-8"))]
        yield kind, pieces[1::2][: options.count(1000)]
    languages = json.loads((ROOT / "tests" / "data" / "scripts.json").read_text(encoding="utf-8"))
    seconds = {language: paragraphs[1] for language, paragraphs in languages.items()}
    latin = [text for language, text in seconds.items() if language in LATIN_LETTERS]
    yield f"{len(latin)} other languages of Latin letters", latin
    other = [text for language, text in seconds.items() if language not in LATIN_LETTERS]
    yield f"{len(other)} languages of other letters", other


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        if len(text) - start > PIECE // 10:
            yield text[start : start + PIECE]


def _table(name: str, counter: Counter, texts: dict[str, list[str]]) -> Table:
    rows: list[list[Cell]] = []
    for kind, pieces in texts.items():
        counts = [counter(piece) for piece in pieces]
        errors = _errors([sum(text_tokens(piece)) for piece in pieces], counts)
        by_bytes = _errors([len(piece.encode()) / 4 for piece in pieces], counts)
        mean = statistics.fmean(errors)
        rows.append(
            [kind, len(pieces), f"{mean:+.1%}", *map(_share, _halfway_and_most(errors)), _most(by_bytes)]
        )
    columns = ("text", "pieces", "mean error", "p50", "p95", "p95 of bytes / 4")
    return Table(title=name, columns=columns, rows=rows)


def _errors(estimates: Sequence[float], counts: Sequence[int]) -> list[float]:
    return [estimate / count - 1 for estimate, count in zip(estimates, counts, strict=True)]


def _halfway_and_most(errors: Sequence[float]) -> tuple[float, float]:
    """The median and the 95th percentile of the sizes of the errors."""
    sizes = sorted(map(abs, errors))
    return sizes[len(sizes) // 2], sizes[min(len(sizes) - 1, len(sizes) * 95 // 100)]


def _most(errors: Sequence[float]) -> str:
    return _share(_halfway_and_most(errors)[1])


def _share(error: float) -> str:
    return f"{error:.0%}"


def _speed(options: Options) -> Table:
    """Measure CPU time, which varies less on a busy machine than wall time."""
    text = (ROOT / "docs" / "prices.md").read_text(encoding="utf-8")[:4000]
    exact = encoding_counter(ENCODINGS[0])
    assert exact is not None
    rows: list[list[Cell]] = []
    for name, work in (("estimated", text_tokens), ("counted by tiktoken", exact)):
        times = []
        for _ in range(options.count(200)):
            started = time.process_time()
            work(text)
            times.append(time.process_time() - started)
        rows.append([name, statistics.median(times) * 1e6])
    return Table(title="A text of 4,000 characters", columns=("tokens", "CPU µs"), rows=rows)
