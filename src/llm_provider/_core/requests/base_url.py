"""Checks the servers that a request, with its API key, may be sent to. Imported once a base URL is given."""

import ipaddress
import re
import socket
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from ..errors import RequestError

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA_HOSTS = (
    "metadata", "metadata.goog", "metadata.google.internal", "instance-data", "instance-data.ec2.internal",
    "metadata.tencentyun.com",
)  # fmt: skip
"""Hosts of cloud providers that return a machine's credentials."""

# The same, outside the link-local networks that most of them use: of Alibaba, Azure, Oracle (two), Amazon,
# Scaleway and Google.
_METADATA_NETWORKS = tuple(
    ipaddress.ip_network(f"{address}/32")
    for address in (
        "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "fd00:c1::", "fd00:ec2::", "fd00:42::", "fd20:ce::",
    )
)  # fmt: skip

_TRANSLATED = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48")))
"""Networks of IPv6 whose last 32 bits are an address of IPv4 (RFC 4291, 6052 and 8215)."""

_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_NUMBER = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)")

_ENDPOINTS = ("/chat/completions", "/completions", "/v1/messages", "/responses", "/embeddings")
"""The paths that the SDKs append to a base URL."""

# Adapter, the path of a base URL, and what a 404 may then mean.
_WRONG_PATHS = (
    ("anthropic", r"(.*)/v1", "the SDK adds /v1/messages to the base URL: write {0!r}"),
    ("openai", r"((?!.*/v\d).*)", "base URLs of OpenAI's format mostly end with /v1: try '{0}/v1'"),
    ("gemini", r"(.*)/v\w+/openai", "that URL has OpenAI's format: write {0!r} for Gemini's own"),
)


def explain_path(adapter: str, base_url: str) -> str:
    """What may be wrong with the base URL of a server that knows no such path; empty if nothing seems so."""
    path = urlsplit(base_url).path
    for name, pattern, hint in _WRONG_PATHS:
        if name == adapter and (match := re.fullmatch(pattern, path)):
            return f"; {hint.format(base_url.removesuffix(path) + match[1])}"
    return ""


def check_base_url(base_url: str) -> str:
    """The base URL without a slash at its end; `RequestError` if no request may be sent there.

    https may lead anywhere, plain http to this machine or a private network. No link-local address is taken.
    """
    if any(character in base_url for character in "@?#"):
        # Checked first, so that no other message quotes a password.
        raise RequestError(
            "base_url may hold no user, password, query or fragment; an API key goes into api_key="
        )
    try:
        parts = urlsplit(base_url)
        written, port = parts.hostname or "", parts.port
        host = _normalise_host(written)
    except ValueError:
        raise RequestError(f"base_url {base_url!r} is not a URL") from None
    if parts.scheme not in ("http", "https") or not host or not base_url.isprintable():
        remedy = f": write 'http://{base_url}'" if "://" not in base_url and base_url else ""
        raise RequestError(f"base_url {base_url!r} is not an http or https URL{remedy}")
    if any(character in base_url for character in " \\") or host in _METADATA_HOSTS:
        raise RequestError(f"base_url {base_url!r} is not the address of a provider")
    addresses = _addresses(host)
    if any(address.is_link_local for address in addresses):
        # 169.254.169.254 returns a cloud machine's credentials.
        raise RequestError(f"base_url {base_url!r} is a link-local address, which no provider has")
    if any(address in network for address in addresses for network in _METADATA_NETWORKS):
        raise RequestError(f"base_url {base_url!r} is the address of a cloud's metadata, not of a provider")
    in_brackets = "[" in parts.netloc
    # A resolver may take a last label of digits for a part of an address.
    is_name = _NAME.fullmatch(host) is not None and _NUMBER.fullmatch(host) is None
    if in_brackets != (":" in host) or "%" in host or not (addresses or is_name):
        # Not quoted: what looks like a host may hold an escaped password.
        raise RequestError("base_url has a host that is neither a name nor an address")
    if parts.scheme == "http":
        named = "." not in host or host.endswith((".local", ".internal", ".localhost"))
        if any(address.is_global for address in addresses) if addresses else not named:
            raise RequestError(f"base_url {base_url!r} would send the key in the clear: use https")
    if host != written and not in_brackets:
        # What is sent, and what the cache key holds, is what was checked.
        authority = host if port is None else f"{host}:{port}"
        base_url = parts._replace(netloc=authority).geturl()
    for path in _ENDPOINTS:
        if parts.path.rstrip("/").endswith(path):
            short = base_url.rstrip("/").removesuffix(path)
            raise RequestError(f"base_url {base_url!r} ends with the path of an endpoint: write {short!r}")
    return base_url.rstrip("/")


def _normalise_host(host: str) -> str:
    r"""A host in ASCII, as a resolver would be asked for it; `ValueError` if it is none.

    >>> _normalise_host("169\u3002254%2E169.254."), _normalise_host("bücher.example")
    ('169.254.169.254', 'xn--bcher-kva.example')
    """
    host = unquote(host, errors="strict")
    if not host.isascii():
        import idna  # aiohttp requires it through yarl

        host = idna.encode(host, uts46=True).decode()
    return host.lower().rstrip(".")


def _addresses(host: str) -> list[_Address]:
    """The IP address in any spelling of `host`, and one of IPv4 within it; empty where it is a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            return [ipaddress.IPv4Address(socket.inet_aton(host))]
        except OSError:
            return []
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    within = address.sixtofour
    # ::1 is this machine.
    if any(address in network for network in _TRANSLATED) and int(address) > 0xFFFF:
        within = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return [address] if within is None else [address, within]
