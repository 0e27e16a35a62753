"""Takes secrets and names of accounts out of reports and recordings."""

from __future__ import annotations

import json
import re
from typing import Any

from .._json_values import JSONObject
from .._requests.api_keys import environment_secrets
from .traffic import Exchange

_PRIVATE = re.compile(
    r"\b(?:(?P<key>(?:sk|rk|pk|gsk|[a-z]ai|hf|r8|nvapi)[-_][\w-]{12,}|AIza[\w-]{30,})"
    r"|(?P<account>(?:org|proj|user|acct|workspace|wrkspc|team)[-_][\w-]{6,})"
    r"|(?P<finetune>ft:[\w.:-]+)|(?P<project>projects/\d{5,})|(?P<address>[\w.+-]+@[\w-]+\.[\w.-]+)"
    r"|(?<=upload_id=)(?P<upload>[\w-]+))"
    r"|(?P<folder>/(?:home|Users|root|tmp|mnt|srv|data)/[\w./-]+)"
)
_HEADERS = re.compile(
    r"content-type|retry-after.*|x-goog-upload.*"
    r"|.*(ratelimit|request-?id|correlation-id|region|model|tier|version|provider).*"
)
"""Headers that a recording keeps."""

_LONGEST_REQUEST = 2_000
"""Characters of a request in a recording. The prompt that is too long has millions."""


class Scrubber:
    """Replaces what is private in texts, the same text always by the same word."""

    def __init__(self) -> None:
        self._secrets = environment_secrets()
        self._words: dict[str, str] = {}

    def scrub(self, text: str) -> str:
        """A text without API keys, and without names of organisations, projects, users and folders."""
        for secret in self._secrets:
            text = secret.scrub(text)
        return _PRIVATE.sub(
            lambda match: self._words.setdefault(match[0], f"{match.lastgroup}-{len(self._words) + 1}"), text
        )

    def scrub_value(self, value: JSONObject) -> JSONObject:
        """A JSON object whose texts are scrubbed."""
        scrubbed: JSONObject = json.loads(self.scrub(json.dumps(value, ensure_ascii=False)))
        return scrubbed


def describe_exchange(exchange: Exchange) -> dict[str, Any]:
    """An exchange as JSON values, as a recording has it."""
    headers = {name: value for name, value in sorted(exchange.headers.items()) if _HEADERS.fullmatch(name)}
    return {
        "method": exchange.method,
        "path": exchange.path,
        "request": exchange.request.decode(errors="replace")[:_LONGEST_REQUEST],
        "status": exchange.status,
        "headers": headers,
        "body": exchange.body.decode(errors="replace"),
    }
