"""The inputs of a batch: prompts, a column of a table, or a template and the rows that fill it.

Every input is checked before anything is sent if their number is known. An iterator is checked as it is read.
"""

import contextlib
import math
import re
import string
from collections import deque
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

from ..errors import RequestError, cite
from ..json_values import MISSING, JSONObject
from ..runtime.warning import warn_user
from ..types.messages import Prompt
from ..types.usage import RowLabel

Inputs: TypeAlias = Iterable[Prompt] | Callable[[JSONObject], Prompt]
"""Prompts; or with `rows` a template, which is text with `{fields}` or a function of a row."""

AsyncInputs: TypeAlias = Inputs | AsyncIterable[Prompt]
"""What asynchronous functions take."""

Estimable: TypeAlias = Inputs | Iterable[tuple[Prompt, Any]]
"""What `estimate` takes: inputs, texts to embed, contexts with continuations, or inputs with questions."""


@dataclass(frozen=True, slots=True)
class BatchInputs:
    prompts: Iterable[Prompt] | AsyncIterable[Prompt]
    metadata: Callable[[Prompt], object] | None = None
    """Gives the metadata of each prompt. It is called once for each, in their order."""
    labels: Sequence[RowLabel] | None = None
    """The label of each prompt in the index of a pandas object."""


def batch_inputs(
    inputs: AsyncInputs, rows: object = None, metadata: object = None, *,
    awaited: bool = False, single: str = "call",
) -> BatchInputs:  # fmt: skip
    """Check the inputs of a batch, and fill the template if there is one.

    `inputs` are prompts, a column of them, or a template for `rows`: a data frame, or an iterable of
    mappings. `metadata` is one value for each input, or a function of the row or of the prompt. With
    `awaited` the inputs may be an asynchronous iterable. Errors name `single`, the function for one input.
    Raises `TypeError` for the wrong kind of an argument, and `RequestError` if a value is missing, or a field
    of the template.
    """
    metadata = put_in_order(metadata, inputs if rows is None else rows, "metadata and inputs")
    if rows is None:
        prompts = inputs if awaited and isinstance(inputs, AsyncIterable) else check_inputs(inputs, single)
        described = _metadata_of(metadata, prompts, prompts)
        return BatchInputs(_tell_surplus(prompts, metadata), described, _labels(inputs))
    listed = _rows(rows)
    fill = _filling(inputs, rows)
    if isinstance(listed, list):
        filled = [fill(row, index) for index, row in enumerate(listed)]
        return BatchInputs(filled, _metadata_of(metadata, listed, filled), _labels(rows))
    # The function of the metadata gets the rows, which are read one by one.
    read: deque[object] = deque()

    def lazily() -> Iterator[Prompt]:
        for index, row in enumerate(listed):
            prompt = fill(row, index)
            if callable(metadata):
                read.append(row)
            yield prompt

    if callable(metadata):
        return BatchInputs(lazily(), lambda _: metadata(read.popleft()))
    return BatchInputs(_tell_surplus(lazily(), metadata), _metadata_of(metadata, listed, listed))


def _tell_surplus(
    prompts: Iterable[Prompt] | AsyncIterable[Prompt], metadata: Any
) -> Iterable[Prompt] | AsyncIterable[Prompt]:
    """The prompts, and after the last one a warning if a list of metadata has more values than these."""
    if has_length(prompts) or callable(metadata) or not has_length(metadata):
        return prompts
    given = len(metadata)

    def check(inputs: int) -> None:
        if inputs < given:
            message = f"metadata has {given:,} values for {inputs:,} inputs: give one value for each"
            # Where warnings are errors, the results must not be lost.
            with contextlib.suppress(UserWarning):
                warn_user(message)

    async def follow() -> AsyncIterator[Prompt]:
        count = 0
        async for prompt in cast("AsyncIterable[Prompt]", prompts):
            count += 1
            yield prompt
        check(count)

    def read() -> Iterator[Prompt]:
        count = 0
        for prompt in cast("Iterable[Prompt]", prompts):
            count += 1
            yield prompt
        check(count)

    return follow() if isinstance(prompts, AsyncIterable) else read()


def check_inputs(inputs: object, single: str = "call") -> Iterable[Prompt]:
    """The inputs of a batch without a template, as prompts; `TypeError` for a single prompt or a table."""
    if is_table(inputs):
        names = _columns(inputs)
        raise TypeError(
            f"inputs is a {type(inputs).__name__}, whose iteration gives its columns or rows and no prompts: "
            f"give one column, as in {single}_many(model, df[{names[0] if names else 'question'!r}]), "
            f"or a template, as in {single}_many(model, 'Answer: {{question}}', rows=df)"
        )
    if isinstance(inputs, (str, bytes, Mapping)) or callable(inputs) or not hasattr(inputs, "__iter__"):
        template = " (a template needs rows=)" if isinstance(inputs, str) or callable(inputs) else ""
        if isinstance(inputs, AsyncIterable):
            streams = " or aiter_many()" if single == "call" else ""
            template = f" (an asynchronous iterable goes to a{single}_many(){streams})"
        raise TypeError(
            f"inputs must be an iterable of prompts, such as a list, not {type(inputs).__name__}; "
            f"a single prompt goes to {single}(){template}"
        )
    if isinstance(inputs, (set, frozenset)):
        raise TypeError(f"inputs is a {type(inputs).__name__}, which has no order: pass a list")
    if not has_length(inputs):
        return _check_as_read(inputs)
    if hasattr(inputs, "dtype"):
        return _column(inputs)
    if isinstance(inputs, (list, tuple)) and inputs:
        _check_first(inputs[0])
    return cast("Iterable[Prompt]", inputs)


def count_errors(max_errors: float | None, prompts: Any) -> int | None:
    """How many inputs may fail before their batch ends. A share is one of their number, rounded up."""
    if max_errors is None or isinstance(max_errors, int):
        return max_errors
    if not has_length(prompts):
        raise RequestError(
            f"max_errors={max_errors} is a share of all inputs, and an iterator does not tell their number: "
            "give a number such as max_errors=10, or a list of inputs"
        )
    from decimal import Decimal

    # The decimals of the float: 0.07 of 100 are 7, and the product of the floats is above it.
    share = Decimal(repr(max_errors))
    return max(1, math.ceil(share * (len(prompts) + getattr(prompts, "answered_before", 0))))


def has_length(value: object) -> bool:
    """Whether a value tells its length: a loader of a stream may have the method and raise in it."""
    try:
        return isinstance(value, Sized) and len(value) >= 0
    except Exception:
        return False


def _check_as_read(inputs: Iterable[Prompt]) -> Iterator[Prompt]:
    for index, prompt in enumerate(inputs):
        if not index:
            _check_first(prompt)
        yield prompt


def _check_first(prompt: object) -> None:
    """Refuse one conversation, or rows of data, that are given as inputs."""
    if not isinstance(prompt, Mapping):
        return
    if "role" in prompt:
        raise TypeError(
            "inputs is one conversation, whose messages would be sent one by one: write "
            "call(model, messages) for one call, or call_many(model, [messages]) for a batch of conversations"
        )
    raise TypeError(
        f"inputs[0] is a {type(prompt).__name__}, and a prompt is a str or a list of messages; for rows of "
        "data give a template, as in call_many(model, 'Answer: {question}', rows=rows)"
    )


def is_table(value: object) -> bool:
    """Whether a value is a data frame of pandas, polars or another library, or a data set with columns."""
    return not isinstance(value, type) and (
        hasattr(value, "__dataframe__") or hasattr(value, "column_names") or hasattr(value, "collect_schema")
    )


def _columns(table: Any) -> list[object]:
    names = getattr(table, "column_names", None)
    if names is None and hasattr(table, "collect_schema"):
        # A LazyFrame of polars warns about its `columns`.
        names = table.collect_schema().names()
    return list(table.columns if names is None else names)


def _column(values: Any) -> list[Prompt]:
    """The prompts of a pandas or polars Series or of an array, which has one dimension."""
    if (dimensions := getattr(values, "ndim", 1)) != 1:
        raise TypeError(
            f"inputs must have one dimension, and this array has {dimensions}: write array[:, 0] for a column"
        )
    prompts = values.to_list() if hasattr(values, "to_list") else values.tolist()
    for index, prompt in enumerate(prompts):
        if isinstance(prompt, str):
            # NumPy's text becomes plain text, which is encoded faster.
            prompts[index] = str(prompt)
        elif not isinstance(prompt, (list, tuple)):
            refuse_prompt(f"inputs[{index}]{_label(values, index)}", prompt)
    return list(prompts)


def refuse_prompt(where: str, prompt: object) -> NoReturn:
    """Raise the `RequestError` of a prompt that is neither text nor a list."""
    if is_missing(prompt) and not (prompt is None and where == "messages"):
        raise RequestError(f"{where} is missing ({cite(prompt)}): leave such rows out, as dropna() does")
    from .media import prompt_remedy

    kind = type(prompt).__name__
    raise RequestError(f"{where} must be a str or a list of messages, not {kind}{prompt_remedy(prompt)}")


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    # NumPy's scalars have a shape, and most of its floats are none of Python's.
    is_scalar = isinstance(value, float) or (getattr(type(value), "shape", None) and value.shape == ())
    return value is None or type(value).__name__ in MISSING or bool(is_scalar and value != value)  # noqa: PLR0124  # NaN


def _label(values: object, row: int) -> str:
    """The name that a pandas object has for a row, where it is not the row's number."""
    index = getattr(values, "index", None)
    if index is None or callable(index) or index[row] == row:
        return ""
    return f" (index {cite(index[row])})"


def _labels(values: object) -> list[RowLabel] | None:
    """The labels that a pandas object has for its rows; None for other values."""
    labels, names = list_labels(values), tuple(getattr(getattr(values, "index", None), "names", ()))
    return labels and [RowLabel(value, names) for value in labels]


def list_labels(values: object) -> list[Any] | None:
    """The index of a pandas object as a list; None for other values."""
    index: Any = getattr(values, "index", None)
    return list(index.tolist()) if hasattr(index, "tolist") and hasattr(index, "names") else None


def find_order(wanted: Sequence[object], given: Sequence[object]) -> list[int] | None:
    """Where each of the `wanted` labels is in as many `given` ones; None if the labels do not tell it."""
    ours, theirs = list(map(_comparable, wanted)), list(map(_comparable, given))
    if ours == theirs:
        return list(range(len(theirs)))
    positions = {label: position for position, label in enumerate(theirs)}
    is_same = len(positions) == len(ours) and positions.keys() == {*ours}
    return [positions[label] for label in ours] if is_same else None


def _comparable(label: Any) -> Any:
    # A NaN does not equal itself.
    label = tuple(map(_comparable, label)) if isinstance(label, tuple) else label
    return None if is_missing(label) else label


def put_in_order(values: Any, others: object, what: str) -> Any:
    """The rows of `values` in the order of the index of `others`, if both have one, else unchanged."""
    wanted, given = list_labels(others), list_labels(values)
    if wanted is None or given is None or len(wanted) != len(given):
        return values
    order = find_order(wanted, given)
    if order is None:
        known = {*map(_comparable, given)}
        odd = [label for label in wanted if _comparable(label) not in known]
        problem = f"only one has {cite(odd[0])}" if odd else "one has a label twice"
        raise RequestError(
            f"{what} are paired by their indexes, and {problem}: give both the same index, or one as a list, "
            "by column.tolist() or table.to_dict('records'), to pair them by position"
        )
    return values.iloc[order]


def _rows(rows: Any) -> Iterable[object]:
    """The rows of a table or an iterable: a list where their number is known; a `TypeError` without rows."""
    if hasattr(rows, "collect_schema") and hasattr(rows, "collect"):
        raise TypeError("rows is a LazyFrame; give rows=frame.collect()")
    if is_table(rows):
        if hasattr(rows, "iloc"):
            if not rows.columns.is_unique:
                name = rows.columns[rows.columns.duplicated()][0]
                raise RequestError(f"rows has several columns {name!r}: rename all but one")
            return list(rows.to_dict("records"))
        for method in ("to_dicts", "to_pylist"):
            if hasattr(rows, method):
                return list(getattr(rows, method)())
    if isinstance(rows, (str, bytes, Mapping)) or not hasattr(rows, "__iter__"):
        raise TypeError(
            "rows must be a data frame, or an iterable with a dict for each row, not "
            f"{type(rows).__name__}: write [{{'question': ...}}]"
        )
    iterable: Iterable[object] = rows
    return list(iterable) if has_length(rows) else iter(iterable)


def _filling(template: object, rows: object) -> Callable[[object, int], Prompt]:
    """How a row and its number become a prompt; `RequestError` for a field that the table does not have."""

    def where(index: int) -> str:
        return f"rows[{index}]{_label(rows, index)}"

    if isinstance(template, str):
        safe, names = parse_template(template, "inputs: the template", "{question}")
        if is_table(rows):
            _check_fields(names, _columns(rows), "rows")

        def fill_row(row: object, index: int) -> Prompt:
            if not isinstance(row, Mapping):
                raise RequestError(
                    f"{where(index)} must be a dict, not {type(row).__name__}: write {{'question': ...}}"
                )
            _check_fields(names, row, where(index))
            for name in names:
                if is_missing(row[name]):
                    raise RequestError(
                        f"{where(index)} has no value for {name!r} ({cite(row[name])}), which the template "
                        "needs: leave such rows out, as dropna() does"
                    )
            try:
                return safe.format_map(row)
            except (ValueError, TypeError, AttributeError, LookupError) as error:
                raise RequestError(f"{where(index)} cannot fill the template: {error!r}") from None

        return fill_row
    if not callable(template):
        raise TypeError(
            "with rows=, inputs is a template: text such as 'Translate: {text}', or a function of a row, not "
            f"{type(template).__name__}"
        )

    def make_row(row: object, index: int) -> Prompt:
        try:
            prompt = template(row)
        except Exception as error:
            error.add_note(f"raised by the template function for {where(index)}")
            raise
        if not isinstance(prompt, (str, list, tuple)):
            refuse_prompt(f"the prompt that the template function made of {where(index)}", prompt)
        return prompt

    return make_row


def _check_fields(names: Sequence[str], columns: Iterable[object], where: str) -> None:
    columns = list(columns)
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise RequestError(
            f"inputs: the template has the field {{{unknown[0]}}}, and {where} has no such column; "
            f"there are: {', '.join(map(str, columns)) or 'none'} ({BRACES})"
        )


def _metadata_of(metadata: Any, described: object, prompts: object) -> Callable[[Prompt], object] | None:
    """The metadata of each prompt. A function of the user's describes the rows, or the prompts."""
    if metadata is None:
        return None
    if callable(metadata):
        if not isinstance(described, (list, tuple)):
            return metadata  # type: ignore[no-any-return]  # the user's function
        values: Iterator[object] = iter([metadata(entry) for entry in described])
    else:
        if isinstance(metadata, (str, bytes, Mapping)) or not hasattr(metadata, "__iter__"):
            raise TypeError(
                "metadata must have one value for each input, such as a list of dicts, or be a function, not "
                f"{type(metadata).__name__}"
            )
        listed = _rows(metadata) if is_table(metadata) else metadata
        listed = listed.tolist() if hasattr(listed, "dtype") and hasattr(listed, "tolist") else listed
        lengths = [len(cast("Sized", each)) for each in (listed, prompts) if has_length(each)]
        if len(set(lengths)) == 2:
            raise RequestError(
                f"metadata has {lengths[0]:,} values for {lengths[1]:,} inputs: give one value for each"
            )
        values = iter(listed)

    def following(_: Prompt) -> object:
        try:
            return next(values)
        except StopIteration:
            raise RequestError("metadata has fewer values than there are inputs") from None

    return following


BRACES = "a brace that is text is written twice, as {{ or }}"

_MOST_DIGITS = 4
"""Digits of a number in a format, such as a width."""


def parse_template(template: str, name: str, example: str) -> tuple[str, list[str]]:
    """A template that reads only fields of rows, else a `RequestError`, and the names of its columns.

    Messages call it by its `name`, and have an `example` of a field, such as "{text}".
    """
    try:
        pieces = list(string.Formatter().parse(template))
    except ValueError as error:
        raise RequestError(f"{name} is not valid: {error}; {BRACES}") from None
    text, columns = "", []
    for literal, field, spec, conversion in pieces:
        text += literal.replace("{", "{{").replace("}", "}}")
        if field is None:
            continue
        column, path = re.fullmatch(r"([^.\[]*)(.*)", field, re.DOTALL).groups()  # type: ignore[union-attr]  # it matches all
        if not column or column.isdigit():
            raise RequestError(f"{name} has the field {{{field}}}; name a column, as in {example}")
        if re.search(r"\.\s*(__|$|[.\[])", path):
            raise RequestError(f"{name} has {{{field}}}; it may name fields of rows, and no attributes")
        if re.search(rf"[{{}}]|\d{{{_MOST_DIGITS + 1}}}", spec or ""):
            raise RequestError(
                f"{name} has the field {{{field}}} with the format {spec!r}, which may hold no field and no "
                f"number of more than {_MOST_DIGITS} digits; {BRACES}"
            )
        columns.append(column)
        # A field in brackets is looked up in the row; one after a dot would be an attribute.
        path = re.sub(r"\.([^.\[]+)", r"[\1]", path)
        text += f"{{{column}{path}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}}}"
    if not columns:
        raise RequestError(f"{name} has no field such as {example}, so all prompts would be equal")
    return text, list(dict.fromkeys(columns))
