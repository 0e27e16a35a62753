"""The table of retirements is what the installed packages say."""

import contextlib
import csv
from datetime import date

from tools.prices import retirements


def test_the_file_says_what_the_installed_packages_say() -> None:
    with retirements.FILE.open() as file:
        _, *rows = map(tuple, csv.reader(file))
    # Another release of a source may know more; `python -m tools.prices.retirements` writes the file.
    assert all(date.fromisoformat(day) for *_, day, _ in rows)
    with contextlib.suppress(FileNotFoundError):  # without litellm
        installed = retirements.read_rows()
        if {row[3] for row in rows} == {row[3] for row in installed}:
            assert rows == installed
