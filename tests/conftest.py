"""Every test runs without the user's keys, servers, proxies and cache."""

import asyncio
import gc
import inspect
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import MappingProxyType

import hypothesis
import pytest

from llm_provider import Client, Ledger, Usage
from llm_provider._core.batches import collect, remote, submit
from llm_provider._core.money.totals import Key, Posting, Totals
from llm_provider._core.requests.routing import COMPATIBLE_HOSTS
from llm_provider._core.tokens.tokenizer import counter_for
from llm_provider.simulator import Simulator
from support import RunScript

FOREIGN = re.compile(
    r".*_(API_KEYS?|KEYS|AUTH_TOKEN|BASE_URL|API_BASE|PROXY)|(LLM_PROVIDER|OPENAI|ANTHROPIC|GOOGLE|GEMINI|LITELLM|AZURE|AWS|BEDROCK|GCE|VERTEX(AI)?|CLOUD_ML)_.*|STORAGE_EMULATOR_HOST",
    re.IGNORECASE,
)
"""Variables that change where a call goes, who pays for it, or how an SDK behaves."""

# The processes of a run inherit the environment of the first, which has other certificates than the user's.
CERTIFICATES = {
    name: os.environ.setdefault(f"USERS_{name}", os.environ.pop(name, ""))
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")
}
USERS_ENVIRONMENT = MappingProxyType(
    {**os.environ, **{name: path for name, path in CERTIFICATES.items() if path}}
)

# Here, not in a fixture: fixtures of wider scope start servers before any function's fixture runs.
for name in list(os.environ):
    if FOREIGN.fullmatch(name):
        del os.environ[name]

# One authority in place of the machine's hundred and fifty, which take each new client 40 ms to read.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("data") / "authority.pem")

# In memory a test that stores an answer waits for no disk, which takes longer than the call.
if "PYTEST_XDIST_WORKER" not in os.environ and Path("/dev/shm").is_dir():
    memory = os.statvfs("/dev/shm")
    if not memory.f_flag & os.ST_NOEXEC and memory.f_bavail * memory.f_frsize > 4e9:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

# What a shell starts in the background ignores Ctrl-C, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# By default an example that takes longer than 200 ms fails, as it may on slow machines and under coverage.
# The same examples each time, half as many as hypothesis takes: `make fuzz` looks for new ones.
hypothesis.settings.register_profile("no deadline", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("no deadline")
# `--hypothesis-profile fuzz` takes many examples, other ones each time.
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=5_000)


def pytest_configure(config: pytest.Config) -> None:
    """Let each process of a run collect from another place on, and find the rest compiled by the others."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    if number and [Path(path).name for path in config.args] == ["tests"]:
        paths = sorted(path for path in Path(__file__).parent.iterdir() if path.name != "data")
        parts = [str(path) for path in paths if path.is_dir() or path.name.startswith("test_")]
        first = number * len(parts) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args = [*parts[first:], *parts[:first]]


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no cells of the matrices for a run that leaves them out: each process takes seconds for them."""
    if "not matrix" in metafunc.config.option.markexpr:
        for marker in metafunc.definition.iter_markers("parametrize"):
            cells = marker.args[1] if isinstance(marker.args[1], list) else []
            cells[:] = [
                cell for cell in cells if "matrix" not in [mark.name for mark in getattr(cell, "marks", ())]
            ]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave all but each n-th cell of a crossing that is marked `sampled(n)` to `make test-long`."""
    cells: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None and not item.get_closest_marker("long"):
            test = item.nodeid.partition("[")[0]
            if cells[test] % marker.args[0]:
                item.add_marker("long")
            cells[test] += 1
    # Each process has the same list and begins with its part of it: one imports litellm, which takes 5 s.
    items.sort(key=lambda item: (not _takes_litellm(item), str(item.path)))


def _takes_litellm(item: pytest.Item) -> bool:
    """Whether a test says so: its name, its parameters, or the texts within it."""
    said = f"{item.nodeid} {inspect.unwrap(item.function).__code__.co_consts}"  # type: ignore[attr-defined]
    return any(name in said for name in ("litellm", "hosted_vllm", "snowflake"))


def pytest_collectstart() -> None:
    """Look for no garbage while tests are collected, which leaves little: a fifth of the CPU time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave thousands of collected tests out of later collections of garbage, 7 % of the CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 10, 50)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def users_environment() -> Mapping[str, str]:
    """The environment as it was, for the one test that installs packages."""
    return USERS_ENVIRONMENT


@pytest.fixture
def vocabulary() -> None:
    """OpenAI's vocabulary, which takes half a second to load: not while tests are collected."""
    if counter_for("openai", "gpt-5.5") is None:
        pytest.skip("OpenAI's vocabulary is not on this machine")


_numbers = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory of the test's own, which stays if the test fails.

    pytest's fixture looks through those of all tests before it, and leaves all of them. One process removes
    those of an earlier run after the last test: 250,000 files.
    """
    directory = tmp_path_factory.getbasetemp() / f"test-{next(_numbers)}"
    directory.mkdir(mode=0o700)
    failed = request.session.testsfailed
    yield directory
    if request.session.testsfailed == failed:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache directory of the test's own, which the module's functions use as well."""
    directory = tmp_path / "cache"
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(directory))
    # The log of `llm-provider ask`, which is in the user's data directory by default.
    monkeypatch.setenv("LLM_PROVIDER_LOGS", str(tmp_path / "logs.db"))
    yield directory
    if (unknown_prices := sys.modules.get("llm_provider._core.money.unknown_prices")) is not None:
        unknown_prices._warned.clear()
    # They share one client, which read the environment on its first use: the next test needs a new one.
    functions = sys.modules.get("llm_provider._core.client.functions")
    while functions is not None and functions._default:
        functions._default.popitem()[1].close()


@pytest.fixture
def simulator(llm_simulator: Simulator, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    """A cleared simulator that every route is pointed at."""
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(own_cache))
    for name, value in llm_simulator.environment(*COMPATIBLE_HOSTS).items():
        monkeypatch.setenv(name, value)
    return llm_simulator


@pytest.fixture
def client(simulator: Simulator, own_cache: Path) -> Iterator[Client]:
    """A client of the test's own, pointed at the simulator."""
    with Client(cache_dir=own_cache) as client:
        yield client


@pytest.fixture
def fast_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are asked about ten times as often: the simulator answers a batch and lists it at once."""
    monkeypatch.setattr(collect, "_FIRST_POLL", 0.02)
    monkeypatch.setattr(remote, "_FIRST_PAUSE", 0.025)
    monkeypatch.setattr(submit, "_SETTLING_SECONDS", 0.1)


@pytest.fixture(scope="module")
def plain_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a whole file without cache and retries: its connections are open after the first test."""
    folder = tmp_path_factory.mktemp("unused")
    with Client(cache="off", cache_dir=folder, max_retries=0, timeout=20) as client:
        yield client


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What starts a program like `python -W error`, with the SDKs imported already."""
    fcntl = pytest.importorskip("fcntl", reason="the server of warm programs forks")
    program = str(Path(__file__).with_name("warm_python.py"))
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # all processes of a run share one server
    address = str(folder / "warm")
    server: subprocess.Popen[str] | None = None
    with (folder / "lock").open("w") as lock, socket.socket(socket.AF_UNIX) as connection:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            connection.connect(address)
        except OSError:
            Path(address).unlink(missing_ok=True)
            # Else numpy starts threads when it is imported, and a fork does not copy threads.
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
            command = [sys.executable, "-P", "-W", "error", program, address, "serve"]
            server = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
            )
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            connection.connect(address)
        fcntl.flock(lock, fcntl.LOCK_UN)
        yield [sys.executable, "-I", "-S", program, address]
    if server is not None:
        server.wait(600)
        server.stdout.close()


KERNEL = """
import warnings
from ipykernel.kernelapp import launch_new_instance
# As Python does by default, instead of `-W error`.
warnings.resetwarnings()
for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
    warnings.simplefilter("ignore", category)
launch_new_instance()
"""


@pytest.fixture(scope="session")
def warm_kernel(warm_python: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a Jupyter kernel that starts with the SDKs imported."""
    folder = tmp_path_factory.mktemp("jupyter")
    (folder / "kernels" / "warm").mkdir(parents=True)
    command = [*warm_python, "-c", KERNEL, "-f", "{connection_file}"]
    kernel = {"argv": command, "display_name": "warm", "language": "python"}
    (folder / "kernels" / "warm" / "kernel.json").write_text(json.dumps(kernel))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder))
        yield "warm"


@pytest.fixture
def run_script() -> RunScript:
    """Run a program with the test's environment; it must end well."""
    return partial(
        run_program, [sys.executable, "-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    )


@pytest.fixture
def run_warm_script(warm_python: list[str]) -> RunScript:
    """The same for a program that may have the SDKs imported."""
    return partial(run_program, warm_python)


def run_program(python: list[str], code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    completed = subprocess.run(
        [*python, "-c", textwrap.dedent(code)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return completed


SOL = Key("openai", "gpt-6.1-sol", "gpt-6.1-sol-2026-10-21", "ablation")
HAIKU = Key("anthropic", "claude-haiku-5-5", "claude-haiku-5-5", "")


@pytest.fixture
def totals() -> Totals:
    """The sums of two models: answers, a hit, and failures of known and of unknown cost."""
    totals = Totals()
    used = Usage(
        input_tokens=1200, output_tokens=300, cache_read_input_tokens=200, reasoning_output_tokens=100
    )
    for second in range(3):
        totals.post(Posting(1.79e9 + 60 * second, "answered", SOL, Decimal("0.0054"), used))
    totals.post(Posting(1.79e9, "hit", SOL, Decimal("0.0054"), used))
    totals.post(Posting(1.79e9, "failed", SOL, Decimal("0.001"), Usage(input_tokens=10)))
    totals.post(Posting(1.79e9, "failed", SOL, None, None, Decimal("0.5")))
    totals.post(Posting(1.79e9 + 90, "answered", HAIKU, Decimal("0.00000006"), Usage(input_tokens=1)))
    return totals


@pytest.fixture
def ledger(totals: Totals) -> Ledger:
    """The same as a user reads it."""
    return Ledger(totals)
