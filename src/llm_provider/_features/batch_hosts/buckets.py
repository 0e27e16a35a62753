"""Folders in the buckets of clouds, which the user names by environment variables."""

import os
import re

from ..._core.errors import RequestError

_ADDRESS = re.compile(r"(gs|s3)://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(.*))?")


def read_folder(variable: str, scheme: str, provider: str) -> str:
    """The folder that a variable names, such as "gs://bucket/folder", without a slash at its end.

    `RequestError` names the variable if it is not set, or is no address with this scheme.
    """
    address = os.environ.get(variable, "").strip().rstrip("/")
    match = _ADDRESS.fullmatch(address)
    if match is None or match[1] != scheme:
        problem = f"set {variable} to a folder such as '{scheme}://bucket/folder', not {address!r}"
        raise RequestError(problem, provider=provider)
    return address


def split_address(address: str) -> tuple[str, str]:
    """The bucket and the name of an object, or of a folder.

    >>> split_address("gs://bucket/folder/rows.jsonl")
    ('bucket', 'folder/rows.jsonl')
    """
    bucket, _, name = address.partition("://")[2].partition("/")
    return bucket, name
