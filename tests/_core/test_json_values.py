"""Python values as JSON-ready ones."""

import enum
import json
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy
import pytest
from pydantic import BaseModel

from llm_provider import Usage
from llm_provider._core.json_values import json_value, plain_number


class City(BaseModel):
    name: str
    founded: date


class Level(enum.StrEnum):
    LOW = "low"


class Size(enum.IntEnum):
    SMALL = 1


@dataclass
class Point:
    x: Decimal


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ({"a": (1, 2.5, True)}, {"a": [1, 2.5, True]}),
        (MappingProxyType({1: frozenset({"x"})}), {"1": ["x"]}),
        (Decimal("0.00000006"), "0.00000006"),
        (Decimal("NaN"), "NaN"),
        ("ü".encode(), "ü"),
        (b"\xff\x00", "/wA="),
        (Level.LOW, "low"),
        (Size.SMALL, 1),
        (Point(Decimal("1.50")), {"x": "1.50"}),
        (City(name="Bern", founded=date(1191, 1, 1)), {"name": "Bern", "founded": "1191-01-01"}),
        (numpy.int64(3), 3),
        (numpy.float32(0.5), 0.5),
        (numpy.float64(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.str_("text"), "text"),
        (numpy.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (date(2026, 11, 22), "2026-11-22"),
        (Usage, "<class 'llm_provider._core.types.usage.Usage'>"),
    ],
)
def test_every_value_gets_a_form_that_json_has(value: Any, expected: Any) -> None:
    form = json_value(value)
    assert form == expected
    assert type(form) is type(expected)
    assert json.loads(json.dumps(form)) == expected


def test_a_missing_value_of_pandas_is_none() -> None:
    pandas = pytest.importorskip("pandas")
    assert json_value([pandas.NA, pandas.NaT]) == [None, None]


def test_plain_number() -> None:
    longest = numpy.longdouble(2)
    for value, plain in (
        (numpy.int8(3), 3),
        (numpy.float32(0.1), 0.1),
        (numpy.float64(0.1), 0.1),
        (longest, 2.0),
    ):
        form = plain_number(value)
        assert (type(form), form) == (type(plain), plain)
    for wrong in (True, numpy.bool_(True), "1", None, 1j, numpy.array(1), [1]):
        assert plain_number(wrong) is None
