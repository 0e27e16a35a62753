"""The arguments of `score` → `ScoreRequest`: validated, normalised, frozen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ..._core.errors import RequestError, cite
from ..._core.json_values import JSONMapping
from ..._core.requests.checks import ScoreMethod, flag, one_of
from ..._core.requests.parameter_table import CHECKS
from ..._core.requests.request import SHARED, TextRequest, check_model_name, check_parameters, seal
from ..._core.runtime.canonical_json import canonical

if TYPE_CHECKING:
    from ..._core.requests.parameters import ScoreParameters

_SHARED = frozenset(SHARED) - {"in_batch"}

DEFAULTS = _SHARED - {"extra_body"}
"""The defaults of a client that `score` uses. The fields in `extra_body` are those of one endpoint."""

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
        texts = _texts(continuations)
        # A text that is no valid Unicode is refused here.
        canonical([context, *texts])
        return cls(model=model, context=str(context), inputs=texts, **checked)


def _texts(continuations: object) -> tuple[str, ...]:
    kinds = (str, bytes, Mapping, set, frozenset)
    if isinstance(continuations, kinds) or not isinstance(continuations, Iterable):
        raise RequestError(
            f"continuations must be a list of texts, not {type(continuations).__name__}: write "
            "score(model, context, [' a text'])"
        )
    texts = tuple(continuations)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise RequestError(f"continuations[{index}] must be a str, not {cite(text)}: write str(value)")
        if not text:
            raise RequestError(f"continuations[{index}] is empty: an empty text has no probability")
    return tuple(map(str, texts))
