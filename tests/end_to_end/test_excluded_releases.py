"""No pin and no requirement of this repository can install a release of constraints/excluded.csv."""

import csv
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINS = sorted([*(ROOT / "constraints").rglob("*.txt"), *(ROOT / "benchmarks" / "requirements").glob("*.txt")])


def excluded() -> list[tuple[str, SpecifierSet]]:
    with (ROOT / "constraints" / "excluded.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["reason"] and row["source"].startswith("https://") for row in rows)
    return [(canonicalize_name(row["name"]), SpecifierSet(row["versions"])) for row in rows]


def pinned(text: str) -> Iterator[tuple[str, str]]:
    """Name and version of every pin of a requirements file with hashes."""
    for name, version in re.findall(r"^([\w.-]+)(?:\[[\w,.-]*\])?==([^\s;\\]+)", text, re.MULTILINE):
        yield canonicalize_name(name), version


def required() -> list[Requirement]:
    """What pyproject.toml and the sources of the peers' environments ask for."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    lines = [*document["build-system"]["requires"], *project["dependencies"]]
    for group in (*project["optional-dependencies"].values(), *document["dependency-groups"].values()):
        lines += group
    for source in (*ROOT.glob("benchmarks/requirements/*.in"), *ROOT.glob("constraints/witnesses/*.in")):
        text = source.read_text(encoding="utf-8")
        lines += [line for line in map(str.strip, text.splitlines()) if line and line[0].isalnum()]
    return [Requirement(line) for line in lines]


def allows(requirement: Requirement, versions: SpecifierSet) -> bool:
    """Whether a requirement allows one of the versions that either side names, or has it as its lowest."""
    named = [specifier.version for specifier in (*versions, *requirement.specifier)]
    lowest = [] if any(version.operator in (">=", "==", "~=") for version in requirement.specifier) else ["0"]
    return any(
        versions.contains(version, prereleases=True)
        and requirement.specifier.contains(version, prereleases=True)
        for version in (*named, *lowest)
    )


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.stem)
def test_no_pin_is_an_excluded_release(path: Path) -> None:
    pins = set(pinned(path.read_text(encoding="utf-8")))
    assert pins
    for name, versions in excluded():
        assert not [pin for pin in pins if pin[0] == name and versions.contains(pin[1], prereleases=True)]


def test_no_requirement_allows_an_excluded_release() -> None:
    requirements = required()
    assert {"litellm", "tqdm", "certifi"} <= {requirement.name for requirement in requirements}
    for name, versions in excluded():
        named = [each for each in requirements if canonicalize_name(each.name) == name]
        assert not [str(each) for each in named if allows(each, versions)]
