"""Event loops and threads of tests: asynchronous tests, threads that run at the same time, and servers."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Self, TypeVar

T = TypeVar("T")
Fixtures = ParamSpec("Fixtures")


def run_threads(*functions: Callable[[], object]) -> None:
    """Run functions at the same time, each in a thread of its own, and wait until all have ended."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class LoopServer:
    """A server on an event loop in a thread of its own. Its subclass has `serve`."""

    port: int

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__, daemon=True)
        self._accepted: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer what comes on one connection."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls))
        self.port = self._server.sockets[0].getsockname()[1]
        self.root = f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"
        return self

    def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Coroutine[Any, Any, None]:
        self._accepted.append(writer)
        return self.serve(reader, writer)

    def __exit__(self, *exception: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=60)

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # The task of a connection may be cancelled before its first step, or anywhere in `serve`.
        for writer in self._accepted:
            writer.transport.abort()
        # A transport that was closed or aborted lets go of its socket in the loop's next turn.
        await asyncio.sleep(0.01)
