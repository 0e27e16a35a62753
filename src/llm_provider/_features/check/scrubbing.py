"""Takes secrets and names of accounts out of reports and recordings."""

import base64
import json
import re
from collections.abc import Iterator

from ..._core.json_values import JSONObject
from ..._core.requests.api_keys import Credential, environment_secrets

_PRIVATE = re.compile(
    r"\b(?:(?P<key>(?:sk|rk|pk|gsk|[a-z]ai|hf|r8|nvapi)[-_][\w-]{12,}|AIza[\w-]{30,})"
    r"|(?P<account>(?:org|proj|user|acct|workspace|wrkspc|team)[-_][\w-]{6,})"
    r"|(?P<finetune>ft:[\w.:-]+)|(?P<project>projects/\d{5,})|(?P<address>[\w.+-]+@[\w-]+\.[\w.-]+)"
    r"|(?<=upload_id=)(?P<upload>[\w-]+)"
    r"|(?:organization(?:_id|_name)?|owned_by)\\?\"\s*:\s*\\?\"(?P<organization>[^\"\\]+))"
    r"|(?P<folder>/(?:home|Users|root|tmp|mnt|srv|data)/[\w./-]+)"
)


class Scrubber:
    """Replaces what is private in texts and its `keys` and `names`, the same always by the same word."""

    def __init__(self) -> None:
        self.keys: list[Credential] = [*environment_secrets()]
        self.names: set[str] = set()
        self._words: dict[str, str] = {}

    def scrub(self, text: str) -> str:
        """A text without API keys, and without names of organisations, projects, users and folders."""
        for key in self.keys:
            forms = "|".join(_list_forms(key.reveal()))
            text = key.scrub(re.sub(forms, "***", text) if forms else text)
        names = "|".join(map(re.escape, sorted(self.names, key=len, reverse=True))) or "(?!)"
        text = re.sub(rf"(?<![\w.-])(?P<name>{names})(?![\w-])", self._replace, text)
        return _PRIVATE.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        """What is matched, with a word in the place of its named group, which ends it."""
        kind = match.lastgroup or ""
        word = self._words.setdefault(match[kind], f"{kind}-{len(self._words) + 1}")
        return match[0].removesuffix(match[kind]) + word

    def scrub_value(self, value: JSONObject) -> JSONObject:
        scrubbed: JSONObject = json.loads(self.scrub(json.dumps(value, ensure_ascii=False)))
        return scrubbed


def _list_forms(key: str) -> Iterator[str]:
    """Patterns of a key as servers repeat it: escaped, cut, in hexadecimal digits, or in base64.

    Each begins with a plain character, by which a long text is searched quickly.
    """
    if len(key) < 12:
        return
    signs = []
    for sign in key:
        plain, code = re.escape(sign), f"{ord(sign):02x}"
        signs.append((plain, rf"\\\\*(?:{plain}|(?i:u00{code}))", f"%(?i:{code})", f"&#{ord(sign)};"))
    rest = [f"(?:{'|'.join(forms)})" for forms in signs[1:]]
    yield from (f"{first}{''.join(rest[:11])}(?:{''.join(rest[11:])}|[\\w-]*)" for first in signs[0])
    yield "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in key.encode().hex())
    for before in range(3):
        # The first and the last digit are not of the key alone.
        digits = base64.b64encode(bytes(before) + key.encode()).decode()[(before * 4 + 2) // 3 :]
        digits = digits.rstrip("=")[: -1 if digits.endswith("=") else None]
        yield re.escape(digits).replace(r"\+", "[+-]").replace("/", "[/_]")
