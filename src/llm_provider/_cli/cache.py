"""The command `llm-provider cache`: lists, checks, copies and removes the answers stored on this machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .output import FAILED, OK

if TYPE_CHECKING:
    from .._cache.response_cache import ResponseCache

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}

AddCommand = Callable[[str, str], argparse.ArgumentParser]


def add_actions(add_command: AddCommand) -> None:
    """Declare the actions of the command.

    Args:
        add_command: Makes the parser of an action from its name and a description.
    """
    add_command("path", "print the directory of the cache").set_defaults(run=_path)
    stats = add_command("stats", "print the number of answers and their size")
    stats.add_argument("--json", action="store_true", help="print one JSON object; sizes are bytes")
    stats.set_defaults(run=_stats)
    add_command("verify", "read every answer and compare it with its checksum").set_defaults(run=_verify)
    export = add_command("export", "write all answers to one file of JSON lines")
    export.add_argument("file", metavar="FILE", help="written only once the export is complete")
    export.set_defaults(run=_export)
    load = add_command("import", "add the answers of an exported file; answers that are already stored stay")
    load.add_argument(
        "file", metavar="FILE", help="a file of `cache export`; it is checked before anything is added"
    )
    load.set_defaults(run=_import)
    prune = add_command("prune", "remove answers; the package removes none by itself")
    prune.add_argument(
        "--older-than",
        metavar="AGE",
        type=_seconds,
        help="remove answers older than this, such as 30d; units are s, m, h, d, w",
    )
    prune.add_argument(
        "--model",
        metavar="MODEL",
        help="remove answers of this model, named as in the call or by its provider",
    )
    prune.add_argument("--dry-run", action="store_true", help="remove nothing, print the number of answers")
    prune.set_defaults(run=_prune)


def _seconds(text: str) -> float:
    """Seconds of an age.

    >>> _seconds("30d")
    2592000.0
    """
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and unit in _UNITS):
        raise argparse.ArgumentTypeError("expected a number and one of s, m, h, d, w, such as 30d")
    return int(number) * _UNITS[unit]


def _path(_: argparse.Namespace) -> int:
    print(_cache().directory)
    return OK


def _stats(arguments: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        found = asdict(cache.stats())
        # The other statistics count this process's own lookups, of which there are none.
        shown: dict[str, Any] = {"path": str(cache.directory)} | {
            name: found[name] for name in ("entries", "bytes")
        }
    if arguments.json:
        print(json.dumps(shown))
    else:
        print(
            f"path     {shown['path']}\nanswers  {shown['entries']}\nsize     {shown['bytes'] / 1e6:.1f} MB"
        )
    return OK


def _verify(_: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        found = cache.verify()
    print(f"{_answers(found.entries)} whole, {len(found.damaged)} damaged")
    for problem in (*found.problems, *found.damaged):
        print(problem, file=sys.stderr)
    return OK if found else FAILED


def _export(arguments: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        print(f"{_answers(cache.export(arguments.file))} written")
    return OK


def _import(arguments: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        done = cache.load(arguments.file)
    print(f"{_answers(done.added)} added, {done.kept} here already")
    return OK


def _prune(arguments: argparse.Namespace) -> int:
    with closing(_cache()) as cache:
        count = cache.prune(older_than=arguments.older_than, model=arguments.model, dry_run=arguments.dry_run)
    print(f"{_answers(count)} {'to be removed' if arguments.dry_run else 'removed'}")
    return OK


def _answers(count: int) -> str:
    return f"{count} answer{'' if count == 1 else 's'}"


def _cache() -> ResponseCache:
    """The cache that `call` would use."""
    from .._cache.response_cache import ResponseCache

    return ResponseCache()
