"""The log-probabilities of given texts: `Score`, `Scores` and `ScoreResults`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._errors import FailedAttempt, LLMError
from .._foreign_attributes import Hinting
from .._json_values import JSONObject
from .._runtime.frozen import quickly_made
from .._runtime.imports import import_optional
from .results import Cost
from .row_label import RowLabel
from .usage import NO_TIMING, CostSource, Timing, Usage, cost_text

if TYPE_CHECKING:
    import pandas as pd


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Hinting):
    """How likely a model finds one continuation of a context.

    Attributes:
        text: The continuation as it was given.
        logprob: The natural logarithm of its probability: the sum of `token_logprobs`.
        token_logprobs: That of each token, given the context and the tokens before it.
        tokens: The text of each token. A token that is no whole character has U+FFFD.
        token_ids: The id of each token; None where the server tells none.
        is_greedy: Whether each token is the most likely one; None where the server does not tell.
        bytes: The length of the continuation in UTF-8, to normalise by.
        same_boundary: Whether the context alone has the tokens that it has in front of the continuation. If
            not, the first tokens of the score may belong to both. None where the context has no ids.

    >>> score = Score(text=" Rome", logprob=-0.5, token_logprobs=(-0.5,), tokens=(" Rome",), bytes=5)
    >>> score.per_byte, score.per_token
    (-0.1, -0.5)
    """

    text: str
    logprob: float
    token_logprobs: tuple[float, ...]
    tokens: tuple[str, ...]
    bytes: int
    token_ids: tuple[int, ...] | None = None
    is_greedy: bool | None = None
    same_boundary: bool | None = None

    @property
    def per_byte(self) -> float:
        """The log-probability for each byte of the continuation."""
        return self.logprob / self.bytes

    @property
    def per_token(self) -> float:
        """The log-probability for each token of the continuation."""
        return self.logprob / len(self.token_logprobs)


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(Hinting):
    """The scores of some continuations of one context, in their order.

    `len()`, iteration and indexing work on `scores`. `cost`, `cost_source`, `price`, `usage`, `cached`,
    `timing` and `failures` are as for `Embeddings`: sums over all continuations. `metadata` is that of the
    input in its batch.

    >>> def score(text, logprob):
    ...     return Score(text=text, logprob=logprob, token_logprobs=(logprob,), tokens=(text,), bytes=len(text))
    >>> scores = Scores(context="2+2=", scores=(score("4", -0.1), score("22", -3.0)), usage=Usage(), model="m",
    ...                 provider="p", cost=0.0)
    >>> scores
    Scores(2 continuations, best='4' at -0.100, model='m', $0.00)
    >>> scores.logprobs, scores.best.text
    ((-0.1, -3.0), '4')
    """

    context: str
    scores: tuple[Score, ...]
    usage: Usage
    model: str
    provider: str
    cost: float | None = None
    cost_source: CostSource | None = None
    price: float | None = None
    cached: bool = False
    timing: Timing = NO_TIMING
    failures: tuple[FailedAttempt, ...] = field(default=(), repr=False)
    metadata: Any = None
    row_label: RowLabel | None = field(default=None, repr=False, compare=False)

    @property
    def logprobs(self) -> tuple[float, ...]:
        """The log-probability of each continuation."""
        return tuple(score.logprob for score in self.scores)

    @property
    def best(self) -> Score:
        """The most likely continuation; of several the first."""
        return max(self.scores, key=lambda score: score.logprob)

    @property
    def attempts(self) -> int:
        """The number of requests that were sent for this call; 0 if all scores came from the cache."""
        return self.timing.attempts

    @property
    def maybe_billed(self) -> bool:
        """Whether the provider may have charged for this call."""
        return self.attempts > 0 or not self.cached

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __getitem__(self, index: int) -> Score:
        return self.scores[index]

    def __repr__(self) -> str:
        size = f"{len(self)} continuation{'' if len(self) == 1 else 's'}"
        best = f", best={self.best.text!r} at {self.best.logprob:.3f}" if self.scores else ""
        return f"Scores({size}{best}, model={self.model!r}, {cost_text(self.cost, cached=self.cached)})"

    def _repr_html_(self) -> str:
        from .. import _html

        rows = [
            [_html.words(score.text), _html.figure(f"{score.logprob:.4f}"), _html.figure(str(len(score.tokens)))]
            for score in self.scores
        ]
        line = _html.small(self.provider, self.model, cost_text(self.cost, cached=self.cached))
        return _html.block(_html.table(["continuation", "log-probability", "tokens"], rows), line)


class ScoreResults(Hinting, list["Scores | LLMError"]):
    """What `score_many` returns: the `Scores` of each context, or the error of its call, in their order."""

    __slots__ = ()

    @property
    def errors_by_index(self) -> dict[int, LLMError]:
        """The errors by position in this list."""
        return {index: result for index, result in enumerate(self) if isinstance(result, LLMError)}

    @property
    def cost(self) -> Cost:
        """USD that the calls cost, those that failed too, as far as it is known."""
        return Cost.of(result.cost for result in self)

    @property
    def price(self) -> Cost:
        """USD that the scores cost when they were bought: of stored scores the cost of the calls before."""
        return Cost.of(result.price for result in self if isinstance(result, Scores))

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame with one row for each continuation, and for each call that failed.

        What the continuations of a call share, such as its cost, is in the row of the first one, so the sums
        of the table are right.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        pandas = import_optional("pandas", "pip install pandas")
        rows = [row for index, result in enumerate(self) for row in _rows(index, result)]
        frame: pd.DataFrame = pandas.DataFrame(rows, columns=[*_COLUMNS, *_names(rows)])
        labels = [self[row["input_index"]].row_label for row in rows]
        if labels and None not in labels:
            index = [label.value for label in labels if label is not None]
            frame.index = pandas.Index(index, name=getattr(labels[0], "names", (None,))[0])
        return frame

    def __repr__(self) -> str:
        errors = len(self.errors_by_index)
        more = f", {errors} error{'' if errors == 1 else 's'}" if errors else ""
        return f"ScoreResults({len(self) - errors} scored{more}, {self.cost})"


_COLUMNS = (
    "input_index", "continuation_index", "continuation", "logprob", "is_greedy", "bytes", "tokens",
    "same_boundary", "error", "error_message", "model", "provider", "cached", "cost", "price", "input_tokens",
    "output_tokens", "attempts",
)  # fmt: skip


def _names(rows: list[JSONObject]) -> list[str]:
    return [name for name in dict.fromkeys(name for row in rows for name in row) if name not in _COLUMNS]


def _rows(index: int, result: Scores | LLMError) -> Iterator[JSONObject]:
    """The rows of one call. A name of its metadata that a column has too gets a prefix."""
    usage, metadata = result.usage or Usage(), result.metadata
    if metadata is not None and not isinstance(metadata, dict):
        metadata = {"metadata": metadata}
    own = {f"metadata_{name}" if name in _COLUMNS else name: value for name, value in (metadata or {}).items()}
    shared = {"input_index": index, "model": result.model, "provider": result.provider, "cached": result.cached}
    sums: JSONObject = {
        "cost": result.cost, "price": getattr(result, "price", None) if isinstance(result, Scores) else None,
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "attempts": result.attempts,
    }  # fmt: skip
    if isinstance(result, LLMError):
        yield shared | own | sums | {"error": type(result).__name__, "error_message": str(result)}
        return
    for number, score in enumerate(result.scores):
        yield shared | own | (sums if not number else dict.fromkeys(sums, 0)) | {
            "continuation_index": number, "continuation": score.text, "logprob": score.logprob,
            "is_greedy": score.is_greedy, "bytes": score.bytes, "tokens": len(score.tokens),
            "same_boundary": score.same_boundary,
        }  # fmt: skip
