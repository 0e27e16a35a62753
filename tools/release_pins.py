"""Writes what a user can install a release by, with the digest of every file of every package.

    pip install --require-hashes -r requirements.txt                                # no extra, any pip
    pip install --require-hashes -c constraints.txt 'llm-provider-call[mcp]==0.1.0' # pip 26.2, or uv pip

Older releases of pip read no digests of constraints. `make lock` resolves the pins into `constraints/`.
Two extras that no environment can have together need two files.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.release import DISTRIBUTIONS, PROGRAMS, ReleaseError, digest, read_committed, read_project, run

REQUIREMENTS = "requirements.txt"
FILES = {
    REQUIREMENTS: "no-extras",
    "constraints.txt": "extras",
    "constraints-inspect.txt": "extras-inspect",
}
"""The name of the file in the release → the file of `constraints/`."""

LACKING = {
    "constraints.txt": {
        "inspect": "inspect-ai needs aiobotocore, which needs an older botocore than the extra bedrock"
    },
    "constraints-inspect.txt": {
        "bedrock": "it needs a newer botocore than aiobotocore, which inspect-ai needs"
    },
}
"""The extras that a file leaves out, with the reason."""


def write_pins(folder: Path, version: str) -> None:
    """Write all files beside the distributions of a version, whose digests they have."""
    hashes = [f"--hash=sha256:{digest(path)}" for path in sorted((folder / DISTRIBUTIONS).iterdir())]
    own = " \\\n    ".join([f"{read_project()['name']}=={version}", *hashes])
    for name, resolution in FILES.items():
        pins = read_committed(f"constraints/{resolution}.txt")
        (folder / name).write_text(f"{pins}{own}\n", encoding="utf-8")


def list_extras(extras: Mapping[str, object], name: str) -> list[str]:
    """The extras that a file has pins for."""
    return sorted(set(extras) - set(LACKING[name]))


def read_pins(text: str) -> dict[str, dict[str, int]]:
    r"""The name of each pinned package → its versions, each with the number of its digests.

    >>> read_pins("a==1 ; python_version < '3' \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\na==2 \\\n")
    {'a': {'1': 2, '2': 0}}
    """
    pins: dict[str, dict[str, int]] = {}
    for name, version, rest in re.findall(r"^([\w.-]+)==([^\s;\\]+)(.*(?:\n .*)*)", text, re.MULTILINE):
        pins.setdefault(re.sub(r"[-_.]+", "-", name).lower(), {})[version] = rest.count("--hash=sha256:")
    return pins


def check_pins(folder: Path) -> str:
    """Resolve each extra by the hashes of its file alone, as uv does it for a user.

    Raises:
        ReleaseError: a package that an extra needs has no pin, or no hash.
    """
    project, resolved = read_project(), 0
    with tempfile.TemporaryDirectory() as parent:
        python = Path(parent) / "environment" / "bin" / "python"
        run([PROGRAMS / "uv", "venv", "--quiet", python.parents[1]])
        command = [PROGRAMS / "uv", "pip", "install", "--dry-run", "--quiet", "--python", python]
        command += ["--require-hashes", "--find-links", folder / DISTRIBUTIONS]
        run([*command, "--requirements", folder / REQUIREMENTS])
        for name in LACKING:
            for extra in list_extras(project["optional-dependencies"], name):
                wanted = f"{project['name']}[{extra}]=={project['version']}"
                run([*command, "--constraints", folder / name, wanted])
                resolved += 1
    if missing := set.intersection(*(set(lacking) for lacking in LACKING.values())):
        raise ReleaseError(f"no file has the extras {', '.join(sorted(missing))}")
    return f"{resolved} resolutions by hash of {len(project['optional-dependencies'])} extras"
