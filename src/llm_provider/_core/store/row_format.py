"""The format of diskcache rows that the cache allows: raw bytes only. Imported when a cache is created."""

import sqlite3

import diskcache
from diskcache.core import MODE_RAW


class BytesDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Stores `bytes` inside the database, and reads nothing else: any other row is an error, and a miss.

    diskcache's own formats unpickle values and open files that a row names, so anybody who can write the
    database could run code or read files (CVE-2025-69872).
    """

    def put(self, key: object) -> tuple[str, bool]:
        if type(key) is not str:
            raise TypeError(f"cache keys are str, not {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: bool) -> str:
        if not raw or type(key) is not str:
            raise ValueError("a cache row has a foreign key")
        return key

    def store(self, value: object, read: bool, key: object = None) -> tuple[int, int, None, memoryview]:
        if read or type(value) is not bytes:
            raise TypeError(f"cache values are bytes, not {type(value).__name__}")
        return 0, MODE_RAW, None, sqlite3.Binary(value)

    def fetch(self, mode: int, filename: str | None, value: object, read: bool) -> bytes:
        if mode != MODE_RAW or filename is not None or type(value) is not bytes or read:
            raise ValueError("a cache row is not raw bytes")
        return value
