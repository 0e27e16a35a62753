"""The texts that `score` takes and their log probabilities: `ScoreRequest`, `Score` and `Scores`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ..._core.errors import READERS, RequestError, cite
from ..._core.hints import Hinting
from ..._core.json_values import JSONMapping, JSONObject, check_fields, json_value
from ..._core.requests.checks import ScoreMethod, flag, one_of
from ..._core.requests.parameter_table import CHECKS
from ..._core.requests.request import SHARED, TextRequest, check_model_name, check_parameters, seal
from ..._core.runtime.frozen import with_late_field
from ..._core.runtime.json_pieces import canonical
from ..._core.types.results_table import OtherResult
from ..._core.types.score_values import list_scores
from ..._core.types.usage import RowLabel, ServedBy, Timing, Usage, cost_text

if TYPE_CHECKING:
    from ..._core.requests.parameters import ScoreParameters

_SHARED = frozenset(SHARED) - {"in_batch"}

DEFAULTS = _SHARED - {"extra_body"}
"""The defaults of a client that `score` uses. The fields in `extra_body` belong to one endpoint."""

_CHECKS = {name: CHECKS[name] for name in _SHARED} | {"method": one_of(ScoreMethod), "check_order": flag}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest(TextRequest):
    """One call of `score`; `ScoreRequest.build` is the only way to make one. `inputs` are continuations."""

    context: str
    method: ScoreMethod | None = None
    check_order: bool = False

    @classmethod
    def build(
        cls, model: str, inputs: object, parameters: ScoreParameters, function: str = "score"
    ) -> ScoreRequest:
        """Check and normalise the arguments of a function. `inputs` are the context and its continuations."""
        seal(parameters)
        check_model_name(model)
        checked = check_parameters(function, _CHECKS, cast("JSONMapping", parameters))
        context, continuations = cast("tuple[Any, Any]", inputs)
        if not isinstance(context, str):
            raise RequestError(f"context must be a text, not {cite(context)}; it may be empty")
        kinds = (str, bytes, Mapping, set, frozenset)
        if isinstance(continuations, kinds) or not isinstance(continuations, Iterable):
            raise RequestError(
                f"continuations must be a list of texts, not {type(continuations).__name__}: write "
                "score(model, context, [' a text'])"
            )
        texts = tuple(continuations)
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise RequestError(
                    f"continuations[{index}] must be a str, not {cite(text)}: write str(value)"
                )
            if not text:
                raise RequestError(f"continuations[{index}] is empty: an empty text has no probability")
        # A text that is no valid Unicode is refused here.
        canonical([context, *texts])
        return cls(model=model, context=str(context), inputs=tuple(map(str, texts)), **checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(Hinting):
    """How likely a model finds one continuation of a context.

    Attributes:
        text: The continuation as it was given.
        logprob: The natural logarithm of its probability: the sum of `token_logprobs`.
        token_logprobs: Each token's, given the context and the tokens before it.
        tokens: The text of each token. A token that is no whole character has U+FFFD.
        token_ids: The id of each token; None where the server tells none.
        is_greedy: Whether each token is the most likely one; None where the server does not tell.
        bytes: The length of the continuation in UTF-8, to normalise by.
        same_boundary: Whether the context alone has the tokens that it has in front of the continuation. If
            not, the first tokens of the score may belong to both. None where the context has no ids.
    """

    text: str
    logprob: float
    token_logprobs: tuple[float, ...]
    tokens: tuple[str, ...]
    bytes: int
    token_ids: tuple[int, ...] | None = None
    is_greedy: bool | None = None
    same_boundary: bool | None = None

    @classmethod
    def from_dict(cls, fields: JSONMapping) -> Score:
        """The score whose fields JSON has."""
        known: Any = {name: tuple(each) if isinstance(each, list) else each for name, each in fields.items()}
        return cls(**known)


_COLUMNS = ("text", "logprob", "is_greedy", "bytes", "same_boundary", "token_ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores(OtherResult, Hinting):
    """The scores of some continuations of one context, in their order.

    `len()`, iteration and indexing work on `scores`. `cost`, `cost_source`, `price`, `usage`, `cached`,
    `timing` and `failures` are as for `Embeddings`: sums over all continuations. `metadata` belongs to the
    input in its batch. `served_by` is who answered for the first continuation.

    >>> from llm_provider import Usage
    >>> def score(text, logprob):
    ...     own = dict(text=text, logprob=logprob, tokens=(text,), bytes=len(text))
    ...     return Score(token_logprobs=(logprob,), **own)
    >>> scores = Scores(context="2+2=", scores=(score("4", -0.1), score("22", -3.0)), usage=Usage(),
    ...                 model="m", provider="p", cost=0.0)
    >>> scores
    Scores(2 continuations, best='4' at -0.100, model='m', $0.00)
    >>> scores.logprobs, scores.best.text
    ((-0.1, -3.0), '4')
    """

    context: str
    scores: tuple[Score, ...]
    served_by: ServedBy | None = field(default=None, repr=False)
    metadata: Any = None
    row_label: RowLabel | None = field(default=None, repr=False, compare=False)
    cache_keys: tuple[str | None, ...] = field(default=(), repr=False, compare=False)
    """The key of the cache entry of each distinct continuation; None where nothing was stored."""

    @property
    def logprobs(self) -> tuple[float, ...]:
        """The log-probability of each continuation."""
        return tuple(score.logprob for score in self.scores)

    @property
    def best(self) -> Score:
        """The most likely continuation; of several the first."""
        return max(self.scores, key=lambda score: score.logprob)

    @property
    def prompt(self) -> str:
        """The context, by the name that it has in other results."""
        return self.context

    def list_rows(self) -> list[dict[str, Any]]:
        """The columns that the row of each continuation has for itself in a table."""
        rows: list[dict[str, Any]] = []
        for score in self.scores:
            row = {name: getattr(score, name) for name in _COLUMNS if name != "token_ids" or score.token_ids}
            rows.append({**row, "tokens": len(score.tokens)})
        return rows

    def row_text(self, row: Mapping[str, Any]) -> str:
        """What a person reads of the row of a continuation."""
        return f"{row['text']} ({row['logprob']:.3f})"

    def to_dict(self) -> JSONObject:
        """The scores as JSON-ready values, from which `from_dict` makes equal ones."""
        plain = {"metadata": json_value(self.metadata), "usage": json_value(self.usage)}
        return asdict(self) | plain | list_scores(self)

    @classmethod
    def from_dict(cls, fields: JSONMapping) -> Scores:
        """The scores that `to_dict` wrote."""
        readers: JSONObject = {
            "scores": lambda scores: tuple(map(Score.from_dict, scores)),
            "timing": lambda timing: Timing(**timing),
            "served_by": lambda served_by: ServedBy(**served_by),
            "cache_keys": tuple,
            **READERS,
        }
        known = dict(check_fields(fields))
        known |= {name: read(known[name]) for name, read in readers.items() if known.get(name) is not None}
        return cls(**known)

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __getitem__(self, index: int) -> Score:
        return self.scores[index]

    def __repr__(self) -> str:
        size = f"{len(self)} continuation{'' if len(self) == 1 else 's'}"
        best = f", best={self.best.text!r} at {self.best.logprob:.3f}" if self.scores else ""
        return f"Scores({size}{best}, model={self.model!r}, {cost_text(self)})"


with_late_field(Scores, "served_by")


def read_entry(payload: JSONMapping, reply: JSONMapping, shared: JSONMapping) -> Scores:
    """The score in a cache entry, whose question has the context. `shared` are the other fields."""
    score, usage = Score.from_dict(reply["score"]), Usage(**reply["usage"])
    return Scores(context=str(payload.get("context", "")), scores=(score,), usage=usage, **shared)
