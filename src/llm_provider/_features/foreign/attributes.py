"""Attributes that answers of other libraries have, and what to write with this one.

The table is read if an attribute is missing. It has the parameters of other libraries too, for `call` and for
`embed`.
"""

import functools
from collections.abc import Mapping


@functools.cache
def _read_table() -> Mapping[str, Mapping[str, str]]:
    """Class, module or function → name that others have for what it has → what to write."""
    # Only a program that is written for another library needs it.
    import csv
    from pathlib import Path

    tables: dict[str, dict[str, str]] = {}
    text = Path(__file__).with_name("foreign_names.csv").read_text(encoding="utf-8")
    for owners, remedy, names in list(csv.reader(text.splitlines()))[1:]:
        for owner in owners.split():
            tables[owner] = dict.fromkeys(names.split(), remedy) | tables.get(owner, {})
    return tables


def remedies_of(owner: str) -> Mapping[str, str]:
    """What to write, by the names that others have; empty in a process that may open no more files."""
    try:
        return _read_table().get(owner, {})
    except OSError:
        return {}
