"""The command `llm-provider cache`: what is kept on this machine, and looking after it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._cache.response_cache import ResponseCache

WHOLE = 0
DAMAGED = 1

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}

AddCommand = Callable[[str, str], argparse.ArgumentParser]


def add_actions(add_command: AddCommand) -> None:
    """Describe the actions on the command line.

    Args:
        add_command: Makes the parser of an action out of its name and what it does.
    """
    add_command("path", "print the directory that holds them").set_defaults(run=_path)
    stats = add_command("stats", "print how many there are and what they take")
    stats.add_argument("--json", action="store_true", help="print one JSON object; sizes are bytes")
    stats.set_defaults(run=_stats)
    add_command("verify", "read every answer and compare it with its checksum").set_defaults(run=_verify)
    export = add_command("export", "write all answers to one file of JSON lines")
    export.add_argument("file", metavar="FILE", help="appears, or is replaced, when it is complete")
    export.set_defaults(run=_export)
    load = add_command("import", "add the answers of an exported file; those that are here already stay")
    load.add_argument("file", metavar="FILE", help="all of it is checked before anything is added")
    load.set_defaults(run=_import)
    prune = add_command("prune", "remove answers; nothing else ever does")
    prune.add_argument("--older-than", metavar="AGE", type=_seconds, help="such as 30d; s, m, h, d or w")
    prune.add_argument("--model", metavar="MODEL", help="as it was asked for, or as its provider names it")
    prune.add_argument("--dry-run", action="store_true", help="only count them")
    prune.set_defaults(run=_prune)


def _seconds(text: str) -> float:
    """An age.

    >>> _seconds("30d")
    2592000.0
    """
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and unit in _UNITS):
        raise argparse.ArgumentTypeError("expected a number and one of s, m, h, d, w, such as 30d")
    return int(number) * _UNITS[unit]


def _path(_: argparse.Namespace) -> int:
    print(_cache().directory)
    return WHOLE


def _stats(arguments: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        found = asdict(cache.stats())
        # The others count what this process did, which is nothing.
        shown: dict[str, Any] = {"path": str(cache.directory)} | {
            name: found[name] for name in ("entries", "bytes")
        }
    if arguments.json:
        print(json.dumps(shown))
    else:
        print(
            f"path     {shown['path']}\nanswers  {shown['entries']}\nsize     {shown['bytes'] / 1e6:.1f} MB"
        )
    return WHOLE


def _verify(_: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        found = cache.verify()
    print(f"{_answers(found.entries)} whole, {len(found.damaged)} damaged")
    for problem in (*found.problems, *found.damaged):
        print(problem, file=sys.stderr)
    return WHOLE if found else DAMAGED


def _export(arguments: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        print(f"{_answers(cache.export(arguments.file))} written")
    return WHOLE


def _import(arguments: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        done = cache.load(arguments.file)
    print(f"{_answers(done.added)} added, {done.kept} here already")
    return WHOLE


def _prune(arguments: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        count = cache.prune(older_than=arguments.older_than, model=arguments.model, dry_run=arguments.dry_run)
    print(f"{_answers(count)} {'to be removed' if arguments.dry_run else 'removed'}")
    return WHOLE


def _answers(count: int) -> str:
    return f"{count} answer{'' if count == 1 else 's'}"


def _cache() -> ResponseCache:
    """The cache that `call` would use."""
    # Here, as `--help` needs nothing of it.
    from .._cache.response_cache import ResponseCache

    return ResponseCache()
