"""The JSON of an answer, read piece by piece."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from partial_support import any_json, check_partials, cut, deltas_of, sizes, text


@given(st.dictionaries(text, any_json, max_size=4), sizes, st.data())
def test_deltas_are_read_in_any_order(value: Any, sizes: list[int], data: Any) -> None:
    pieces = cut("Look {here}: " + json.dumps(value), sizes)
    form = {"type": "json_object"}
    partials = [delta.partial for delta in deltas_of(form, pieces)]
    order = data.draw(st.lists(st.sampled_from(range(len(pieces))), max_size=8))
    deltas = deltas_of(form, pieces)
    assert [deltas[index].partial for index in order] == [partials[index] for index in order]


@given(st.text('{}[]":,\\ 1.-etrufalsn`\n', max_size=60), sizes)
def test_no_text_is_an_error(answer: str, sizes: list[int]) -> None:
    for form in ({"type": "json_object"}, list[int], dict[str, str] | list[str], str):
        for delta in check_partials(form, answer, sizes):
            assert delta.partial_with_text == delta.partial_with_text
