"""The inputs of a batch: prompts, columns, templates with rows, and metadata."""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client, RequestError, Response
from llm_provider._core.requests.inputs import batch_inputs, parse_template
from llm_provider._features.cli.main import main
from llm_provider.simulator import Simulator

FRAME = pandas.DataFrame({"question": ["Why?", "How?"], "id": [7, 8]}, index=["a", "b"])
GAP = pandas.DataFrame({"question": ["Why?", None], "id": [7, 8]}, index=["a", "b"])
ROWS = [{"question": "Why?", "id": 7}, {"question": "How?", "id": 8}]
MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


class Polars:
    """As far as it is used, a frame of a library that is not among the test dependencies."""

    columns = ("question", "id")

    def __dataframe__(self) -> None: ...

    def to_dicts(self) -> list[dict[str, Any]]:
        return ROWS


def prompts(inputs: Any, rows: Any = None) -> list[Any]:
    checked: Any = batch_inputs(inputs, rows).prompts
    return list(checked)


class TestPrompts:
    def test_lists_are_taken_as_they_are(self) -> None:
        for inputs in (["a", "b"], ("a", MESSAGES), [], {"a": 1}.keys()):
            assert batch_inputs(inputs).prompts is inputs
        assert prompts(text for text in ("a", "b")) == ["a", "b"]

    @pytest.mark.parametrize(
        "column",
        [
            FRAME["question"],
            pandas.Series(["Why?", "How?"], dtype="string"),
            pandas.Index(["Why?", "How?"]),
            numpy.array(["Why?", "How?"]),
            numpy.array(["Why?", "How?"], dtype=object),
        ],
    )
    def test_columns_are_prompts(self, column: Any) -> None:
        assert batch_inputs(column).prompts == ["Why?", "How?"]
        assert {type(prompt) for prompt in prompts(column)} == {str}
        # A column may hold conversations.
        assert prompts(pandas.Series([MESSAGES, "Hi"])) == [MESSAGES, "Hi"]

    @pytest.mark.parametrize(
        ("column", "said"),
        [
            (GAP["question"], r"inputs\[1\] \(index 'b'\) is missing \(nan\).*dropna"),
            (pandas.Series(["a", None], dtype=object), r"inputs\[1\] is missing \(None\)"),
            (pandas.Series(["a", pandas.NA], dtype="string"), r"inputs\[1\] is missing"),
            (numpy.array(["a", float("nan")], dtype=object), r"inputs\[1\] is missing \(nan\)"),
            (
                numpy.array(["a", numpy.float32("nan")], dtype=object),
                r"inputs\[1\] is missing \(np\.float32\(nan\)\)",
            ),
            (numpy.array(["a", numpy.datetime64("NaT", "s")], dtype=object), r"inputs\[1\] is missing \("),
            (FRAME["id"], r"inputs\[0\] \(index 'a'\) must be a str or a list of messages, not int"),
        ],
    )
    def test_a_gap_in_a_column_is_named_by_its_row(self, column: Any, said: str) -> None:
        with pytest.raises(RequestError, match=said):
            batch_inputs(column)

    @pytest.mark.parametrize("gap", [float("nan"), pandas.NA, pandas.NaT])
    def test_a_gap_in_a_list_has_the_same_words(self, client: Client, gap: Any) -> None:
        answer, error = client.call_many("gpt-5.5", ["Why?", gap])
        assert isinstance(answer, Response)
        said = r"messages is missing \(.*\): leave such rows out, as dropna\(\) does"
        assert re.fullmatch(said, error.message)

    def test_asynchronous_inputs_are_for_those_who_await_them_and_a_set_for_nobody(self) -> None:
        async def questions() -> AsyncIterator[str]:
            yield "Why?"

        inputs = questions()
        assert batch_inputs(inputs, awaited=True).prompts is inputs
        with pytest.raises(TypeError, match="not async_generator"):
            batch_inputs(inputs)
        with pytest.raises(TypeError, match="inputs is a set, which has no order"):
            batch_inputs({"a", "b"})


class Unsized:
    """A loader of a stream: it has the method, which raises."""

    def __init__(self, values: list[Any], error: type[Exception]) -> None:
        self.values, self.error = values, error

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __len__(self) -> int:
        raise self.error("object of type 'IterableDataset' has no len()")


@pytest.mark.parametrize("error", [TypeError, NotImplementedError, RuntimeError])
def test_a_loader_without_a_length_is_an_iterator(error: type[Exception], simulator: Simulator) -> None:
    texts, metadata = Unsized(["a", "b"], error), Unsized([1, 2], error)
    assert prompts(texts) == ["a", "b"]
    assert prompts("{x}", Unsized([{"x": "a"}, {"x": "b"}], error)) == ["a", "b"]
    with Client() as client:
        for results in (
            client.call_many("gpt-5.5", texts, metadata=metadata),
            [result for _, result in client.iter_many("gpt-5.5", texts, metadata=metadata)],
            client.call_many(
                "gpt-5.5", "{x}", rows=Unsized([{"x": "a"}, {"x": "b"}], error), metadata=[1, 2]
            ),
        ):
            assert sorted((result.text, result.metadata) for result in results) == [
                ("echo: a", 1),
                ("echo: b", 2),
            ]  # type: ignore[union-attr]  # all are responses
        assert len(client.embed("text-embedding-3-small", texts).vectors) == 2
        assert client.estimate("gpt-5.5", texts).inputs == 2


class TestRows:
    @pytest.mark.parametrize("rows", [FRAME, ROWS, tuple(ROWS), iter(ROWS), Polars()])
    def test_fill_a_template(self, rows: Any) -> None:
        assert prompts("{id:03d} {question} {{}}", rows) == ["007 Why? {}", "008 How? {}"]

    def test_are_given_to_a_function(self) -> None:
        assert prompts(lambda row: row["question"] * row["id"], FRAME)[0] == "Why?" * 7
        assert prompts(lambda row: [{"role": "user", "content": row["question"]}], ROWS)[0] == [
            {"role": "user", "content": "Why?"}
        ]

    def test_of_an_iterator_are_read_one_by_one(self) -> None:
        endless = ({"number": number} for number in itertools.count())
        checked: Any = batch_inputs("{number}", endless, lambda row: row["number"])
        filled = iter(checked.prompts)
        assert [(next(filled), checked.metadata("")) for _ in range(3)] == [("0", 0), ("1", 1), ("2", 2)]

    @pytest.mark.parametrize(
        ("template", "rows", "said"),
        [
            ("{answer}", FRAME.iloc[:0], "there are: question, id"),
            ("{question", FRAME, "the template is not valid.*written twice"),
            ("{question}", GAP, r"rows\[1\] \(index 'b'\) has no value for 'question' \(nan\)"),
            ("{id:s}", FRAME, r"rows\[0\] \(index 'a'\) cannot fill the template: ValueError"),
            (lambda row: row["id"], ROWS, r"made of rows\[0\] must be a str or a list of messages, not int"),
            (lambda row: None, FRAME, r"made of rows\[0\] \(index 'a'\) is missing"),
            ("{id}", FRAME[["id", "question", "id"]], "rows has several columns 'id'"),
        ],
    )
    def test_that_do_not_fit_are_named(self, template: Any, rows: Any, said: str) -> None:
        """Golden pairs have templates that do not fit plain rows."""
        with pytest.raises(RequestError, match=said):
            batch_inputs(template, rows)

    def test_an_error_of_the_function_names_its_row(self) -> None:
        with pytest.raises(ZeroDivisionError) as caught:
            batch_inputs(lambda row: str(1 // 0), FRAME)
        assert caught.value.__notes__ == ["raised by the template function for rows[0] (index 'a')"]


class TestMetadata:
    @pytest.mark.parametrize(
        ("metadata", "expected"),
        [
            ([{"id": 7}, {"id": 8}], [{"id": 7}, {"id": 8}]),
            (FRAME[["id"]], [{"id": 7}, {"id": 8}]),
            (FRAME["id"], [7, 8]),
            (numpy.array([1, 2]), [1, 2]),
            (iter("ab"), ["a", "b"]),
            (lambda row: row["id"], [7, 8]),
        ],
    )
    def test_has_a_value_for_each_input(self, metadata: Any, expected: list[Any]) -> None:
        checked = batch_inputs("{question}", FRAME, metadata)
        assert checked.metadata is not None
        assert [checked.metadata(prompt) for prompt in prompts("{question}", FRAME)] == expected

    @given(st.permutations(range(4)), st.permutations(range(4)))
    def test_of_pandas_belongs_to_the_input_with_its_label(self, ours: list[int], theirs: list[int]) -> None:
        frame = pandas.DataFrame({"question": list("abcd"), "gold": list("ABCD")}, index=list("wxyz"))
        first, second = frame.iloc[ours], frame.iloc[theirs]
        for inputs, rows in (("{question}", first), (first["question"], None)):
            for metadata in (second["gold"], second[["gold"]], second["gold"].astype("string")):
                checked: Any = batch_inputs(inputs, rows, metadata)
                values = [checked.metadata(prompt) for prompt in checked.prompts]
                golds = [each["gold"] if isinstance(each, dict) else each for each in values]
                assert golds == [prompt.upper() for prompt in checked.prompts]
            unlabelled: Any = batch_inputs(inputs, rows, second["gold"].tolist())
            assert [unlabelled.metadata("") for _ in theirs] == second["gold"].tolist()

    @pytest.mark.parametrize(
        ("index", "says"), [([0, 1], "only one has 'a'"), (["a", "c"], "only one has 'b'")]
    )
    def test_with_other_labels_is_refused(self, index: Any, says: str) -> None:
        for metadata in (pandas.Series([1, 2], index=index), pandas.DataFrame({"id": [1, 2]}, index=index)):
            for inputs, rows in (("{question}", FRAME), (FRAME["question"], None)):
                with pytest.raises(RequestError, match=f"metadata and inputs are paired by .*{says}"):
                    batch_inputs(inputs, rows, metadata)
        assert batch_inputs(["a", "b"], metadata=pandas.Series([1, 2], index=index)).metadata is not None

    def test_may_describe_prompts(self) -> None:
        for inputs in (["a", "b"], iter(["a", "b"])):
            checked = batch_inputs(inputs, metadata=str.upper)
            assert checked.metadata is not None
            assert [checked.metadata(prompt) for prompt in ("a", "b")] == ["A", "B"]
        assert batch_inputs(["a"]).metadata is None

    def test_needs_as_many_values_as_inputs(self) -> None:
        with pytest.raises(RequestError, match="metadata has 1 values for 2 inputs"):
            batch_inputs(["a", "b"], metadata=[1])
        checked = batch_inputs(iter("ab"), metadata=[1])
        assert checked.metadata is not None
        checked.metadata("a")
        with pytest.raises(RequestError, match="fewer values than"):
            checked.metadata("b")

    def test_a_list_that_is_longer_than_a_generator_is_told_at_its_end(self) -> None:
        async def arriving() -> AsyncIterator[str]:
            for prompt in "ab":
                yield prompt

        async def read_all(inputs: Any) -> list[Any]:
            return [prompt async for prompt in inputs]

        rows = ({"question": number} for number in range(2))
        said = "metadata has 3 values for 2 inputs"
        for inputs, more in ((iter("ab"), None), ("{question}", rows)):
            with pytest.warns(UserWarning, match=said):
                assert len(list(cast("Any", batch_inputs(inputs, more, [1, 2, 3]).prompts))) == 2
        checked = batch_inputs(arriving(), metadata=[1, 2, 3], awaited=True)
        with pytest.warns(UserWarning, match=said):
            assert asyncio.run(read_all(checked.prompts)) == ["a", "b"]
        # An iterator may have no end, and a batch may end before its inputs.
        assert list(cast("Any", batch_inputs(iter("ab"), metadata=itertools.count()).prompts)) == ["a", "b"]
        assert next(iter(cast("Any", batch_inputs(iter("ab"), metadata=[1, 2, 3]).prompts))) == "a"


ROW: dict[str, Any] = {"q": "Why?", "person": {"name": "Ada", "tags": ["a", "b"]}, "n": 3.14159, "w": "9"}


class Secret:
    key = "sk-secret"


HOSTILE = [
    "{q.__init__.__globals__}", "{q.__class__.__mro__[1].__subclasses__}", "{q.__class__}",
    "{person[name].__class__}", "{q. __class__}", "{q.}", "{q..x}", "{q:{w}}", "{q:{q.__class__}}",
    "{q:1000000000}", "{n:.1000000000f}", "{q:>99999}",
]  # fmt: skip
UNFILLABLE = ["{q.upper}", "{person.keys}", "{person[__class__]}", "{q[name]}", "{person.tags[9]}", "{q!x}"]


@pytest.mark.parametrize("template", HOSTILE + UNFILLABLE)
@pytest.mark.parametrize("row", [ROW, {**ROW, "q": Secret()}, {**ROW, "q": Secret}, {**ROW, "q": [Secret()]}])
def test_nothing_else_is_read_and_nothing_is_sent(
    client: Client, simulator: Simulator, template: str, row: Any
) -> None:
    with pytest.raises(RequestError, match="template") as caught:
        client.call_many("gpt-6.1-sol", f"Hi {template}", rows=[row], progress=False)
    assert "sk-secret" not in str(caught.value)
    assert not simulator.requests()


@pytest.mark.parametrize("template", [HOSTILE[0], HOSTILE[-1], UNFILLABLE[0]])
def test_nor_by_the_command_line(simulator: Simulator, tmp_path: Path, template: str, capsys: Any) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(ROW) + "\n")
    assert main(["map", "gpt-6.1-sol", str(source), str(target), "--template", f"Hi {template}"]) != 0
    assert "template" in capsys.readouterr().err
    assert not simulator.requests()


@given(st.text(alphabet="{}q.[]_:!09 a", max_size=20))
def test_any_template_reads_columns_or_is_refused(template: str) -> None:
    try:
        safe, columns = parse_template(template, "the template", "{text}")
    except RequestError:
        return
    assert columns
    assert parse_template(safe, "the template", "{text}") == (safe, columns)
