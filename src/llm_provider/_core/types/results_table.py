"""`Results` as tables: a row for each sample, and for each input that failed.

What the samples of one call share, such as its cost, is only in the row of the first sample.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import LLMError, OutputError
from ..json_values import JSONObject, json_value
from ..runtime.imports import import_optional
from .response import Result
from .usage import FIELDS, SNAPSHOT, Cost, PaidResult, ServedBy, Usage

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from .usage import RowLabel

_OF_SAMPLE = ("input_index", "sample", "text", "error", "error_message", "finish_reason")
"""Columns that each row has for itself."""
_OF_CALL = ("model", "provider", "cached", "response_id", "prompt")
"""Columns that the rows of one call have in common."""
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "reasoning_output_tokens")
USD = ("cost", "cost_at_least", "cost_at_most", "price")
_SUMS: dict[str, object] = {
    **dict.fromkeys(USD, 0.0), **dict.fromkeys(_TOKENS, 0), "attempts": 0, "seconds": None,
}  # fmt: skip
"""Columns that only the first row of a call has, and the value that its other rows have instead."""
COLUMNS = (*_OF_SAMPLE, *_OF_CALL, *_SUMS)
"""All columns except the metadata's, `parsed`'s, and the columns that only some answers have."""
_WHO = tuple(f"served_by.{name}" for name in FIELDS if name != "model")
_IDS = ("token_ids", "prompt_token_ids")
_LAST = ("passed_over", "passed_over_cost", *_IDS)
_TYPES: dict[str, type] = dict.fromkeys(("input_index", "sample", *_TOKENS, "attempts"), int)
_TYPES |= {"cached": bool, **dict.fromkeys((*USD, "seconds"), float)}
"""A column has the same type if all its cells are empty, or if there are none."""
_PARSED = "parsed"
SCORE = "score"
"""The column of the scores that are numbers; those with a name have the column `score.NAME`."""


class OtherResult(PaidResult):
    """The result of an operation of a feature: its rows are no samples of a chat."""

    __slots__ = ()

    served_by: ServedBy | None
    metadata: Any
    row_label: RowLabel | None

    @property
    def prompt(self) -> str:
        """What was asked."""
        raise NotImplementedError

    def to_dict(self) -> JSONObject:
        """The result as JSON-ready values."""
        raise NotImplementedError

    def list_rows(self) -> list[dict[str, Any]]:
        """The columns that each of its rows has for itself."""
        raise NotImplementedError

    def row_text(self, row: Mapping[str, Any]) -> str:
        """What a person reads of a row."""
        raise NotImplementedError


AnyResult: TypeAlias = "Result | OtherResult"


def table_rows(results: Sequence[AnyResult]) -> Iterator[dict[str, Any]]:
    """The rows of a table without metadata, each with its own columns of `parsed`."""
    for index, (result, model) in enumerate(zip(results, name_models(results), strict=True)):
        shared = _columns_of_call(result) | {"model": result.model and model}
        for sample in _samples(result):
            yield {"input_index": index, **shared, **sample}
            shared |= _SUMS | dict.fromkeys(shared.keys() & {"passed_over_cost"}, 0.0)


def name_models(results: Sequence[AnyResult]) -> list[str]:
    """The model of each result as the provider names it.

    An error knows the name that was asked for. A snapshot answers under this name with a date. A failed call
    keeps the asked name where no model answered under it, or two snapshots did.

    >>> failed = LLMError("slow", provider="p", model="gpt-4.1")
    >>> names = ("gpt-4.1-2026-05-01", "gpt-4.1-mini")
    >>> answers = [PaidResult(usage=Usage(), model=name, provider="p") for name in names]
    >>> name_models([failed, *answers])[0], name_models([failed, answers[1]])[0]
    ('gpt-4.1-2026-05-01', 'gpt-4.1')
    """
    sources = [each.samples[0] if isinstance(each, LLMError) and each.samples else each for each in results]
    answered = {(each.provider, each.model) for each in sources if not isinstance(each, LLMError)}

    @functools.cache
    def find(provider: str | None, model: str | None) -> str:
        return name_model(provider, str(model), answered)

    return [
        find(each.provider, each.model) if isinstance(each, LLMError) else str(each.model) for each in sources
    ]


def name_model(provider: str | None, model: str, answered: Collection[tuple[str | None, str]]) -> str:
    """The model that was asked for, as it is named among the providers and models that answered."""
    bare = model.removeprefix(f"{provider}/").removesuffix("-latest")
    names = [name for host, name in answered if host == provider and _is_name(bare, name)]
    return names[0] if len(names) == 1 and (provider, model) not in answered else model


def _is_name(model: str, served: str) -> bool:
    """Whether a model that was asked for answers under a name. One of the two may have a path before it."""
    plain = (served, SNAPSHOT.sub("", served))
    return any(f"/{model}".endswith(f"/{name}") or name.endswith(f"/{model}") for name in plain)


def _samples(result: AnyResult) -> Iterator[dict[str, Any]]:
    """What each sample of a result has for itself."""
    number = -1
    if isinstance(result, OtherResult):
        for number, columns in enumerate(result.list_rows()):
            scores = result.score_values[number : number + 1]
            # A decision has a score of its own.
            name = f"{SCORE}.value" if SCORE in columns and scores and not _fields(scores[0]) else SCORE
            own = dict(_cells(name, scores[0])) if scores else {}
            yield {"sample": number, **columns, **own, **_columns_of_host(result.served_by)}
        return
    # A call that failed has the samples that were answered before its error.
    for number, sample in enumerate(result.samples):
        columns = {"sample": number, "text": sample.text, "finish_reason": sample.finish_reason}
        columns |= _columns_of_host(sample.served_by)
        # To read a body takes longer than all the rest.
        for name in _IDS if b"token_ids" in sample.body else ():
            columns[name] = getattr(sample, name)
        # An answer that cannot be read has no columns of `parsed`.
        with contextlib.suppress(OutputError):
            if (parsed := sample.parsed) is not None:
                columns |= _cells(_PARSED, parsed)
        yield columns | _score_columns(result, number)
    if isinstance(result, LLMError):
        columns = {"sample": number + 1, "error": type(result).__name__, "error_message": str(result)}
        yield columns | _score_columns(result, number + 1)


def _score_columns(result: AnyResult, number: int) -> dict[str, object]:
    """The columns of the scores of a sample."""
    return {
        name: cell
        for score in result.score_values[number : number + 1]
        for name, cell in _cells(SCORE, score)
    }


def row_count(result: AnyResult) -> int:
    """The number of rows that a result has."""
    if isinstance(result, OtherResult):
        return len(result.list_rows())
    return len(result.samples) + 1 if isinstance(result, LLMError) else len(result.choices)


def _columns_of_call(result: AnyResult) -> dict[str, object]:
    """What the samples of a result share."""
    own: dict[str, object] = {"response_id": result.request_id} if isinstance(result, LLMError) else {
        "response_id": getattr(result, "id", None), "seconds": result.timing.total, "price": result.price
    }  # fmt: skip
    prompt = result.prompt
    is_text = prompt is None or isinstance(prompt, str)
    own["prompt"] = prompt if is_text else json.dumps(json_value(prompt), ensure_ascii=False)
    own |= {name: getattr(result, name) for name in ("provider", "cached", "cost", "attempts")}
    # Its sum is `Results.cost`: what failed before an answer leaves its cost unknown, and a part of it known.
    own["cost_at_least"] = float(Cost.of_result(result))
    own["cost_at_most"] = (result.cost_bounds or (None, result.cost))[1]
    if passed := getattr(result, "passed_over", ()):
        own["passed_over"] = ", ".join(f"{each.model}: {each.error}" for each in passed)
        costs = [each.cost for each in passed]
        own["passed_over_cost"] = None if None in costs else float(Cost.of(costs))
    usage = result.usage or Usage()
    return own | {name: getattr(usage, name) for name in _TOKENS}


def _columns_of_host(served_by: ServedBy | None) -> dict[str, Any]:
    values = {} if served_by is None else served_by.to_dict()
    # `model` is a column of its own.
    return {f"served_by.{name}": value for name, value in values.items() if name != "model"}


def _cells(name: str, value: object) -> Iterator[tuple[str, object]]:
    """A value as cells: the fields of an object have one each, under a dotted name."""
    inner = _fields(value)
    if not inner:
        yield name, _cell(value)
    for field, part in inner.items():
        yield from _cells(f"{name}.{field}", part)


def _fields(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(type(value), "model_fields"):
        root = getattr(type(value), "__pydantic_root_model__", False)
        # A pydantic model iterates over its fields.
        return _fields(value.root) if root else dict(value)
    named: Mapping[str, Any] = value._asdict() if hasattr(value, "_asdict") else {}
    return named


def _cell(value: object) -> object:
    if isinstance(value, Enum):
        return _cell(value.value)
    # A cell of a data frame can hold more than JSON.
    is_atom = type(value).__name__ in ("date", "datetime", "time", "timedelta", "Decimal")
    return value if is_atom else json_value(value)


def metadata_columns(result: AnyResult, *, scored: bool = False) -> dict[str, Any]:
    """The metadata of a result as columns, in a table that has columns of scores if it is `scored`."""
    metadata = result.metadata
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        return {"metadata": metadata}
    named, others = {}, (_PARSED, "served_by", *[SCORE] * scored)
    for name, value in metadata.items():
        # A name of another column gets a prefix, so that neither value is lost.
        is_other = name in (*COLUMNS, *_LAST) or str(name).partition(".")[0] in others
        named[f"metadata_{name}" if is_other else str(name)] = value
    return named


def columns(results: Sequence[AnyResult]) -> dict[str, list[Any]]:
    """The table by column, metadata first and `parsed` behind the text."""
    rows = list(table_rows(results))
    scored = any(result.score_values for result in results)
    metadata = [metadata_columns(result, scored=scored) for result in results]
    own = {
        name: [metadata[row["input_index"]].get(name) for row in rows]
        for name in dict.fromkeys(name for values in metadata for name in values)
    }
    present = dict.fromkeys(name for row in rows for name in row)
    who, ids = ([name for name in names if name in present] for names in (_WHO, _LAST))
    parsed = [name for name in present if name not in (*COLUMNS, *_WHO, *_LAST)]
    behind, beside = COLUMNS.index("text") + 1, COLUMNS.index("prompt") + 1
    names = (*COLUMNS[:behind], *parsed, *COLUMNS[behind:beside], *who, *COLUMNS[beside:], *ids)
    table = {name: [row.get(name) for row in rows] for name in names}
    for name in parsed:
        # Where an object may be absent, its fields are columns, which are empty then.
        has_fields = any(other.startswith(f"{name}.") for other in parsed)
        if has_fields and all(cell is None for cell in table[name]):
            del table[name]
    return own | table


def to_pandas(results: Sequence[AnyResult]) -> pd.DataFrame:
    """A DataFrame of pandas, with the index of the inputs where they have one in common."""
    pandas = import_optional("pandas", "pip install pandas")
    table = columns(results)
    frame: pd.DataFrame = pandas.DataFrame(table).astype(_TYPES)
    labels, names = _index(results, table["input_index"])
    if len(names) > 1:
        frame.index = pandas.MultiIndex.from_tuples(labels, names=names)
    elif names:
        frame.index = pandas.Index(labels, name=names[0], tupleize_cols=False)
    return frame


def columns_with_index(results: Sequence[AnyResult]) -> dict[str, list[Any]]:
    """The table by column, with the index of the inputs as its first columns."""
    table = columns(results)
    labels, names = _index(results, table["input_index"])
    values = zip(*labels, strict=True) if len(names) > 1 else [labels]
    for number, (name, column) in enumerate(zip(names, values, strict=bool(names))):
        # As pandas names the columns that it makes of an index.
        own = str(name) if name is not None else "index" if len(names) == 1 else f"level_{number}"
        table = {f"index_{own}" if own in table else own: list(column)} | table
    return table


def to_polars(results: Sequence[AnyResult]) -> pl.DataFrame:
    """A DataFrame of polars, with the index of the inputs as its first columns."""
    polars = import_optional("polars", "pip install polars")
    table = columns_with_index(results)
    # Metadata may mix numbers and text in a column.
    frame: pl.DataFrame = polars.DataFrame(table, strict=False, schema_overrides=_TYPES)
    return frame


def _index(results: Sequence[AnyResult], positions: Sequence[int]) -> tuple[list[Any], tuple[Any, ...]]:
    """The label of each row and the names of the levels; none if the inputs had no index in common."""
    labels = [result.row_label for result in results]
    known = [label for label in labels if label is not None]
    if len(known) < len(labels) or len({label.names for label in known}) != 1:
        return [], ()
    return [known[position].value for position in positions], known[0].names
