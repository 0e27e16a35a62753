"""Groq: fields of its own, and tools that it runs itself."""

from typing import Any

from ..._core.json_values import JSONMapping, JSONObject

FIELD = "x_groq"


def fold_field(head: JSONObject, event: JSONMapping) -> None:
    """Keep its own field, whose first chunk has other fields than its last one, also within `debug`."""
    if event.get(FIELD):
        _replace(head, {FIELD: event[FIELD]})


def _replace(kept: JSONObject, added: JSONMapping) -> None:
    """Put fields in the place of those before, one by one in an object and in those within it."""
    for name, value in added.items():
        if isinstance(value, dict) and isinstance(kept.get(name), dict):
            _replace(kept[name], value)
        else:
            kept[name] = value


def add_tool(entries: list[Any], entry: Any) -> None:
    """Add a tool that Groq has run, or the output of one that was added when it began."""
    index = entry.get("index") if isinstance(entry, dict) else None
    for tool in entries:
        if isinstance(tool, dict) and index is not None and tool.get("index") == index:
            tool.update((name, value) for name, value in entry.items() if value is not None)
            return
    entries.append(entry)
