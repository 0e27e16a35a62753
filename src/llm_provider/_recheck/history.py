"""The history of rechecks by border prompts: JSON lines, to which each recheck appends its report.

The first recheck of a target, a model with its server and parameters, adds border prompts and their answers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from .._errors import RequestError
from .._json_values import JSONObject
from .._runtime import files


def read_history(path: Path, target: str) -> list[JSONObject]:
    """The lines of a target, oldest first; `RequestError` if the file cannot be read."""
    try:
        texts = path.read_bytes().splitlines() if path.exists() else []
        # The last line may be cut.
        lines: list[Any] = [orjson.loads(text) for text in texts if text[:1] + text[-1:] == b"{}"]
    except (OSError, ValueError) as error:
        raise RequestError(f"history: {error}{files.file_remedy(path)}") from None
    return [line for line in lines if line.get("target") == target]


def count_days_off(lines: Iterable[JSONObject], moment: float, *, is_off: bool) -> int:
    """The days in a row until that of a moment, in UTC, whose last recheck was off."""
    days = {_day(line["time"]): line["off"] for line in lines if "off" in line} | {_day(moment): is_off}
    newest_first = [days[day] for day in sorted(days, reverse=True)]
    return [*newest_first, False].index(False)


def append_line(path: Path, fields: JSONObject) -> None:
    """Write a line at once; `OSError` if it cannot be written."""
    data = orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    descriptor, is_cut = files.open_lines(path, os.O_CREAT)
    try:
        files.write(descriptor, b"\n" + data if is_cut else data)
        files.fsync(descriptor)
    finally:
        os.close(descriptor)


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(moment))
