"""The table of a release tells every check, and what follows from one that fails."""

from pathlib import Path

import pytest

from tools import release_check
from tools.release import ReleaseError


def fail(folder: Path, tag: str) -> str:
    raise ReleaseError("the builds\ndiffer")


def pass_with(detail: str) -> release_check.Check:
    return release_check.Check(detail, lambda folder, tag: f"{detail} of {tag} in {folder}")


def test_each_row_has_a_result_and_the_rest_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    checks = (
        pass_with("notes"),
        release_check.Check("builds", fail, ("notes",)),
        release_check.Check("bill", fail, ("notes", "builds")),
        release_check.Check("vex", fail, ("bill",)),
        pass_with("rest"),
    )
    assert release_check.run_checks(checks, tmp_path, "v1") == ["builds: the builds\ndiffer"]
    assert capsys.readouterr().out.splitlines() == [
        "check   result   detail",
        f"notes   ok       notes of v1 in {tmp_path}",
        "builds  failed   see below",
        "bill    not run  needs: builds",
        "vex     not run  needs: bill",
        f"rest    ok       rest of v1 in {tmp_path}",
        "2 of 5 are ok; nothing is signed here",
    ]


def test_a_check_needs_earlier_ones() -> None:
    names = [check.name for check in release_check.CHECKS]
    assert len(set(names)) == len(names)
    for position, check in enumerate(release_check.CHECKS):
        assert set(check.needs) <= set(names[:position])


def test_the_status_tells_whether_all_passed(tmp_path: Path) -> None:
    bad = release_check.Check("builds", fail)
    for checks, status in (((pass_with("notes"),), 0), ((bad,), "\n\nbuilds: the builds\ndiffer")):
        (tmp_path / "old").touch()
        with pytest.raises(SystemExit) as ended:
            release_check.main(checks, [str(tmp_path), "--tag", "v1"])
        assert ended.value.code == status
        assert list(tmp_path.iterdir()) == []
