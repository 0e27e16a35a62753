"""Python programs that begin with the SDKs imported.

Importing three SDKs takes most of the time of a short program. A server imports them once and forks for each
program, so every program has a process of its own, and nothing that it changes reaches the next.

`warm_python.py ADDRESS` runs a program like `python -W error` does: `-c CODE`, `-m MODULE` or FILE, and
arguments. It sends signals on to the program; if it is killed, the program is killed too, a moment
later: its pipes end with it, so `communicate` waits for both.
`warm_python.py ADDRESS serve` is the server, which ends with its last connection.
"""

import json
import os
import signal
import socket
import sys

PRELOADED = ("anthropic", "google.genai", "openai", "pandas", "pydantic", "pytest")
NOT_PRELOADED = ("__main__", "litellm", "pytest_plugin", "simulator", "integrations", "ray")
"""Parts of the names of modules that run a program or import heavy packages."""

STREAMS = ((0, "r", -1, "strict"), (1, "w", -1, "strict"), (2, "w", 1, "backslashreplace"))
"""Descriptor, mode, buffering, and what happens to characters that cannot be encoded."""

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(address: str, arguments: list[str]) -> int:
    """Have a program run with the descriptors, the directory and the environment of this process."""
    order = {
        "arguments": arguments,
        "directory": os.getcwd(),  # noqa: PTH109  # pathlib takes longer to import than all of this
        "environment": dict(os.environ),
    }
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        for number in FORWARDED:
            signal.signal(number, lambda number, _: connection.sendall(bytes([number])))
        socket.send_fds(connection, [json.dumps(order).encode() + b"\n"], [0, 1, 2])
        code = int(connection.recv(100))
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


class Server:
    """Forks for each program. A client that goes away takes its program along."""

    def __init__(self, address: str) -> None:
        import selectors

        self._selector = selectors.DefaultSelector()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(100)
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._ended, wakeup = socket.socketpair()
        for end in (self._ended, wakeup):
            end.setblocking(False)
        self._wakeup = wakeup
        self._selector.register(self._ended, selectors.EVENT_READ)
        self._connections: set[socket.socket] = set()
        self._programs: dict[int, socket.socket] = {}

    def serve(self) -> dict[str, object] | None:
        """The order of a program, in its own process; None in the server, when its last client has gone."""
        import selectors

        signal.set_wakeup_fd(self._wakeup.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            for key, _ in self._selector.select():
                ready = key.fileobj
                if ready is self._listening:
                    connection, _ = self._listening.accept()
                    self._connections.add(connection)
                    self._selector.register(connection, selectors.EVENT_READ)
                elif ready is self._ended:
                    self._ended.recv(4096)
                    self._report_ended()
                elif isinstance(ready, socket.socket) and ready in self._connections:
                    order = self._read(ready)
                    if order is not None:
                        return order
            if not self._connections:
                return None

    def _report_ended(self) -> None:
        while self._programs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            connection = self._programs.pop(pid)
            try:
                connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
            except OSError:
                continue  # the client has gone, and was the reason

    def _read(self, connection: socket.socket) -> dict[str, object] | None:
        """Read an order, the signals for its program, or the end of a client."""
        pid = next((pid for pid, other in self._programs.items() if other is connection), None)
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        except ConnectionResetError:  # it was killed before it read how its program had ended
            data, descriptors = b"", []
        if pid is not None:
            for number in data or (signal.SIGKILL,):
                os.kill(pid, number)
        if not data:
            self._selector.unregister(connection)
            self._connections.remove(connection)
            connection.close()
        elif pid is None:
            while not data.endswith(b"\n"):
                data += connection.recv(1 << 20)
            pid = os.fork()
            if not pid:
                self._become_program(descriptors)
                order: dict[str, object] = json.loads(data)
                return order
            self._programs[pid] = connection
            for descriptor in descriptors:
                os.close(descriptor)
        return None

    def _become_program(self, descriptors: list[int]) -> None:
        """Leave the server's descriptors and signals."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)

    def close(self) -> None:
        """Close every socket."""
        self._selector.close()
        for sock in (self._listening, self._ended, self._wakeup, *self._connections):
            sock.close()


def preload() -> None:
    """Import the SDKs, the package and pandas."""
    import gc
    import importlib
    import pkgutil
    import threading
    import warnings

    import llm_provider

    # numpy has threads of its own. From Python 3.15 on, the warning as an error prevents the fork.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded, use of fork", DeprecationWarning)
    gc.disable()  # what is imported leaves little garbage
    for name in PRELOADED:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(llm_provider.__path__, "llm_provider."):
        if not any(part in module.name for part in NOT_PRELOADED):
            importlib.import_module(module.name)
    assert threading.active_count() == 1, "a fork does not copy threads"
    # The collections of a forked process would copy the memory of everything that was imported.
    gc.collect()
    gc.freeze()
    gc.enable()


def run_here(arguments: list[str], directory: str, environment: dict[str, str]) -> None:
    """Run a program as the main module of this process, which ends with it."""
    import runpy
    import types

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering, encoding="utf-8", errors=errors, closefd=False)
        for number, mode, buffering, errors in STREAMS
    )
    kind, *sys.argv = arguments
    if kind == "-c":
        code, sys.argv[0] = sys.argv[0], "-c"
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(code, "<string>", "exec"), main.__dict__)
    elif kind == "-m":
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv.insert(0, kind)
        runpy.run_path(kind, run_name="__main__")


def end_here(code: int) -> None:
    """End as Python does, except that the modules stay in memory: to free them takes 0.2 s of CPU."""
    import atexit
    import gc
    import threading

    threading._shutdown()  # type: ignore[attr-defined]  # waits for the program's threads
    atexit._run_exitfuncs()
    main = sys.modules["__main__"].__dict__
    if main is not globals():
        main.clear()  # what the program left open warns of it
    gc.collect()
    sys.stderr.flush()
    sys.stdout.flush()  # if it fails, Python says so at its own end
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[2:] == ["serve"]:
        server = Server(sys.argv[1])
        preload()
        print("ready", flush=True)
        order = server.serve()
        if order is None:
            signal.set_wakeup_fd(-1)
            server.close()
        else:
            code = 0
            try:
                run_here(**order)  # type: ignore[arg-type]  # as `run` has written it
            except SystemExit as ending:
                if not isinstance(ending.code, int | None):
                    raise
                code = ending.code or 0
            end_here(code)
    else:
        sys.exit(run(sys.argv[1], sys.argv[2:]))
