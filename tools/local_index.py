"""Serves a package index on the loopback, with a password: pypiserver, and what PEP 592 adds to it."""

from __future__ import annotations

import contextlib
import html
import logging
import re
import secrets
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tools.empty_place import run
from tools.release import PROGRAMS

USER = "__token__"


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Log nothing."""


@contextlib.contextmanager
def serve_index(folder: Path, password: str, yanked: Mapping[str, str]) -> Iterator[str]:
    """Serve the files of a folder to those who have the password, and take uploads; yields host and port.

    `yanked` has the name of a file → the reason why it was yanked. It may change meanwhile.
    """
    import pypiserver

    logging.getLogger("pypiserver").setLevel(logging.ERROR)  # a refused upload is a warning there
    index = pypiserver.app(
        roots=[folder],
        authenticate=["update", "download", "list"],
        auther=lambda user, given: secrets.compare_digest(f"{user}:{given}", f"{USER}:{password}"),
        disable_fallback=True,
    )

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith("/simple/"):
            return index(environ, start)  # type: ignore[no-any-return]  # pypiserver has no types
        begun: list[Any] = []
        page = b"".join(index(environ, lambda *given: begun.extend(given))).decode()
        start(begun[0], [header for header in begun[1] if header[0].lower() != "content-length"])
        return [mark_yanked(page, yanked).encode()]

    with make_server("127.0.0.1", 0, answer, _Server, _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def mark_yanked(page: str, yanked: Mapping[str, str]) -> str:
    """Mark files on a page of the index as PEP 592 asks: an attribute of the link, with the reason.

    >>> mark_yanked('<a href="../a-1.whl#sha256=0">a-1.whl</a>', {"a-1.whl": "wrong"})
    '<a data-yanked="wrong" href="../a-1.whl#sha256=0">a-1.whl</a>'
    """

    def mark(link: re.Match[str]) -> str:
        reason = yanked.get(link[1])
        return (
            link[0] if reason is None else link[0].replace("<a ", f'<a data-yanked="{html.escape(reason)}" ')
        )

    return re.sub(r"<a [^>]*>([^<]+)</a>", mark, page)


def upload(address: str, password: str, paths: list[Path], refusal: str = "") -> None:
    """Publish files with twine, as the workflow does."""
    command = [PROGRAMS / "twine", "upload", "--non-interactive", "--disable-progress-bar", *paths]
    index = {"TWINE_REPOSITORY_URL": f"http://{address}/", "TWINE_USERNAME": USER, "TWINE_PASSWORD": password}
    run(command, refusal=refusal, **index)
