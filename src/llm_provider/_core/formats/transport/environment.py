"""What the environment names for the HTTP clients: proxies, and certificate authorities.

The clients read the variables themselves. This module finds out before anything is sent that they would fail,
because their errors name neither the variable nor the reason, or quote the URL of a proxy with its password.
"""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...errors import RequestError

if TYPE_CHECKING:
    import ssl

_SOCKS = ("socks4", "socks4a", "socks5", "socks5h", "socks")


def choose_client(transport: str) -> str:
    """The transport, or "http1" for "aiohttp", which knows no ALL_PROXY, if there is a proxy that works."""
    needs_proxy = any(problem is None for problem in find_problems("aiohttp"))
    return "http1" if transport == "aiohttp" and needs_proxy else transport


def find_problems(transport: str) -> list[str | None]:
    """Why a transport cannot use the proxies of the environment, one after the other; None where it can."""
    return [_problem(url, transport) for url in _proxies().values()]


def check_proxy(base_url: str | None, transport: str) -> None:
    """Refuse a server that can only be reached through a proxy which the transport cannot use.

    Without a `base_url`, it has https. The message has the variable, and no URL, which may have a password.
    """
    proxies = _proxies()
    if not proxies:
        return
    from urllib.request import getproxies, proxy_bypass

    if ":*" in getproxies().get("no", ""):
        raise RequestError("NO_PROXY has a host with the port *, which no client can read: leave it out")
    server = urlsplit(base_url or "https://")
    name = server.scheme if server.scheme in proxies else "all"
    problem = _problem(proxies[name], transport) if name in proxies else None
    host = server.hostname or ""
    here = host == "localhost"
    with contextlib.suppress(ValueError):
        here = here or ipaddress.ip_address(host).is_loopback
    if problem is None or here or proxy_bypass(host):
        return
    raise RequestError(
        f"{_variable(name)} {problem}; or set the URL of an HTTP proxy there, or name the hosts that need no "
        "proxy in NO_PROXY"
    )


def proxy_in(detail: str) -> str:
    """The proxy of a failed connection, for the end of a message, without its password; empty without one."""
    for name, url in _proxies().items():
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname or "", parts.port
        except ValueError:
            continue
        address = f"{host}:{port}" if port else host
        proxy = f"the proxy {parts.scheme}://{address} that {_variable(name)} names"
        if address.lower() in detail.lower():
            return f"; it is {proxy}: correct it, or name the server in NO_PROXY"
        if "host" not in detail:
            return f"; requests go through {proxy}, unless NO_PROXY names the server"
    return ""


def _proxies() -> dict[str, str]:
    # It imports ssl.
    from urllib.request import getproxies

    # `getproxies` also returns NO_PROXY, which names no proxy.
    addresses = getproxies()
    return {name: addresses[name] for name in ("http", "https", "all") if addresses.get(name)}


def _problem(url: str, transport: str) -> str | None:
    """Why a transport cannot use a proxy; None if it can."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        has_address = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        has_address = False
    if not has_address or any(character.isspace() for character in url):
        return "is not the URL of a proxy: correct it"
    if parts.scheme in _SOCKS:
        if transport == "litellm":
            return "names a SOCKS proxy: litellm cannot use it"
        install = "pip install 'httpx[socks]' 'httpx2[socks]'"
        if transport == "aiohttp":
            return f"names a SOCKS proxy: use it with Client(transport='http1') and {install}"
        missing = importlib.util.find_spec("socksio") is None
        return f"names a SOCKS proxy: use it with {install}" if missing else None
    return None if parts.scheme in ("http", "https") else "is not the URL of an HTTP proxy: correct it"


def _variable(name: str) -> str:
    """The variable that names a proxy; lower case comes first, as in `getproxies`."""
    for variable in (f"{name}_proxy", f"{name}_PROXY".upper()):
        if os.environ.get(variable):
            return variable
    return "the system's proxy setting"


_OF_OTHERS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables of other HTTP clients, which those here do not read."""


def _read_authorities() -> ssl.SSLContext:
    # Few environments have the variable, and the module takes 6 ms to import.
    import ssl

    return ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])


def check_certificates() -> None:
    """Refuse certificate authorities that cannot be read.

    The message of the `RequestError` names the variable, the path and the remedy. The clients read them for
    plain HTTP too.
    """
    file, folders = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file:
        try:
            share_context(_read_authorities)
        except OSError as error:
            # Certificates that are not valid are an OSError too.
            unreadable = f"cannot be read as PEM certificates ({error})"
            problem = unreadable if Path(file).exists() else "is not there"
            remedy = "correct the path, or unset SSL_CERT_FILE"
            raise RequestError(f"SSL_CERT_FILE names {file!r}, which {problem}: {remedy}") from None
    for folder in (folders or "").split(os.pathsep):
        if folder and not Path(folder).is_dir():
            problem = "which is not a folder: correct the path, or unset it"
            raise RequestError(f"SSL_CERT_DIR names {folder!r}, {problem}")


_contexts: dict[Callable[[], ssl.SSLContext], tuple[object, ssl.SSLContext]] = {}
"""The newest TLS context of each function that builds one, and the authorities that it has read."""


def share_context(build: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """The TLS context that a function builds: the same one until the authorities change.

    It takes 30 ms to read the 150 authorities of a machine, in which the event loop stops. httpx does not
    share it: it sets the protocols of a context anew for each connection, while another thread may open one.
    """
    import ssl

    file, folders = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    machine = ssl.get_default_verify_paths()
    # What changes with the authorities: the variables, and the dates and sizes of the files and folders.
    authorities: list[object] = [file, folders]
    paths = [file, *folders.split(os.pathsep), machine.openssl_cafile, machine.openssl_capath]
    for path in filter(None, paths):
        with contextlib.suppress(OSError):
            status = Path(path).stat()
            authorities.append((status.st_ino, status.st_size, status.st_mtime_ns))
    known, context = _contexts.get(build, (None, None))
    if context is None or known != authorities:
        context = build()
        _contexts[build] = authorities, context
    return context


def trust_remedy() -> str:
    """What to do about a server whose certificate is not trusted, for the end of a message."""
    unread = [name for name in _OF_OTHERS if os.environ.get(name)]
    if unread and not os.environ.get("SSL_CERT_FILE"):
        return f"; {unread[0]} is set, which is not read here: set SSL_CERT_FILE={os.environ[unread[0]]}"
    return "; SSL_CERT_FILE can name a file with the certificates of your organisation or proxy"
