"""`TokenCount` is a number that knows how it was found."""

import copy
import json
import pickle

from llm_provider import TokenCount


def test_it_is_an_int() -> None:
    count = TokenCount(12, method="provider")
    assert (count, count + 1, count > 11, f"{count:>4}", str(count)) == (12, 13, True, "  12", "12")
    assert (count.exact, count.low, count.high) == (True, 12, 12)
    assert json.dumps({"tokens": count}) == '{"tokens": 12}'
    assert sum([count, count]) == 24


def test_an_estimate_has_bounds_and_keeps_them() -> None:
    count = TokenCount(12, method="estimate", low=9, high=16)
    assert not count.exact
    assert repr(count) == "TokenCount(12, method='estimate', low=9, high=16)"
    for other in (pickle.loads(pickle.dumps(count)), copy.copy(count), copy.deepcopy(count)):
        assert (other, other.method, other.low, other.high) == (12, "estimate", 9, 16)
