"""Takes secrets and names of accounts out of reports and recordings."""

import json
import re

from .._json_values import JSONObject
from .._requests.api_keys import environment_secrets

_PRIVATE = re.compile(
    r"\b(?:(?P<key>(?:sk|rk|pk|gsk|[a-z]ai|hf|r8|nvapi)[-_][\w-]{12,}|AIza[\w-]{30,})"
    r"|(?P<account>(?:org|proj|user|acct|workspace|wrkspc|team)[-_][\w-]{6,})"
    r"|(?P<finetune>ft:[\w.:-]+)|(?P<project>projects/\d{5,})|(?P<address>[\w.+-]+@[\w-]+\.[\w.-]+)"
    r"|(?<=upload_id=)(?P<upload>[\w-]+))"
    r"|(?P<folder>/(?:home|Users|root|tmp|mnt|srv|data)/[\w./-]+)"
)


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
        scrubbed: JSONObject = json.loads(self.scrub(json.dumps(value, ensure_ascii=False)))
        return scrubbed
