"""`PassedOver`: a model that did not answer, so that the next one of `fallback` did.

It is alone because results read from a file have it too, without the modules that send calls.
"""

from dataclasses import dataclass, field
from typing import Any

from ..._core.errors import READERS
from ..._core.runtime.frozen import read_old_state
from ..._core.types.usage import CostBounds, Usage

_LATE = {"late": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A model that did not answer a call, whose `fallback` has others.

    Attributes:
        model: Its name as the user gave it.
        error: The class of its error, such as "RateLimitError". "RefusalError" also stands for an answer that
            refuses. "CacheMissError" says that its answer is not stored, and the answer of a later model is.
        status: The HTTP status of the last request, where that failed with one.
        message: What the provider or this library says of it.
        provider: Whom the requests were sent to; empty in files of older versions, which have no costs here.
        cost: USD that its requests cost, which the cost of the call contains; None if one is not known.
        cost_bounds: The least and the most USD of an unknown cost.
        usage: The usage that the provider reported for them; None if it reported none.

    >>> PassedOver(model="gpt-6.1-sol", error="OverloadedError", status=503)
    PassedOver(model='gpt-6.1-sol', error='OverloadedError', status=503, message='')
    """

    model: str
    error: str
    status: int | None = None
    message: str = ""
    provider: str = field(default="", repr=False, metadata=_LATE)
    cost: float | None = field(default=None, repr=False, metadata=_LATE)
    cost_bounds: CostBounds | None = field(default=None, repr=False, metadata=_LATE)
    usage: Usage | None = field(default=None, repr=False, metadata=_LATE)

    __setstate__ = read_old_state


def read_passed_over(entry: dict[str, Any]) -> PassedOver:
    """The model that `to_dict` wrote."""
    own = {name: READERS[name](entry[name]) for name in ("cost_bounds", "usage") if entry.get(name)}
    return PassedOver(**{**entry, **own})
