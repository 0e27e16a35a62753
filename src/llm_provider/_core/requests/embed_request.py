"""The arguments of `embed` → `EmbedRequest`: validated, normalised, frozen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..errors import RequestError, cite
from ..json_values import JSONMapping
from .checks import number
from .inputs import is_missing, is_table
from .parameter_table import CHECKS
from .request import CommonArguments, check_model_name, check_parameters, seal

if TYPE_CHECKING:
    from .parameters import EmbedParameters

SHARED = tuple(CommonArguments.__dataclass_fields__)
"""The parameters that `call` has too, with the same meaning."""

DEFAULTS = frozenset({*SHARED, "upstream"}) - {"extra_body"}
"""The defaults of a client that `embed` uses. The fields in `extra_body` are those of one endpoint."""

_CHECKS = {name: CHECKS[name] for name in (*SHARED, "upstream")} | {
    "dimensions": number(1, 2**31 - 1, whole=True)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest(CommonArguments):
    model: str
    inputs: tuple[str, ...]

    max_tool_rounds: ClassVar[None] = None
    options: ClassVar[None] = None
    messages: ClassVar[tuple[JSONMapping, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest(TextRequest):
    """One call of `embed` as the user asked for it; `EmbedRequest.build` is the only way to make one."""

    dimensions: int | None = None
    upstream: str | None = None

    @classmethod
    def build(
        cls, model: str, inputs: Iterable[str], parameters: EmbedParameters, function: str = "embed"
    ) -> EmbedRequest:
        """Check and normalise the arguments of `embed` or `aembed`. An empty list of texts is allowed."""
        seal(parameters)
        check_model_name(model)
        checked = check_parameters(function, _CHECKS, parameters)
        return cls(model=model, inputs=_texts(inputs), **checked)


def _texts(inputs: object) -> tuple[str, ...]:
    kind = type(inputs).__name__
    if isinstance(inputs, str):
        raise RequestError("inputs must be a list of texts, not one str: write embed(model, [text])")
    if isinstance(inputs, (set, frozenset)):
        # The vectors come in the order of the texts.
        raise RequestError(f"inputs is a {kind}, which has no order: pass a list")
    if isinstance(inputs, (bytes, bytearray, Mapping)) or not isinstance(inputs, Iterable):
        raise RequestError(f"inputs must be a list of texts, not {kind}: write embed(model, ['a text'])")
    if is_table(inputs):
        raise RequestError(f"inputs is a {kind}: give one column, as in embed(model, df['text'])")
    return tuple(_text(index, text) for index, text in enumerate(inputs))


def _text(index: int, text: object) -> str:
    if isinstance(text, str) and text:
        # The plain type: NumPy's str_ is a subclass.
        return text if type(text) is str else str.__str__(text)
    if isinstance(text, str):
        raise RequestError(f"inputs[{index}] is empty: providers refuse an empty text, so leave it out")
    first = text[0] if isinstance(text, (list, tuple)) and text else text
    if hasattr(type(first), "__index__"):
        raise RequestError(
            f"inputs[{index}] holds token ids; embed() takes texts: turn the tokens back into text, "
            "with tiktoken by encoding.decode(tokens)"
        )
    remedy = ": leave it out, as dropna() does" if is_missing(text) else ": write str(value)"
    raise RequestError(f"inputs[{index}] must be a str, not {cite(text)}{remedy}")
