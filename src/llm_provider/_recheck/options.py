"""The options of a recheck, which `RecheckParameters` documents."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from .._errors import RequestError
from .._requests.checks import flag, number
from .._runtime.files import check_path
from .._types.messages import Prompt
from .._types.response import Response

_CHECKS: dict[str, Callable[[str, object], object]] = {
    "share": number(0, 1),
    "floor": number(0, 0.5),
    "detect": number(0.001, 1),
    "alpha": number(1e-9, 0.5),
    "history": check_path,
    "persistence": number(1, 365, whole=True),
    "dry_run": flag,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckOptions:
    """What a recheck has and a batch has not."""

    share: float = 1.0
    floor: float | None = None
    detect: float = 0.05
    alpha: float = 0.01
    compare: Callable[[Response], Hashable] | None = None
    history: str | os.PathLike[str] | None = None
    border_prompts: Sequence[Prompt] | None = None
    persistence: int = 3
    dry_run: bool = False

    @classmethod
    def take_from(cls, parameters: Any) -> Self:
        """Remove the options from the parameters of a function; `RequestError` for a wrong value."""
        given: dict[str, Any] = {entry.name: parameters.pop(entry.name, None) for entry in fields(cls)}
        given = {name: value for name, value in given.items() if value is not None}
        options = cls(**given | {name: _CHECKS[name](name, given[name]) for name in given.keys() & _CHECKS})
        if options.detect <= (options.floor or 0):
            raise RequestError(
                "detect is the share of answers that differ after a change: it must be above floor"
            )
        if isinstance(options.border_prompts, str):
            raise RequestError("border_prompts is a list of prompts, not one")
        return options
