"""Builds a release into a folder and checks it, as one table: `make release-check`, here and on the tag.

The folder then has what `tools.release` describes. Status 1 means that a check failed. What needs its
result is not run, and all else is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.release import (
    BILL,
    DISTRIBUTIONS,
    NOTES,
    PROGRAMS,
    ROOT,
    STATEMENT,
    VEX,
    ReleaseError,
    build_distributions,
    check_release,
    check_wheel,
    digest,
    find_notes,
    list_files,
    make_statement,
    make_vex,
    read_committed,
    read_project,
    run,
    write_bill,
)
from tools.release_pins import check_pins, write_pins

INSTALLS = "tests/end_to_end/test_install.py"
EXAMPLE = f"{INSTALLS}::test_the_first_example_runs_after_the_first_line"


class Check(NamedTuple):
    """A row: its name, what does it (given the folder and the tag), and the rows that it needs."""

    name: str
    run: Callable[[Path, str], str]
    needs: tuple[str, ...] = ()


def main(checks: tuple[Check, ...], words: list[str] | None = None) -> None:
    """Read the command line, or `words`, and print the table. Failures follow in full."""
    parser = argparse.ArgumentParser(prog="python -m tools.release_check", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the release goes; it is emptied first")
    parser.add_argument("--tag", default="", help="the tag that is released, such as v0.1.0")
    arguments = parser.parse_args(words)
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    problems = run_checks(checks, arguments.folder.resolve(), arguments.tag)
    sys.exit("\n\n".join(["", *problems]) if problems else 0)


def run_checks(checks: tuple[Check, ...], folder: Path, tag: str) -> list[str]:
    """Run each check whose needs are met, and print its row. Returns the messages of those that failed."""
    width, passed, problems = max(len(check.name) for check in checks), set[str](), list[str]()
    print(f"{'check':{width}}  result   detail", flush=True)
    for check in checks:
        missing = ", ".join(name for name in check.needs if name not in passed)
        try:
            result, detail = ("not run", f"needs: {missing}") if missing else ("ok", check.run(folder, tag))
        except ReleaseError as error:
            result, detail = "failed", "see below"
            problems.append(f"{check.name}: {error}")
        if result == "ok":
            passed.add(check.name)
        print(f"{check.name:{width}}  {result:7}  {detail}", flush=True)
    print(f"{len(passed)} of {len(checks)} are ok; nothing is signed here")
    return problems


def check_workflow_schema(folder: Path, tag: str) -> str:
    """Compare the workflows with GitHub's schema."""
    paths = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    run([PROGRAMS / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *paths])
    return ", ".join(path.stem for path in paths)


def check_workflow_safety(folder: Path, tag: str) -> str:
    """Look for what is unsafe in the workflows."""
    run([PROGRAMS / "zizmor", "--offline", "--quiet", ".github"])
    return "zizmor finds nothing"


def check_changelog(folder: Path, tag: str) -> str:
    """Compare the tag, the version and the changelog, and write the notes."""
    version = read_project()["version"]
    notes = find_notes(read_committed("CHANGELOG.md"), version, tag)
    (folder / NOTES).write_text(notes, encoding="utf-8")
    return (
        f"{version}, {f'the tag {tag}' if tag else 'without a tag'}, {len(notes.splitlines())} lines of notes"
    )


def check_builds(folder: Path, tag: str) -> str:
    """Build the wheel and the source distribution twice."""
    build_distributions(folder / DISTRIBUTIONS)
    return "two builds are equal, byte for byte"


def check_metadata(folder: Path, tag: str) -> str:
    """Ask twine what the package index will say, and compare the wheel with its record."""
    paths = sorted((folder / DISTRIBUTIONS).iterdir())
    run([PROGRAMS / "twine", "check", "--strict", *paths])
    (wheel,) = (path for path in paths if path.suffix == ".whl")
    check_wheel(wheel, read_project()["version"])
    return ", ".join(f"{path.name} {digest(path)[:12]}" for path in paths)


def check_bill(folder: Path, tag: str) -> str:
    """Write the bill of materials."""
    write_bill(folder)
    bill = json.loads((folder / BILL).read_bytes())
    return f"CycloneDX {bill['specVersion']}, {len(bill['components'])} components with licence and digest"


def check_vulnerabilities(folder: Path, tag: str) -> str:
    """Write the statement on known vulnerabilities."""
    date = run(["git", "log", "-1", "--format=%cI"]).strip()
    vex = make_vex(json.loads((folder / BILL).read_bytes()), date)
    (folder / VEX).write_text(json.dumps(vex, indent=1) + "\n", encoding="utf-8")
    statuses = (f"{each['vulnerability']['name']} {each['status']}" for each in vex["statements"])
    return f"OpenVEX: {', '.join(statuses)}"


def check_constraints(folder: Path, tag: str) -> str:
    """Write the pins by hash, and resolve each extra by them."""
    write_pins(folder, read_project()["version"])
    return check_pins(folder)


def check_statement(folder: Path, tag: str) -> str:
    """Write the statement about all files, and compare the files with each other."""
    statement = make_statement(folder, run(["git", "rev-parse", "HEAD"]).strip(), tag)
    (folder / STATEMENT).write_text(json.dumps(statement, indent=1) + "\n", encoding="utf-8")
    check_release(folder)
    return f"in-toto, {len(list_files(folder))} files"


def check_install(version: str) -> Callable[[Path, str], str]:
    """Install into an empty environment of a Python by the README's lines, and run its first example."""
    return lambda folder, tag: run_tests(folder, f"{EXAMPLE}[{version}]")


def check_fork(folder: Path, tag: str) -> str:
    """Run the other tests of installs: the cache with the fork of its storage."""
    return run_tests(folder, INSTALLS, "--deselect", EXAMPLE)


def run_tests(folder: Path, *options: str) -> str:
    """The summary of tests of installs with the distributions of the release."""
    command = [sys.executable, "-m", "pytest", "-m", "install", "--quiet", "--no-header", *options]
    output = run(command, LLM_PROVIDER_DISTRIBUTIONS=str(folder / DISTRIBUTIONS))
    return re.sub(r" in [\d.]+s.*", "", output.strip().splitlines()[-1])


def check_rehearsal(folder: Path, tag: str) -> str:
    """Rehearse the release on an index of this machine. `make release-rehearsal` shows each step."""
    output = run([sys.executable, "-m", "tools.release_rehearsal"])
    return f"{output.count('  ok  ')} steps: publish, install, yank, upgrade"


BUILDS = ("the wheel is reproducible",)
CHECKS = (
    Check("workflows have GitHub's form", check_workflow_schema),
    Check("workflows are safe", check_workflow_safety),
    Check("changelog, version and tag agree", check_changelog),
    Check(BUILDS[0], check_builds),
    Check("the index takes the metadata", check_metadata, BUILDS),
    Check("bill of materials", check_bill, BUILDS),
    Check("statement on vulnerabilities", check_vulnerabilities, ("bill of materials",)),
    Check("constraints by hash", check_constraints, BUILDS),
    Check(
        "statement about all files",
        check_statement,
        ("changelog, version and tag agree", "statement on vulnerabilities", "constraints by hash"),
    ),
    *(
        Check(f"README's lines on Python {version}", check_install(version), BUILDS)
        for version in ("3.11", "3.12", "3.13")
    ),
    Check("the cache with diskcache's fork", check_fork),
    Check("rehearsal", check_rehearsal),
)


if __name__ == "__main__":
    main(CHECKS)
