"""The rows of a check: what each expects, and their forms for terminals, JSON and Markdown."""

from html import escape
from typing import NamedTuple

from ..._core.json_values import JSONObject
from ..._core.words import format_usd

BAD = frozenset({"differs", "failed"})
"""The verdicts that make the exit code 1. The others are "ok", "note" and "skipped"."""

MODEL = "model "
"""The name of a row about a model begins with it."""

EXPECTED = {
    "key": ("the key is accepted", ""),
    MODEL: ("an answer", ""),
    "models": ("a model that answers", "name one with --model"),
    "call": ("a text", "answers are cut or lost"),
    "usage": ("about the estimate", "costs and limits go by it"),
    "cost": ("as the table says", "budgets go by the table"),
    "served by": ("the model that was asked, and a request id", "it is not known who answered"),
    "stream": ("a text", "streams lose something"),
    "streamed tool call": ("one call", "calls are lost"),
    "structured answer": ("JSON", "answers are repaired, or fail"),
    "image input": ("a text", "no images"),
    "tool call": ("one call", "tools do not work"),
    "tool result": ("it is taken", ""),
    "embedding": ("two vectors, and their tokens", "numbers have another form than is read"),
    "prompt cache": ("the prefix is read", "calls pay the full price"),
    "limits": ("as headers tell them", "the rate control finds the limit by itself"),
    "wrong model": ("NotFoundError, HTTP 404", "a wrong name is not seen, or only by its text"),
    "wrong model, stream": ("NotFoundError, HTTP 404", "a wrong name is not seen, or only by its text"),
    "over-long prompt": ("ContextWindowExceededError", "the server cuts prompts, or has a larger window"),
    "batch": ("submitted, looked up, cancelled", "it may go on, and be billed: cancel it at the provider"),
    "new fields": ("those of the SDK's types", "Response.raw keeps them"),
    "fields and events": ("those of the SDK's types", "other rows say whether it matters"),
    "check": ("all rows", "the rest was not tried"),
}
"""Name of a row → what is expected, and what another finding means."""


class Row(NamedTuple):
    """One thing that was looked at."""

    verdict: str
    provider: str
    name: str
    expected: str
    observed: str
    meaning: str

    def __str__(self) -> str:
        observed = self.observed[:600] + " … (--report has the rest)" * (len(self.observed) > 600)
        line = f"{self.verdict:8} {self.provider:10} {self.name:20} {observed}"
        more = f"\n{'':40} expected: {self.expected}; {self.meaning}"
        return line if self.verdict in ("ok", "skipped") else line + more


def make_row(verdict: str | bool, provider: str, name: str, observed: str, meaning: str = "") -> Row:
    """A row with what is expected of it. The verdict may be whether it is as expected."""
    word = ("ok" if verdict else "differs") if isinstance(verdict, bool) else verdict
    expected, usual = EXPECTED[MODEL if name.startswith(MODEL) else name]
    return Row(word, provider, name, expected, observed, meaning or usual)


def write_markdown(report: JSONObject) -> str:
    """A report that can be read, and pasted into the form for reports."""
    counts = ", ".join(f"{number} {word}" for word, number in report["counts"].items())
    versions = ", ".join(" ".join(pair) for pair in report["versions"].items())
    run = f"{report['date']}: {', '.join(report['models'])}: {counts}; {format_usd(report['cost'])}"
    head = ["| verdict | provider | row | expected | found | meaning |", "|---|---|---|---|---|---|"]
    rows = [" | ".join(cell.replace("|", "/") for cell in row.values()) for row in report["rows"]]
    # A server's words may have lines of their own, or look like HTML.
    rows = [f"| {' '.join(escape(row, quote=False).split())} |" for row in rows]
    return "\n".join(["# llm-provider check", "", run, "", versions, "", *head, *rows, ""])
