"""Checks the servers that a request, with its API key, may be sent to. Imported once a base URL is given."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from .._errors import RequestError

# Hosts of cloud providers that return a machine's credentials.
_METADATA_HOSTS = ("metadata", "metadata.google.internal")

_ENDPOINTS = ("/chat/completions", "/completions", "/v1/messages", "/responses", "/embeddings")
"""The paths that the SDKs append to a base URL."""


def checked_base_url(base_url: str) -> str:
    """The base URL without a slash at its end.

    https may lead anywhere; plain http only to this machine or a private network. Link-local addresses are
    refused.

    Raises:
        RequestError: the text is not a URL, or not one that a request may be sent to.

    >>> checked_base_url("http://localhost:8000/v1/")
    'http://localhost:8000/v1'
    """
    if any(character in base_url for character in "@?#"):
        # Checked first, so that no other message quotes a password.
        raise RequestError(
            "base_url may hold no user, password, query or fragment; an API key goes into api_key="
        )
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise RequestError(f"base_url {base_url!r} is not a URL") from None
    if parts.scheme not in ("http", "https") or not host or not base_url.isprintable():
        remedy = f": write 'http://{base_url}'" if "://" not in base_url and base_url else ""
        raise RequestError(f"base_url {base_url!r} is not an http or https URL{remedy}")
    if any(character in base_url for character in " \\") or host in _METADATA_HOSTS:
        raise RequestError(f"base_url {base_url!r} is not the address of a provider")
    address = _address(host)
    if address is not None and address.is_link_local:
        # 169.254.169.254 returns a cloud machine's credentials.
        raise RequestError(f"base_url {base_url!r} is a link-local address, which no provider has")
    if parts.scheme == "http":
        named = "." not in host or host.endswith((".local", ".internal", ".localhost"))
        if not (named if address is None else not address.is_global):
            raise RequestError(f"base_url {base_url!r} would send the key in the clear: use https")
    for path in _ENDPOINTS:
        if parts.path.rstrip("/").endswith(path):
            short = base_url.rstrip("/").removesuffix(path)
            raise RequestError(f"base_url {base_url!r} ends with the path of an endpoint: write {short!r}")
    return base_url.rstrip("/")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address in `host`, in any spelling that a resolver accepts: 2852039166 is 169.254.169.254.

    None where `host` is a name.
    """
    host = host.rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    return getattr(address, "ipv4_mapped", None) or address
