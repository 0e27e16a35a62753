"""A `Client` in words and as HTML, without a secret; and an error that ends a cell, in few lines."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..._core.errors import cite
from ..._core.money.ledger import Ledger
from ..._core.words import escape_controls, format_usd
from . import blocks as html

_OPEN = frozenset({
    "cache_dir", "cache_shared", "max_concurrent", "budget", "prices", "env_file", "ledger", "timeout",
    "max_retries", "outage_patience", "max_response_bytes", "rate_control", "transport", "strict_model",
    "show_estimate_above", "telemetry", "log_content", "show_waits", "temperature", "max_tokens",
    "reasoning_effort", "service_tier", "endpoint", "n", "seed", "top_p", "draw",
})  # fmt: skip
"""Settings and defaults whose values are shown. A key, a header or the URL of a store may hold a secret."""
_PACKAGE = str(Path(__file__).parents[2])
_INSTALLED = tuple({_PACKAGE, *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))})


def describe_client(settings: Mapping[str, Any], usage: Ledger) -> Iterator[str]:
    """What was set, and what the calls have cost."""
    for name, value in settings.items():
        if value is not None:
            is_path = isinstance(value, os.PathLike)
            yield f"{name}={cite(os.fspath(value) if is_path else value) if name in _OPEN else '...'}"
    total = usage.total
    cost = format_usd(float(usage.cost), total.unknown, total.unknown_at_most)
    yield f"{total.requests:,} requests, {total.hits:,} hits, {cost}"


def client_as_html(settings: Mapping[str, Any], usage: Ledger) -> str:
    """The settings as a line, and the sums by model."""
    *own, _ = describe_client(settings, usage)
    return html.block(html.small("Client", *own), usage._repr_html_())


def render_traceback(error: BaseException) -> list[str]:
    """The lines of a traceback in which the frames inside the library are one line, and the cause one more.

    All frames are shown after `%xmode Verbose` and `%tb`.
    """
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and shell.InteractiveTB.mode == "Verbose":
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__)
        return lines
    # The cells of a notebook are no installed files, and the frames before them are the kernel's.
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(_INSTALLED)]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if not isinstance(error, Exception):  # an interrupt, whose notes say what is kept
        cause = None
    return [
        f"{type(error).__name__}: Traceback (most recent call last)",
        *"".join(traceback.format_list(own)).splitlines(),
        f"  [{len(frames) - len(own)} frames of installed packages; %xmode Verbose and %tb show them]",
        f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        *([f"  caused by {type(cause).__name__}: {escape_controls(cite(str(cause)))}"] if cause else ()),
        *getattr(error, "__notes__", ()),
    ]
