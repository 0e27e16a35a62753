"""The label of an input in the index of its data frame."""

from __future__ import annotations

import json

import pytest

from llm_provider._json_values import json_value
from llm_provider._types.row_label import RowLabel


@pytest.mark.parametrize("label", [RowLabel("a"), RowLabel(7, ("id",)), RowLabel(("a", 1), ("set", None))])
def test_comes_back_from_json(label: RowLabel) -> None:
    assert RowLabel.from_dict(json.loads(json.dumps(json_value(label)))) == label
