"""A small bug is tried in a copy, and the page of results says what has found each."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants import (
    RELATED,
    RESULT,
    Copy,
    describe,
    list_late_lines,
    list_scopes,
    make_environment,
    make_page,
    name_definition,
)
from tools.small_bugs import ROOT, draw, find_mutants

MODULE = b"def fits(size):\n    return size < 3\n"
TEST = "from sizes import fits\n\ndef test_fits():\n    assert fits(2)\n    assert not fits(3)\n"


def test_a_bug_is_tried_in_a_copy_and_the_repository_stays(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "sizes.py").write_bytes(MODULE)
    (root / "test_sizes.py").write_text(TEST)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    copy = Copy(tmp_path / "copy", root)
    pytest = [sys.executable, "-m", "pytest", "-q", "--disable-plugin-autoload", "test_sizes.py"]
    (bug,) = [each for each in find_mutants(MODULE, "src/sizes.py") if each.kind == "off by one"][:1]
    copy.write("src/sizes.py", bug.apply(MODULE))
    assert copy.run(pytest) == "test_sizes.py::test_fits"
    # The size of the file and the second may be the same: the date must not be.
    copy.write("src/sizes.py", MODULE)
    assert copy.run(pytest) == ""
    assert (root / "src" / "sizes.py").read_bytes() == MODULE


def test_a_bug_without_a_run_of_its_line_has_the_tests_of_its_function() -> None:
    (bug, *_) = find_mutants(b"class A:\n\n    def f(self, a=0):\n        return a\n")
    scopes = list_scopes(b"class A:\n\n    def f(self, a=0):\n        return a\n", bug)
    assert list(scopes) == [range(3, 4), range(3, 5), range(1, 5)]


def test_a_copy_is_simulated_and_not_the_installed_library(tmp_path: Path) -> None:
    package = tmp_path / "src" / "llm_provider"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('the copy')")
    command = [sys.executable, "-m", "tests.simulation", "0", "1"]
    environment = make_environment(tmp_path)
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr.strip()) == (1, "the copy")


@pytest.mark.parametrize(
    ("code", "line", "name"),
    [
        ("A = {\n    1: 2,\n}\nB = A[1]\n", 2, "A"),
        ("class A(NamedTuple):\n    one: int = 1\n", 2, "A"),
        ("def f(n=1):\n    return n\n", 1, "f"),
        ("if x:\n    y = 1\n", 2, ""),
    ],
)
def test_what_runs_at_the_import_is_found_by_its_name(code: str, line: int, name: str) -> None:
    assert line not in list_late_lines(code.encode())
    assert name_definition(code.encode(), line) == name


def test_every_traced_folder_is_there() -> None:
    assert all((ROOT / "tests" / name).exists() for name in RELATED)


def test_a_reason_stays_when_the_page_is_written_again() -> None:
    bugs = draw(3, 4)
    results = [(bug, "" if number % 2 else "test_a.py::test_b", number) for number, bug in enumerate(bugs)]
    page = make_page(3, 9, results, "")
    assert re.search(r"^Seed 3 at \w{10}: 9 were drawn, 4 tried, and 2 found\.$", page, re.MULTILINE)
    assert page.count("nobody knows why") == 2
    reasoned = page.replace("nobody knows why", "nobody can see the difference")
    assert make_page(3, 9, results, reasoned) == reasoned
    assert all(describe(bug)[1] in page for bug in bugs)


def test_the_page_has_a_reason_for_every_bug_that_lived() -> None:
    page = RESULT.read_text(encoding="utf-8")
    said = re.search(r"^Seed \d+ at \w+: \d+ were drawn, (\d+) tried, and (\d+) found\.$", page, re.MULTILINE)
    assert said is not None
    rows = re.findall(r"^\| .* \| (`.*`|lived: .*) \| \d+ \|$", page, re.MULTILINE)
    lived = [row for row in rows if row.startswith("lived")]
    assert (len(rows), len(rows) - len(lived)) == (int(said[1]), int(said[2]))
    assert all(len(row) > 40 and "nobody knows" not in row for row in lived)
