"""Runs the tests on Pythons that this machine does not have, inside a Debian sid that debootstrap installs.

    python -m tools.chroot 3.14 3.15
    python -m tools.chroot 3.15 -- tests/_core -x

The folder `.chroot` then holds the system, and for each Python an environment of
`constraints/with-litellm.txt`, from wheels alone. It needs root and debootstrap. `make test-matrix`
runs this for the versions that are missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SYSTEM = ROOT / ".chroot"
PACKAGES = "python3.14,python3.14-venv,python3.15,python3.15-venv,ca-certificates,git,make"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
SUITE = ("--numprocesses", "4", "--dist", "worksteal")


def main(arguments: Sequence[str]) -> None:
    """Test on the versions before `--`, with the options of pytest after it."""
    versions, options = list(arguments), list(SUITE)
    if "--" in versions:
        place = versions.index("--")
        versions, options = versions[:place], versions[place + 1 :]
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        sys.exit("a chroot needs root and debootstrap: apt-get install debootstrap")
    install_system()
    with mount("proc"), mount("dev"):
        failed = [version for version in versions if not test(version, options)]
    if failed:
        sys.exit(f"failed on Python {', '.join(failed)}")


def install_system() -> None:
    """Install Debian sid once, with the resolver and the certificates of this machine."""
    if not (SYSTEM / "usr/bin/python3.15").exists():
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "sid", str(SYSTEM)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  # a command of ours
    for name in ("etc/resolv.conf", CERTIFICATES):
        shutil.copyfile(Path("/", name), SYSTEM / name)


@contextlib.contextmanager
def mount(name: str) -> Iterator[None]:
    """Show a folder of this machine inside the chroot."""
    place = str(SYSTEM / name)
    subprocess.run(["mount", "--rbind", f"/{name}", place], check=True)  # noqa: S603, S607
    subprocess.run(["mount", "--make-rslave", place], check=True)  # noqa: S603, S607
    try:
        yield
    finally:
        subprocess.run(["umount", "--recursive", "--lazy", place], check=True)  # noqa: S603, S607


def test(version: str, options: Sequence[str]) -> bool:
    """Clone the checkout, with what is not committed, and run pytest there. Returns whether it passed."""
    project, python = SYSTEM / "src", f"/venv-{version}/bin/python"
    shutil.rmtree(project, ignore_errors=True)
    # Some tests read the history, and git refuses a folder of another user.
    git = ["git", "-C", str(project), "-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(project)], check=True)  # noqa: S603, S607
    listed = ["git", "ls-files", "-z", "--modified", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, project / name)
        else:
            (project / name).unlink()
    subprocess.run([*git, "add", "--all"], check=True)  # noqa: S603
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "Changes"], check=True)  # noqa: S603
    pip = f"{python} -m pip install --quiet --no-deps"
    steps = (
        f"test -x {python} || python{version} -m venv /venv-{version}",
        f"{pip} --require-hashes --only-binary :all: -r constraints/with-litellm.txt",
        f"{pip} --no-build-isolation --editable .",
        f"{python} -m pytest {' '.join(options)}",
    )
    print(f"== full suite on python {version}", flush=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    environment |= dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), f"/{CERTIFICATES}")
    script = "cd /src && " + " && ".join(steps)
    command = [shutil.which("chroot") or "/usr/sbin/chroot", str(SYSTEM), "sh", "-c", script]
    return subprocess.run(command, env=environment, check=False).returncode == 0  # noqa: S603


if __name__ == "__main__":
    main(sys.argv[1:])
