"""The golden pairs of all wire formats and tables: what each function makes of what it is given."""

import pytest

from golden import read, subjects


@pytest.mark.parametrize("subject", subjects())
def test_golden_pairs(subject: str) -> None:
    errors = []
    for sentence, pair in read(subject).items():
        try:
            pair.check()
        except AssertionError as error:
            error.add_note(f"{sentence}\n`python tests/golden.py` shows the difference.")
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} pairs differ", errors)
