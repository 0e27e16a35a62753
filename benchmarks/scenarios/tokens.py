"""The error of estimated input tokens, by kind of text, against the counts of eight real tokenizers.

The texts are pieces of this repository, paragraphs in 21 languages, and made-up data. None was used to fit
the weights of the estimate.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import random
import statistics
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from llm_provider._core.tokens.counting import _LIKE, _MEASURED
from llm_provider._core.tokens.text import text_tokens
from llm_provider._core.tokens.tokenizer import ENCODINGS, VOCABULARIES, encoding_counter

from ..fleet import WorkerError
from ..report import Cell, Result, Table
from ..tokenizers import PACKAGES, counter
from . import Options

ROOT = Path(__file__).parents[2]
PIECE, PIECES = 2000, 60
FILES = {
    "English (this project's pages)": ("*.md", "docs/*.md", "benchmarks/*.md"),
    "Python": ("src/**/*.py", "tests/*.py"),
    "JSON with indentation": ("tests/data/peer_costs.json", "benchmarks/results/*.json"),
    "tables (CSV)": ("*.csv", "docs/*.csv"),
}
EMOJI = (
    *"😀😂🤣😊😍🥰😎🤔😅😭👍🙏👏💪🎉🔥✨💔💯🚀⭐✅❌📌💡🎯👀🌍🍕🍺🎂🐶",
    *("❤️", "⚠️", "☀️", "🤷\u200d♂️", "👨\u200d👩\u200d👧", "🇩🇪", "🇫🇷", "👋🏽"),
)

TEXT = (
    "The error is the estimate minus the count, as a share of the count. Texts are pieces of 2,000 "
    "characters of this repository, 40 made-up texts of each other kind, and for each language two "
    "paragraphs of 150 to 350 characters, together and apart. A cell is the mean error, and the 95th "
    "percentile of its size. The range is the one that an estimate states for a text of a model with this "
    "vocabulary."
)


def run(options: Options) -> Result:
    """Compare estimates with counts."""
    texts = dict(_texts(options))
    counters = {name: _counter(name) for name in (ENCODINGS if options.quick else VOCABULARIES)}
    errors = {
        name: {kind: [_error(text, name, count) for text in pieces] for kind, pieces in texts.items()}
        for name, count in counters.items()
    }
    rows: list[list[Cell]] = [
        [kind, len(pieces), *(_mean_and_most(errors[name][kind]) for name in counters)]
        for kind, pieces in texts.items()
    ]
    versions = {name: importlib.metadata.version(name) for name in ("tiktoken", "litellm")}
    versions |= {package.name: package.version for package in PACKAGES.values()}
    tables = [
        Table(title="By kind of text", columns=("text", "pieces", *counters), rows=rows),
        _summary(errors),
        _speed(options),
    ]
    return Result(
        title="Estimated tokens", text=TEXT, tables=tables, versions={"tokenizers": versions}, rounds=1
    )


def _counter(name: str) -> Callable[[str], int]:
    try:
        found = counter(name)
    except (OSError, subprocess.CalledProcessError) as error:
        raise WorkerError(f"the tokenizer {name} cannot be fetched: {error}") from error
    if found is None:
        raise WorkerError(f"the encoding {name} is not on this machine; litellm brings it")
    return found


def _error(text: str, vocabulary: str, count: Callable[[str], int]) -> float:
    return sum(text_tokens(text, vocabulary)) / count(text) - 1


def _texts(options: Options) -> Iterator[tuple[str, list[str]]]:
    for kind, patterns in FILES.items():
        paths = sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
        pieces = [piece for path in paths for piece in _pieces(path.read_text(encoding="utf-8"))]
        random.Random(kind).shuffle(pieces)
        yield kind, pieces[: options.count(PIECES)]
    for kind, make in MADE_UP.items():
        source = random.Random(kind)
        yield kind, [make(source) for _ in range(options.count(40))]
    languages = json.loads((ROOT / "tests" / "data" / "scripts.json").read_text(encoding="utf-8"))
    for language, (_, second, third) in languages.items():
        yield language, [second, third, f"{second} {third}"]


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        if len(text) - start > PIECE // 10:
            yield text[start : start + PIECE]


def _word(source: random.Random) -> str:
    return source.choice(WORDS)


def _lines(line: Callable[[random.Random], str], count: int = 15) -> Callable[[random.Random], str]:
    return lambda source: "\n".join(line(source) for _ in range(count))


def _object(source: random.Random, depth: int = 0) -> Any:
    kind = source.random()
    if depth < 3 and (kind < 0.4 or not depth):
        names = [_word(source) + source.choice(("", "_id", f"_{_word(source)}")) for _ in range(5)]
        return {name: _object(source, depth + 1) for name in names}
    if depth < 3 and kind < 0.5:
        return [_object(source, depth + 1) for _ in range(source.randint(1, 5))]
    return source.choice(
        (source.randrange(10**6), True, None, round(source.random() * 100, 2), _word(source), _day(source))
    )


def _day(source: random.Random) -> str:
    return f"2026-{source.randint(1, 12):02}-{source.randint(1, 28):02}T10:{source.randrange(60):02}:00Z"


def _log_line(source: random.Random) -> str:
    level, words = source.choice(("INFO", "WARN", "ERROR")), " ".join(_word(source) for _ in range(4))
    return f"{_day(source)} {level} [{_word(source)}.{_word(source)}] {words} id={source.randrange(10**6)}"


def _address(source: random.Random) -> str:
    words = [_word(source) for _ in range(5)]
    return f"https://www.{words[0]}.com/{words[1]}/{words[2]}-{words[3]}?{words[4]}={source.randrange(9999)}"


WORDS = (ROOT / "LICENSE").read_text(encoding="utf-8").lower().replace(",", " ").replace(".", " ").split()
MADE_UP: dict[str, Callable[[random.Random], str]] = {
    "whole numbers": lambda source: " ".join(
        str(source.randrange(10 ** source.randint(1, 9))) for _ in range(80)
    ),
    "decimal numbers": lambda source: ", ".join(f"{source.uniform(-1000, 1000):.4f}" for _ in range(60)),
    "compact JSON": lambda source: json.dumps(_object(source), separators=(",", ":")),
    "JSON in one line": lambda source: json.dumps(_object(source)),
    "log lines": _lines(_log_line),
    "addresses (URLs)": _lines(_address),
    "UUIDs": _lines(lambda source: str(uuid.UUID(int=source.getrandbits(128)))),
    "hexadecimal": _lines(lambda source: f"{source.getrandbits(256):064x}"),
    "base64": lambda source: base64.b64encode(source.randbytes(600)).decode(),
    "emoji": lambda source: "".join(source.choice(EMOJI) for _ in range(60)),
    "English with emoji": lambda source: " ".join(
        source.choice(EMOJI) if source.random() < 0.2 else _word(source) for _ in range(80)
    ),
}


def _summary(errors: dict[str, dict[str, list[float]]]) -> Table:
    rows: list[list[Cell]] = []
    for name, by_kind in errors.items():
        every = [error for kind in by_kind.values() for error in kind]
        low, _, high = (_MEASURED if name in ENCODINGS else _LIKE).other
        inside = sum(low <= 1 / (1 + error) <= high for error in every) / len(every)
        worst = max(by_kind, key=lambda kind: _most(by_kind[kind]))
        share = sum(_most(kind) <= 0.2 for kind in by_kind.values())
        most = f"{_most(by_kind[worst]):.0%} ({worst})"
        rows.append([name, f"{_most(every):.1%}", f"{share} of {len(by_kind)}", most, f"{inside:.1%}"])
    columns = (
        "vocabulary",
        "p95 of all texts",
        "kinds with p95 ≤ 20 %",
        "largest p95",
        "counts in the range",
    )
    return Table(title="All kinds together", columns=columns, rows=rows)


def _most(errors: Sequence[float]) -> float:
    """The 95th percentile of the sizes of the errors."""
    sizes = sorted(map(abs, errors))
    return sizes[min(len(sizes) - 1, len(sizes) * 95 // 100)]


def _mean_and_most(errors: Sequence[float]) -> str:
    return f"{statistics.fmean(errors):+.0%}, {_most(errors):.0%}"


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
