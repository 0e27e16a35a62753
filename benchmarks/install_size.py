"""What an installation consists of: the size of each package, who needs it, and what a first call imports.

    python -m benchmarks.install_size            # of this environment
    python -m benchmarks.install_size --write    # benchmarks/results/install_size.md, which the docs quote

Only packages count that `llm-provider-call` requires, without extras. A size is that of the files that pip
has installed, without byte code; for this package it is that of `src/llm_provider`. The CPU time
of a first call is that of a new process, from `import llm_provider` to an answer, less the time of the import
alone. Modules are counted at its end.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "llm-provider-call"
SDKS = {"openai": "gpt-6.1-sol", "anthropic": "claude-sonnet-5-5", "google-genai": "gemini-4-argon"}
"""The SDKs, each with a model whose first call imports it."""
HERE = Path(__file__).parents[1]
PAGE = HERE / "benchmarks" / "results" / "install_size.md"
ROUNDS = 7
FIRST_CALL = """
import json, sys, time
begun = time.process_time()
import llm_provider
if len(sys.argv) > 1:
    llm_provider.call(sys.argv[1], "Hi", cache="off")
print(json.dumps([time.process_time() - begun, len(sys.modules)]))
"""


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description="What an installation consists of.")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(HERE)}")
    written = parser.parse_args().write
    page = describe()
    if written:
        PAGE.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write(page)


def describe() -> str:
    """The page: the packages with their sizes, what each SDK alone brings, and the first calls."""
    sizes = measure_sizes()
    alone = {sdk: closure(without=set(SDKS) - {sdk}) for sdk in SDKS}
    lines = [
        "# What is installed",
        "",
        (
            f"Written by `python -m benchmarks.install_size --write` on {datetime.now(UTC):%Y-%m-%d}, "
            f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}."
        ),
        "",
        f"**{len(sizes)} packages, {sum(sizes.values()) / 1e6:.1f} MB**",
        "",
        "| package | release | MB | needed with |",
        "|---|---|---:|---|",
    ]
    for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        needed = [sdk for sdk in SDKS if name in alone[sdk]]
        users = "all" if len(needed) == len(SDKS) else ", ".join(needed)
        lines.append(f"| {name} | {importlib.metadata.version(name)} | {size / 1e6:.2f} | {users} |")
    lines += [
        "",
        "## One SDK alone",
        "",
        "| SDK | packages | MB | first call, CPU ms | modules |",
        "|---|---:|---:|---:|---:|",
    ]
    for sdk, (milliseconds, modules) in zip(SDKS, measure_first_calls(), strict=True):
        total = sum(sizes[each] for each in alone[sdk]) / 1e6
        lines.append(f"| {sdk} | {len(alone[sdk])} | {total:.1f} | {milliseconds:.0f} | {modules} |")
    return "\n".join([*lines, ""])


def measure_sizes() -> dict[str, int]:
    """The bytes of each package that an installation has."""
    return {name: size_of(name) for name in closure()}


def closure(*, without: Collection[str] = ()) -> set[str]:
    """The packages that `ROOT` requires, itself included, without those that are left out."""
    seen: set[tuple[str, frozenset[str]]] = set()
    left: list[tuple[str, frozenset[str]]] = [(ROOT, frozenset())]
    while left:
        name, extras = left.pop()
        if (name, extras) in seen or name in without:
            continue
        seen.add((name, extras))
        left.extend(required_by(name, extras))
    return {name for name, _ in seen}


def required_by(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What a package requires here, with the extras of each."""
    for line in importlib.metadata.requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def size_of(name: str) -> int:
    """The bytes of the files of an installed package."""
    if name == ROOT:  # an installation for development has none of its files
        return total_size((HERE / "src" / "llm_provider").rglob("*"))
    files = importlib.metadata.files(name) or []
    return total_size(Path(str(file.locate())) for file in files)


def total_size(files: Iterable[Path]) -> int:
    """The bytes of files, without byte code."""
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc" and path.is_file())


def measure_first_calls() -> Iterator[tuple[float, int]]:
    """For each SDK: the CPU time of a first call in milliseconds, and the modules it has imported."""
    from llm_provider.simulator import Simulator

    with Simulator() as simulator:
        environment = {**os.environ, **simulator.environment()}
        empty = [_run(environment)[0] for _ in range(ROUNDS)]
        before = statistics.median(empty)
        for model in SDKS.values():
            taken = [_run(environment, model) for _ in range(ROUNDS)]
            yield (statistics.median(cpu for cpu, _ in taken) - before) * 1e3, taken[0][1]


def _run(environment: dict[str, str], *model: str) -> tuple[float, int]:
    command = [sys.executable, "-c", FIRST_CALL, *model]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    cpu, modules = json.loads(done.stdout)
    return cpu, modules


if __name__ == "__main__":
    main()
