"""Functions that read media, citations and who answered in a raw reply, and that write evidence.

The package sets them as soon as it is imported, because the wire formats are in a layer above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..._features.evidence.container import Evidence
    from .served_by import ServedBy

read: Callable[[str, str, Any], Any]
"""Takes the name of an attribute of `Response`, the provider and the reply."""

read_served_by: Callable[[str, Any, Mapping[str, str] | None], ServedBy | None]
"""Takes the provider, the reply, and what its headers said: fields of `ServedBy` by name."""

export: Callable[..., Evidence]
"""Takes the arguments of `Results.export`."""
