"""The proxies that the environment names, and those of them that no HTTP client here can use.

The clients read the variables themselves. This module finds out before anything is sent that they would fail,
because their errors name neither the variable nor the reason, or quote the URL with its password.
"""

import importlib.util
import ipaddress
import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ...errors import RequestError

_SOCKS = ("socks4", "socks4a", "socks5", "socks5h", "socks")


def choose_client(transport: str) -> str:
    """The transport, or "http1" for "aiohttp", which knows no ALL_PROXY, if there is a proxy that works."""
    needs_proxy = any(_problem(url, "aiohttp") is None for url in _proxies().values())
    return "http1" if transport == "aiohttp" and needs_proxy else transport


def all_work(transport: str) -> bool:
    """Whether a transport can use every proxy of the environment."""
    return all(_problem(url, transport) is None for url in _proxies().values())


def check_proxy(base_url: str | None, transport: str) -> None:
    """Refuse a server that can only be reached through a proxy which the transport cannot use.

    Without a `base_url`, it has https. The message has the variable, and no URL, which may have a password.
    """
    proxies = _proxies()
    if not proxies:
        return
    if ":*" in getproxies().get("no", ""):
        raise RequestError("NO_PROXY has a host with the port *, which no client can read: leave it out")
    server = urlsplit(base_url or "https://")
    name = server.scheme if server.scheme in proxies else "all"
    problem = _problem(proxies[name], transport) if name in proxies else None
    host = server.hostname or ""
    if problem is None or _is_this_machine(host) or proxy_bypass(host):
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
        if transport == "aiohttp":
            return (
                "names a SOCKS proxy: use it with Client(transport='http1') and "
                "pip install 'httpx[socks]' 'httpx2[socks]'"
            )
        if importlib.util.find_spec("socksio") is None:
            return "names a SOCKS proxy: use it with pip install 'httpx[socks]' 'httpx2[socks]'"
        return None
    return None if parts.scheme in ("http", "https") else "is not the URL of an HTTP proxy: correct it"


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _variable(name: str) -> str:
    """The variable that names a proxy; lower case comes first, as in `getproxies`."""
    for variable in (f"{name}_proxy", f"{name}_PROXY".upper()):
        if os.environ.get(variable):
            return variable
    return "the system's proxy setting"
