"""One module per wire format. An adapter is imported on the first call that needs it."""

from __future__ import annotations

import functools
import importlib
from typing import cast

from ._adapter import Adapter


@functools.cache
def load(name: str) -> Adapter:
    """The adapter module that a row of `ROUTES` names."""
    return cast("Adapter", importlib.import_module(f"{__name__}.{name}"))
