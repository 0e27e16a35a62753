"""Forms with files, as SDKs send them (`multipart/form-data`)."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Field", "parse_fields"]

_BOUNDARY = re.compile(rb'boundary="?([^";]+)"?')
_NAME = re.compile(rb'[; ]name="([^"]*)"')
_FILE_NAME = re.compile(rb'filename="([^"]*)"')
_CONTENT_TYPE = re.compile(rb"content-type: *([^\r\n;]+)", re.IGNORECASE)


class Field(NamedTuple):
    """One field of a form."""

    content: bytes
    file_name: str = ""
    content_type: str = ""


def parse_fields(content_type: bytes, body: bytes) -> dict[str, Field]:
    r"""The fields of a form by name; empty if the body is none.

    >>> body = b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x--\r\n'
    >>> parse_fields(b"multipart/form-data; boundary=x", body)["purpose"].content
    b'batch'
    """
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        return {}
    fields = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary.group(1))[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        name, file, kind = _NAME.search(head), _FILE_NAME.search(head), _CONTENT_TYPE.search(head)
        if name is not None:
            fields[name.group(1).decode()] = Field(
                content,
                file.group(1).decode() if file else "",
                kind.group(1).decode().strip() if kind else "",
            )
    return fields
