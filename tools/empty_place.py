"""Runs programs where nothing of this process is: an empty environment, in a chroot if there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.release import ROOT, ReleaseError

MACHINE = ("PIP_", "SSL_CERT", "REQUESTS_CA", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
"""The beginnings of the variables by which pip reaches the machine's own index."""


def run(command: list[Any], *, refusal: str = "", **variables: str) -> str:
    """What a command prints. With `refusal` it must fail, and print this too.

    Raises:
        ReleaseError: it ended otherwise.
    """
    words = list(map(str, command))
    environment = {**os.environ, **variables}
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    output = done.stdout + done.stderr
    if bool(done.returncode) != bool(refusal) or refusal not in output:
        raise ReleaseError(f"{' '.join(words[-8:])} ended with {done.returncode}:\n{output}")
    return output


def expect(is_so: bool, problem: str) -> None:
    """Raise a `ReleaseError` unless something is so."""
    if not is_so:
        raise ReleaseError(problem)


class Place:
    """An environment of Python with a home of its own, and no variable of this process."""

    def __init__(self, folder: Path, python: str, root: Path | None, options: tuple[str, ...] = ()) -> None:
        self.folder, self.root, self.variables = folder, root, dict[str, str]()
        self.run(python, "-m", "venv", *options, "environment")

    def inside(self, path: Path) -> Path:
        """The path as programs in the chroot see it."""
        return path if self.root is None else Path("/", path.relative_to(self.root))

    def run(self, *command: Any, refusal: str = "", **variables: str) -> str:
        """Like the function `run`, in this place."""
        home = self.inside(self.folder)
        given = {"HOME": home, "PATH": f"{home}/environment/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        words = [f"{name}={value}" for name, value in {**given, **self.variables, **variables}.items()]
        enter = [] if self.root is None else ["chroot", self.root]
        return run([*enter, "env", "-i", f"--chdir={home}", *words, *command], refusal=refusal)

    def download(self, folder: Path, *options: Any) -> None:
        """Have pip fetch wheels for the Python of this place from the index of the machine."""
        words = ["download", "--only-binary", ":all:", "-d", self.inside(folder), *options]
        if self.root is None:  # by the newer pip of this process, with its cache
            python = self.folder / "environment" / "bin" / "python"
            run([sys.executable, "-m", "pip", "--python", python, *words])
        else:
            names = (name for name in os.environ if name.upper().startswith(MACHINE))
            self.run("pip", *words, **{name: os.environ[name] for name in names})
