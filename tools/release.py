"""Builds the parts of a release, and checks them: `tools.release_check` is the table of all of them.

The folder has `distributions/` with the wheel and the source distribution. Beside it are the bill of
materials (CycloneDX), what known vulnerabilities in it mean (OpenVEX), the notes of CHANGELOG.md, pins by
hash (`tools.release_pins`), and a statement (in-toto) that names each file with its digest. Nothing is
signed here: the workflow publishes with attestations, which the package index verifies.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.components import LIST

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(sys.executable).parent
DISTRIBUTIONS = "distributions"
BILL, NOTES, STATEMENT = "bill-of-materials.cdx.json", "notes.md", "statement.intoto.json"
VEX = "vulnerabilities.openvex.json"
PROVENANCE = "https://slsa.dev/provenance/v1"

NOT_AFFECTED = {
    ("CVE-2025-69872", "GHSA-w8v5-vhqr-4h9v", "diskcache"): (
        "diskcache only creates empty databases here. Rows of raw bytes are read, by SQL of this package",
        (
            "tests/end_to_end/test_security.py::test_no_way_to_read_the_cache_unpickles",
            "tests/_core/store/test_entry.py::test_rows_of_other_kinds_are_neither_read_nor_rescued",
            "tests/_core/store/test_row_format.py::test_the_disk_takes_nothing_but_bytes",
        ),
    ),
}
"""A vulnerability, its other name and its package → why its code is never run here, and the tests that hold
it. `.github/workflows/audit.yml` ignores the same ones."""


class ReleaseError(Exception):
    """The tree cannot be released, or a file of a release is not what it must be."""


def read_committed(name: str) -> str:
    """The text of a file in the last commit, whatever the working tree has."""
    return run(["git", "show", f"HEAD:{name}"])


def read_project() -> dict[str, Any]:
    """The table `project` of pyproject.toml in the last commit."""
    project: dict[str, Any] = tomllib.loads(read_committed("pyproject.toml"))["project"]
    return project


def find_notes(changelog: str, version: str, tag: str) -> str:
    r"""The section of the changelog about a version, without its heading.

    Raises:
        ReleaseError: the first section is about another version, or has no entry. Or there is a tag, and it
            is not that of the version, or the section has no date.

    >>> find_notes("\n## [0.2.0] - 2027-01-05\n\n- New.\n\n## [0.1.0] - 2026-12-01\n", "0.2.0", "")
    '- New.\n'
    """
    heading, _, section = changelog.partition("\n## [")[2].partition("\n")
    if not heading.startswith(f"{version}] - "):
        raise ReleaseError(f"the first section of CHANGELOG.md is [{heading}, and the version is {version}")
    if tag and tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}, and the version is {version}: the tag must be v{version}")
    if tag and not re.search(r" - \d{4}-\d\d-\d\d$", heading):
        raise ReleaseError(f"CHANGELOG.md has no date for {version}: write '## [{version}] - YYYY-MM-DD'")
    notes = section.partition("\n## [")[0].strip()
    if not re.search(r"^- \S", notes, re.MULTILINE):
        raise ReleaseError(f"the section of CHANGELOG.md about {version} has no entry: write what is new")
    return notes + "\n"


def build_distributions(folder: Path) -> None:
    """Build the wheel and the source distribution of the last commit, twice, in two folders.

    The first wheel is made from the tree, the second one from the source distribution.

    Raises:
        ReleaseError: the bytes of two builds differ.
    """
    with tempfile.TemporaryDirectory() as parent:
        builds = []
        for number, kinds in enumerate((("--wheel", "--sdist"), ())):
            tree, built = Path(parent) / f"tree-{number}", Path(parent) / f"built-{number}"
            unpack_commit(tree)
            build_tree(tree, built, *kinds)
            builds.append({path.name: path.read_bytes() for path in sorted(built.iterdir())})
        first, second = builds
        if first != second:
            names = sorted({name for name in {*first, *second} if first.get(name) != second.get(name)})
            raise ReleaseError(f"two builds of the same commit differ: {', '.join(names)}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in first.items():
        (folder / name).write_bytes(data)


def unpack_commit(tree: Path) -> None:
    """Write the files of the last commit into a new folder."""
    tree.mkdir()
    # Whatever git is told on this machine: both settings change the bytes of what is archived.
    same = ["-c", "core.autocrlf=false", "-c", "tar.umask=0022"]
    archive = tree.with_suffix(".tar")
    run(["git", *same, "archive", "--output", archive, "HEAD"])
    with tarfile.open(archive) as members:
        members.extractall(tree, filter="data")


def build_tree(tree: Path, folder: Path, *kinds: str) -> None:
    """Build the distributions of a tree, as of the date of the last commit.

    `kinds` are "--wheel" and "--sdist". Without them the wheel is built from the source distribution.
    """
    command = [PROGRAMS / "uv", "build", "--quiet", "--no-build-isolation", "--python", sys.executable]
    date = run(["git", "log", "-1", "--format=%ct"]).strip()
    run([*command, *kinds, "--out-dir", folder, tree], SOURCE_DATE_EPOCH=date)
    (folder / ".gitignore").unlink(missing_ok=True)


def build_version(folder: Path, version: str) -> list[Path]:
    """Build the last commit in a new folder as if it had another version. Returns the distributions."""
    folder.mkdir()
    unpack_commit(folder / "tree")
    for name in ("pyproject.toml", "src/llm_provider/__init__.py"):
        path = folder / "tree" / name
        text = path.read_text(encoding="utf-8")
        path.write_text(change_version(text, version), encoding="utf-8")
    build_tree(folder / "tree", folder / DISTRIBUTIONS, "--wheel", "--sdist")
    return sorted((folder / DISTRIBUTIONS).iterdir())


def change_version(text: str, version: str) -> str:
    r"""The text of pyproject.toml, or of the package's first module, with another version.

    >>> change_version('requires = "1"\nversion = "0.1.0"\n', "0.1.1")
    'requires = "1"\nversion = "0.1.1"\n'
    """
    return re.sub(r'^(version|__version__) = ".*"', rf'\1 = "{version}"', text, count=1, flags=re.MULTILINE)


def write_bill(folder: Path) -> None:
    """Write the bill of materials: what `pip install` of the wheel brings today, and the JavaScript in it.

    Each component has the digest of the file that pip installed, or of the file in the wheel.

    Raises:
        ReleaseError: a package that pip installed is missing, or the bill is not as its schema says.
    """
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    (wheel,) = (folder / DISTRIBUTIONS).glob("*.whl")
    with tempfile.TemporaryDirectory() as parent:
        report, project = Path(parent) / "report.json", Path(parent) / "pyproject.toml"
        project.write_text(read_committed("pyproject.toml"), encoding="utf-8")
        run([sys.executable, "-m", "venv", Path(parent) / "environment"])
        python = Path(parent) / "environment" / "bin" / "python"
        run([python, "-m", "pip", "install", "--quiet", "--report", report, wheel])
        run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools"])
        options = ["--output-reproducible", "--mc-type", "library", "--pyproject", project]
        bill = json.loads(run([PROGRAMS / "cyclonedx-py", "environment", *options, python]))
        installed = json.loads(report.read_bytes())["install"]
    digests = {
        each["metadata"]["name"]: each["download_info"]["archive_info"]["hashes"]["sha256"]
        for each in installed
    }
    described = bill["metadata"]["component"]
    described["purl"] = f"pkg:pypi/{described['name']}@{described['version']}"
    for component in [described, *bill["components"]]:
        component["hashes"] = [{"alg": "SHA-256", "content": digests.pop(component["name"])}]
    if digests:
        raise ReleaseError(f"{BILL} lacks packages that pip installed: {', '.join(sorted(digests))}")
    for line in csv.DictReader(io.StringIO(read_committed(str(LIST.relative_to(ROOT))))):
        reference = f"pkg:npm/{line['name']}@{line['version']}"
        bill["components"].append(
            {"type": "library", "bom-ref": reference, "name": line["name"], "version": line["version"]}
            | {"purl": reference, "licenses": [{"license": {"id": line["licence"]}}]}
            | {"hashes": [{"alg": "SHA-256", "content": line["sha256"]}]}
        )
        bill["dependencies"].append({"ref": reference})
        (own,) = (each for each in bill["dependencies"] if each["ref"] == described["bom-ref"])
        own["dependsOn"].append(reference)
    text = json.dumps(bill, indent=1) + "\n"
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ReleaseError(f"{BILL} is not as its schema says: {error}")
    (folder / BILL).write_text(text, encoding="utf-8")


def make_vex(bill: Mapping[str, Any], date: str) -> dict[str, Any]:
    """What the vulnerabilities of the packages in a bill of materials mean for this one: OpenVEX 0.2.0.

    `date` is that of the commit.
    """
    product = bill["metadata"]["component"]["purl"]
    purls = {each["name"]: each["purl"] for each in bill["components"]}
    return {
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": f"{read_project()['urls']['Repository']}/releases/download/v{product.partition('@')[2]}/{VEX}",
        "author": "The maintainers of llm-provider-call",
        "timestamp": date,
        "version": 1,
        "statements": [
            {
                "vulnerability": {"name": name, "aliases": [alias]},
                "products": [{"@id": product, "subcomponents": [{"@id": purls[package]}]}],
                "status": "not_affected",
                "status_notes": f"{reason}. Tests: {', '.join(tests)}",
                "justification": "vulnerable_code_not_in_execute_path",
            }
            for (name, alias, package), (reason, tests) in NOT_AFFECTED.items()
        ],
    }


def make_statement(folder: Path, commit: str, tag: str) -> dict[str, Any]:
    """The statement about the files of a release: in-toto's form, with SLSA's provenance as its predicate."""
    project = read_project()
    source = f"git+{project['urls']['Repository']}"
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.relative_to(folder).as_posix(), "digest": {"sha256": digest(path)}}
            for path in list_files(folder)
        ],
        "predicateType": PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"{project['urls']['Repository']}/blob/main/tools/release.py",
                "externalParameters": {"tag": tag, "version": project["version"]},
                "resolvedDependencies": [{"uri": source, "digest": {"gitCommit": commit}}],
            },
            "runDetails": {"builder": {"id": os.environ.get("GITHUB_WORKFLOW_REF", "local")}},
        },
    }


def check_release(folder: Path) -> None:
    """Check the files of a release against each other.

    Raises:
        ReleaseError: a file is missing, was changed, or says something else than the others.
    """
    statement = json.loads((folder / STATEMENT).read_bytes())
    check_statement(statement)
    subjects = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    files = {path.relative_to(folder).as_posix(): digest(path) for path in list_files(folder)}
    if files != subjects:
        wrong = sorted(name for name in {*files, *subjects} if files.get(name) != subjects.get(name))
        raise ReleaseError(f"the statement does not tell of these files as they are: {', '.join(wrong)}")
    version = statement["predicate"]["buildDefinition"]["externalParameters"]["version"]
    (wheel,) = (folder / DISTRIBUTIONS).glob("*.whl")
    name = check_wheel(wheel, version)
    bill = json.loads((folder / BILL).read_bytes())
    described = bill["metadata"]["component"]
    facts = (described["name"], described["version"], described["hashes"][0]["content"])
    if facts != (name, version, digest(wheel)):
        raise ReleaseError(f"{BILL} is that of {' '.join(facts)}, not {name} {version} {digest(wheel)}")
    parts = [described, *bill["components"]]
    needed = ("version", "licenses", "hashes", "purl")
    poor = [each["name"] for each in parts if not all(map(each.get, needed))]
    if poor:
        raise ReleaseError(f"{BILL} has no version, licence, digest or address of {', '.join(poor)}")


def check_statement(statement: Mapping[str, Any]) -> None:
    """Check the form of a statement with in-toto's own package.

    Raises:
        ReleaseError: it is no statement.
    """
    from google.protobuf.json_format import ParseDict, ParseError
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    try:
        Statement.copy_from_pb(ParseDict(dict(statement), Message())).validate()
    except (ParseError, ValueError) as error:
        raise ReleaseError(f"{STATEMENT} is no statement of in-toto: {error}") from error


def check_wheel(wheel: Path, version: str) -> str:
    """Check each file of a wheel against its record, and its version. Returns the name of the distribution.

    Raises:
        ReleaseError: a file is not in the record, has another digest, or is missing.
    """
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        rows = {row[0]: row[1] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
        files = {
            name: "sha256="
            + base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).decode().rstrip("=")
            for name in archive.namelist()
            if name != record
        }
        metadata = archive.read(record.replace("RECORD", "METADATA")).decode()
    rows.pop(record, None)
    if rows != files:
        wrong = sorted(name for name in {*rows, *files} if rows.get(name) != files.get(name))
        raise ReleaseError(f"{wheel.name}: the record does not tell of these files as they are: {wrong}")
    fields = dict(line.partition(": ")[::2] for line in metadata.partition("\n\n")[0].splitlines())
    if fields["Version"] != version:
        raise ReleaseError(f"{wheel.name} has version {fields['Version']}, and not {version}")
    return fields["Name"]


def list_files(folder: Path) -> list[Path]:
    """The files of a release, in order, without the statement about them."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != STATEMENT)


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(command: list[Any], **variables: str) -> str:
    """What a command prints.

    Raises:
        ReleaseError: it failed.
    """
    environment = {**os.environ, **variables}
    done = subprocess.run(  # noqa: S603 - commands of this module
        list(map(str, command)), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
