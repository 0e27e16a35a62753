"""Groq: fields of its own, and tools that it runs itself."""

from typing import Any

FIELD = "x_groq"
"""Its own field. The first chunk has other parts of it than the last one, also within `debug`."""


def add_tool(entries: list[Any], entry: Any) -> None:
    """Add a tool that Groq has run, or the output of one that was added when it began."""
    index = entry.get("index") if isinstance(entry, dict) else None
    for tool in entries:
        if isinstance(tool, dict) and index is not None and tool.get("index") == index:
            tool.update((name, value) for name, value in entry.items() if value is not None)
            return
    entries.append(entry)
