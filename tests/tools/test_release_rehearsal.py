"""A release goes from the build to the upgrade, on an index of this machine."""

import sys
from pathlib import Path

import pytest

from tools import release, release_rehearsal

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["pyproject.toml", "src/llm_provider/__init__.py"])
def test_only_the_version_changes(name: str) -> None:
    old = (ROOT / name).read_text(encoding="utf-8").splitlines()
    new = release.change_version((ROOT / name).read_text(encoding="utf-8"), "77.7").splitlines()
    changed = [line for before, line in zip(old, new, strict=True) if before != line]
    assert changed in (['version = "77.7"'], ['__version__ = "77.7"'])


def test_the_steps_are_told_in_their_order() -> None:
    names = [step.__name__ for step in release_rehearsal.STEPS]
    assert (names[0], names[-1]) == ("build_two_versions", "continue_the_ledger")
    assert (
        names.index("yank_the_old_version") < names.index("upgrade_by_hash") < names.index("find_the_answers")
    )
    assert all(step.__doc__ for step in release_rehearsal.STEPS)


@pytest.mark.install
@pytest.mark.timeout(900)
def test_a_release_is_published_installed_yanked_and_upgraded() -> None:
    pytest.importorskip("pypiserver", reason="in the environment of `make release-check` alone")
    python = getattr(sys, "_base_executable", sys.executable)
    assert len(list(release_rehearsal.rehearse(python))) == len(release_rehearsal.STEPS)
