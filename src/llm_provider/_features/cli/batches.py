"""The command `llm-provider batches`: lists, awaits, cancels and collects the batches of this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import click

from ..._core.errors import LLMError, PendingBatchError, RequestError
from .output import FAILED, INCOMPLETE_ANSWER, OK, PROGRAM, print_table, say, when_interrupted
from .parsing import Group

if TYPE_CHECKING:
    from ..._core.batches.handle import Batch
    from ..._core.client.client import Client

_EPILOG = f"""\
  {PROGRAM} batches               # the same as `{PROGRAM} batches list`
  {PROGRAM} batches status        # asks the providers, and waits for nothing
  {PROGRAM} batches wait          # all that are under way
  {PROGRAM} batches cancel 3f9a1c

An ID is that of the list or of the provider. It may be shortened as long as only one batch begins so.
Batches are those that were submitted with this cache directory (LLM_PROVIDER_CACHE_DIR), by any process.
"""
_RESUMES = "the batches go on at their providers; the same command waits for them again"

_ALL = f"Without an ID it {{verb}} for all that are under way.\n\n  {PROGRAM} batches {{example}}\n"

_ENDS = {
    "completed": "it has ended and its answers are stored",
    "ended": "it has ended; `batches collect` stores its answers",
    "forgotten": "it was forgotten",
    "submitting": "it was not submitted",
    "in_progress": "a part of it was not submitted",
}
"""By status: why a batch was not cancelled."""

_json_option = click.option("--json", "as_json", is_flag=True, help="print one JSON object per line")
_some_ids = click.argument("ids", metavar="ID...", nargs=-1, required=True)
_any_ids = click.argument("ids", metavar="[ID]...", nargs=-1)


@click.group(cls=Group, epilog=_EPILOG, invoke_without_command=True)
@_json_option
@click.pass_context
def run_batches(context: click.Context, *, as_json: bool) -> None:
    """List, await, cancel and collect batches. Without an action it lists them."""
    if context.invoked_subcommand is None:
        context.invoke(_list, as_json=as_json)
    elif as_json:
        context.fail("--json goes behind the ACTION")


@run_batches.command("list", epilog=f"  {PROGRAM} batches list --json | jq .status\n")
@_json_option
def _list(*, as_json: bool) -> None:
    """Print the batches; asks no provider."""
    with _open_client() as client:
        rows = [_as_object(batch) for batch in client.batches()]
    _print(rows, as_json=as_json)


def _print(rows: Sequence[dict[str, object]], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(row))
    elif rows:
        lists = [row | {"batches": ", ".join(cast("list[str]", row["batches"]))} for row in rows]
        texts = [["" if cell is None else str(cell) for cell in row.values()] for row in lists]
        print_table(list(rows[0]), texts, left=rows[0])
    else:
        print("no batches", file=sys.stderr)


def _as_object(batch: Batch) -> dict[str, object]:
    counts, created = batch.counts, batch.created
    moment = None if created is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(created))
    named = {"id": batch.id, "created": moment, "provider": batch.provider, "model": batch.model}
    numbers = {"rows": counts.total, "done": counts.done, "failed": counts.failed}
    states = [f"{name} ({state})" for name, state in batch.states.items()]
    return {**named, "status": batch.last_status, **numbers, "batches": states}


@run_batches.command("status", epilog=_ALL.format(verb="asks", example="status 3f9a1c"))
@_json_option
@_any_ids
def _status(ids: tuple[str, ...], *, as_json: bool) -> int:
    """Ask the providers how far batches are; waits for none."""
    with _open_client() as client:
        code, rows = OK, []
        for batch in _select(client, ids):
            if not batch.done:
                try:
                    batch.refresh(patience=0.0)
                except LLMError as error:
                    say("error", f"{batch.id}: {error}")
                    code = FAILED
            rows.append(_as_object(batch))
        _print(rows, as_json=as_json)
        return code


@run_batches.command("wait", epilog=_ALL.format(verb="waits", example="wait 3f9a1c"))
@_any_ids
def _wait(ids: tuple[str, ...]) -> int:
    """Wait until batches have ended, and store their answers in the cache."""
    with when_interrupted(_RESUMES), _open_client() as client:
        return max((_store_answers(batch) for batch in _select(client, ids)), default=OK)


@run_batches.command("collect", epilog=_ALL.format(verb="collects", example="collect"))
@_any_ids
def _collect(ids: tuple[str, ...]) -> int:
    """Store the answers of batches that have ended; waits for none."""
    with when_interrupted(_RESUMES), _open_client() as client:
        code = OK
        for batch in _select(client, ids):
            status = batch.status
            if status in ("ended", "completed"):
                code = max(code, _store_answers(batch))
            else:
                print(f"{batch.id}: {status}, {batch.counts.done} of {batch.counts.total} rows done")
        return code


def _store_answers(batch: Batch) -> int:
    try:
        results = batch.results()
    except PendingBatchError as pending:
        # The others are collected all the same.
        say("warning", f"{batch.id}: {pending}")
        return INCOMPLETE_ANSWER
    errors = [result for result in results if isinstance(result, LLMError)]
    print(f"{batch.id}: {len(results) - len(errors)} of {len(results)} rows answered")
    for error in errors[:3]:
        say("error", f"{type(error).__name__}: {error}")
    return INCOMPLETE_ANSWER if errors else OK


@run_batches.command("cancel", epilog=f"  {PROGRAM} batches cancel 3f9a1c\n")
@_some_ids
def _cancel(ids: tuple[str, ...]) -> None:
    """End batches early; rows that are done are billed and keep their answers."""
    with _open_client() as client:
        for batch in _select(client, ids):
            if batch.cancel():
                stored = "`batches wait` stores the rows that are done"
                print(f"{batch.id}: asked its provider to cancel it; {stored}")
            else:
                print(f"{batch.id}: nothing is left to cancel, {_ENDS[batch.last_status]}")


@run_batches.command("claim", epilog=f"  {PROGRAM} batches claim 3f9a1c batch_68a1\n")
@click.argument("batch_id", metavar="ID")
@click.argument("providers_id", metavar="PROVIDERS_ID")
def _claim(batch_id: str, providers_id: str) -> None:
    """Say which of the provider's batches a submission of unknown outcome is."""
    with _open_client() as client:
        (batch,) = _select(client, [batch_id])
        batch.claim(providers_id)
        print(f"{batch.id}: is {providers_id}")


@run_batches.command("forget", epilog=f"  {PROGRAM} batches forget 3f9a1c\n")
@_some_ids
def _forget(ids: tuple[str, ...]) -> None:
    """Do not wait for batches any more; their rows are submitted again."""
    with _open_client() as client:
        for batch in _select(client, ids):
            batch.forget()
            print(f"{batch.id}: forgotten")


def _select(client: Client, ids: Sequence[str]) -> Iterator[Batch]:
    """The batches of some names, each once; without names all that are under way."""
    batches = client.batches()
    if ids:
        yield from list(dict.fromkeys(_find(batches, name) for name in ids))
    else:
        yield from (batch for batch in batches if not batch.done)


def _find(batches: Sequence[Batch], name: str) -> Batch:
    """The one batch of a name, or of the beginning of one."""
    # An error names a single batch of a job.
    names = {batch: (batch.id, *batch.record_ids, *batch.batch_ids) for batch in batches}
    matches = [batch for batch, known in names.items() if name in known]
    begins = [batch for batch, known in names.items() if any(each.startswith(name) for each in known)]
    matches = matches or begins
    if not name or not matches:
        raise RequestError(f"no batch {name} here; `{PROGRAM} batches list` shows them")
    if len(matches) > 1:
        meant = ", ".join(batch.id for batch in matches[:5])
        raise RequestError(
            f"{name} is the beginning of {len(matches)} batches: {meant}; write more of its ID"
        )
    return matches[0]


def _open_client() -> Client:
    from ..._core.client.client import Client

    return Client()
