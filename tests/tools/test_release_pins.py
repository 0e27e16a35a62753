"""Every extra that a user installs has pins by hash. In `make release-check` uv resolves them."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import release, release_pins

ROOT = Path(__file__).parents[2]
PROJECT = release.read_project()
EXTRAS = sorted(PROJECT["optional-dependencies"])
PINS = {
    name: release_pins.read_pins((ROOT / "constraints" / f"{resolution}.txt").read_text(encoding="utf-8"))
    for name, resolution in release_pins.FILES.items()
}


def lacks(name: str, lines: list[str]) -> list[str]:
    """The requirements that no pin with a digest meets."""
    return [
        line
        for line in lines
        for wanted in [Requirement(line)]
        if not any(
            digests and wanted.specifier.contains(version, prereleases=True)
            for version, digests in PINS[name].get(canonicalize_name(wanted.name), {}).items()
        )
    ]


@pytest.mark.parametrize("name", release_pins.LACKING)
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_pinned_or_left_out_for_a_reason(extra: str, name: str) -> None:
    lines = PROJECT["dependencies"] + PROJECT["optional-dependencies"][extra]
    assert bool(lacks(name, lines)) == (extra in release_pins.LACKING[name]), lacks(name, lines)


def test_no_extra_is_left_out_of_all_files() -> None:
    assert not set.intersection(*(set(lacking) for lacking in release_pins.LACKING.values()))
    assert not lacks(release_pins.REQUIREMENTS, PROJECT["dependencies"])


def test_every_pin_has_digests() -> None:
    for pins in PINS.values():
        assert [name for name, versions in pins.items() if not all(versions.values())] == []


def test_the_makefile_resolves_these_extras() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (shared,) = re.findall(r"^EXTRAS := (.*)", makefile, re.MULTILINE)
    for name in release_pins.LACKING:
        (line,) = re.findall(
            rf"lock,{release_pins.FILES[name]},pyproject.toml (.*)\)$", makefile, re.MULTILINE
        )
        line = line.replace("$(EXTRAS)", shared)
        for removed, text in re.findall(r"\$\(subst (--extra \w+),,(.*?)\)", line):
            line = line.replace(f"$(subst {removed},,{text})", text.replace(removed, ""))
        named = re.findall(r"--extra (\w+)", line)
        assert sorted(named) == release_pins.list_extras(PROJECT["optional-dependencies"], name)


def test_the_release_itself_is_pinned_by_its_digests(tmp_path: Path) -> None:
    (tmp_path / release.DISTRIBUTIONS).mkdir()
    for name in ("a.tar.gz", "a.whl"):
        (tmp_path / release.DISTRIBUTIONS / name).write_text(name)
    release_pins.write_pins(tmp_path, "9.9")
    digests = [release.digest(tmp_path / release.DISTRIBUTIONS / name) for name in ("a.tar.gz", "a.whl")]
    for name in release_pins.FILES:
        text = (tmp_path / name).read_text()
        assert release_pins.read_pins(text)[PROJECT["name"]] == {"9.9": 2}
        assert all(f"--hash=sha256:{each}" in text for each in digests)


def test_the_files_are_published_and_audited() -> None:
    workflows = ROOT / ".github" / "workflows"
    published = (workflows / "release.yml").read_text(encoding="utf-8")
    audited = (workflows / "audit.yml").read_text(encoding="utf-8")
    assert all(f" release/{name}" in published for name in release_pins.FILES)
    # What is installed without extras is a part of `extras`.
    assert all(f" {release_pins.FILES[name]}," in audited for name in release_pins.LACKING)
