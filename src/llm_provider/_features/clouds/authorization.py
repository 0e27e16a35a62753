"""Requests with a token of the moment, which are sent once more with a new one where the provider refuses it.

The second request is part of the same attempt: a token that has expired is no sign of a limit.
"""

import re
from collections.abc import AsyncGenerator
from typing import Any

from ..._core.formats.transport import wire
from ..._core.formats.transport.http_client import library_of
from ..._core.pace.failure_table import GATEWAY_FAILURE
from ..._core.requests.api_keys import Credential
from ..._core.requests.routing import ROUTES, Target

_EXPIRED = re.compile(r"expired.?token|security token.*expired", re.IGNORECASE)
"""AWS answers 403 to keys that have expired: in `x-amzn-errortype`, or in the message."""

_UNSIGNED = re.compile(r"signature|skew", re.IGNORECASE)
"""AWS answers 403 to a signature that it finds wrong, or too old: `SignatureDoesNotMatch`."""


def key_headers(target: Target, key: Credential, omitted: Any) -> dict[str, Any]:
    """The headers of all requests with a key, beside the SDK's own; a changing token has headers of its own.

    `omitted` is the SDK's mark of a header that is left out.
    """
    cloud, headers = target.route.cloud, {"X-Api-Key": omitted}
    if cloud is None or not key.is_static:
        return {} if key.is_static else headers
    if cloud.key_header:
        return headers | {"Authorization": omitted, cloud.key_header: key.reveal()}
    return headers | {"Authorization": f"Bearer {key.reveal()}"}


def repeat_key(target: Target, key: Credential) -> dict[str, str]:
    """The header that another server than Anthropic's own may read, as its SDK sends a bearer token alone."""
    is_other = target.route.adapter == "anthropic" and target.base_url != ROUTES["anthropic"].base_url
    return {"X-Api-Key": key.reveal()} if is_other and key.is_static and target.route.cloud is None else {}


def authorise_all(http_client: Any, target: Target, key: Credential) -> None:
    """Let an httpx client write a key's headers into each request, and renew a token once if refused."""
    fixed = key_headers(target, key, None) or repeat_key(target, key)
    if not fixed:
        return

    def write(request: Any, headers: dict[str, Any]) -> Any:
        for name in fixed:
            request.headers.pop(name, None)
        request.headers.update({name: value for name, value in headers.items() if value is not None})
        return request

    class Authorisation(library_of(type(http_client)).Auth):  # type: ignore[misc]  # known at run time only
        async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
            if key.is_static:
                yield write(request, fixed)
                return
            about = request.method, str(request.url), b""
            headers = await fetch_headers(key, *about)
            response = yield write(request, headers)
            if response.status_code in (401, 403):
                await response.aread()
                if renew_token(key, headers, response):
                    yield write(request, await key.headers(*about))

    http_client.auth = Authorisation()


async def fetch_headers(key: Credential, method: str, url: str, body: bytes) -> dict[str, str]:
    """The headers of a credential, for which a request waits before it is sent."""
    wire.departure.get().hold()
    return await key.headers(method, url, body)


def renew_token(key: Credential, headers: dict[str, str], response: Any) -> bool:
    """Whether other headers than these may be accepted, with which a request failed. Its answer is read."""
    status, reason = response.status_code, f"{response.headers.get('x-amzn-errortype', '')} {response.text}"
    if (status == 401 and GATEWAY_FAILURE not in reason) or (status == 403 and _EXPIRED.search(reason)):
        key.invalidate(headers)
        return True
    unsigned = status == 403 and _UNSIGNED.search(reason) is not None
    return unsigned and key.correct_clock(headers, response.headers.get("date", ""))
