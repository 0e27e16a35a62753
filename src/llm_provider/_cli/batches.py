"""The command `llm-provider batches`: lists, awaits, cancels and collects the batches of this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .output import FAILED, INCOMPLETE_ANSWER, OK, PROGRAM, say, when_interrupted
from .parsing import Group, command

if TYPE_CHECKING:
    from .._batches.handle import Batch
    from .._client.client import Client

_EPILOG = f"""\
  {PROGRAM} batches               # the same as `{PROGRAM} batches list`
  {PROGRAM} batches status        # asks the providers, and waits for nothing
  {PROGRAM} batches wait          # all that are under way
  {PROGRAM} batches cancel 3f9a1c

An ID is that of the list or of the provider. It may be shortened as long as only one batch begins so.
Batches are those that were submitted with this cache directory (LLM_PROVIDER_CACHE_DIR), by any process.
"""
_RESUMES = "the batches go on at their providers; the same command waits for them again"

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


@click.command(
    "batches",
    cls=Group,
    help="List, await, cancel and collect batches. Without an action it lists them.",
    epilog=_EPILOG,
    invoke_without_command=True,
)
@_json_option
@click.pass_context
def batches(context: click.Context, *, as_json: bool) -> int:
    """List the batches if no action follows."""
    return _list(as_json=as_json) if context.invoked_subcommand is None else OK


@command("print the batches; asks no provider", f"  {PROGRAM} batches list --json | jq .status\n")
@_json_option
def list_batches(*, as_json: bool) -> int:
    """Run `batches list`."""
    return _list(as_json=as_json)


def _list(*, as_json: bool) -> int:
    with _client() as client:
        shown = [_facts(batch) for batch in client.batches()]
    _print(shown, as_json=as_json)
    return OK


def _print(shown: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for facts in shown:
            print(json.dumps(facts))
    elif not shown:
        print("no batches", file=sys.stderr)
    else:
        columns = ("id", "created", "provider", "model", "status", "rows", "done", "failed", "batches")
        table = [columns, *(tuple(_cell(facts[name]) for name in columns) for facts in shown)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            print("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())


def _facts(batch: Batch) -> dict[str, Any]:
    counts = batch.counts
    created = batch.created
    return {
        "id": batch.id,
        "created": None if created is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(created)),
        "provider": batch.provider,
        "model": batch.model,
        "status": batch.last_status,
        "rows": counts.total,
        "done": counts.done,
        "failed": counts.failed,
        "batches": [f"{name} ({state})" for name, state in batch.states.items()],
    }


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else "" if value is None else str(value)


@command(
    "ask the providers how far batches are; waits for none",
    f"Without an ID it asks for all that are under way.\n\n  {PROGRAM} batches status 3f9a1c\n",
)
@_json_option
@_any_ids
def status(ids: tuple[str, ...], *, as_json: bool) -> int:
    """Run `batches status`."""
    from .._errors import LLMError

    with _client() as client:
        code, shown = OK, []
        for batch in _chosen(client, ids):
            if batch.done and not ids:
                continue
            if not batch.done:
                try:
                    batch.refresh(patience=0.0)
                except LLMError as error:
                    say("error", f"{batch.id}: {error}")
                    code = FAILED
            shown.append(_facts(batch))
        _print(shown, as_json=as_json)
        return code


@command(
    "wait until batches have ended, and store their answers in the cache",
    f"Without an ID it waits for all that are under way.\n\n  {PROGRAM} batches wait 3f9a1c\n",
)
@_any_ids
def wait(ids: tuple[str, ...]) -> int:
    """Run `batches wait`."""
    with when_interrupted(_RESUMES), _client() as client:
        code = OK
        for batch in _chosen(client, ids):
            if ids or not batch.done:
                code = max(code, _collected(batch))
        return code


@command(
    "store the answers of batches that have ended; waits for none",
    f"Without an ID it collects all that are under way.\n\n  {PROGRAM} batches collect\n",
)
@_any_ids
def collect(ids: tuple[str, ...]) -> int:
    """Run `batches collect`."""
    with when_interrupted(_RESUMES), _client() as client:
        code = OK
        for batch in _chosen(client, ids):
            if batch.done and not ids:
                continue
            status = batch.status
            if status in ("ended", "completed"):
                code = max(code, _collected(batch))
            else:
                print(f"{batch.id}: {status}, {batch.counts.done} of {batch.counts.total} rows done")
        return code


def _collected(batch: Batch) -> int:
    """Store the answers of a batch, and print how its rows ended."""
    from .._errors import LLMError, PendingBatchError

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


@command(
    "end batches early; rows that are done are billed and keep their answers",
    f"  {PROGRAM} batches cancel 3f9a1c\n",
)
@_some_ids
def cancel(ids: tuple[str, ...]) -> int:
    """Run `batches cancel`."""
    with _client() as client:
        for batch in _chosen(client, ids):
            if batch.cancel():
                stored = "`batches wait` stores the rows that are done"
                print(f"{batch.id}: asked its provider to cancel it; {stored}")
            else:
                print(f"{batch.id}: nothing is left to cancel, {_ENDS[batch.last_status]}")
    return OK


@command(
    "say which of the provider's batches a submission of unknown outcome is",
    f"  {PROGRAM} batches claim 3f9a1c batch_68a1\n",
)
@click.argument("batch_id", metavar="ID")
@click.argument("providers_id", metavar="PROVIDERS_ID")
def claim(batch_id: str, providers_id: str) -> int:
    """Run `batches claim`."""
    with _client() as client:
        (batch,) = _chosen(client, [batch_id])
        batch.claim(providers_id)
        print(f"{batch.id}: is {providers_id}")
    return OK


@command(
    "do not wait for batches any more; their rows are submitted again",
    f"  {PROGRAM} batches forget 3f9a1c\n",
)
@_some_ids
def forget(ids: tuple[str, ...]) -> int:
    """Run `batches forget`."""
    with _client() as client:
        for batch in _chosen(client, ids):
            batch.forget()
            print(f"{batch.id}: forgotten")
    return OK


for _name, _action in {
    "list": list_batches,
    "status": status,
    "wait": wait,
    "collect": collect,
    "cancel": cancel,
    "claim": claim,
    "forget": forget,
}.items():
    batches.add_command(_action, _name)


def _chosen(client: Client, ids: Sequence[str]) -> list[Batch]:
    """The batches of some names, or all of them.

    Raises:
        RequestError: there is none of a name, or there are several.
    """
    found = client.batches()
    if not ids:
        return found
    return list(dict.fromkeys(_named(found, name) for name in ids))


def _named(batches: Sequence[Batch], name: str) -> Batch:
    """The batch of a name, or of the beginning of one.

    Raises:
        RequestError: there is none, or there are several.
    """
    from .._errors import RequestError

    # An error names a single batch of a job.
    names = {batch: (batch.id, *batch.record_ids, *batch.batch_ids) for batch in batches}
    found = [batch for batch, known in names.items() if name in known]
    found = found or [batch for batch, known in names.items() if any(one.startswith(name) for one in known)]
    if not name or not found:
        raise RequestError(f"no batch {name} here; `{PROGRAM} batches list` shows them")
    if len(found) > 1:
        meant = ", ".join(batch.id for batch in found[:5])
        raise RequestError(f"{name} is the beginning of {len(found)} batches: {meant}; write more of its ID")
    return found[0]


def _client() -> Client:
    from .._client.client import Client

    return Client()
