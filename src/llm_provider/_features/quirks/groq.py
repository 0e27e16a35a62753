"""Groq: tools that it has run itself, and a field of its own in the chunks of a stream."""

from functools import partial
from typing import Any

from ..._core.formats.openai import encode as openai
from ..._core.formats.shared.payload import merge
from ..._core.json_values import JSONObject
from . import any_server
from .any_server import decode

__all__ = ["FUNCTIONS", "Assembler", "decode"]

_FIELD = "x_groq"
"""The first chunk has other parts of it than the last one, also within `debug`."""


def _add_entry(name: str, entries: list[Any], entry: Any) -> None:
    """Add an entry to a list. The output of a tool belongs to the entry that was added when it began."""
    if name != "executed_tools" or not isinstance(entry, dict) or entry.get("index") is None:
        any_server.add_entry(name, entries, entry)
        return
    for tool in entries:
        if isinstance(tool, dict) and tool.get("index") == entry["index"]:
            tool.update((name, value) for name, value in entry.items() if value is not None)
            return
    entries.append(entry)


class Sample(any_server.Sample):
    add_entry = staticmethod(_add_entry)


class Assembler(any_server.Assembler):
    make_sample = Sample
    READ_IN_FULL = any_server.Assembler.READ_IN_FULL | {_FIELD}

    def _choices_of(self, event: Any) -> list[JSONObject]:
        choices = super()._choices_of(event)
        if event is not None and event.get(_FIELD) is not None:
            self.head = merge(self.head, {_FIELD: event[_FIELD]})
        return choices


FUNCTIONS = {
    "openai": {**any_server.FUNCTIONS["openai"], "assembler": partial(openai.assembler, chat=Assembler)}
}
