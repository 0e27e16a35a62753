"""Canonical JSON has one spelling per value, and large JSON in pieces has the same values as in one."""

import contextlib
import gc
import json
import math
import os
import sys
import tracemalloc
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider._core.errors import RequestError
from llm_provider._core.runtime import json_pieces
from llm_provider._core.runtime.json_pieces import (
    JSONLimitError,
    canonical,
    collector_paused,
    find_reader,
    is_plain,
    loads,
    read_plain,
)
from support import RunScript

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


class Strange(float):
    """A float that is not one to a JSON encoder, as NumPy's is."""


@given(VALUES)
def test_what_is_written_reads_back_the_same(value: Any) -> None:
    back = json.loads(canonical(value))
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, (dict, list))
    assert canonical(back) == canonical(value)


@given(st.dictionaries(TEXTS, VALUES, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    shuffled = list(value.items())
    random.shuffle(shuffled)
    assert canonical(dict(shuffled)) == canonical(value)


def test_values_of_different_types_are_different() -> None:
    values = [1, 1.0, "1", True, None, "null", "true", [1], (), {}, ""]
    assert len({canonical(value) for value in values}) == len(values)
    assert canonical((1, 2)) == canonical([1, 2])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.nan, "the value is nan"),
        ({"a": [1, {"b": math.inf}]}, r"a\[1\].b is inf"),
        ({"a": (-math.inf,)}, r"a\[0\] is -inf"),
        ({"a": "x\ud800"}, "a holds a lone surrogate"),
        ({"\udfff": 1}, "a key of the value holds a lone surrogate"),
        ({"a": b"bytes"}, "a is of type bytes"),
        ({"a": {1, 2}}, "a is of type set"),
        ({"a": object()}, "a is of type object"),
        ([None, True, object()], r"\[2\] is of type object"),
        ({"a": math.nan, "b": object()}, "a is nan"),
        ({"a": Strange(0.5)}, "a is of type Strange, not a plain float"),
        ({1: 2}, "the value has a key that is not a str: 1"),
        ({"a": types.MappingProxyType({"b": 1})}, "a is a mappingproxy, not a dict"),
        (nested(300), "nested more than 250 levels deep"),
    ],
)
def test_what_json_cannot_say_is_refused_and_named(value: Any, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        canonical(value)
    # Whether there is a null elsewhere, a long text or many values makes no difference.
    inner = problem.removeprefix("the value").removeprefix("a key of the value")
    for others in ([None, "null"], ["x" * 70_000], ["x" * 70_000, *range(200)]):
        with pytest.raises(RequestError, match=inner):
            canonical([value, *others])


@given(st.recursive(st.floats() | st.text() | st.binary(max_size=2) | st.integers(), st.lists, max_leaves=6))
def test_anything_else_is_our_error(value: Any) -> None:
    with contextlib.suppress(RequestError):
        json.loads(canonical(value))


INTEGERS = st.builds(
    lambda digits, sign: sign * (10**digits - 2), st.integers(1, 25), st.sampled_from([1, -1])
)
NUMBERS = st.recursive(
    INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text("09-", max_size=25),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a0", max_size=22), inner),
    max_leaves=6,
)


@settings(max_examples=300)
@given(
    st.lists(NUMBERS) | st.dictionaries(st.text("ab"), NUMBERS) | INTEGERS,
    st.sampled_from(["args", "input", "content"]),
    st.sampled_from([None, 1, "\t"]),
)
def test_numbers_that_a_model_wrote_are_read_exactly(value: Any, field: str, indent: Any) -> None:
    body = {"id": "id-" + "0" * 24, field: value}
    text = json.dumps(body, indent=indent, separators=None if indent else (",", ":"))
    assert repr(loads(text.encode())) == repr(body)
    assert not is_plain(text.encode()) or repr(read_plain(text.encode())) == repr(body)
    texts = [b"{}", text.encode(), b'["0"]']
    assert repr([*map(find_reader(texts), texts)]) == repr([{}, body, ["0"]])


LARGE_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\[]{},é\0', max_size=4),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text("a[", max_size=2), inner, max_size=4),
    max_leaves=40,
)
WRITTEN = st.builds(
    lambda value, indent, escaped: json.dumps(value, indent=indent, ensure_ascii=escaped).encode(),
    LARGE_VALUES,
    st.sampled_from([None, 1]),
    st.booleans(),
)
TWICE = st.recursive(
    st.sampled_from(["1", '"x"', "[]", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=5).map(lambda parts: f"[{','.join(parts)}]")
        | st.lists(inner, max_size=5).map(
            lambda parts: "{" + ",".join(f'"{"ab"[i % 2]}":{part}' for i, part in enumerate(parts)) + "}"
        )
    ),
    max_leaves=30,
).map(str.encode)
"""Objects that have a name twice."""


@settings(max_examples=200)
@given(
    WRITTEN | TWICE,
    st.integers(1, 30),
    st.integers(1, 40),
    st.integers(0, 60),
    st.sampled_from(b'[]{},"x\\:'),
)
def test_they_read_as_in_one(body: bytes, piece: int, string: int, position: int, damage: int) -> None:
    changed = body[:position] + bytes([damage]) + body[position + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "LARGE", 1)
        patch.setattr(json_pieces, "_SHORT", 0)
        patch.setattr(json_pieces, "_PIECE", piece)
        patch.setattr(json_pieces, "_LONG_STRING", string)
        for text in (body, body[:position], changed):
            try:
                expected = json_pieces._read(text)
            except ValueError:
                with pytest.raises(json.JSONDecodeError):
                    loads(text)
            else:
                # The order of names too.
                assert json.dumps(loads(text)) == json.dumps(expected)


TOO_LARGE = {
    "lists": b"[" * 1_000_001, "closed lists": b"[" * 600_000 + b"]" * 600_000, "objects": b'{"a":' * 201_000,
    "lists in objects": b'[{"a":' * 200_000,
    "one level too deep": b"[" * 201 + b"0," * 500_000 + b"0" + b"]" * 201,
    "deep behind a text": b'["' + b"\\\\" * 600_000 + b'",' + b"[" * 200,
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_too_deep_is_refused_before_anything_is_built(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(JSONLimitError, match="more than 200 levels"):
            loads(TOO_LARGE[name])
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        (b'{"content": "\\ud800"}', True),
        (b"[" * 100 + b"{}," * 100 + b"0" + b"]" * 100, True),
        (b"[" * 201 + b"]" * 201, False),
        (b'{"input": 12345678901234567890123}', False),
        (b'{"content": "%s"}' % (b"x" * json_pieces.LARGE), False),
    ],
)
def test_what_is_plain_is_read_without_a_search(body: bytes, plain: bool) -> None:
    assert is_plain(body) is plain
    if plain:
        assert read_plain(body) == json.loads(body)


def test_the_most_levels_and_brackets_in_texts_are_read() -> None:
    for body in (b"[" * 200 + b"0," * 500_000 + b"0" + b"]" * 200, b'["' + b"[{" * 600_000 + b'"]'):
        assert loads(body) == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [b"[[],{}," + b"0," * 93 + b"0]", b"[ [ ],\n" + b'{"a":1},' * 32 + b"0]", b'["' + b'","' * 98 + b'"]'],
)
def test_values_are_counted(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    def count(value: Any) -> int:
        if isinstance(value, dict):
            return 1 + sum(map(count, value.values()))
        return 1 + sum(map(count, value)) if isinstance(value, list) else 1

    monkeypatch.setattr(json_pieces, "LARGE", 1)
    monkeypatch.setattr(json_pieces, "_SHORT", 0)
    values = count(json.loads(body))
    monkeypatch.setattr(json_pieces, "MOST_VALUES", values)
    assert loads(body) == json.loads(body)
    monkeypatch.setattr(json_pieces, "MOST_VALUES", values - 1)
    with pytest.raises(JSONLimitError, match=f"more than {values - 1} values"):
        loads(body)


# --- the garbage collector rests while a block is open in any thread ---------------------------------------
@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_rests_until_the_last_block_of_any_thread_ends() -> None:
    with ThreadPoolExecutor(1) as other:
        collector_paused.__enter__()
        other.submit(collector_paused.__enter__).result()
        collector_paused.__exit__()
        assert not gc.isenabled()
        other.submit(collector_paused.__exit__).result()
    assert gc.isenabled()


def test_it_is_enabled_after_an_error() -> None:
    with pytest.raises(ValueError, match="bad"), collector_paused:
        raise ValueError("bad")
    assert gc.isenabled()


def test_a_collector_that_the_user_has_disabled_stays_so() -> None:
    gc.disable()
    with collector_paused:
        pass
    assert not gc.isenabled()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_forked_child_collects() -> None:
    with collector_paused:
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert not gc.isenabled()


AFTER = """
    import gc

    from llm_provider._core.runtime.json_pieces import collector_paused

    def read():
        with collector_paused:
            return [[] for _ in range(1_000_000)]

    def count_young(value):
        young = {id(each) for generation in (0, 1) for each in gc.get_objects(generation)}
        return sum(id(each) in young for each in value)

    print(count_young(read()))
    gc.freeze()
    frozen = gc.get_freeze_count()
    read()
    print(frozen - gc.get_freeze_count())
"""


def test_the_next_collection_looks_at_nothing_that_was_read_meanwhile(run_script: RunScript) -> None:
    young, thawed = map(int, run_script(AFTER).stdout.split())
    # What the program has frozen stays so, but for what it has released since.
    assert (young, thawed < 1000) == (0, True)
