"""The command `llm-provider batches`: lists, awaits, cancels and collects the batches of this machine."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .output import INCOMPLETE_ANSWER, OK

if TYPE_CHECKING:
    from .._batches.handle import Batch
    from .._client.client import Client

HELP = """\
Batches are those that were submitted with this cache directory (LLM_PROVIDER_CACHE_DIR), by any process.
"""

AddCommand = Callable[[str, str], argparse.ArgumentParser]


def add_actions(batches: argparse.ArgumentParser, add_command: AddCommand) -> None:
    """Declare the actions of the command.

    Args:
        batches: The parser of the command itself, which lists.
        add_command: Makes the parser of an action from its name and a description.
    """
    listing = add_command("list", "print the batches; asks no provider")
    for parser in (batches, listing):
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")
        parser.set_defaults(run=_list)
    wait = add_command("wait", "wait until batches have ended, and store their answers in the cache")
    _add_ids(wait)
    wait.set_defaults(run=_wait)
    collect = add_command("collect", "store the answers of batches that have ended; waits for none")
    _add_ids(collect)
    collect.set_defaults(run=_collect)
    cancel = add_command("cancel", "end batches early; rows that are done are billed and keep their answers")
    _add_ids(cancel, all_of_them=False)
    cancel.set_defaults(run=_cancel)
    claim = add_command("claim", "say which of the provider's batches a submission of unknown outcome is")
    claim.add_argument("id", metavar="ID", help="the batch, as `list` shows it")
    claim.add_argument("batch", metavar="PROVIDERS_ID", help="its name at the provider")
    claim.set_defaults(run=_claim)
    forget = add_command("forget", "do not wait for batches any more; their rows are submitted again")
    _add_ids(forget, all_of_them=False)
    forget.set_defaults(run=_forget)


def _add_ids(parser: argparse.ArgumentParser, *, all_of_them: bool = True) -> None:
    text = "a batch, as `list` shows it" + ("; default all that are under way" if all_of_them else "")
    parser.add_argument("ids", metavar="ID", nargs="*" if all_of_them else "+", help=text)


def _list(arguments: argparse.Namespace) -> int:
    with _client() as client:
        shown = [_facts(batch) for batch in client.batches()]
    if arguments.json:
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
    return OK


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


def _wait(arguments: argparse.Namespace) -> int:
    with _client() as client:
        code = OK
        for batch in _chosen(client, arguments.ids):
            if arguments.ids or not batch.done:
                code = max(code, _collected(batch))
        return code


def _collect(arguments: argparse.Namespace) -> int:
    with _client() as client:
        code = OK
        for batch in _chosen(client, arguments.ids):
            if batch.done and not arguments.ids:
                continue
            status = batch.status
            if status in ("ended", "completed"):
                code = max(code, _collected(batch))
            else:
                print(f"{batch.id}: {status}, {batch.counts.done} of {batch.counts.total} rows done")
        return code


def _collected(batch: Batch) -> int:
    """Store the answers of a batch, and print how its rows ended."""
    from .._errors import LLMError

    results = batch.results()
    errors = [result for result in results if isinstance(result, LLMError)]
    print(f"{batch.id}: {len(results) - len(errors)} of {len(results)} rows answered")
    for error in errors[:3]:
        print(f"  {type(error).__name__}: {error}", file=sys.stderr)
    return INCOMPLETE_ANSWER if errors else OK


def _cancel(arguments: argparse.Namespace) -> int:
    with _client() as client:
        for batch in _chosen(client, arguments.ids):
            batch.cancel()
            print(
                f"{batch.id}: asked its provider to cancel it; `batches wait` stores the rows that are done"
            )
    return OK


def _claim(arguments: argparse.Namespace) -> int:
    with _client() as client:
        (batch,) = _chosen(client, [arguments.id])
        batch.claim(arguments.batch)
        print(f"{batch.id}: is {arguments.batch}")
    return OK


def _forget(arguments: argparse.Namespace) -> int:
    with _client() as client:
        for batch in _chosen(client, arguments.ids):
            batch.forget()
            print(f"{batch.id}: forgotten")
    return OK


def _chosen(client: Client, ids: Sequence[str]) -> list[Batch]:
    """The batches of some names, or all of them.

    Raises:
        RequestError: there is none of a name.
    """
    from .._errors import RequestError

    found = {batch.id: batch for batch in client.batches()}
    # An error names a single batch of a job.
    found |= {name: batch for batch in list(found.values()) for name in (*batch.record_ids, *batch.batch_ids)}
    unknown = [name for name in ids if name not in found]
    if unknown:
        raise RequestError(f"no batch {', '.join(unknown)} here; `llm-provider batches list` shows them")
    return list(dict.fromkeys(found[name] for name in ids)) if ids else list(dict.fromkeys(found.values()))


def _client() -> Client:
    from .._client.client import Client

    return Client()
