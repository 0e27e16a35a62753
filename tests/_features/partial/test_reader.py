"""The JSON of an answer, read piece by piece."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partial_support import any_json, check_partials, cut, deltas_of, sizes, text


@given(st.dictionaries(text, any_json, max_size=4), sizes, st.data())
def test_deltas_are_read_in_any_order(value: Any, sizes: list[int], data: Any) -> None:
    pieces = cut("Look {here}: " + json.dumps(value), sizes)
    form = {"type": "json_object"}
    partials = [(delta.partial, delta.partial_with_text) for delta in deltas_of(form, pieces)]
    order = data.draw(st.lists(st.sampled_from(range(len(pieces))), max_size=8))
    deltas = deltas_of(form, pieces)
    found = [(deltas[index].partial, deltas[index].partial_with_text) for index in order]
    assert found == [partials[index] for index in order]


@given(st.text('{}[]":,\\ 1.-etrufalsn`\n', max_size=60), sizes)
def test_no_text_is_an_error(answer: str, sizes: list[int]) -> None:
    forms: list[Any] = [{"type": "json_object"}, list[int], dict[str, str] | list[str], str]
    for form in forms:
        for delta in check_partials(form, answer, sizes, is_well_formed=False):
            assert delta.partial_with_text == delta.partial_with_text


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"a": 12, "b": -1.5e3}', [None, {}, {"a": 12}, {"a": 12, "b": -1500.0}]),
        ('{"a": -', [None, {}]),
        ('{"a": [[-1, 12', [None, {}, {"a": []}]),
        (r'{"a": "\ud83d\ude00", "b": "x\\"}', [None, {}, {"a": "😀"}, {"a": "😀", "b": "x\\"}]),
        (r'{"a": "\u27', [None, {}]),
        (r'{"a": 1, "b": "\H", "c": 2}', [None, {}, {"a": 1}, {"a": 1, "c": 2}]),
        (r'{"a": 1, "\H": 3, "c": 2}', [None, {}, {"a": 1}]),
        ('{"a": 1] }', [None, {}, {"a": 1}]),
        ('```json\n{"a": 1}}\n```', [None, {}, {"a": 1}]),
        ('{"a": 1, "a": 2}', [None, {}, {"a": 1}, {"a": 2}]),
        ('I {mean} [x]: {"a": "}{"} ok', [None, {}, {"a": "}{"}]),
        ("{} {}", [None, {}]),
        ('[{"a": 1}] {"b": 2}', [None, {}, {"b": 2}]),
        ('{"a": 01}', [None, {}]),
        ('{"a": 1, oops} {"b": 2}', [None, {}, {"a": 1}]),
        ("[1, 2]", [None]),
        ("", []),
    ],
)  # fmt: skip
def test_what_is_shown_of_json(answer: str, expected: list[Any]) -> None:
    values = [delta.partial for delta in deltas_of({"type": "json_object"}, list(answer))]
    assert [value for value, _ in itertools.groupby(values)] == expected


def test_open_texts_are_decoded_as_far_as_they_came() -> None:
    answer = r'{"a": "x\n\u00e9\ud83d\ude00\"z"}'
    texts = [delta.partial_with_text for delta in deltas_of({"type": "json_object"}, list(answer))]
    seen = [value["a"] for value in texts if value and "a" in value]
    assert list(dict.fromkeys(seen)) == ["", "x", "x\n", "x\né", "x\né😀", 'x\né😀"', 'x\né😀"z']


def test_nothing_is_too_deep() -> None:
    for answer in ('{"a":' * 900 + "1" + "}" * 900, '{"a":' + "[" * 50_000):
        last = deltas_of({"type": "json_object"}, cut(answer, [997]))[-1]
        assert isinstance(last.partial, dict)
        assert isinstance(last.partial_with_text, dict)


def test_a_long_list_is_not_copied_for_each_element() -> None:
    numbers = list(range(100_000, 120_000))
    deltas = deltas_of(list[int], cut(json.dumps(numbers), [8]))
    partials = {id(partial): partial for partial in [delta.partial for delta in deltas]}
    assert len(partials) < 5_000
    assert deltas[-1].partial == numbers
    sizes = sorted({len(partial) for partial in partials.values() if partial})
    assert sizes[:1024] == list(range(1, 1025))
    assert all(after - before <= before // 500 for before, after in itertools.pairwise(sizes[1024:]))


def test_a_long_text_is_not_copied_for_each_character() -> None:
    answer = json.dumps({"a": "x" * 50_000})
    deltas = deltas_of({"type": "json_object"}, cut(answer, [1]))
    lengths = [
        len(value["a"]) for value in (delta.partial_with_text for delta in deltas) if value and "a" in value
    ]
    assert sorted(lengths) == lengths
    assert list(range(4096)) == [length for length in dict.fromkeys(lengths) if length < 4096]
    assert len(set(lengths)) < 13_000
    assert lengths[-1] == 50_000
