"""JSON in lines of at most `WIDTH` characters, as few as that takes; only a long text needs more."""

import json
from collections.abc import Iterator
from typing import Any

WIDTH = 140


def json_lines(value: Any) -> str:
    """A value as such lines."""
    return "\n".join(_lines(value, "")) + "\n"


def _lines(value: Any, indent: str, head: str = "", tail: str = "") -> Iterator[str]:
    flat = indent + head + json.dumps(value, ensure_ascii=False) + tail
    if len(flat) <= WIDTH or not isinstance(value, (dict, list)) or not value:
        yield flat
        return
    is_object = isinstance(value, dict)
    yield indent + head + "{["[not is_object]
    line = indent + " "
    for number, name in enumerate(value, 1):
        before = f"{json.dumps(name, ensure_ascii=False)}: " if is_object else ""
        entry, after = value[name] if is_object else name, "," * (number < len(value))
        text = f" {before}{json.dumps(entry, ensure_ascii=False)}{after}"
        if len(line) + len(text) > WIDTH:
            if line.strip():
                yield line
            line = indent + " "
            if len(line) + len(text) > WIDTH:
                yield from _lines(entry, indent + "  ", before, after)
                continue
        line += text
    if line.strip():
        yield line
    yield indent + "}]"[not is_object] + tail
