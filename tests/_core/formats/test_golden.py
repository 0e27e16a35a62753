"""The golden pairs of all wire formats and tables: what each function makes of what it is given."""

import json
import re

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


def test_no_message_repeats_a_key() -> None:
    """Commands, settings, hosts and addresses that hold a key or a password."""
    key = re.compile("sk-(?:canary|a|live|x)|secret|s3cret")
    given, repeated = 0, []
    for subject in (
        "_features/cli/main",
        "_core/client/client",
        "_core/requests/base_url",
        "_features/hosts/host",
    ):
        for sentence, pair in read(subject).items():
            given += bool(key.search(json.dumps(pair.inputs)))
            repeated += [sentence] if key.search(json.dumps(pair.expected)) else []
    assert given > 20
    assert repeated == []
