"""Start-up time and memory: imports, a process that reads its cache, a process that makes its first call.

Every program runs in a new interpreter. Modules are already compiled, as in every second run of a program.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..environments import OURS, interpreter
from ..provider import MODELS, Provider
from ..report import Cell, Chart, Result, Table
from . import Options

ROUNDS = 11
RSS = """
with open("/proc/self/status") as status:
    print(*(line.split()[1] for line in status if line.startswith("VmRSS")))
"""
MESSAGES = "messages=[{'role': 'user', 'content': 'Hi'}]"


class Program(NamedTuple):
    """A program and the environment it runs in."""

    code: str
    environment: str = "ours-openai3"

    @property
    def interpreter(self) -> Program:
        """An empty program in the same environment."""
        return Program("pass", self.environment)


class Sample(NamedTuple):
    """Medians: seconds of wall and CPU time of a whole process, and MB of memory at its end."""

    wall: float
    cpu: float
    memory: float


def _ours(model: str, cache: str) -> str:
    return f"from llm_provider import call; assert call({model!r}, 'Hi', cache={cache!r}).text"


def _openai(client: str) -> str:
    model = MODELS["openai"]
    return f"{client}.chat.completions.create(model={model!r}, {MESSAGES}).choices[0].message.content"


OPENAI = f"from openai import OpenAI; assert {_openai('OpenAI()')}"
ANTHROPIC = (
    "from anthropic import Anthropic; assert Anthropic().messages.create("
    f"model={MODELS['anthropic']!r}, max_tokens=100, {MESSAGES}).content[0].text"
)
GEMINI = (
    "from google import genai; client = genai.Client(); assert client.models.generate_content("
    f"model={MODELS['gemini']!r}, contents='Hi').text"
)
LITELLM = f"import litellm; assert litellm.completion('openai/{MODELS['openai']}', {MESSAGES}).choices[0]"

IMPORTS = {
    "asyncio": Program("import asyncio"),
    "llm_provider": Program("import llm_provider"),
    "call, from llm_provider": Program("from llm_provider import call"),
    "diskcache": Program("import diskcache"),
    "aiohttp": Program("import aiohttp"),
    "openai 3": Program("import openai"),
    "openai 2": Program("import openai", "ours-openai2"),
    "anthropic": Program("import anthropic"),
    "google-genai": Program("from google import genai"),
    "any-llm": Program("import any_llm", "any-llm"),
    "litellm": Program("import litellm", "litellm"),
}
HIT = Program(_ours(MODELS["openai"], "only"))
FIRST_CALLS = {
    "openai 3": (Program(_ours(MODELS["openai"], "off")), Program(OPENAI)),
    "openai 2": (
        Program(_ours(MODELS["openai"], "off"), "ours-openai2"),
        Program(OPENAI, "ours-openai2"),
    ),
    "anthropic": (Program(_ours(MODELS["anthropic"], "off")), Program(ANTHROPIC)),
    "google-genai": (Program(_ours(MODELS["gemini"], "off")), Program(GEMINI)),
}
LITELLM_FIRST = Program(LITELLM, "litellm")


class Processes:
    """Starts programs.

    Args:
        variables: Environment variables of the programs.
        here: Start every program in this environment instead of its own.
    """

    def __init__(self, variables: Mapping[str, str], *, here: bool) -> None:
        self._variables = variables
        self._here = here

    def _command(self, program: Program) -> tuple[str | Path, ...]:
        return sys.executable if self._here else interpreter(program.environment), "-c", program.code

    def time(self, program: Program) -> tuple[float, float]:
        """Seconds of wall and CPU time of one run.

        Raises:
            RuntimeError: it failed; its message is on standard error.
        """
        command = self._command(program)
        started = time.perf_counter()
        process = subprocess.Popen(command, env=self._variables)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{program.code} failed in {program.environment}")
        return wall, usage.ru_utime + usage.ru_stime

    def output(self, program: Program) -> str:
        """Run a program and return its output.

        Raises:
            CalledProcessError: it failed.
        """
        command = self._command(program)
        done = subprocess.run(command, env=self._variables, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout


def run(options: Options) -> Result:
    """Run every program in turn, round after round."""
    imports = {name: one for name, one in IMPORTS.items() if not options.here or one.environment in OURS}
    programs = [*imports.values(), HIT, *(one for pair in FIRST_CALLS.values() for one in pair)]
    if not options.here:
        programs.append(LITELLM_FIRST)
    rounds = options.rounds_or(ROUNDS)
    with Provider() as provider, tempfile.TemporaryDirectory() as directory:
        processes = Processes(_variables(provider, directory), here=options.here)
        processes.time(Program(_ours(MODELS["openai"], "use")))
        idle = dict.fromkeys(program.interpreter for program in programs)
        taken = measure([*idle, *dict.fromkeys(programs)], processes, rounds)
        versions = _versions(processes, programs)
    above = {program: taken[program].wall - taken[program.interpreter].wall for program in programs}
    return Result(
        title="Start-up",
        text="Unless a table says otherwise, times are those of a whole process with one operation, less "
        "those of an empty process. Both programs of a pair run in one environment, with the same version of "
        "the SDK, used as its documentation shows. The provider answers at once, over TLS.",
        tables=[_imports(imports, taken, above), _hit(taken), _first_calls(taken, above)],
        charts=[
            Chart(
                title="Imports",
                x=list(imports),
                y_label="ms",
                series={"import": [above[program] * 1e3 for program in imports.values()]},
                logarithmic=True,
            )
        ],
        measured=_measured(taken, above),
        versions=versions,
        rounds=rounds,
    )


def _variables(provider: Provider, directory: str) -> dict[str, str]:
    variables = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        **provider.simulator.environment(),
        "LLM_PROVIDER_CACHE_DIR": f"{directory}/cache",
        # Python can store compiled modules here even where the folders of the sources are read-only.
        "PYTHONPYCACHEPREFIX": f"{directory}/compiled",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    # google-genai accepts either key, and warns if both are set.
    del variables["GOOGLE_API_KEY"]
    return variables


def measure(programs: list[Program], processes: Processes, rounds: int) -> dict[Program, Sample]:
    """Medians of the runs of every program, without a first run, which compiles modules."""
    memory = {
        program: float(processes.output(program._replace(code=program.code + RSS))) for program in programs
    }
    times: dict[Program, list[tuple[float, float]]] = {program: [] for program in programs}
    for _ in range(rounds):
        for program, runs in times.items():
            runs.append(processes.time(program))
    return {
        program: Sample(
            statistics.median(wall for wall, _ in runs),
            statistics.median(cpu for _, cpu in runs),
            memory[program] * 1024 / 1e6,
        )
        for program, runs in times.items()
    }


def _measured(taken: Mapping[Program, Sample], above: Mapping[Program, float]) -> dict[str, float]:
    package = above[IMPORTS["llm_provider"]]
    measured = {
        "import_of_asyncio": package / above[IMPORTS["asyncio"]],
        "first_call_of_sdk": max(above[ours] / above[theirs] for ours, theirs in FIRST_CALLS.values()),
        "first_hit": taken[HIT].wall * 1e3,
    }
    if IMPORTS["litellm"] in above:
        measured["import_of_litellm"] = package / above[IMPORTS["litellm"]]
    return measured


def _imports(
    imports: Mapping[str, Program], taken: Mapping[Program, Sample], above: Mapping[Program, float]
) -> Table:
    base = above[IMPORTS["asyncio"]]
    rows: list[list[Cell]] = []
    for name, program in imports.items():
        one, idle = taken[program], taken[program.interpreter]
        cpu = (one.cpu - idle.cpu) * 1e3
        rows.append([name, above[program] * 1e3, cpu, above[program] / base, one.memory])
    rows.append(["an empty program", None, None, None, taken[HIT.interpreter].memory])
    columns = ("import", "ms", "CPU ms", "of `import asyncio`", "RSS MB")
    return Table(title="Imports", columns=columns, rows=rows)


def _hit(taken: Mapping[Program, Sample]) -> Table:
    rows: list[list[Cell]] = [
        [name, taken[program].wall * 1e3, taken[program].cpu * 1e3, taken[program].memory]
        for name, program in {
            "an empty program": HIT.interpreter,
            "`call`, answered by the cache": HIT,
        }.items()
    ]
    columns = ("the whole process", "ms", "CPU ms", "RSS MB")
    return Table(title="A script whose answers are all in the cache", columns=columns, rows=rows)


def _first_calls(taken: Mapping[Program, Sample], above: Mapping[Program, float]) -> Table:
    rows: list[list[Cell]] = []
    for name, (ours, theirs) in FIRST_CALLS.items():
        idle = taken[ours.interpreter].cpu
        cpu = (taken[ours].cpu - idle) / (taken[theirs].cpu - idle)
        memory = [taken[ours].memory, taken[theirs].memory]
        wall = above[ours] / above[theirs]
        rows.append([name, above[ours] * 1e3, above[theirs] * 1e3, wall, cpu, *memory])
    if LITELLM_FIRST in above:
        rows.append(["litellm", None, above[LITELLM_FIRST] * 1e3, *[None] * 3, taken[LITELLM_FIRST].memory])
    columns = ("SDK", "`call` ms", "its own ms", "ratio", "ratio in CPU", "`call` RSS MB", "its own RSS MB")
    return Table(title="The first live answer of a cold process", columns=columns, rows=rows)


def _versions(processes: Processes, programs: list[Program]) -> dict[str, dict[str, str]]:
    code = (
        "import importlib.metadata as m, json; names = {'openai', 'anthropic', 'google-genai', 'litellm', "
        "'any-llm-sdk', 'aiohttp', 'diskcache', 'orjson'}; "
        "print(json.dumps({d.name: d.version for d in m.distributions() if d.name in names}))"
    )
    names = dict.fromkeys(program.environment for program in programs)
    found = {name: json.loads(processes.output(Program(code, name))) for name in names}
    return {name: dict(sorted(versions.items())) for name, versions in found.items()}
