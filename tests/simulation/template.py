"""Starts a simulation: replaces the clock and the rest, imports everything once, and forks the world."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import gc
import importlib
import os
import pkgutil
import socket
import ssl
import sys
import traceback
from collections.abc import Callable

from . import scheduler as scheduling

ADDR_NO_RANDOMIZE = 0x0040000
"""The personality of a Linux process whose memory always lies at the same addresses."""

MODULES = (
    "aiohttp", "anthropic", "google.genai", "openai", "openai.resources.chat", "openai.resources.responses",
    "jsonschema_rs", "difflib", "sqlite3", "encodings.idna", "uuid", "platform",
)  # fmt: skip
"""Imported before the first fork, as are all modules of the library: no process imports them again."""


def fix_hashes_and_addresses() -> None:
    """Start this program again with fixed hashes and addresses: sets are ordered by them."""
    libc = ctypes.CDLL(None)
    if os.environ.get("PYTHONHASHSEED") == "0":
        return
    if sys.platform == "linux":
        libc.personality(ADDR_NO_RANDOMIZE)
    environment = {"PYTHONHASHSEED": "0", "PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    if "PYTHONPATH" in os.environ:  # a copy of the library is played, and not the installed one
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def list_library_modules() -> list[str]:
    """The modules of the library, without the programs and what needs an extra."""
    import llm_provider

    left_out = (
        "_features.cli", "simulator", "litellm", "telemetry", "__main__", "second_level", "integrations",
        "ledger_plot", "pytest_plugin",
    )  # fmt: skip
    names = (module.name for module in pkgutil.walk_packages(llm_provider.__path__, "llm_provider."))
    return sorted(name for name in names if not any(each in name for each in left_out))


def keep_to_one_processor() -> socket.socket | None:
    """Run on a processor that no other simulation has: to wake another one for every turn costs a fifth more.

    Returns what marks the processor as used, while it is open.
    """
    if sys.platform == "linux":
        for number in sorted(os.sched_getaffinity(0)):
            mark = socket.socket(socket.AF_UNIX)
            try:
                mark.bind(f"\0llm_provider-simulation-{number}")
            except OSError:
                mark.close()
            else:
                os.sched_setaffinity(0, {number})
                return mark
    return None


def run_in_template(run_world: Callable[[socket.socket, float], int], run_user: Callable[..., None]) -> int:
    """Run the world in a process of its own, and serve as the template of the processes that it asks for.

    The world is told how many seconds of processor time the start has taken. Returns its exit status.
    """
    from .connections import ClientLoop
    from .process import read_processor_time, serve_forks

    mark = keep_to_one_processor()
    gc.disable()
    scheduling.install()

    class Policy(asyncio.DefaultEventLoopPolicy):
        """Makes `asyncio.run` and `asyncio.new_event_loop` simulated where a scheduler is active."""

        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            return super().new_event_loop() if scheduling.active() is None else ClientLoop()

    asyncio.set_event_loop_policy(Policy())
    # No simulated connection has TLS, and each client of an SDK would read the certificates for 40 ms.
    ssl.SSLContext.load_verify_locations = lambda *_, **__: None
    for name in (*MODULES, *list_library_modules()):
        importlib.import_module(name)
    sys.dont_write_bytecode = True  # on a full disk, a cut file would stay among those of the real machine
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    started = read_processor_time()
    pid = os.fork()
    if pid == 0:
        ours.close()
        status = 1
        try:
            status = run_world(theirs, started)
        except BaseException:
            traceback.print_exc()
        finally:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    theirs.close()
    serve_forks(ours, run_user)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if mark is not None:
        mark.close()
    return status
