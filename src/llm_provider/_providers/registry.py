"""Loads the adapter of a wire format when the first call needs it."""

from __future__ import annotations

import functools
import importlib
from typing import cast

from .adapter import Adapter


@functools.cache
def load(name: str) -> Adapter:
    """The adapter module that a row of `ROUTES` names."""
    return cast("Adapter", importlib.import_module(f"llm_provider._providers.{name}.adapter"))
