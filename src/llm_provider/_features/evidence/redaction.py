"""Takes secrets and the paths of a machine out of what is exported."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)
_KEYS = rb"(?:sk-|gsk_|xai-|hf_|ghp_|AIza|AKIA)[A-Za-z0-9_-]{16,}"
"""How the keys of providers begin."""
_SHORTEST_SECRET = 8
_COMMON = frozenset({"/root", "/home", "/tmp", "/app", "/work", "/workspace", "/content", "/data", "/mnt"})  # noqa: S108 - names that many machines have
"""Folders that say nothing about a machine."""


class Redaction:
    """Replaces the keys of a program, the values of secret variables, and the paths of its machine."""

    def __init__(self, secrets: Iterable[str]) -> None:
        named = {value for name, value in os.environ.items() if _SECRET_NAME.search(name)}
        texts = {text.strip() for text in (*secrets, *named)}
        words = {text: "[secret]" for text in texts if len(text) >= _SHORTEST_SECRET}
        for path, short in ((os.getcwd(), "."), (str(Path.home()), "~")):  # noqa: PTH109 - as the system spells it
            for spelling in (path, os.path.realpath(path)):
                if len(spelling) > 1 and spelling not in _COMMON:
                    words.setdefault(spelling, short)
        # As text, within JSON, and within JSON that is a text of JSON.
        spelled: dict[bytes, bytes] = {}
        for text, short in words.items():
            for ascii_only in (True, False):
                inner = text
                for _ in range(3):
                    spelled[inner.encode("utf-8", "surrogatepass")] = short.encode()
                    inner = json.dumps(inner, ensure_ascii=ascii_only)[1:-1]
        # The longest first: the working folder is often in the home folder.
        order = sorted(spelled, key=len, reverse=True)
        self._spelled = spelled
        self._pattern = re.compile(b"|".join([*map(re.escape, order), _KEYS]))

    def apply(self, text: bytes) -> bytes:
        return self._pattern.sub(lambda match: self._spelled.get(match[0], b"[secret]"), text)
