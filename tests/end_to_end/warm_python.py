"""Runs programs in processes that have imported the SDKs already.

Importing three SDKs takes most of the time of a short program. `WarmPython` starts a process that imports
them once and forks for each program. So every program has a process of its own, and nothing that it changes
reaches the next. Run as a program, this module is the process that forks.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import threading
import types
from pathlib import Path

PRELOADED = ("anthropic", "google.genai", "openai", "pandas", "pydantic")
NOT_PRELOADED = ("__main__", "litellm", "pytest_plugin", "simulator", "integrations", "ray")
"""Parts of the names of modules that run a program or import heavy packages."""


class WarmPython:
    """Runs programs one after the other, each in a forked process. Warnings are errors in all of them."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", "-W", "error", __file__]
        # Else numpy starts threads when it is imported, and a fork does not copy threads.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._parent = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, code: str, name: str, directory: Path) -> subprocess.CompletedProcess[str]:
        """Run a program with the present environment, and wait for its end.

        Args:
            code: the source of the program.
            name: the program's file in tracebacks.
            directory: an empty directory, which becomes the program's working directory.
        """
        out, err = (directory.with_name(directory.name + suffix) for suffix in (".out", ".err"))
        order = {"code": code, "name": name, "directory": str(directory), "out": str(out), "err": str(err)}
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        print(json.dumps({**order, "environment": dict(os.environ)}), file=self._parent.stdin, flush=True)
        returncode = int(self._parent.stdout.readline())
        return subprocess.CompletedProcess(name, returncode, out.read_text("utf-8"), err.read_text("utf-8"))

    def close(self) -> None:
        """End the process that forks; it must end well."""
        self._parent.communicate()
        assert self._parent.returncode == 0


def preload() -> None:
    """Import the SDKs, the package and pandas."""
    import llm_provider

    for name in PRELOADED:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(llm_provider.__path__, "llm_provider."):
        if not any(part in module.name for part in NOT_PRELOADED):
            importlib.import_module(module.name)
    assert threading.active_count() == 1, "a fork does not copy threads"
    # The collections of a forked process would copy the memory of everything that was imported.
    gc.collect()
    gc.freeze()


def serve() -> None:
    """Fork for each order of standard input, and report how each program ended."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(**json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def run(code: str, name: str, directory: str, out: str, err: str, environment: dict[str, str]) -> None:
    """Run a program as the main module of this process, which ends with it."""
    for descriptor, path in ((0, os.devnull), (1, out), (2, err)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    exec(compile(code, name, "exec"), main.__dict__)


if __name__ == "__main__":
    preload()
    serve()
