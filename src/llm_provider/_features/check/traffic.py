"""Sees what goes over the wire: a server on loopback that passes each request on to the provider.

It works for every SDK and transport, and sees the bytes that a provider's server wrote. Keys pass through it
and are not kept.
"""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from ..._core.formats.transport.http_client import body_of
from ..._core.json_values import JSONObject
from ..._core.requests.api_keys import Credential, environment_secrets
from ..._core.runtime import event_loop

_OF_ONE_CONNECTION = frozenset(
    {"host", "connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding",
     "accept-encoding", "upgrade", "date", "server"}
)  # fmt: skip
"""Headers that each of the two connections has for itself."""

_RECORDED = re.compile(
    r"content-type|retry-after.*|x-goog-upload.*"
    r"|.*(ratelimit|request-?id|correlation-id|region|model|tier|version|provider).*"
)
"""Headers that a recording keeps."""

_LONGEST_REQUEST = 2_000
"""Characters of a request in a recording. The prompt that is too long has millions."""

SERVER = "{server}"
"""Stands for scheme and host in headers, such as those with addresses for uploads."""


@dataclass(slots=True)
class Exchange:
    """A request and its answer. Header names are in lower case; `pieces` are those in which the body came."""

    method: str
    path: str
    request: bytes
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    pieces: int = 0

    def to_dict(self) -> JSONObject:
        """The exchange as a recording has it."""
        headers = {name: text for name, text in sorted(self.headers.items()) if _RECORDED.fullmatch(name)}
        request = self.request.decode(errors="replace")[:_LONGEST_REQUEST]
        answer = {"status": self.status, "headers": headers, "body": self.body.decode(errors="replace")}
        return {"method": self.method, "path": self.path, "request": request, **answer}


class RecordingProxy:
    """Stands for one provider's server until the block ends. `url` takes the place of its base URL."""

    def __init__(self, upstream: str, private: set[str]) -> None:
        """Names of the user's own servers, accounts and organisations are added to `private`."""
        parts = urlsplit(upstream)
        self._origin, self.base, self._private = f"{parts.scheme}://{parts.netloc}", parts.path, private
        private.update(name for name in (parts.netloc, parts.hostname or "") if re.search("[.:]", name))
        private.update(name for name in parts.path.split("/") if len(name) > 15)
        self.exchanges: list[Exchange] = []

    def __enter__(self) -> Self:
        async def start() -> None:
            import aiohttp
            from aiohttp import web

            self._session = aiohttp.ClientSession(
                trust_env=True, cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=None)
            )  # fmt: skip
            server = web.Server(self._pass_on, access_log=None, handler_cancellation=True)
            self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()

        event_loop.wait(start())
        self._own = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.url = self._own + self.base
        return self

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            await self._runner.cleanup()
            await self._session.close()

        event_loop.wait(end())

    async def _pass_on(self, request: Any) -> Any:
        import aiohttp
        from aiohttp import web
        from yarl import URL

        exchange = Exchange(request.method, request.raw_path, await request.content.read())
        self.exchanges.append(exchange)
        headers = {**keep_headers(request.headers), "Accept-Encoding": "identity"}
        try:
            async with self._session.request(
                request.method, URL(self._origin + request.raw_path, encoded=True), headers=headers,
                data=body_of(exchange.request) if exchange.request else None, allow_redirects=False,
            ) as reply:  # fmt: skip
                exchange.status, answer = reply.status, web.StreamResponse(status=reply.status)
                for name, value in keep_headers(reply.headers).items():
                    exchange.headers[name.lower()] = value.replace(self._origin, SERVER)
                    answer.headers[name] = value.replace(self._origin, self._own)
                    if "organization" in name.lower():
                        self._private.add(value)
                await answer.prepare(request)
                async for piece in reply.content.iter_any():
                    exchange.body, exchange.pieces = exchange.body + piece, exchange.pieces + 1
                    await answer.write(piece)
                await answer.write_eof()
                return answer
        except aiohttp.ClientConnectorError as error:
            # Nothing was sent, so the status is one that is not billed.
            message = f"the provider's server is not reached: {type(error).__name__}: {error.strerror}"
            return web.json_response({"error": {"message": message}}, status=503)
        except (aiohttp.ClientError, OSError):
            # The SDK meets what the provider's server did: a connection that breaks.
            request.transport.abort()
            return web.Response()


def keep_headers(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OF_ONE_CONNECTION}


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
