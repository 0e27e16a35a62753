"""The tables of failures of docs/reliability.md, from the library's own: `make reliability` writes it."""

from llm_provider._core.pace.failure_table import CONSEQUENCES, RULES, Consequence, Rule

CLASSES = (
    "| error | sent again | may be an outage | three in a row stop a batch | another API key | "
    "next of `fallback` |\n"
    "|---|---|---|---|---|---|\n"
)
ROWS = "| status | code | what the provider says | error | source |\n|---|---|---|---|---|\n"


def failure_tables() -> str:
    """What follows from each class of error, and the class that a status, a code or words mean."""
    classes = "".join(_class_line(kind.__name__, kind.retryable, row) for kind, row in CONSEQUENCES.items())
    return f"{CLASSES}{classes}\n{ROWS}{''.join(map(_row_line, RULES))}"


def _class_line(name: str, retryable: bool, row: Consequence) -> str:
    cells = (f"`{name}`", _yes(retryable), _yes(row.outage), row.stops, row.key, _yes(row.fallback))
    return f"| {' | '.join(cells)} |\n"


def _row_line(rule: Rule) -> str:
    exceptions = [
        *(["not sent again, no outage"] if rule.retried is False else []),
        *(["stops a batch before an answer"] if rule.stops else []),
    ]
    kind = f"`{rule.kind.__name__}`" + "".join(f", {exception}" for exception in exceptions)
    statuses = rule.statuses.replace("1xx 2xx", "200")
    cells = (statuses, _pattern(rule.codes), _pattern(rule.words), kind, rule.source)
    return f"| {' | '.join(cells)} |\n"


def _yes(value: bool) -> str:
    return "yes" if value else ""


def _pattern(text: str) -> str:
    """A pattern as code. In a table, a bar needs a backslash; a pattern with backticks needs two of them."""
    escaped = text.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in text else f"`{escaped}`" if text else ""
