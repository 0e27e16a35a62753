"""The function that reads citations, images, audio and server tools in a raw reply.

The package sets it as soon as it is imported, so it is there for a pickled answer too. It is no import of
`_types`, because the wire formats are in a layer above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

read: Callable[[str, str, Any], Any]
"""Takes the name of an attribute of `Response`, the provider and the reply."""
