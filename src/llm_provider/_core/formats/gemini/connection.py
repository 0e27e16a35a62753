"""The connection to Gemini through the google-genai SDK, by its public methods.

The SDK encodes a content and a configuration of its own, which are never sent. Its environment variables for
other endpoints have no effect, and `models` reads the one for the API's version.
"""

import contextlib
import importlib
import logging
import math
import os
import ssl
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NoReturn, get_args

from ...errors import LLMError
from ...settings import MAX_RESPONSE_BYTES
from ..protocol import Outgoing
from ..shared.errors import body_in_text, headers_of
from ..transport.connection import SDK, Exchange, SDKConnection
from ..transport.environment import share_context
from ..transport.http_client import library_of
from .decode import error_of
from .encode import split_version

_WHOLE, _STREAMED = ":generateContent", ":streamGenerateContent?alt=sse"


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> SDKConnection:
    sdk = describe_sdk(
        ask=_ask,
        live_headers=lambda outgoing: {"x-server-timeout": str(math.ceil(outgoing.timeout))},
        stream_url=lambda url: url.removesuffix(_WHOLE) + _STREAMED,
    )
    return SDKConnection(sdk, transport, most_bytes)


def describe_sdk(**own: Any) -> SDK:
    """Google's SDK as the connection needs it. `own` has the fields of one format."""
    # Imported here and not with the first client: the import takes seconds, which would count as part of the
    # first attempt.
    importlib.import_module("google.genai")

    return SDK(
        library=http_library(),
        build_client=lambda outgoing, recorder: sdk_client(
            outgoing.target.base_url, outgoing.key.reveal(), recorder, share_context(certificates)
        ),
        close_client=close_client,
        certificates=certificates,
        **own,
    )


def http_library() -> ModuleType:
    """The module `httpx2`, or `httpx` where the installed SDK takes no other client."""
    from google.genai import types

    accepted = get_args(types.HttpOptions.model_fields["httpx_async_client"].annotation)
    return library_of(max(accepted, key=lambda kind: kind.__module__.startswith("httpx2")))


def sdk_client(
    base_url: str | None, key: str, http_client: Any, trusted: ssl.SSLContext, **options: Any
) -> Any:
    """A client of the SDK that sends by an HTTP client."""
    from google import genai
    from google.genai import types

    http_options = types.HttpOptions(
        # The operation has the version.
        base_url=split_version(base_url)[0],
        # A single attempt also turns off the SDK's hidden second one after a broken connection.
        retry_options=types.HttpRetryOptions(attempts=1),
        httpx_async_client=http_client,
        # For clients that the SDK builds and nothing uses: they cannot fail because of a proxy, and the SDK
        # does not read the system's certificates four times.
        client_args={"verify": trusted, "trust_env": False},
        async_client_args={"ssl": trusted, "trust_env": False},
        **options,
    )
    with _without_warning("Both GOOGLE_API_KEY"):
        return genai.Client(vertexai=False, api_key=key, http_options=http_options)


async def _ask(client: Any, outgoing: Outgoing, exchange: Exchange) -> None:
    from google.genai import types

    encoded, target, key = outgoing.encoded, outgoing.target, outgoing.key
    version, _, resource = encoded.operation.partition("/")
    models = client.aio.models
    options = types.HttpOptions(api_version=version, headers=dict(encoded.headers), timeout=1000)
    arguments = {"model": resource.rpartition(":")[0], "contents": types.Content(role="user")}
    try:
        if encoded.operation.endswith(":batchEmbedContents"):
            await models.embed_content(**arguments, config={"http_options": options})
        elif encoded.operation.endswith((":countTokens", "/decisions")):
            # The SDK's method for decisions sends by another client, and google-genai 3.0 has none.
            arguments["model"] = arguments["model"] or "decisions"
            await models.count_tokens(**arguments, config={"http_options": options})
            exchange.url = exchange.url.replace("/models/decisions:countTokens", "/decisions")
        else:
            # Else the SDK sends more requests, and writes a header of its own that says so.
            once: dict[str, Any] = {"automatic_function_calling": {"disable": True}}
            if "automatic_continuation" in types.GenerateContentConfig.model_fields:
                once["automatic_continuation"] = False
            config = types.GenerateContentConfig(http_options=options, **once)
            await models.generate_content(**arguments, config=config)
    except (ValueError, RecursionError) as error:
        raise_unread(exchange, error_of, error)
    if target.route.cloud is not None:
        exchange.url = f"{target.base_url}/{encoded.operation}"
        exchange.headers.pop("x-goog-api-key", None)
        if key.is_static and "/projects/" not in exchange.url:
            exchange.headers["x-goog-api-key"] = key.reveal()
        elif key.is_static:
            exchange.headers["Authorization"] = f"Bearer {key.reveal()}"


def raise_unread(exchange: Exchange, read_error: Callable[..., LLMError], error: Exception) -> NoReturn:
    """Raise the error of a failure whose body or headers the SDK cannot read."""
    if (response := exchange.failure) is not None and not isinstance(response, Exception):
        body = body_in_text(response.content.decode("utf-8", "replace"))
        raise read_error(body, status=response.status_code, headers=headers_of(response)) from error
    raise error


def certificates() -> ssl.SSLContext:
    """The certificate authorities that the SDK trusts: certifi's, or those that OpenSSL's variables name."""
    import certifi

    return ssl.create_default_context(
        cafile=os.environ.get("SSL_CERT_FILE") or certifi.where(), capath=os.environ.get("SSL_CERT_DIR")
    )


async def close_client(client: Any) -> None:
    await client.aio.aclose()
    client.close()


@contextlib.contextmanager
def _without_warning(beginning: str) -> Iterator[None]:
    """Drops a warning of the SDK's that is untrue here: the key is an argument, so no variable is read."""
    logger = logging.getLogger("google_genai._api_client")

    def keep(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(beginning)

    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)
