"""The table of failures: what a status, a code or words mean, and what follows from each class of error.

Every route reads it: bodies, events of streams, rows of provider batches, litellm's exceptions. `find_rule`
asks the codes first, then the words, then the status. A code that says little, such as
`invalid_request_error`, leaves the decision to the words. docs/reliability.md shows both tables.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from .. import errors


class Consequence(NamedTuple):
    """What follows from a class of error. Whether it is sent again is `retryable` of the class."""

    outage: bool = False
    """Whether it may be a part of an outage."""
    stops: Literal["", "yes", "before an answer"] = ""
    """Whether three in a row stop a batch: always, or while the model has answered no call of it."""
    key: Literal["", "replaces the key", "replaces the account", "tries another", "prefers another"] = ""
    """What happens where there is more than one API key."""
    fallback: bool = False
    """Whether the next model of `fallback` is asked."""


CONSEQUENCES: dict[type[errors.LLMError], Consequence] = {
    errors.MissingAPIKeyError: Consequence(stops="yes"),
    errors.MissingDependencyError: Consequence(stops="yes"),
    errors.UnknownModelError: Consequence(stops="yes"),
    errors.AuthenticationError: Consequence(stops="yes", key="replaces the key"),
    errors.QuotaExceededError: Consequence(stops="yes", key="replaces the account", fallback=True),
    errors.PermissionDeniedError: Consequence(key="tries another"),
    errors.NotFoundError: Consequence(stops="before an answer", key="tries another"),
    errors.TooManyErrorsError: Consequence(stops="yes"),
    errors.RateLimitError: Consequence(key="prefers another", fallback=True),
    errors.OverloadedError: Consequence(outage=True, fallback=True),
    errors.InternalServerError: Consequence(outage=True, fallback=True),
    errors.APITimeoutError: Consequence(outage=True, fallback=True),
    errors.APIConnectionError: Consequence(outage=True, fallback=True),
    errors.APIResponseValidationError: Consequence(fallback=True),
    errors.ContextWindowExceededError: Consequence(fallback=True),
    errors.RefusalError: Consequence(fallback=True),
    errors.CacheMissError: Consequence(fallback=True),
}
_NONE = Consequence()


def consequence_of(error: errors.LLMError) -> Consequence:
    """What follows from an error, by its class or by the row of the table that made it."""
    kinds = (kind for kind in type(error).__mro__ if kind in CONSEQUENCES)
    consequence = CONSEQUENCES.get(next(kinds, errors.LLMError), _NONE)
    return consequence._replace(stops="before an answer") if vars(error).get("_stops") else consequence


class Rule(NamedTuple):
    """A row: the class of a failure with one of `codes`, or with `words`, or else with one of `statuses`.

    `codes` is matched with each complete code in lower case, `words` with the beginning of what the provider
    says. "200" stands for a failure inside an answer or a stream too. A code holds with some statuses only: a
    5xx with `invalid_request_error` is a failure of the server. `retried` and `stops` are exceptions from the
    consequences of the class. Where words have a `limit` and what was `requested`, that must be more.
    """

    kind: type[errors.LLMError]
    source: str
    statuses: str
    codes: str
    words: str
    retried: bool | None
    stops: bool


GATEWAY_FAILURE = "invalid_model_endpoint_authentication"
"""The code of Foundry's gateway where it fails to reach its own model, now and then, with any status."""


def _read_rules() -> Iterator[Rule]:
    text = Path(__file__).with_name("failures.csv").read_text(encoding="utf-8")
    for name, statuses, codes, words, exception, source in [*csv.reader(text.splitlines())][1:]:
        retried = False if exception == "final" else None
        yield Rule(getattr(errors, name), source, statuses, codes, words, retried, bool(exception))


RULES = tuple(_read_rules())
"""Read at the import: a process that may open no more files has failures too."""

_SAYS_LITTLE = (
    errors.BadRequestError, errors.InternalServerError, errors.NotFoundError, errors.PermissionDeniedError,
    errors.RateLimitError,
)  # fmt: skip
"""Classes whose codes leave the decision to the words."""

_LONGEST = 1000
"""Characters of a message in which words count."""

_HEADING = re.compile(
    r"(?![^:]{0,60}\b(prompt|contents?|messages?|text|user)\b)(litellm\.\w+: |[{\[]+['\"]error['\"]: ?['\"]?"
    r"|\"|(/[\w/]+|anthropic_messages|agenerate_content(_stream)?): "
    r"|[\w .()/,-]{0,60}?\b(errors?|exception|\w+(error|exception)|denied|rejected)[\w .()/,-]{0,40}?(: | - )"
    r"|\[?\d{3,4}\b[\])]?[\s:\[-]+)",
    re.IGNORECASE,
)
"""What stands before the words of a provider: the name of an exception, a status, an endpoint.

litellm's proxy has names of its own for the endpoints of Anthropic and Gemini.
"""

_QUOTED = re.compile(
    r"(?<!\w)[`'\"\u201c\u2018][^`'\"\u201d\u2019]*\s[^`'\"\u201d\u2019]*([`'\"\u201d\u2019]|$)"
    r"|\bfailed_generation\b"
    r"|\b(prompt|input|contents?|messages?|text|value|got|received|user)\W{0,3}[:=] ",
    re.IGNORECASE,
)  # fmt: skip
"""Where words of the user, or of the model, may begin. Nothing from there on counts."""


def words_in(message: str) -> str:
    """What the provider itself says at the beginning of a message.

    >>> words_in("Error code: 429 - [1113][Insufficient balance. Please recharge.]")
    'Insufficient balance. Please recharge.]'
    >>> words_in("Invalid content 'your credit balance is too low'")
    'Invalid content '
    """
    text = message[:_LONGEST].strip()
    while (heading := _HEADING.match(text)) is not None:
        text = text[heading.end() :]
    quoted = _QUOTED.search(text)
    return text if quoted is None else text[: quoted.start()]


def quotes_input(message: str) -> bool:
    """Whether a message may repeat words of the user."""
    return _QUOTED.search(message[:_LONGEST]) is not None


def find_rule(status: int | None, codes: tuple[str | None, ...], message: str) -> Rule:
    """The row for a failure; `status` is None or 200 for one inside an answer or a stream."""
    # Statuses from 600 on are a server's own.
    number = min(status or 200, 599)
    rows = [
        rule for rule in RULES if not {str(number), f"{number // 100}xx"}.isdisjoint(rule.statuses.split())
    ]
    lowered = [code.lower() for code in codes if code]
    matches = (rule for code in lowered for rule in rows if rule.codes and re.fullmatch(rule.codes, code))
    by_code = next(matches, None)
    if by_code is not None and by_code.kind not in _SAYS_LITTLE:
        return by_code
    said, flags = words_in(message), re.IGNORECASE | re.DOTALL
    matched = ((rule, re.match(rule.words, said, flags)) for rule in rows if rule.words)
    by_words = next((rule for rule, match in matched if match and not _may_fit(**match.groupdict())), None)
    plain = (rule for rule in rows if not (rule.codes or rule.words))
    return by_words or by_code or next(plain, RULES[-1])


def _may_fit(limit: str | None = None, requested: str | None = None) -> bool:
    """Whether a limit that a message names has room for its request once others have ended."""
    return limit is not None and requested is not None and int(requested) <= int(limit)
