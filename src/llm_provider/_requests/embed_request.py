"""The arguments of `embed` → `EmbedRequest`: validated, normalised, frozen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from .._errors import RequestError, shown
from .inputs import is_table
from .request import CacheMode, check, check_model_name, checked_parameters, number, seal

if TYPE_CHECKING:
    from decimal import Decimal

    from .._limits.timeouts import Timeouts
    from .._money.budget import Budget
    from .api_keys import APIKey


class EmbedParameters(TypedDict, total=False):
    """What `embed` and `aembed` take besides the model and the texts.

    Names and meanings are those of `call`. None means "not set" throughout: nothing is sent for it.
    """

    dimensions: int | None
    """How many numbers each vector has. None means the model's default; only some models take another."""
    strict_model: bool | None
    """Whether an answer by another snapshot than before raises `ModelDriftError`; default the client's."""
    timeout: float | Timeouts | None
    """Seconds for one attempt of one request, without the time it waits in the queue."""
    deadline: float | None
    """Seconds until all texts are embedded or the call fails, with all attempts and waits."""
    max_retries: int | None
    """How many more requests may be sent after the first one failed in a way that may pass."""
    outage_patience: float | None
    """Seconds that it waits for a provider that is down; default the client's, else 3,600."""
    cache: CacheMode | bool | None
    """Whether the cache is read and written, as in `call`. Each text has an entry of its own."""
    budget: float | Decimal | Budget | None
    """USD that all texts together may cost at most; or a `Budget`, which can be shared."""
    extra_body: Mapping[str, Any] | None
    """Fields for this provider only, such as Gemini's `taskType`, merged into the request's JSON."""
    extra_headers: Mapping[str, str] | None
    api_key: str | None
    base_url: str | None


# The check of each parameter: `dimensions` is the only one that `call` does not have.
_CHECKS = dict.fromkeys(EmbedParameters.__annotations__, check) | {
    "dimensions": number(1, 2**31 - 1, whole=True)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedRequest:
    """One call of `embed` as the user asked for it; `EmbedRequest.build` is the only way to make one."""

    model: str
    inputs: tuple[str, ...]
    dimensions: int | None = None
    strict_model: bool | None = None
    timeout: Timeouts | None = None
    deadline: float | None = None
    max_retries: int | None = None
    outage_patience: float | None = None
    cache: CacheMode | None = None
    budget: Budget | None = field(default=None, repr=False)
    extra_body: Mapping[str, Any] | None = None
    extra_headers: Mapping[str, str] | None = None
    api_key: APIKey | None = field(default=None, repr=False)
    base_url: str | None = None

    max_tool_rounds: ClassVar[None] = None

    @classmethod
    def build(cls, model: str, inputs: Iterable[str], parameters: EmbedParameters) -> EmbedRequest:
        """Check and normalise the arguments of `embed`. An empty list of texts is allowed.

        Raises:
            TypeError: a parameter that does not exist.
            RequestError: a value that cannot be sent; the message names the parameter or the text.

        >>> EmbedRequest.build("text-embedding-3-small", ["Hi"], {"dimensions": 256}).inputs
        ('Hi',)
        >>> EmbedRequest.build("text-embedding-3-small", "Hi", {})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        llm_provider._errors.RequestError: inputs must be a list of texts, not one str: write ...
        """
        seal(parameters)
        check_model_name(model)
        checked = checked_parameters("embed", _CHECKS, parameters)
        return cls(model=model, inputs=_texts(inputs), **checked)


def _texts(inputs: Any) -> tuple[str, ...]:
    kind = type(inputs).__name__
    if isinstance(inputs, str):
        raise RequestError("inputs must be a list of texts, not one str: write embed(model, [text])")
    if isinstance(inputs, (set, frozenset)):
        # The vectors come in the order of the texts.
        raise RequestError(f"inputs is a {kind}, which has no order: pass a list")
    if isinstance(inputs, (bytes, bytearray, Mapping)) or not isinstance(inputs, Iterable):
        raise RequestError(f"inputs must be a list of texts, not {kind}")
    if is_table(inputs):
        raise RequestError(f"inputs is a {kind}: give one column, as in embed(model, df['text'])")
    return tuple(_text(index, text) for index, text in enumerate(inputs))


def _text(index: int, text: Any) -> str:
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
    raise RequestError(f"inputs[{index}] must be a str, not {shown(text)}")
