"""Defects of the past that can be put back: each patch still fits the code, and is in the table."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "mutants"
PATCHES = sorted(FOLDER.glob("*.patch"))
MOST_SEEDS = 1_000


def run_git(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in this checkout, and never in a repository around it."""
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(ROOT.parent), "LC_ALL": "C"}
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def read_correction(patch: Path) -> str:
    """The hash of the correction that a patch takes back."""
    line = re.search(r"^Correction: ([0-9a-f]{10})$", patch.read_text(), re.MULTILINE)
    assert line is not None, f"{patch.name} does not name its correction"
    return line[1]


def read_rows() -> dict[str, tuple[str, str]]:
    """The corrections and the outcomes in the table of the README, by the name of the patch."""
    rows = re.findall(
        r"^\| `([^`]+)` \|[^|]+\| `([^`]+)` \| ([^|]+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE
    )
    return {name: (correction, outcome) for name, correction, outcome in rows}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_patch_fits_the_code(patch: Path) -> None:
    paths = re.findall(r"^\+\+\+ b/(\S+)$", patch.read_text(), re.MULTILINE)
    done = run_git("apply", "--check", "--verbose", str(patch))
    assert done.returncode == 0, done.stderr
    # Git leaves out files that lie elsewhere, and is content.
    assert re.findall(r"^Checking patch (\S+)\.\.\.$", done.stderr, re.MULTILINE) == paths
    assert paths
    assert all(path.startswith("src/llm_provider/") for path in paths)


def test_a_patch_says_what_the_defect_was() -> None:
    for patch in PATCHES:
        text, _, rest = patch.read_text().partition("\n\nCorrection: ")
        assert rest, patch.name
        assert text.endswith("."), patch.name
        assert len(text) > 60, patch.name


def test_the_corrections_are_in_the_history() -> None:
    corrections = {read_correction(patch) for patch in PATCHES}
    commits = run_git("rev-list", "HEAD")
    is_whole = run_git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"
    if commits.returncode == 0 and is_whole:
        known = {commit[:10] for commit in commits.stdout.split()}
        assert corrections <= known, corrections - known


def test_the_table_has_every_patch() -> None:
    rows = read_rows()
    assert {name: correction for name, (correction, _) in rows.items()} == {
        patch.stem: read_correction(patch) for patch in PATCHES
    }
    for name, (_, outcome) in rows.items():
        seed = re.fullmatch(r"seed (\d+)(?: of an earlier generator)?", outcome)
        assert (int(seed[1]) < MOST_SEEDS) if seed else outcome.startswith("not found: "), name
