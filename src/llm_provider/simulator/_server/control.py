"""The control channel: JSON over HTTP, by which a :class:`Simulator` controls its server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import orjson

if TYPE_CHECKING:
    from .state import State

__all__ = ["CONTROL_PREFIX", "control"]

CONTROL_PREFIX = "/_simulator/"


def control(state: State, path: str, query: bytes, body: bytes) -> tuple[int, Any]:
    """Carry out an action.

    Returns:
        Status and JSON of the answer: 400 and the reason for an invalid request, 404 for an unknown action.
    """
    action = path.removeprefix(CONTROL_PREFIX)
    try:
        match action:
            case "health":
                return 200, {"ready": True}
            case "ledger":
                state.batches.advance()
                return 200, state.ledger.to_json()
            case "requests":
                return 200, state.recorder.to_json(parse_qs(query.decode()).get("provider", [None])[0])
            case "clear":
                state.clear()
            case "drop_faults":
                state.faults.clear()
            case "configure":
                change = orjson.loads(body)
                state.configure(change["provider"], change["settings"])
            case "inject":
                state.inject(orjson.loads(body))
            case _:
                return 404, {"error": "LookupError", "message": f"no control action {action!r}"}
    except (TypeError, ValueError, KeyError, OSError) as problem:
        return 400, {"error": type(problem).__name__, "message": str(problem)}
    return 200, {}
