"""Renews the JavaScript in `src/llm_provider/_features/views/page/vendor` from npm: `make components`.

Each package is one file as its authors publish it, with its licence beside it. `components.csv` has the
versions and the digests.
"""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

VENDOR = Path(__file__).parents[1] / "src" / "llm_provider" / "_features" / "views" / "page" / "vendor"
LIST = VENDOR / "components.csv"


def main() -> None:
    with LIST.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    with TemporaryDirectory() as folder:
        for line in lines:
            before = line["version"]
            renew_component(line, Path(folder))
            print(f"{line['name']}: {before} → {line['version']}")
    with LIST.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(lines)


def renew_component(line: dict[str, str], folder: Path) -> None:
    """Write the newest release of a package, and change its line to it."""
    name = line["name"]
    command = [
        "npm",
        "pack",
        "--silent",
        "--pack-destination",
        str(folder),
        name,
    ]  # from the environment's npm
    archive = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603  # a name of ours
    with tarfile.open(folder / archive) as files:
        code, licence, package = (
            _read(files, f"package/{path}") for path in (line["file"], line["licence_file"], "package.json")
        )
    (VENDOR / f"{name}.min.js").write_bytes(code)
    (VENDOR / f"{name}.LICENSE.txt").write_bytes(licence)
    about = json.loads(package)
    line |= {"version": about["version"], "licence": about["license"]}
    line["sha256"] = hashlib.sha256(code).hexdigest()


def _read(files: tarfile.TarFile, path: str) -> bytes:
    member = files.extractfile(path)
    if member is None:
        raise FileNotFoundError(f"the package has no {path}; change its line in {LIST.name}")
    return member.read()


if __name__ == "__main__":
    main()
