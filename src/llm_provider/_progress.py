"""The progress bar of a batch: on a terminal and in a notebook, never in a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from ._types import Response


class Progress:
    """Counts finished calls and shows them with tqdm: done, cached, failed, cost in USD.

    Args:
        total: Number of calls where it is known.
        show: True or False to force it; None shows it on a terminal and in a notebook.
    """

    def __init__(self, total: int | None, show: bool | None) -> None:
        self.cached = self.failed = 0
        self.cost = 0.0
        self._bar: Any = _bar(total) if (_is_watched() if show is None else show) else None

    def update(self, result: object) -> None:
        """Count one result: a `Response`, or the error of a call that failed."""
        if isinstance(result, Response):
            self.cached += result.cached
            self.cost += result.cost or 0.0
        else:
            self.failed += 1
        if self._bar is not None:
            facts = f"cached={self.cached} failed={self.failed} cost=${self.cost:.4f}"
            self._bar.set_postfix_str(facts, refresh=False)
            self._bar.update()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


def _is_watched() -> bool:
    return "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())


def _bar(total: int | None) -> Any:
    from tqdm import tqdm

    kind: Any = tqdm
    if "ipykernel" in sys.modules:
        # Without ipywidgets tqdm's bar for notebooks is only a warning.
        with contextlib.suppress(ImportError):
            import_module("ipywidgets")
            kind = import_module("tqdm.notebook").tqdm
    # A terminal that does not know its size would be shown an empty bar.
    size = {} if _columns() else {"ncols": 100, "nrows": 24}
    return kind(total=total, unit="call", dynamic_ncols=not size, file=sys.stderr, **size)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return 0
