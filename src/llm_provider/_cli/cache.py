"""The command `llm-provider cache`: lists, checks, copies and removes the answers stored on this machine."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import click

from .output import FAILED, OK, PROGRAM, say
from .parsing import Group, parse_age

if TYPE_CHECKING:
    from .._cache.response_cache import ResponseCache


_EPILOG = f"""\
  {PROGRAM} cache stats
  {PROGRAM} cache prune --older-than 90d --dry-run

The cache is in the directory LLM_PROVIDER_CACHE_DIR, else in the user's cache directory of the platform.
"""
_IMPORT_EPILOG = f"""\
FILE comes from `cache export`. It is checked before anything is added.

  {PROGRAM} cache import answers.jsonl
"""
_OLDER_THAN = "remove answers older than this, such as 30d; units are s, m, h, d, w"
_MODEL = "remove answers of this model, named as in the call or by its provider"


@click.group(cls=Group, epilog=_EPILOG)
def run_cache() -> None:
    """Manage the answers stored on this machine."""


@run_cache.command("path", epilog=f"  {PROGRAM} cache path\n")
def _print_path() -> None:
    """Print the directory of the cache."""
    print(_open().directory)


@run_cache.command("stats", epilog=f"  {PROGRAM} cache stats --json | jq .entries\n")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; sizes are bytes")
def _print_stats(*, as_json: bool) -> None:
    """Print the number of answers and their size."""
    with closing(_open()) as cache:
        # The other statistics count the lookups of this process, which makes none.
        path, stats = str(cache.directory), cache.stats()
    if as_json:
        print(json.dumps({"path": path, "entries": stats.entries, "bytes": stats.bytes}))
    else:
        print(f"path     {path}\nanswers  {stats.entries}\nsize     {stats.bytes / 1e6:.1f} MB")


@run_cache.command("verify", epilog=f"  {PROGRAM} cache verify\n")
def _verify() -> int:
    """Read every answer and compare it with its checksum."""
    with closing(_open()) as cache:
        report = cache.verify()
    print(f"{_count(report.entries)} whole, {len(report.damaged)} damaged")
    for problem in (*report.problems, *report.damaged):
        say("error", problem)
    return OK if report else FAILED


@run_cache.command(
    "export",
    epilog=f"FILE is written only once the export is complete.\n\n  {PROGRAM} cache export answers.jsonl\n",
)
@click.argument("file", metavar="FILE")
def _export(file: str) -> None:
    """Write all answers to one file of JSON lines."""
    with closing(_open()) as cache:
        print(f"{_count(cache.export(file))} written")


@run_cache.command("import", epilog=_IMPORT_EPILOG)
@click.argument("file", metavar="FILE")
def _import(file: str) -> None:
    """Add the answers of an exported file; answers that are already stored stay."""
    with closing(_open()) as cache:
        done = cache.load(file)
    print(f"{_count(done.added)} added, {done.kept} here already")


@run_cache.command("prune", epilog=f"  {PROGRAM} cache prune --older-than 90d --dry-run\n")
@click.option("--older-than", metavar="AGE", type=parse_age, help=_OLDER_THAN)
@click.option("--model", metavar="MODEL", help=_MODEL)
@click.option("--dry-run", is_flag=True, help="remove nothing, print the number of answers")
def _prune(older_than: float | None, model: str | None, *, dry_run: bool) -> None:
    """Remove answers; the package removes none by itself."""
    with closing(_open()) as cache:
        count = cache.prune(older_than=older_than, model=model, dry_run=dry_run)
    print(f"{_count(count)} {'to be removed' if dry_run else 'removed'}")


def _count(answers: int) -> str:
    return f"{answers} answer{'' if answers == 1 else 's'}"


def _open() -> ResponseCache:
    """The cache that `call` would use."""
    from .._cache.response_cache import ResponseCache

    return ResponseCache()
