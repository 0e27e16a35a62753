"""The certificate authorities that the environment names, for the HTTP clients to read.

Here it is found out before anything is sent, because their errors name neither the variable nor the file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import RequestError

if TYPE_CHECKING:
    import ssl

_OF_OTHERS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables of other HTTP clients, which those here do not read."""


def check_certificates() -> None:
    """Refuse certificate authorities that cannot be read.

    The message of the `RequestError` names the variable, the path and the remedy. The clients read them for
    plain HTTP too.
    """
    file, folders = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file:
        # Few environments have the variable, and the module takes 6 ms to import.
        import ssl

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
        except OSError as error:
            # Certificates that are not valid are an OSError too.
            problem = (
                "is not there" if not Path(file).exists() else f"cannot be read as PEM certificates ({error})"
            )
            raise RequestError(
                f"SSL_CERT_FILE names {file!r}, which {problem}: correct the path, or unset SSL_CERT_FILE"
            ) from None
    for folder in (folders or "").split(os.pathsep):
        if folder and not Path(folder).is_dir():
            raise RequestError(
                f"SSL_CERT_DIR names {folder!r}, which is not a folder: correct the path, or unset it"
            )


_contexts: dict[Callable[[], ssl.SSLContext], tuple[object, ssl.SSLContext]] = {}
"""The newest TLS context of each function that builds one, and the authorities that it has read."""


def share_context(build: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """The TLS context that a function builds: the same one until the authorities change.

    It takes 30 ms to read the 150 authorities of a machine, in which the event loop stops. httpx does not
    share it: it sets the protocols of a context anew for each connection, while another thread may open one.
    """
    authorities = _describe_authorities()
    known, context = _contexts.get(build, (None, None))
    if context is None or known != authorities:
        context = build()
        _contexts[build] = authorities, context
    return context


def _describe_authorities() -> list[object]:
    """What changes with the authorities: the variables, and the dates and sizes of the files and folders."""
    import ssl

    file, folders = os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", "")
    machine = ssl.get_default_verify_paths()
    description: list[object] = [file, folders]
    paths = [file, *folders.split(os.pathsep), machine.openssl_cafile, machine.openssl_capath]
    for path in filter(None, paths):
        with contextlib.suppress(OSError):
            status = Path(path).stat()
            description.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return description


def trust_remedy() -> str:
    """What to do about a server whose certificate is not trusted, for the end of a message."""
    unread = [name for name in _OF_OTHERS if os.environ.get(name)]
    if unread and not os.environ.get("SSL_CERT_FILE"):
        return f"; {unread[0]} is set, which is not read here: set SSL_CERT_FILE={os.environ[unread[0]]}"
    return "; SSL_CERT_FILE can name a file with the certificates of your organisation or proxy"
