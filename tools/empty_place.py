"""Runs programs where nothing of this process is: an empty environment, in a chroot if there is one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from tools.release import ROOT, ReleaseError


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


class Place:
    """An environment of Python with a home of its own, and no variable of this process."""

    def __init__(self, folder: Path, python: str, root: Path | None) -> None:
        self.folder, self.root, self.variables = folder, root, dict[str, str]()
        self.run(python, "-m", "venv", "environment")

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
