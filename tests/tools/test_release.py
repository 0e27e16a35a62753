"""A release is refused when its files do not fit each other. `make release-check` builds one."""

import json
import re
import shutil
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tools import release

ROOT = Path(__file__).parents[2]
CHANGELOG = (
    "# Changelog\n\n## [0.2.0] - 2027-01-05\n\n### Added\n\n- New.\n\n## [0.1.0] - 2026-12-01\n\n- Old.\n"
)


@pytest.mark.parametrize(
    ("changelog", "version", "tag", "message"),
    [
        (CHANGELOG, "0.3.0", "", "the version is 0.3.0"),
        (CHANGELOG, "0.2.0", "0.2.0", "must be v0.2.0"),
        (CHANGELOG.replace("2027-01-05", "unreleased"), "0.2.0", "v0.2.0", "no date for 0.2.0"),
        (CHANGELOG.replace("- New.", ""), "0.2.0", "", "has no entry"),
        ("# Changelog", "0.2.0", "", "the version is 0.2.0"),
    ],
)
def test_what_does_not_fit_is_not_released(changelog: str, version: str, tag: str, message: str) -> None:
    with pytest.raises(release.ReleaseError, match=message):
        release.find_notes(changelog, version, tag)


def test_the_notes_are_the_section_of_the_version() -> None:
    assert release.find_notes(CHANGELOG, "0.2.0", "v0.2.0") == "### Added\n\n- New.\n"
    version = release.read_project()["version"]
    assert release.find_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version, "")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    release.build_distributions(folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.long
def test_two_builds_are_equal_and_have_every_file(wheel: Path) -> None:
    version = release.read_project()["version"]
    assert release.check_wheel(wheel, version) == "llm-provider-call"
    package = ROOT / "src" / "llm_provider"
    tracked = release.run(["git", "ls-tree", "-r", "--name-only", "HEAD", "src/llm_provider"]).splitlines()
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {str((ROOT / each).relative_to(package.parent)) for each in tracked} <= names
    assert {"llm_provider/prices.csv", "llm_provider/model_limits.csv", "llm_provider/py.typed"} <= names


@pytest.mark.long
def test_a_changed_wheel_is_named(wheel: Path, tmp_path: Path) -> None:
    changed = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(changed, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            copy.writestr(name, data + b"#" if name == "llm_provider/_core/words.py" else data)
    with pytest.raises(release.ReleaseError, match=r"_words\.py"):
        release.check_wheel(changed, release.read_project()["version"])
    with pytest.raises(release.ReleaseError, match="and not 9"):
        release.check_wheel(wheel, "9")


@pytest.mark.long
def test_a_changed_file_is_named(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / release.DISTRIBUTIONS).mkdir()
    shutil.copy(wheel, tmp_path / release.DISTRIBUTIONS)
    version = release.read_project()["version"]
    described = {"name": "llm-provider-call", "version": version, "licenses": ["MIT"], "purl": "pkg:pypi/x"}
    described |= {"hashes": [{"content": release.digest(wheel)}]}
    bill: dict[str, Any] = {"metadata": {"component": described}, "components": []}
    # in-toto's package, which reads the form of the statement, is only where releases are made.
    monkeypatch.setattr(release, "check_statement", lambda statement: None)
    other = {"metadata": {"component": {**described, "version": "0"}}}
    poor = {"components": [{**described, "name": "poor", "licenses": []}]}
    for change, message in (({}, None), (other, "is that of"), (poor, "no version, licence, .* of poor")):
        (tmp_path / release.BILL).write_text(json.dumps(bill | change))
        statement = release.make_statement(tmp_path, "0" * 40, "")
        (tmp_path / release.STATEMENT).write_text(json.dumps(statement))
        with pytest.raises(release.ReleaseError, match=message) if message else nullcontext():
            release.check_release(tmp_path)
    (tmp_path / release.BILL).write_text("{}")
    with pytest.raises(release.ReleaseError, match=f"not tell of these files as they are: {release.BILL}"):
        release.check_release(tmp_path)


def test_the_workflow_runs_what_is_checked_here() -> None:
    lines = re.findall(
        r"run: (.*)", (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    )
    assert (lines[0], len(lines)) == ("make release-check", 2)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_yaml_with_steps(path: Path) -> None:
    """`make release-check` asks GitHub's schema too."""
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    assert all(isinstance(step.get("run", ""), str) for job in jobs for step in job["steps"])


def describe(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TEXT = {"type": "string", "minLength": 1}
COMPONENT = {"@id": {**TEXT, "format": "uri"}}
OPENVEX = describe(
    ["@context", "@id", "author", "timestamp", "version", "statements"],
    **{"@context": {"const": "https://openvex.dev/ns/v0.2.0"}, "@id": {**TEXT, "format": "uri"}},
    author=TEXT,
    timestamp={**TEXT, "format": "date-time"},
    version={"type": "integer", "minimum": 1},
    statements={
        "type": "array",
        "minItems": 1,
        "items": describe(
            # One that says "not affected" has a justification or an impact statement, and not both.
            ["vulnerability", "status", "products", "justification"],
            vulnerability=describe(["name"], name=TEXT, aliases={"type": "array", "items": TEXT}),
            products={
                "type": "array",
                "minItems": 1,
                "items": describe(
                    ["@id"],
                    subcomponents={"type": "array", "items": describe(["@id"], **COMPONENT)},
                    **COMPONENT,
                ),
            },
            status={"const": "not_affected"},
            status_notes=TEXT,
            justification={"const": "vulnerable_code_not_in_execute_path"},
        ),
    },
)
"""What the JSON schema of OpenVEX 0.2.0 asks of documents whose statements say "not affected"."""


def test_the_statement_on_vulnerabilities_is_one_of_openvex() -> None:
    described = {"name": "llm-provider-call", "version": "0.1.0", "purl": "pkg:pypi/llm-provider-call@0.1.0"}
    found = {"name": "diskcache", "purl": "pkg:pypi/diskcache@5.6.3"}
    bill = {"metadata": {"component": described}, "components": [found]}
    vex = release.make_vex(bill, release.run(["git", "log", "-1", "--format=%cI"]).strip())
    jsonschema_rs.validator_for(OPENVEX, validate_formats=True).validate(vex)
    assert vex["@id"].endswith(f"/v0.1.0/{release.VEX}")
    products = [statement["products"] for statement in vex["statements"]]
    assert products == [[{"@id": described["purl"], "subcomponents": [{"@id": found["purl"]}]}]]
    for broken in ({"timestamp": "today"}, {"statements": []}, {"@context": "https://openvex.dev/ns"}):
        with pytest.raises(jsonschema_rs.ValidationError):
            jsonschema_rs.validator_for(OPENVEX, validate_formats=True).validate(vex | broken)


def test_what_it_names_exists_and_is_what_the_audit_ignores_and_the_page_tells() -> None:
    workflows = ROOT / ".github" / "workflows"
    audit = (workflows / "audit.yml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert set(re.findall(r"--ignore-vuln (\S+)", audit)) == {name for name, _, _ in release.NOT_AFFECTED}
    assert f"release/{release.VEX}" in (workflows / "release.yml").read_text(encoding="utf-8")
    for (name, alias, _), (_, tests) in release.NOT_AFFECTED.items():
        assert name in page
        assert alias in page
        for path, _, test in (each.partition("::") for each in tests):
            assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8")
