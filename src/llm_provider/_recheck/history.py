"""The history of rechecks: JSON lines, to which each recheck appends its report in one write.

The first recheck of a target, a model with its server and parameters, adds border prompts and their answers.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from .._errors import RequestError
from .._json_values import JSONObject
from .._runtime import files


@dataclass(slots=True)
class History:
    """The lines of one target in a file, oldest first."""

    path: Path
    target: str
    lines: list[JSONObject]

    @classmethod
    def read(cls, path: str | os.PathLike[str], target: str) -> History:
        """The history in a file, which may be missing.

        Raises:
            RequestError: the file cannot be read.
        """
        file, lines = Path(path).expanduser(), []
        try:
            for text in file.read_bytes().splitlines() if file.exists() else ():
                # The last line may be cut.
                line: Any = orjson.loads(text) if text.startswith(b"{") and text.endswith(b"}") else None
                if line and line.get("target") == target:
                    lines.append(line)
        except (OSError, ValueError) as error:
            raise RequestError(f"history: {error}{files.file_remedy(file)}") from None
        return cls(file, target, lines)

    @property
    def reference(self) -> JSONObject | None:
        """The line with the border prompts and their answers."""
        return next((line for line in self.lines if "prompts" in line), None)

    def count_days_off(self, moment: float, *, is_off: bool) -> int:
        """The days in a row until that of a moment, in UTC, whose last recheck was off."""
        days = {_day(line["time"]): line["off"] for line in self.lines if "off" in line} | {
            _day(moment): is_off
        }
        newest_first = [days[day] for day in sorted(days, reverse=True)]
        return newest_first.index(False) if False in newest_first else len(newest_first)

    def append(self, fields: JSONObject) -> None:
        """Write a line; `OSError` if it cannot be written."""
        data = orjson.dumps({"target": self.target, **fields}, option=orjson.OPT_APPEND_NEWLINE)
        descriptor, is_cut = files.open_lines(self.path, os.O_CREAT)
        try:
            files.write(descriptor, b"\n" + data if is_cut else data)
            files.fsync(descriptor)
        finally:
            os.close(descriptor)


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(moment))
