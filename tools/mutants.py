"""Puts small bugs into a copy of the library, and tells which of them no test finds: `make mutants`.

    python -m tools.mutants --trace           # first: which test runs which line, in ten minutes
    python -m tools.mutants 7 50 --list       # the bugs that seed 7 draws
    python -m tools.mutants 7 50 --jobs 2     # try them; goes on where a run was interrupted
    python -m tools.mutants 7 50 --write      # the same, and write benchmarks/results/mutants.md

A bug is found if a test fails that runs its line, or one of 300 programs of the simulation. The cheapest
tests go first. A line that runs at the import, such as a row of a table or a default, has the tests that run
the function or class around it, or else the lines that name what it defines. A bug whose line no test runs in
its own process has the tests of its folder. Tests that start programs have no trace: those of the module's
folder are always tried. A test that fails without the bug as well has found nothing.
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import json
import math
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as ET

from .small_bugs import PACKAGE, ROOT, Mutant, draw

BUILD = ROOT / "build" / "mutants"
TRACES = BUILD / "traces"
RESULT = ROOT / "benchmarks" / "results" / "mutants.md"

RELATED = (
    *(
        f"_core/{room}"
        for room in ("batches", "client", "events", "journey", "money", "pace", "runtime", "store")
    ),
    *(f"_features/{name}" for name in ("second_level", "shared_budget", "shared_pace", "user_limits")),
    *(f"_features/{name}" for name in ("background", "batch_hosts", "fallback", "prompt_caching", "uploads")),
    *(
        f"_features/{name}"
        for name in ("cache_care", "decide", "estimates", "models", "score", "tool_rounds")
    ),
    *(
        f"end_to_end/test_{name}.py"
        for name in ("failure_table", "failures", "streams", "sums", "token_budgets", "told_failures")
    ),
    "_core/formats/test_golden.py",
    "end_to_end/test_examples.py",
    "tools/test_failures.py",
)
"""The folders and files of tests that are traced."""

MOST_SECONDS = 240.0
"""For the traced tests of one bug, as they took while they were traced: three times as long."""

PROGRAMS = 300
"""Programs of the simulation for a bug that no test has found."""

NOT_SIMULATED = f"{PACKAGE}/_features/second_level/"
"""The folder that no program of the simulation runs."""

STARTERS = {"run_script", "run_warm_script", "start", "warm_kernel", "warm_python"}
"""The fixtures of tests that start programs."""

PATIENCE = {"pytest": 4 * MOST_SECONDS, "tests.simulation": 3_000.0}
"""Seconds after which a run counts as found: the library waits for ever. 300 programs may take 1,000."""

PYTEST = (
    sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-m", "not matrix",
    "-p", "no:cacheprovider", "--timeout=60",
)  # fmt: skip

NO_TESTS = 5
"""The exit status of pytest if it runs no test."""

HEAD = """# Small bugs

`python -m tools.mutants SEED COUNT --write` draws small bugs by a seed, puts each into a copy of the library,
and tries the tests that run its line, the cheapest first, and then 300 programs of the simulation. The seed
was chosen after the tests were written. The seconds are of the clock, on a busy machine with two cores.
"""


def make_environment(folder: Path) -> dict[str, str]:
    """The environment of a run that imports the package of a folder."""
    return {**os.environ, "PYTHONPATH": str(folder / "src")}


def ask_git(root: Path, *arguments: str) -> str:
    """What git says of a repository."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout  # noqa: S603


def trace(names: Sequence[str]) -> None:
    """Note for folders of tests which test runs which line, and how long each test takes."""
    TRACES.mkdir(parents=True, exist_ok=True)
    settings = BUILD / "coveragerc"
    settings.write_text("[run]\nsource_pkgs = llm_provider\n", encoding="utf-8")
    for name in names or RELATED:
        file = TRACES / name.replace("/", "-")
        options = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
        report = ["-o", "junit_family=xunit1", f"--junitxml={file}.xml"]
        # A test that takes too long would end the run, and the whole folder would have no trace.
        kept = [each for each in PYTEST if each not in ("-x", "--timeout=60")]
        command = [*kept, "--timeout=900", *options, *report, f"tests/{name}"]
        environment = {**make_environment(ROOT), "COVERAGE_FILE": f"{file}.coverage"}
        subprocess.run(command, cwd=ROOT, env=environment, check=False)  # noqa: S603  # ours


def list_scopes(source: bytes, mutant: Mutant) -> Iterator[range]:
    r"""The lines of a bug, then those of the functions and classes around it, the innermost first.

    >>> code = b"class A:\n    def f(self, n=1):\n        return n\n"
    >>> list(list_scopes(code, Mutant("wrong default", "", 27, 28, "2")))
    [range(2, 3), range(2, 4), range(1, 4)]
    """
    line = mutant.find_line(source)
    yield range(line, line + source[mutant.begin : mutant.end].count(b"\n") + 1)
    around = [
        range(node.lineno, node.end_lineno + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.end_lineno is not None
        and node.lineno <= line <= node.end_lineno
    ]
    yield from sorted(around, key=len)


def list_late_lines(source: bytes) -> set[int]:
    r"""The lines of a module that run later than at its import: those in the bodies of functions.

    >>> sorted(list_late_lines(b"n = 1\ndef f(\n    a=2,\n):\n    return a\n"))
    [5]
    """
    return {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
        for line in range(node.body[0].lineno, node.end_lineno + 1)
    }


def name_definition(source: bytes, line: int) -> str:
    r"""What the statement of a module that has a line defines; "" if it has no name.

    >>> name_definition(b"import os\n\nROWS: dict = {\n    1: 2,\n}\n", 4)
    'ROWS'
    """
    for node in ast.parse(source).body:
        if node.lineno <= line <= (node.end_lineno or 0):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
            return getattr(targets[0], "id", getattr(targets[0], "name", ""))
    return ""


def list_starting(source: bytes) -> set[str]:
    r"""The tests of a file that start programs, in which no line is traced.

    >>> list_starting(b"def test_a(run_script):\n    pass\ndef test_b(client):\n    pass\n")
    {'test_a'}
    """
    return {
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if not STARTERS.isdisjoint(argument.arg for argument in node.args.args)
    }


class Trace:
    """Which tests run a line, from the files that `trace` has written."""

    def __init__(self) -> None:
        from coverage import CoverageData

        ended = sorted(TRACES.glob("*.xml"))  # the report comes after the lines: the others are still traced
        missing = {name.replace("/", "-") for name in RELATED} - {file.stem for file in ended}
        if missing:
            print("no trace of", *sorted(missing), file=sys.stderr)
        self._data = [CoverageData(str(file.with_suffix(".coverage"))) for file in ended]
        for data in self._data:
            data.read()
        cases = [
            case
            for file in ended
            for case in ET.parse(file).iter("testcase")  # noqa: S314  # pytest has written it
            if case.find("failure") is None and case.find("error") is None
        ]
        self._seconds = {name_test(case.attrib): float(case.get("time", 1)) for case in cases}

    def find_tests(self, mutant: Mutant) -> list[str]:
        """The tests that run the line of a bug: a case of each, and further ones for `MOST_SECONDS`.

        The tests of the module go before others, and the cheapest go first. Golden pairs of the module's
        folder are cases of one test, and all are tried.
        """
        path = ROOT / mutant.path
        source = path.read_bytes()
        for scope in list_scopes(source, mutant):
            if names := self._list_runners(path, scope):
                return self._choose(names, path)
        names = set()
        if name := name_definition(source, mutant.find_line(source)):
            for module in (ROOT / PACKAGE).rglob("*.py"):
                lines = module.read_text(encoding="utf-8").splitlines()
                naming = [number for number, line in enumerate(lines, 1) if re.search(rf"\b{name}\b", line)]
                names |= self._list_runners(module, naming) if naming else set()
        return self._choose(names, path)

    @functools.cache  # noqa: B019  # there is one trace
    def _list_contexts(self, path: Path) -> dict[int, set[str]]:
        """The tests that run each line of a module, without the lines that its import runs."""
        late = list_late_lines(path.read_bytes())
        contexts: defaultdict[int, set[str]] = defaultdict(set)
        for data in self._data:
            for line, tests in data.contexts_by_lineno(str(path)).items():
                if line in late:
                    contexts[line].update(name.rpartition("|")[0] for name in tests)
        return contexts

    def _list_runners(self, path: Path, lines: Iterable[int]) -> set[str]:
        """The tests that run one of some lines."""
        contexts = self._list_contexts(path)
        return self._seconds.keys() & {name for line in lines for name in contexts.get(line, ())}

    def _choose(self, names: set[str], path: Path) -> list[str]:
        cases: Counter[str] = Counter()
        ranked = []
        golden = f"[{path.parent.relative_to(ROOT / PACKAGE)}/"
        for name in sorted(names, key=lambda name: (self._seconds[name], name)):
            test = name.partition("[")[0]
            cases[test] += 1
            turn = 0 if golden in name else cases[test] // 2
            ranked.append((turn, f"/test_{path.stem}.py" not in test, self._seconds[name], name))
        names_in_order = [name for *_, name in sorted(ranked)]
        sums = itertools.accumulate(self._seconds[name] for name in names_in_order)
        # A dear test, such as a golden story, may be the only one that asks for what the line does.
        first = sum(turn == 0 for turn, *_ in ranked)
        chosen = names_in_order[: max(first, sum(each <= MOST_SECONDS for each in sums))]
        return [*chosen, *(name for name in self._list_starting(path) if name not in chosen)]

    def _list_starting(self, path: Path) -> list[str]:
        """A case of each test in the module's folder that starts programs, if it takes some seconds."""
        folder = ROOT / "tests" / path.parent.relative_to(ROOT / PACKAGE)
        starting = {
            f"{file.relative_to(ROOT).as_posix()}::{test}"
            for file in folder.glob("test_*.py")
            for test in list_starting(file.read_bytes())
        }
        cases: dict[str, str] = {}
        for name in sorted(self._seconds, key=lambda name: (self._seconds[name], name)):
            test = name.partition("[")[0]
            if test in starting and self._seconds[name] <= MOST_SECONDS / 10:
                cases.setdefault(test, name)
        return list(cases.values())

    def divide(self, tests: Sequence[str]) -> list[list[str]]:
        """The first seconds of tests, and the rest: a start of pytest takes seconds too."""
        sums = itertools.accumulate(self._seconds[name] for name in tests)
        first = sum(each <= MOST_SECONDS / 20 for each in sums)
        return [part for part in (list(tests[:first]), list(tests[first:])) if part]


def name_test(case: Mapping[str, str]) -> str:
    """The name of a test for pytest, from its line in a report. The file of a state machine is hypothesis's.

    >>> name_test({"classname": "tests._core.test_a.TestB", "name": "test_c[1]"})
    'tests/_core/test_a.py::TestB::test_c[1]'
    """
    module, _, last = case["classname"].rpartition(".")
    folder = [last] if last.startswith("Test") else []
    path = (module if folder else case["classname"]).replace(".", "/")
    return "::".join([f"{path}.py", *folder, case["name"]])


class Copy:
    """A copy of a repository, in which one bug at a time is tried."""

    def __init__(self, folder: Path, root: Path = ROOT, programs: int = PROGRAMS) -> None:
        self._folder = folder
        self._programs = programs
        self._stamp = itertools.count(1_000_000_000)
        listing = ask_git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
        for name in listing.split("\0"):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)

    def write(self, path: str, source: bytes) -> None:
        """Write a module, with a date that no compiled file has."""
        (self._folder / path).write_bytes(source)
        stamp = next(self._stamp)
        os.utime(self._folder / path, (stamp, stamp))

    def try_mutant(self, mutant: Mutant, known: Trace) -> str:
        """What finds a bug; "" if nothing does."""
        source = (ROOT / mutant.path).read_bytes()
        self.write(mutant.path, mutant.apply(source))
        try:
            module = Path(mutant.path.replace(PACKAGE, "tests"))
            own = (module.parent / f"test_{module.stem.strip('_')}.py").as_posix()
            tests = known.find_tests(mutant)
            parts = known.divide(tests) or [[module.parent.as_posix()]]
            if not any(test.startswith(f"{own}::") for test in tests) and (self._folder / own).exists():
                parts.append([own])
            for part in parts:
                (self._folder / "tests.txt").write_text("\n".join(part), encoding="utf-8")
                killer = self.run([*PYTEST, "@tests.txt"])
                if killer and not self._fails_without(mutant, source, killer):
                    return killer
            if not self._programs or mutant.path.startswith(NOT_SIMULATED):
                return ""
            options = ["tests.simulation", "0", str(self._programs), "--search"]
            return self.run([sys.executable, "-m", *options])
        finally:
            self.write(mutant.path, source)

    def _fails_without(self, mutant: Mutant, source: bytes, killer: str) -> bool:
        """Whether the test that fails with a bug, or one of those that were tried, fails without it too."""
        self.write(mutant.path, source)
        try:
            return bool(self.run([*PYTEST, f"tests/{killer}" if "::" in killer else "@tests.txt"]))
        finally:
            self.write(mutant.path, mutant.apply(source))

    def run(self, command: Sequence[str]) -> str:
        """What fails in a run; "" if nothing does."""
        process = subprocess.Popen(  # noqa: S603  # ours
            command,
            cwd=self._folder,
            env=make_environment(self._folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=PATIENCE[command[2]])
        except subprocess.TimeoutExpired:
            return f"{command[2]} does not end"
        finally:
            end_session(process.pid)
            process.wait()
        return "" if process.returncode in (0, NO_TESTS) else read_failure(output)


def end_session(leader: int) -> None:
    """End what a run has left, such as a simulator whose test was killed."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def read_failure(output: str) -> str:
    """What has failed, by the output of pytest or of the simulation.

    >>> read_failure("FAILED tests/_core/test_a.py::test_b[1] - assert 1 == 2")
    '_core/test_a.py::test_b[1]'
    >>> read_failure("seed 7: at 3.2 s: a call was paid twice")
    'seed 7: at 3.2 s: a call was paid twice'
    """
    failed = re.search(r"^(?:FAILED |ERROR |(?=seed \d))(?:tests/)?(\S.*?)(?: - .*)?$", output, re.MULTILINE)
    if failed is not None:
        return failed[1][:150]
    if "+ Timeout +" in output:
        return "a test that does not end"
    return output.strip().rpartition("\n")[2][:150] or "no output"


def name_mutant(mutant: Mutant) -> str:
    """The name of a bug in a module as it is today."""
    digest = zlib.crc32((ROOT / mutant.path).read_bytes())
    return json.dumps({**asdict(mutant), "module": digest}, sort_keys=True)


def describe(mutant: Mutant) -> tuple[str, str, str]:
    """The kind, the place and the change of a bug."""
    source = (ROOT / mutant.path).read_bytes()
    place = f"{mutant.path.removeprefix(PACKAGE + '/')}:{mutant.find_line(source)}"
    return mutant.kind, place, mutant.show(source)


def try_all(
    mutants: Sequence[Mutant], jobs: int, programs: int, minutes: float = math.inf
) -> Iterator[tuple[Mutant, str, int]]:
    """Try every bug that no earlier run has tried. Yields what finds each, and its seconds.

    After so many `minutes` it tries no more.
    """
    until = time.monotonic() + 60 * minutes
    log = BUILD / "results.jsonl"
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines() if log.exists() else ())
    results = {name: (killer, seconds) for name, killer, seconds in lines}
    known, copies = Trace(), queue.SimpleQueue[Copy]()
    for number in range(jobs):
        shutil.rmtree(BUILD / f"copy-{number}", ignore_errors=True)
        copies.put(Copy(BUILD / f"copy-{number}", programs=programs))

    def try_one(mutant: Mutant) -> tuple[Mutant, str, int] | None:
        name = name_mutant(mutant)
        if name not in results and time.monotonic() > until:
            return None
        if name not in results:
            copy, since = copies.get(), time.monotonic()
            try:
                results[name] = copy.try_mutant(mutant, known), round(time.monotonic() - since)
            finally:
                copies.put(copy)
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, *results[name]]) + "\n")
        return mutant, *results[name]

    with ThreadPoolExecutor(jobs) as threads:
        yield from filter(None, threads.map(try_one, mutants))


def make_page(
    seed: int, drawn: int, results: Sequence[tuple[Mutant, str, int]], before: str, programs: int = PROGRAMS
) -> str:
    """The page of results, for so many bugs that were drawn.

    The reason of a bug that lived stays as it is written in the page `before`.
    """
    rows = []
    for mutant, killer, seconds in results:
        kind, place, change = (each.replace("|", "\\|") for each in describe(mutant))
        reason = re.search(rf"\| `{re.escape(change)}` \| (lived: .*?) \| \d+ \|$", before, re.MULTILINE)
        finder = f"`{killer}`" if killer else reason[1] if reason else "lived: nobody knows why"
        rows.append(f"| {kind} | `{place}` | `{change}` | {finder} | {seconds} |")
    found = sum(bool(killer) for _, killer, _ in results)
    commit = ask_git(ROOT, "rev-parse", "--short=10", "HEAD").strip()
    table = ["| kind | where | change | found by | seconds |", "|---|---|---|---|---:|", *rows]
    outcome = f"Seed {seed} at {commit}: {drawn} were drawn, {len(rows)} tried, and {found} found."
    more = f"A bug that no test found met {programs} programs of the simulation."
    return "\n".join([HEAD, outcome, more, "", *table, ""])


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("count", type=int, nargs="?", default=50)
    parser.add_argument("--jobs", type=int, default=1, help="bugs that are tried at the same time")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help="programs of the simulation for each")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after these, no more are tried")
    parser.add_argument("--trace", nargs="*", help="trace folders of tests again, by default all")
    for option in ("list", "write"):
        parser.add_argument(f"--{option}", action="store_true")
    arguments = parser.parse_args()
    if arguments.trace is not None:
        trace(arguments.trace)
        return
    mutants = draw(arguments.seed, arguments.count)
    if arguments.list:
        print(*map(": ".join, map(describe, mutants)), sep="\n")
        return
    results = []
    for mutant, killer, seconds in try_all(mutants, arguments.jobs, arguments.programs, arguments.minutes):
        print(": ".join(describe(mutant)), f"    {killer or '*** lived'}, {seconds} s", sep="\n", flush=True)
        results.append((mutant, killer, seconds))
    print(f"{sum(bool(killer) for _, killer, _ in results)} of {len(results)} were found")
    if arguments.write:
        before = RESULT.read_text(encoding="utf-8") if RESULT.exists() else ""
        RESULT.write_text(
            make_page(arguments.seed, len(mutants), results, before, arguments.programs), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
