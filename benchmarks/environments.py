"""One virtual environment per peer, created by uv on first use from a file of pins and hashes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
REQUIREMENTS = Path(__file__).parent / "requirements"

CHROOT = ROOT / ".chroot"
"""The system with other Pythons that `python -m tools.chroot` installs."""

OURS = {"ours-openai2": ".venv", "ours-openai3": ".venv-highest"}
"""The project's own environments, which `make` creates."""


def interpreter(name: str) -> Path:
    """The Python of an environment; creates the environment, or renews it after a change of its pins.

    Args:
        name: A stem of `requirements/*.txt`, or a key of `OURS`.

    Raises:
        CalledProcessError: the packages could not be installed.
    """
    if name in OURS:
        directory = ROOT / OURS[name]
        if not (directory / ".ready").exists():
            subprocess.run(["make", f"{OURS[name]}/.ready"], cwd=ROOT, check=True)
        return directory / "bin" / "python"
    return install(ROOT / f".venv-bench-{name}", REQUIREMENTS / f"{name}.txt")


def install(
    directory: Path, pins: Path, version: str = sys.executable, environment: Mapping[str, str] = os.environ
) -> Path:
    """The Python of an environment with exactly the packages of `pins`; makes or renews it if need be.

    Args:
        directory: The environment's folder.
        pins: A file of pins and hashes.
        version: The path of an interpreter, or the version of one that pyenv has, such as "3.12".
        environment: The environment variables of the installer.

    Raises:
        CalledProcessError: there is no such interpreter, or the packages could not be installed.
    """
    python, stamp = directory / "bin" / "python", directory / ".ready"
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text(encoding="ascii") != digest:
        print(f"making {directory.name} …", file=sys.stderr)
        uv = Path(sys.executable).with_name("uv")
        venv = [uv, "venv", "--quiet", "--allow-existing", "--python", version, directory]
        # Pyenv's shims run a version only where it is selected.
        selected = {} if version == sys.executable else {"PYENV_VERSION": version}
        subprocess.run(venv, cwd=ROOT, check=True, env={**environment, **selected})
        sync = [uv, "pip", "sync", "--quiet", "--require-hashes", "--no-build", "--python", python, pins]
        subprocess.run(sync, cwd=ROOT, check=True, env=environment)
        stamp.write_text(digest, encoding="ascii")
    return python


def python_of(version: str) -> Path | None:
    """The Python of a version with this library and its packages; None where the machine has no such Python.

    Versions that `python -m tools.chroot` has installed run outside of the chroot, with the libraries there.
    """
    directory = ROOT / f".venv-python-{version}"
    packages = CHROOT / f"venv-{version}/lib/python{version}/site-packages"
    if not packages.exists():
        try:
            python = install(directory, ROOT / "constraints" / "with-litellm.txt", version)
        except subprocess.CalledProcessError:
            return None
        uv = Path(sys.executable).with_name("uv")
        ours = [uv, "pip", "install", "--quiet", "--no-deps", "--editable", ".", "--python", python]
        subprocess.run(ours, cwd=ROOT, check=True)
        return python
    usr, python = CHROOT / "usr", directory / "bin" / "python"
    loader, libraries = next((usr / "lib64").glob("ld-linux-*")), next((usr / "lib").glob("*-linux-gnu"))
    command = [str(loader), "--library-path", str(libraries), str(usr / f"bin/python{version}")]
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(
        f"#!/bin/sh\nexport PYTHONHOME={shlex.quote(str(usr))} "
        f'PYTHONPATH="$PYTHONPATH:"{shlex.quote(str(packages))}\n'
        f'exec {shlex.join(command)} "$@"\n'
    )
    python.chmod(0o755)
    return python


@contextlib.contextmanager
def variables(more: Mapping[str, str]) -> Iterator[None]:
    """Add environment variables to this process for a while."""
    before = dict(os.environ)
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_in(name: str, *arguments: str) -> None:
    """Run a program in an environment and wait for it.

    Raises:
        CalledProcessError: it failed.
    """
    subprocess.run([interpreter(name), *arguments], cwd=ROOT, check=True)
