"""Credentials whose text changes: the tokens of a cloud's identity, or of a function of the user's.

A token is fetched in a thread, because most sources wait for a network or start a program. It is kept until
it nearly expires. Then a new one is fetched while the old one still serves, once for all calls that wait for
it, on whatever event loop they run.
"""

from __future__ import annotations

import asyncio
import base64
import calendar
import contextlib
import hashlib
import inspect
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import orjson

from ..._core.errors import APIConnectionError, APITimeoutError, LLMError, RequestError
from ..._core.requests.api_keys import APIKey, Credential, make_key
from ..._core.runtime import clock, forks, threads

RENEW_BEFORE = 300.0
"""Seconds before its end at which a token is renewed, or half of its time if that is less. Cloud SDKs do so
225 to 900 seconds before."""

ASK_AGAIN = 60.0
"""Seconds for which a token is used whose end is not known. Sources keep their tokens themselves."""

LONGEST_FETCH = 60.0
"""Seconds after which a source that has not answered is left alone. A chain of sources may ask several
networks and programs, each for some seconds."""

_KEPT_FAILURE = 5.0
"""Seconds for which a call's failed wait for a token fails its request too, which follows."""

_PAUSE = 10.0
"""Seconds after a failure until a token is renewed that still serves."""

SIGNED_TIME = "%Y%m%dT%H%M%SZ"
"""The form of `X-Amz-Date`, in UTC."""

_MOST_SKEW = 240.0
"""Seconds by which a signature may be early or late. AWS refuses signatures of five minutes."""

_REMEMBERED = 8
"""The last tokens, which messages may still quote."""

_OWN_MISTAKES = (TypeError, AttributeError, NameError, LookupError, ArithmeticError, ImportError)
"""Errors of a function that do not pass."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a source returns: a secret, and until when it may be used."""

    secret: APIKey
    """It is a part of the headers."""
    expires: float | None
    """Unix time; None if the source does not say."""
    others: tuple[tuple[str, str], ...] = ()
    """Headers that are sent with it."""

    def headers(self, method: str, url: str, body: bytes, skew: float) -> dict[str, str]:
        """The headers that authorise a request; `skew` is how many seconds this machine's clock is late."""
        return {"Authorization": f"Bearer {self.secret.reveal()}", **dict(self.others)}

    def secrets(self) -> tuple[APIKey, ...]:
        """The texts that no message may quote."""
        return (self.secret,)


Source: TypeAlias = Callable[[asyncio.AbstractEventLoop], Token]
"""Fetches a token in a thread, where it may block. It gets the event loop of the call that waits."""


class TokenCredential(Credential):
    """An identity that fetches its tokens, with a `name` that holds no secret and is the same everywhere.

    `open_source` is called again after a provider has refused a token. `describe` returns the final error of
    a source that has no token to give; None where another attempt may help.
    """

    __slots__ = (
        "__weakref__", "_describe", "_failed", "_lock", "_next", "_open", "_renew_at", "_renewal",
        "_serves_until", "_skew", "_source", "_spent", "_token", "_unsent",
    )  # fmt: skip

    is_static = False

    def __init__(
        self,
        *name: str,
        open_source: Callable[[], Source],
        describe: Callable[[BaseException], LLMError | None] = lambda error: None,
    ) -> None:
        self.identity = hashlib.sha256("\0".join(name).encode()).hexdigest()[:16]
        self._open = open_source
        self._describe = describe
        self._spent: deque[APIKey] = deque(maxlen=_REMEMBERED)
        self._token: Token | None = None
        self._renew_at = self._serves_until = self._next = self._skew = 0.0
        self.reset()
        _CREDENTIALS.add(self)

    def reset(self) -> None:
        """Forget a renewal that runs in another process, and the connections of its source."""
        self._lock = threading.Lock()
        self._renewal: _Renewal | None = None
        self._failed: tuple[float, LLMError] | None = None
        """When a call last waited in vain, and its error."""
        self._unsent = 0
        """How many calls have waited in vain and not failed yet."""
        self._source: Source | None = None

    async def headers(self, method: str, url: str, body: bytes) -> dict[str, str]:
        """The headers that authorise a request; an `LLMError` if the source failed or took too long."""
        now, token = clock.time(), self._token
        if token is None or now >= self._serves_until:
            failed, self._unsent = self._failed if self._unsent else None, max(self._unsent - 1, 0)
            if failed is not None and clock.monotonic() - failed[0] < _KEPT_FAILURE:
                raise _copy(failed[1])
            token = await self._wait(self._begin())
        elif now >= self._renew_at and now >= self._next:
            self._begin()
        return token.headers(method, url, body, self._skew)

    async def prepare(self) -> None:
        if self._token is None or clock.time() >= self._serves_until:
            try:
                await self._wait(self._begin())
            except LLMError as error:
                self._failed = clock.monotonic(), error.with_traceback(None)
                self._unsent += 1

    def invalidate(self, headers: dict[str, str]) -> None:
        with self._lock:
            # Another call may have renewed it.
            if self._token is not None and self._token.secret.reveal() in headers["Authorization"]:
                self._token = self._source = None

    def correct_clock(self, headers: dict[str, str], date: str) -> bool:
        """Whether these headers were signed minutes away from a server's `Date`; later ones get its time."""
        with contextlib.suppress(KeyError, ValueError):
            signed = calendar.timegm(time.strptime(headers["X-Amz-Date"], SIGNED_TIME))
            server = parsedate_to_datetime(date).timestamp()
            if abs(server - signed) > _MOST_SKEW:
                self._skew = server - clock.time()
                return True
        return False

    def scrub(self, text: str) -> str:
        """`text` without the last tokens."""
        for secret in tuple(self._spent):
            text = secret.scrub(text)
        return text

    def _begin(self) -> _Renewal:
        with self._lock:
            renewal, now = self._renewal, clock.monotonic()
            if renewal is not None and now - renewal.since < LONGEST_FETCH:
                return renewal
            self._renewal = renewal = _Renewal(now, Future(), asyncio.get_running_loop())
            renewal.future.set_running_or_notify_cancel()  # so the end of a call does not cancel it
        threads.start_thread(lambda: self._renew(renewal), "llm_provider-token")
        return renewal

    def _renew(self, renewal: _Renewal) -> None:
        try:
            # Kept in a variable too, because another thread may drop it.
            self._source = source = self._source or self._open()
            token = source(renewal.loop)
        except BaseException as error:
            message = self.scrub(f"the source of tokens failed: {type(error).__name__}: {error}")
            failure = error if isinstance(error, LLMError) else self._describe(error)
            if failure is None or (self._token is not None and failure is not error):
                failure = APIConnectionError(message, maybe_billed=False)
                if isinstance(error, _OWN_MISTAKES):
                    failure = RequestError(message)
            with self._lock:
                self._source, self._next = None, clock.time() + _PAUSE
                self._end(renewal)
            renewal.future.set_exception(failure)
            return
        now = clock.time()
        with self._lock:
            if self._renewal is renewal:
                self._token = token
                if token.expires is None:
                    self._renew_at, self._serves_until = now + ASK_AGAIN, math.inf
                else:
                    # Where this machine's clock is wrong, a good token seems to have expired. The provider
                    # decides; it serves for a second, so that not every call fetches one.
                    life = max(token.expires - now, 1.0)
                    self._renew_at, self._serves_until = now + max(life - RENEW_BEFORE, life / 2), now + life
            self._spent.extend(secret for secret in token.secrets() if secret not in self._spent)
            self._end(renewal)
        renewal.future.set_result(token)

    def _end(self, renewal: _Renewal) -> None:
        if self._renewal is renewal:
            self._renewal = None

    async def _wait(self, renewal: _Renewal) -> Token:
        left = renewal.since + LONGEST_FETCH - clock.monotonic()
        try:
            async with asyncio.timeout(left):
                return await asyncio.wrap_future(renewal.future)
        except TimeoutError:
            with self._lock:
                self._end(renewal)
            raise APITimeoutError(
                f"the source of tokens did not answer within {LONGEST_FETCH:g} s",
                phase="connect",
                limit=LONGEST_FETCH,
                maybe_billed=False,
            ) from None
        except LLMError as error:
            # Each call has an error of its own, which gets the names of its provider and model.
            raise _copy(error) from None


def _copy(error: LLMError) -> LLMError:
    if isinstance(error, APITimeoutError):
        return APITimeoutError(error.message, phase=error.phase, limit=error.limit, maybe_billed=False)
    return type(error)(error.message, retryable=error.retryable, maybe_billed=False)


@dataclass(slots=True, eq=False)
class _Renewal:
    """A fetch under way, which began at a time of the monotonic clock."""

    since: float
    future: Future[Token]
    loop: asyncio.AbstractEventLoop


_CREDENTIALS: weakref.WeakSet[TokenCredential] = weakref.WeakSet()

forks.reset_in_child(_CREDENTIALS, TokenCredential.reset)


def own_credential(where: str, function: Callable[[], Any]) -> TokenCredential:
    """The credential of the user's function `where`. A coroutine function runs on the requests' loop."""

    async def finish(result: Any) -> Any:
        return await result

    def fetch(loop: asyncio.AbstractEventLoop) -> Token:
        text = function()
        if inspect.isawaitable(text):
            # The loop may end before the coroutine does.
            text = asyncio.run_coroutine_threadsafe(finish(text), loop).result(LONGEST_FETCH)
        if not isinstance(text, str):
            raise RequestError(f"{where} must return the token as str, not {type(text).__name__}")
        expires: Any = None
        # A JSON Web Token may say it (RFC 7519).
        with contextlib.suppress(ValueError, IndexError, AttributeError):
            claims = text.split(".")[1]
            expires = orjson.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))).get("exp")
        known = float(expires) if type(expires) in (int, float) else None
        return Token(make_key(f"the token of {where}", [text]), known)

    name = getattr(function, "__qualname__", type(function).__name__)
    return TokenCredential(
        "function", where, str(getattr(function, "__module__", "")), name, open_source=lambda: fetch
    )
