"""Runs scenarios and reports: `python -m benchmarks calls --write`, from the root of the repository."""

from __future__ import annotations

import argparse
import ast
import importlib
import shlex
import sys
import time
from pathlib import Path

from . import report
from .fleet import WorkerError
from .scenarios import Options

SCENARIOS = Path(__file__).parent / "scenarios"


def descriptions() -> dict[str, str]:
    """Every scenario with the first line of its docstring; no scenario is imported."""
    found = {}
    for path in sorted(SCENARIOS.glob("[!_]*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.stem] = text.partition("\n")[0]
    return found


def parser() -> argparse.ArgumentParser:
    """The command line."""
    known = descriptions()
    listed = "\n".join(f"  {name:14} {text}" for name, text in known.items())
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measure one scenario, or all of them; environments are created on first use.",
        epilog=f"scenarios:\n{listed}\n  {'all':14} all of these scenarios\n"
        f"  {'compare':14} this checkout against the one in DIRECTORY: CPU per call, in alternating rounds\n"
        f"  {'report':14} write docs/performance.md and docs/performance-data.md from the committed results",
    )
    made.add_argument("scenario", choices=[*known, "all", "compare", "report"], metavar="scenario")
    made.add_argument("directory", type=Path, nargs="?", help="another checkout of this repository (compare)")
    made.add_argument("--clients", help="only these clients, comma-separated, e.g. aiohttp,litellm,ours")
    made.add_argument("--rounds", type=int, help="repeats of every measurement (default: the scenario's own)")
    made.add_argument("--quick", action="store_true", help="a few requests only, to check that it works")
    made.add_argument(
        "--here", action="store_true", help="run every client in this environment instead of its own"
    )
    made.add_argument("--write", action="store_true", help="write benchmarks/results/<scenario>.*")
    made.add_argument("--model", action="append", default=[], help="a model to ask (models, transports)")
    made.add_argument("--live", action="store_true", help="ask the real providers: this costs money")
    made.add_argument("--minutes", type=float, help="length of the soak (default: 5)")
    made.add_argument("--path", metavar="JOURNEY", help="list the files of one journey in order (journeys)")
    return made


def command(scenario: str, options: Options) -> str:
    """The command line that measures a result again.

    >>> command("calls", Options(rounds=3))
    'python -m benchmarks calls --rounds 3 --write'
    """
    words = ["python", "-m", "benchmarks", scenario]
    if options.clients:
        words += ["--clients", ",".join(options.clients)]
    if options.rounds:
        words += ["--rounds", str(options.rounds)]
    words += ["--here"] if options.here else []
    for model in options.models:
        words += ["--model", model]
    words += ["--live"] if options.live else []
    words += ["--minutes", f"{options.minutes:g}"] if options.minutes else []
    if options.path:
        return shlex.join([*words, "--path", options.path])
    return shlex.join([*words, "--quick" if options.quick else "--write"])


def main() -> int:
    """Run the command line; 1 if the worker of a client failed."""
    arguments = parser().parse_args()
    if arguments.quick and arguments.write:
        parser().error("the figures of a quick run mean nothing, so they are not written")
    if (arguments.scenario == "compare") != (arguments.directory is not None):
        parser().error("compare needs the directory of another checkout, and nothing else takes one")
    if arguments.minutes is not None and (arguments.scenario != "soak" or not arguments.minutes > 0):
        parser().error("--minutes is a positive number, and for the soak only")
    if arguments.path is not None and (arguments.scenario != "journeys" or arguments.write):
        parser().error("--path is for journeys only, and lists what is not written")
    if arguments.directory is not None and not (arguments.directory / "benchmarks" / "worker.py").is_file():
        parser().error(f"{arguments.directory} is not a checkout of this repository")
    if arguments.scenario == "compare" and (arguments.write or arguments.clients):
        parser().error("compare takes neither --write nor --clients")
    if arguments.scenario == "report":
        print(*report.write_pages(), sep="\n")
        return 0
    options = Options(
        clients=tuple(arguments.clients.split(",")) if arguments.clients else None,
        rounds=arguments.rounds,
        quick=arguments.quick,
        here=arguments.here,
        models=tuple(arguments.model),
        live=arguments.live,
        minutes=arguments.minutes,
        path=arguments.path,
    )
    if arguments.scenario == "compare":
        words = ["python", "-m", "benchmarks", "compare", str(arguments.directory)]
        words += ["--rounds", str(options.rounds)] if options.rounds else []
        result = importlib.import_module("benchmarks.compare").run(options, arguments.directory)
        print(report.markdown("compare", report.document(result, shlex.join(words))))
        return 0
    broken = False
    for name in list(descriptions()) if arguments.scenario == "all" else [arguments.scenario]:
        started = time.monotonic()
        try:
            result = importlib.import_module(f"benchmarks.scenarios.{name}").run(options)
        except WorkerError as error:
            # One client that does not start must not prevent the scenarios after it.
            print(f"{name}: {error}", file=sys.stderr)
            broken = True
            continue
        line = command(name, options)
        print(report.markdown(name, report.document(result, line)))
        if arguments.write:
            print(report.write_results(name, result, line))
        print(f"[{name}: {time.monotonic() - started:.0f} s]", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
