"""The arguments of `call_many` by what it returns, for its overloads. Nothing imports this at run time."""

from __future__ import annotations

from typing import Literal, Required, TypedDict

from .._requests.parameters import BatchCommon, BatchParameters, UntypedBatch
from .batch_arguments import OnError


class _Return(TypedDict, total=False):
    on_error: Literal["return"]
    dry_run: Literal[False]
    wait: Literal[True]


class _Raise(TypedDict, total=False):
    on_error: Required[Literal["raise"]]
    dry_run: Literal[False]
    wait: Literal[True]


class UntypedReturn(UntypedBatch, _Return, total=False):
    """For `Results` with errors in place."""


class TypedReturn(BatchCommon, _Return, total=False):
    """For `Results` with errors in place, with the type of `parsed`."""


class UntypedRaise(UntypedBatch, _Raise, total=False):
    """For `Results` without errors."""


class TypedRaise(BatchCommon, _Raise, total=False):
    """For `Results` without errors, with the type of `parsed`."""


class DryRun(BatchParameters, total=False):
    """For an `Estimate`."""

    on_error: OnError
    dry_run: Required[Literal[True]]
    wait: bool


class Submission(BatchParameters, total=False):
    """For a `Batch`."""

    on_error: OnError
    dry_run: Literal[False]
    wait: Required[Literal[False]]
