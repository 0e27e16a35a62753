"""The command `llm-provider cache`: lists, checks, copies and removes the answers stored on this machine."""

import json
from contextlib import closing
from pathlib import Path
from typing import cast

import click

from ..._core.store.response_cache import ResponseCache
from ..cache_care.maintenance import Selection
from .output import FAILED, OK, PROGRAM, say
from .parsing import Group, parse_age

_EPILOG = f"""\
  {PROGRAM} cache stats
  {PROGRAM} cache prune --older-than 90d --dry-run

The cache is in the directory LLM_PROVIDER_CACHE_DIR, else in the user's cache directory of the platform.
"""
_IMPORT_EPILOG = f"""\
FILE comes from `cache export`. It is checked before anything is added.

  {PROGRAM} cache import answers.jsonl
"""
_EXPORT_EPILOG = f"""\
FILE is written only once the export is complete, and `cache import` reads it. `export` writes evidence that
a stranger checks instead.

  {PROGRAM} cache export answers.jsonl
  {PROGRAM} cache export study.jsonl --tag study --ledger costs.jsonl
"""
_VERIFY_EPILOG = f"""\
`verify` checks a file of evidence instead.

  {PROGRAM} cache verify
"""
_OLDER_THAN = "remove answers older than this, such as 30d; units are s, m, h, d, w"
_MODEL = "remove answers of this model, named as in the call or by its provider"


@click.group(cls=Group, epilog=_EPILOG)
def run_cache() -> None:
    """Manage the answers stored on this machine."""


@run_cache.command("path", epilog=f"  {PROGRAM} cache path\n")
def _print_path() -> None:
    """Print the directory of the cache."""
    print(ResponseCache().directory)


@run_cache.command("stats", epilog=f"  {PROGRAM} cache stats --json | jq .entries\n")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; sizes are bytes")
def _print_stats(*, as_json: bool) -> None:
    """Print the number of answers and their size."""
    with closing(ResponseCache()) as cache:
        # The other statistics count the lookups of this process, which makes none.
        path, stats = str(cache.directory), cache.stats()
    if as_json:
        print(json.dumps({"path": path, "entries": stats.entries, "bytes": stats.bytes}))
    else:
        print(f"path     {path}\nanswers  {stats.entries}\nsize     {stats.bytes / 1e6:.1f} MB")


@run_cache.command("verify", epilog=_VERIFY_EPILOG)
def _verify() -> int:
    """Compare every stored answer with its checksum."""
    with closing(ResponseCache()) as cache:
        report = cache.verify()
    print(f"{_count(report.entries)} whole, {len(report.damaged)} damaged")
    for problem in (*report.problems, *report.damaged):
        say("error", problem)
    return OK if report else FAILED


@run_cache.command("export", epilog=_EXPORT_EPILOG, rules={"--ledger": "needs --tag"})
@click.argument("file", metavar="FILE")
@click.option(
    "--results", metavar="FILE", type=Path, help="only the answers in a file of `to_jsonl` or `map`"
)
@click.option("--model", metavar="MODEL", help="only the answers of this model")
@click.option("--tag", metavar="TAG", help="only the answers of this `track` block")
@click.option("--ledger", metavar="FILE", help="the ledger with the keys of the tag (LLM_PROVIDER_LEDGER)")
def _export(file: str, results: Path | None, **selection: str | None) -> None:
    """Write answers to one file of JSON lines, for another cache."""
    from .answer_files import read_answers

    answers = None if results is None else read_answers(results)
    given = cast("Selection", {"results": answers, **selection})
    with closing(ResponseCache()) as cache:
        written = cache.export(file, **given)
        print(f"{_count(written)} written")
        if not written:
            say("warning", f"nothing of this is in the cache {cache.directory} (LLM_PROVIDER_CACHE_DIR)")


@run_cache.command("import", epilog=_IMPORT_EPILOG)
@click.argument("file", metavar="FILE")
def _import(file: str) -> None:
    """Add the answers of an exported file; answers that are already stored stay."""
    with closing(ResponseCache()) as cache:
        done = cache.load(file)
    print(f"{_count(done.added)} added, {done.kept} here already")


@run_cache.command("prune", epilog=f"  {PROGRAM} cache prune --older-than 90d --dry-run\n")
@click.option("--older-than", metavar="AGE", type=parse_age, help=_OLDER_THAN)
@click.option("--model", metavar="MODEL", help=_MODEL)
@click.option("--dry-run", is_flag=True, help="remove nothing, print the number of answers")
def _prune(older_than: float | None, model: str | None, *, dry_run: bool) -> None:
    """Remove answers; the package removes none by itself."""
    with closing(ResponseCache()) as cache:
        count = cache.prune(older_than=older_than, model=model, dry_run=dry_run)
    print(f"{_count(count)} {'to be removed' if dry_run else 'removed'}")


def _count(answers: int) -> str:
    return f"{answers} answer{'' if answers == 1 else 's'}"
