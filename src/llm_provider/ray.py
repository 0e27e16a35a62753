"""Ray Data: a model mapped over the rows of a dataset, on the machines of a cluster.

Ray schedules the rows, starts failed workers again and holds back what comes too fast. This module adds what
a paid call needs: an error is a column and never ends the job, an answer is never paid for twice, and each
worker has a ledger file of its own. docs/clusters.md has examples, and says when one machine is enough.
"""

from __future__ import annotations

import os
import platform
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, fields
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from ._core.client.client import Client
from ._core.errors import LLMError, RequestError
from ._core.json_values import JSONMapping, JSONObject, json_value
from ._core.money.budget import Budget
from ._core.requests.inputs import batch_inputs
from ._core.runtime.imports import import_optional, install_command
from ._core.types.usage import Usage

__all__ = ["Caller", "Embedder", "embed_dataset", "map_dataset"]

PromptSource: TypeAlias = str | Callable[[JSONObject], Any]
"""The name of a column of prompts, a template with names of columns in braces, or a function of a row."""

_USAGE_FIELDS = tuple(field.name for field in fields(Usage))


def map_dataset(
    dataset: Any,
    model: str,
    prompt: PromptSource = "prompt",
    *,
    workers: int | tuple[int, int] = 2,
    batch_size: int = 128,
    id: str = "id",  # noqa: A002  # the name of the column
    prefix: str = "",
    settings: JSONMapping | None = None,
    num_cpus: float = 0.5,
    **parameters: Any,
) -> Any:
    """A dataset with the answer of a model beside each row.

    The rows keep their columns and get these: `text`, `parsed` (with `response_format`), `usage`, `cost`
    (USD), `cached`, and `error`: null, or `type`, `message` and `retryable`. A row that fails has an `error`
    and does not end the job. The order of the rows is not kept, so every row has an id.

    Args:
        dataset: A `ray.data.Dataset`.
        model: As for `call`.
        prompt: A column of prompts (texts or lists of messages), a template such as "Translate: {word}", or a
            function that makes the prompt of a row, which is a dict.
        workers: How many processes make calls, or the fewest and the most of them.
        batch_size: Rows that a worker takes at a time. Four batches of a worker are under way at the same
            time.
        id: The column that names a row. If there is none, the rows are numbered under this name.
        prefix: The beginning of the names of the new columns, if the dataset has columns with these names.
        settings: The settings of `Client` in each worker, such as `{"cache": "valkey://host:6379/0"}`. The
            file `ledger` gets the name of its worker: "calls.jsonl" becomes "calls.<worker>.jsonl", and
            `Ledger.read(*paths)` adds them up. A `budget` or `token_budget` holds for all workers together.
        num_cpus: Processors that Ray reserves for a worker, which mostly waits.
        **parameters: As for `call_many`.

    Returns:
        A dataset. Nothing is sent before it is read.

    Raises:
        RequestError: the model, a parameter, a setting or a column is wrong.
        MissingDependencyError: Ray is not installed.
    """
    shared = (workers, batch_size, id, prefix, settings, num_cpus)
    return _add_columns(dataset, Caller, model, prompt, parameters, *shared)


def embed_dataset(
    dataset: Any,
    model: str,
    text: PromptSource = "text",
    *,
    workers: int | tuple[int, int] = 2,
    batch_size: int = 128,
    id: str = "id",  # noqa: A002  # the name of the column
    prefix: str = "",
    settings: JSONMapping | None = None,
    num_cpus: float = 0.5,
    **parameters: Any,
) -> Any:
    """A dataset with the vector of a text beside each row, in the column `embedding`.

    The arguments and the other columns are as in `map_dataset`; `**parameters` as in `embed`. The
    cost and the tokens of a request are divided among its rows.

    Raises:
        RequestError: the model, a parameter, a setting or a column is wrong.
        MissingDependencyError: Ray is not installed.
    """
    shared = (workers, batch_size, id, prefix, settings, num_cpus)
    return _add_columns(dataset, Embedder, model, text, parameters, *shared)


def _add_columns(
    dataset: Any, worker: type[_Worker], model: str, source: PromptSource, parameters: JSONMapping,
    workers: object, batch_size: object, id_column: object, prefix: object, settings: object, num_cpus: float,
) -> Any:  # fmt: skip
    """The dataset with the new columns, which `worker` makes. Everything is checked, and nothing is sent."""
    data = import_optional("ray.data", install_command("ray"))
    if not isinstance(dataset, data.Dataset):
        raise RequestError(
            f"dataset must be a ray.data.Dataset, not {type(dataset).__name__}: "
            "ray.data.from_items(rows), from_pandas(table) and read_parquet(path) make one"
        )
    pair = workers if isinstance(workers, tuple) else (workers, workers)
    if len(pair) != 2 or not all(type(each) is int for each in pair) or not 1 <= pair[0] <= pair[1]:
        raise RequestError(
            f"workers must be an int of at least 1, or the fewest and the most, not {workers!r}"
        )
    if type(batch_size) is not int or batch_size < 1:
        raise RequestError(f"batch_size must be an int of at least 1, not {batch_size!r}")
    if not isinstance(id_column, str) or not id_column:
        raise RequestError(f"id must be a str, not {id_column!r}")
    if not isinstance(prefix, str):
        raise RequestError(f"prefix must be a str, not {prefix!r}")
    if settings is not None and not isinstance(settings, Mapping):
        raise RequestError(
            f"settings must be a dict of the settings of Client, not {type(settings).__name__}"
        )
    own = dict(settings or {})
    with Client(**{**own, "ledger": None}) as client:
        if worker is Embedder:
            client.estimate(model, ["a text that is never sent"], kind="embedding", **parameters)
        else:
            client.estimate(model, [], **parameters)
    known = dataset.columns()
    if known is not None:
        check_columns(known, source, prefix, _list_columns(worker, parameters))
    if known is None or id_column not in known:
        from ray.data.expressions import monotonically_increasing_id

        dataset = dataset.with_column(id_column, monotonically_increasing_id())
    # It may also come from this process's environment, which the workers do not have.
    for name, budget in (("budget", client.budget), ("token_budget", client.token_budget)):
        if budget is not None:
            own[name] = _share_budget(budget, pair[1])
    return dataset.map_batches(
        worker,
        fn_constructor_args=(model, source),
        fn_constructor_kwargs={"settings": own, "prefix": prefix, **parameters},
        compute=data.ActorPoolStrategy(min_size=pair[0], max_size=pair[1]),
        batch_size=batch_size,
        batch_format="pyarrow",
        num_cpus=num_cpus,
        udf_modifying_row_count=False,
    )


def _share_budget(budget: Budget, workers: int) -> Budget:
    """A budget of all workers, for each of them. A budget with a file is shared through the file."""
    from ._features.shared_budget.leased_budget import BudgetParts, LeasedBudget

    if budget.path is not None:
        return budget
    ray = import_optional("ray", install_command("ray"))
    keeper, total = ray.remote(num_cpus=0)(BudgetParts).remote(budget.left, workers), budget.left
    take = partial(_take_from_actor, keeper)
    return LeasedBudget(take, total, allow_unknown=budget.allow_unknown, unit=budget.unit)


def _take_from_actor(keeper: Any, needed: Decimal) -> Decimal:
    amount: Decimal = import_optional("ray", install_command("ray")).get(keeper.take.remote(needed))
    return amount


def check_columns(known: Sequence[str], source: object, prefix: str, new: Sequence[str]) -> None:
    """Check the columns of a dataset before anything is sent: one to read, and none to be replaced."""
    if isinstance(source, str):
        if source not in known and "{" not in source:
            names = ", ".join(map(repr, known))
            raise RequestError(f"the dataset has no column {source!r}; it has {names}")
    elif not callable(source):  # a user without a type checker
        kind = type(source).__name__
        raise RequestError(
            f"a prompt is the name of a column, a template, or a function of a row, not {kind}"
        )
    replaced = [name for name in new if prefix + name in known]
    if replaced:
        raise RequestError(
            f"the dataset has a column {prefix + replaced[0]!r} already: prefix='answer_' gives the new "
            "columns other names"
        )


def _list_columns(worker: type[_Worker], parameters: JSONMapping) -> tuple[str, ...]:
    return worker.columns if parameters.get("response_format") is None else (*worker.columns, "parsed")


class _Worker:
    """What the actors of both functions have in common."""

    columns: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        model: str,
        source: PromptSource,
        *,
        settings: JSONMapping | None = None,
        prefix: str = "",
        **parameters: Any,
    ) -> None:
        self._model = model
        self._source = source
        self._prefix = prefix
        self._parameters = parameters
        own = dict(settings or {})
        if ledger := own.get("ledger") or os.environ.get("LLM_PROVIDER_LEDGER", "").strip():
            path, ray = Path(ledger), import_optional("ray", install_command("ray"))
            actor = ray.get_runtime_context().get_actor_id()
            # Each worker's file has its own name: several machines may share a disk.
            worker = str(actor or f"{platform.node()}-{os.getpid()}")
            own["ledger"] = path.with_name(f"{path.stem}.{worker}{path.suffix}")
        self._client = Client(**own)

    async def __call__(self, batch: Any) -> AsyncIterator[Any]:
        """Yield a batch, a `pyarrow.Table`, with the new columns."""
        names = _list_columns(type(self), self._parameters)
        columns: dict[str, list[Any]] = {name: [None] * batch.num_rows for name in names}
        prompts: dict[int, object] = {}
        for row, prompt in enumerate(self._prompts(batch)):
            if isinstance(prompt, Exception):
                columns["error"][row] = error_column(prompt)
            else:
                prompts[row] = prompt
        answers = await self._answer(list(prompts.values())) if prompts else []
        for row, values in zip(prompts, answers, strict=True):
            for name, value in values.items():
                columns[name][row] = value
        for name, column in columns.items():
            batch = batch.append_column(self._prefix + name, _array(name, column))
        yield batch

    @abstractmethod
    async def _ask(self, prompts: list[Any]) -> list[JSONObject]: ...

    async def _answer(self, prompts: list[Any]) -> list[JSONObject]:
        """The values of the new columns for each prompt. It never raises, which would end the job."""
        try:
            return await self._ask(prompts)
        except Exception as error:
            return [{"error": error_column(error)}] * len(prompts)

    def _prompts(self, batch: Any) -> list[object]:
        """The prompt of each row, or the error of making it."""
        source = self._source
        if isinstance(source, str) and source in batch.column_names:
            missing = RequestError(f"the column {source!r} has no value in this row")
            values = batch.column(source).to_pylist()
            return [missing if _is_missing(value) else value for value in values]
        return [_fill(source, row) for row in batch.to_pylist()]


class Caller(_Worker):
    """The actor class of `map_dataset`, for pipelines that you write yourself.

    Give it to `Dataset.map_batches` with `batch_format="pyarrow"`,
    `compute=ray.data.ActorPoolStrategy(size=n)` and `fn_constructor_kwargs`. It is asynchronous, so Ray runs
    several batches in it at the same time.

    Args:
        model: As for `call`.
        source: A column, a template or a function of a row, as the `prompt` of `map_dataset`.
        settings: The settings of its `Client`.
        prefix: The beginning of the names of the new columns.
        **parameters: As for `call_many`.
    """

    columns = ("text", "usage", "cost", "cached", "error")

    async def _ask(self, prompts: list[Any]) -> list[JSONObject]:
        results = await self._client.acall_many(
            self._model, prompts, **{"progress": False, **self._parameters}
        )
        rows = []
        for result in results:
            row: JSONObject = {"usage": asdict(result.usage) if result.usage else None, "cost": result.cost}
            if isinstance(result, LLMError):
                row["error"] = error_column(result)
            else:
                row |= {"text": result.text, "cached": result.cached}
                if self._parameters.get("response_format") is not None:
                    row["parsed"] = json_value(result.parsed)
            rows.append(row)
        return rows


class Embedder(_Worker):
    """The actor class of `embed_dataset`. It takes the arguments of `Caller`."""

    columns = ("embedding", "usage", "cost", "cached", "error")

    async def _ask(self, prompts: list[Any]) -> list[JSONObject]:
        try:
            answer = await self._client.aembed(self._model, prompts, **self._parameters)
        except RequestError:
            if len(prompts) == 1:
                raise
            # One text was refused. The others keep their vectors.
            half = len(prompts) // 2
            return [*await self._answer(prompts[:half]), *await self._answer(prompts[half:])]
        count = len(prompts)
        cost = None if answer.cost is None else answer.cost / count
        whole, rest = divmod(answer.usage.input_tokens, count)
        usages = [asdict(Usage(input_tokens=whole + (index < rest))) for index in range(count)]
        return [
            {"embedding": vector, "usage": usage, "cost": cost, "cached": answer.cached}
            for vector, usage in zip(answer.vectors, usages, strict=True)
        ]


def _fill(source: PromptSource, row: JSONObject) -> object:
    try:
        [prompt] = batch_inputs(source, [row]).prompts  # type: ignore[misc]  # a list for a list of rows
    except Exception as error:  # the user's function may raise anything
        return error
    return RequestError("the function returned no prompt for this row") if _is_missing(prompt) else prompt


def _is_missing(value: object) -> bool:
    return value is None or value != value  # noqa: PLR0124  # NaN


def error_column(error: BaseException) -> JSONObject:
    retryable = isinstance(error, LLMError) and error.retryable
    return {"type": type(error).__name__, "message": str(error), "retryable": bool(retryable)}


def _array(name: str, values: list[Any]) -> Any:
    """A column of a fixed type, so that batches without an error fit those that have one."""
    import pyarrow

    types = {
        "text": pyarrow.string(),
        "embedding": pyarrow.list_(pyarrow.float32()),
        "cost": pyarrow.float64(),
        "cached": pyarrow.bool_(),
        "usage": pyarrow.struct([(field, pyarrow.int64()) for field in _USAGE_FIELDS]),
        "error": pyarrow.struct(
            [("type", pyarrow.string()), ("message", pyarrow.string()), ("retryable", pyarrow.bool_())]
        ),
    }
    return pyarrow.array(values, types.get(name))
