"""The command `llm-provider cache`: lists, checks, copies and removes the answers stored on this machine."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .output import FAILED, OK, PROGRAM, say
from .parsing import Group, age, command

if TYPE_CHECKING:
    from .._cache.response_cache import ResponseCache


_EPILOG = f"""\
  {PROGRAM} cache stats
  {PROGRAM} cache prune --older-than 90d --dry-run

The cache is in the directory LLM_PROVIDER_CACHE_DIR, else in the user's cache directory of the platform.
"""


@click.command("cache", cls=Group, help="Manage the answers stored on this machine.", epilog=_EPILOG)
def cache() -> None:
    """Run the action that follows."""


@command("print the directory of the cache", f"  {PROGRAM} cache path\n")
def path() -> int:
    """Run `cache path`."""
    print(_cache().directory)
    return OK


@command("print the number of answers and their size", f"  {PROGRAM} cache stats --json | jq .entries\n")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; sizes are bytes")
def stats(*, as_json: bool) -> int:
    """Run `cache stats`."""
    with closing(_cache()) as opened:
        found = asdict(opened.stats())
        # The other statistics count this process's own lookups, of which there are none.
        shown: dict[str, Any] = {"path": str(opened.directory)} | {
            name: found[name] for name in ("entries", "bytes")
        }
    if as_json:
        print(json.dumps(shown))
    else:
        print(
            f"path     {shown['path']}\nanswers  {shown['entries']}\nsize     {shown['bytes'] / 1e6:.1f} MB"
        )
    return OK


@command("read every answer and compare it with its checksum", f"  {PROGRAM} cache verify\n")
def verify() -> int:
    """Run `cache verify`."""
    with closing(_cache()) as opened:
        found = opened.verify()
    print(f"{_answers(found.entries)} whole, {len(found.damaged)} damaged")
    for problem in (*found.problems, *found.damaged):
        say("error", problem)
    return OK if found else FAILED


@command(
    "write all answers to one file of JSON lines",
    f"FILE is written only once the export is complete.\n\n  {PROGRAM} cache export answers.jsonl\n",
)
@click.argument("file", metavar="FILE")
def export(file: str) -> int:
    """Run `cache export`."""
    with closing(_cache()) as opened:
        print(f"{_answers(opened.export(file))} written")
    return OK


@command(
    "add the answers of an exported file; answers that are already stored stay",
    f"FILE comes from `cache export`. It is checked before anything is added.\n\n"
    f"  {PROGRAM} cache import answers.jsonl\n",
)
@click.argument("file", metavar="FILE")
def load(file: str) -> int:
    """Run `cache import`."""
    with closing(_cache()) as opened:
        done = opened.load(file)
    print(f"{_answers(done.added)} added, {done.kept} here already")
    return OK


@command(
    "remove answers; the package removes none by itself",
    f"  {PROGRAM} cache prune --older-than 90d --dry-run\n",
)
@click.option(
    "--older-than",
    metavar="AGE",
    callback=age,
    help="remove answers older than this, such as 30d; units are s, m, h, d, w",
)
@click.option(
    "--model", metavar="MODEL", help="remove answers of this model, named as in the call or by its provider"
)
@click.option("--dry-run", is_flag=True, help="remove nothing, print the number of answers")
def prune(older_than: float | None, model: str | None, *, dry_run: bool) -> int:
    """Run `cache prune`."""
    with closing(_cache()) as opened:
        count = opened.prune(older_than=older_than, model=model, dry_run=dry_run)
    print(f"{_answers(count)} {'to be removed' if dry_run else 'removed'}")
    return OK


for _name, _action in {
    "path": path,
    "stats": stats,
    "verify": verify,
    "export": export,
    "import": load,
    "prune": prune,
}.items():
    cache.add_command(_action, _name)


def _answers(count: int) -> str:
    return f"{count} answer{'' if count == 1 else 's'}"


def _cache() -> ResponseCache:
    """The cache that `call` would use."""
    from .._cache.response_cache import ResponseCache

    return ResponseCache()
