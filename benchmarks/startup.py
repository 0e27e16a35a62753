"""What starting costs: imports, a process that only reads its cache, a process that makes its first call.

    python benchmarks/startup.py [--rounds 15] [--write]

Every program is a fresh interpreter; they are run interleaved, and medians are shown, in milliseconds above
an interpreter that does nothing, with the ratio to `import asyncio`. `--write` puts the table into
benchmarks/results/startup.md, with the versions and the machine it was measured on.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from llm_provider.simulator import Simulator

RESULTS = Path(__file__).parent / "results" / "startup.md"

PROGRAMS = {
    "nothing": "pass",
    "import asyncio": "import asyncio",
    "import llm_provider": "import llm_provider",
    "from llm_provider import call": "from llm_provider import call",
    "a hit from the cache": "from llm_provider import call; assert call('gpt-6.1-sol', 'Hi').cached",
    "a first call, openai": "from llm_provider import call; call('gpt-6.1-sol', 'Hi', cache='off')",
    "a first call, anthropic": "from llm_provider import call; call('claude-sonnet-5-5', 'Hi', cache='off')",
    "a first call, gemini": "from llm_provider import call; call('gemini-3.8-flash', 'Hi', cache='off')",
}


def measure(rounds: int) -> dict[str, float]:
    """Median wall time of each program, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with Simulator() as simulator, tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, **simulator.environment(), "LLM_PROVIDER_CACHE_DIR": directory}
        fill = "from llm_provider import call; call('gpt-6.1-sol', 'Hi')"
        subprocess.run([sys.executable, "-c", fill], env=environment, check=True)
        for _ in range(rounds):
            for name, program in PROGRAMS.items():
                started = time.perf_counter()
                subprocess.run([sys.executable, "-c", program], env=environment, check=True)
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def table(medians: dict[str, float], rounds: int) -> str:
    """The medians as Markdown, with what they were measured on."""
    base, asyncio = medians["nothing"], medians["import asyncio"] - medians["nothing"]
    names = ("openai", "anthropic", "google-genai", "aiohttp", "orjson", "diskcache")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    lines = [
        f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores; {versions}.",
        f"Medians of {rounds} interleaved rounds; the bare interpreter takes {base * 1e3:.0f} ms.",
        "",
        "| program | ms above the interpreter | ratio to `import asyncio` |",
        "|---|---|---|",
    ]
    for name, median in medians.items():
        if name != "nothing":
            lines.append(f"| {name} | {(median - base) * 1e3:.1f} | {(median - base) / asyncio:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print; write the results file if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    arguments = parser.parse_args()
    shown = table(measure(arguments.rounds), arguments.rounds)
    print(shown)
    if arguments.write:
        RESULTS.parent.mkdir(exist_ok=True)
        command = f"python benchmarks/startup.py --rounds {arguments.rounds} --write"
        RESULTS.write_text(f"# Start-up\n\nMade by `{command}`.\n\n{shown}\n")


if __name__ == "__main__":
    main()
