"""Cells of a real Jupyter kernel: bars, pictures, views and interrupts."""

import base64
import importlib.util
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llm_provider._core.requests.routing import COMPATIBLE_HOSTS
from llm_provider.simulator import Fault, Simulator
from support import wait_until

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None,
    reason="the environment has no Jupyter kernel",
)

Run = Callable[..., list[Any]]
"""Runs a cell and returns its outputs, as they are saved."""

SETUP = """
import os, sys
import llm_provider
from llm_provider import Client
client = Client()
"""


@pytest.fixture(scope="module")
def kernel(warm_kernel: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An executor of cells with one kernel for all tests of this module, and a server for the kernel."""
    from nbclient import NotebookClient
    from nbformat.v4 import new_notebook

    home = tmp_path_factory.mktemp("notebook")
    with Simulator() as simulator:
        # Environment variables of a kernel are those of its start.
        variables = {
            **os.environ,
            **simulator.environment(*COMPATIBLE_HOSTS),
            "LLM_PROVIDER_CACHE_DIR": str(home / "cache"),
            "IPYTHONDIR": str(home / "ipython"),
            "MPLCONFIGDIR": str(home / "matplotlib"),
        }
        executor = NotebookClient(new_notebook(), kernel_name=warm_kernel, allow_errors=True, timeout=60)
        executor.simulator = simulator
        with executor.setup_kernel(env=variables):
            yield executor


@pytest.fixture
def server(kernel: Any) -> Simulator:
    """The cleared server of the kernel."""
    simulator: Simulator = kernel.simulator
    simulator.clear()
    return simulator


@pytest.fixture
def run(kernel: Any, server: Simulator) -> Run:
    from nbformat.v4 import new_code_cell

    def run(code: str, *, fails: bool = False) -> list[Any]:
        kernel.nb.cells.append(new_code_cell(code))
        outputs: list[Any] = kernel.execute_cell(kernel.nb.cells[-1], len(kernel.nb.cells) - 1).outputs
        errors = [output for output in outputs if output.output_type == "error"]
        assert bool(errors) == fails, errors
        return outputs

    run(SETUP)
    return run


def texts(outputs: list[Any]) -> str:
    """The outputs of a cell as plain text."""
    return "".join(output.get("text") or output.data["text/plain"] for output in outputs)


# Few tests: each process of a parallel run starts a kernel of its own.


@pytest.mark.long
def test_a_finished_bar_is_saved_as_finished(run: Run) -> None:
    cell = "results = {call}('gpt-6.1-sol', [f'{a}+{{n}}?' for n in range(60)])"
    finished = r"100%\|.*\| 60/60 \[.*\$0\.0"
    if importlib.util.find_spec("ipywidgets") is not None:
        for a, call in enumerate(("client.call_many", "await client.acall_many")):
            (outputs,) = run(cell.format(call=call, a=a))
            assert list(outputs.data) == ["text/plain"]
            assert re.match(finished, texts([outputs]))
        outputs = run("batch = client.call_many('gpt-6.1-sol', ['1+1?', '8+2?'], delivery='batch')")
        assert re.search(r"2/2 \[.*cached=1.*elapsed", texts(outputs))
    run("there = sys.modules.pop('ipywidgets', None); sys.modules['ipywidgets'] = None")
    one, two = (
        run(cell.format(call="client.call_many", a=2)),
        run("both = client.call_many(['gpt-6.1-sol', 'gpt-5.5'], [f'2+{n}?' for n in range(60)])"),
    )
    run("sys.modules.pop('ipywidgets')\nif there: sys.modules['ipywidgets'] = there")
    # One output, whose text is replaced.
    for outputs, count in ((one, "60/60"), (two, "120/120")):
        (output,) = outputs
        assert output.output_type == "display_data"
        assert count in texts([output])
        assert not {"\r", "\x1b", "\n"} & {*texts([output])}
    assert "cached=60" in texts(two)


def test_values_have_pictures_and_views_and_errors_have_tracebacks(run: Run, server: Simulator) -> None:
    server.inject(Fault(status=400), match="fails", times=None)
    run("results = client.call_many('gpt-6.1-sol', ['7+8?', 'fails <b>'], progress=False)")
    for value in (
        "results", "results[0]", "client", "results[1]", "client.usage",
        "client.estimate('gpt-6.1-sol', ['7+9?'])",
        "client.embed('text-embedding-3-small', ['a'])",
        "client.submit_many('gpt-6.1-sol', ['7+9?'])",
    ):  # fmt: skip
        (output,) = run(value)
        assert output.data["text/html"].startswith(("<div>", "<table>")), value
        assert "fails <b>" not in output.data["text/html"]
    (scored,) = run(
        "both = client.call_many(['gpt-6.1-sol', 'claude-haiku-5-5'], ['7+8?'], progress=False)\n"
        "sum(both.values(), llm_provider.Results()).score(lambda sample: sample.text == '15')"
    )
    titles = re.findall("<th[^>]*>([^<]*)</th>", scored.data["text/html"])
    assert titles[:5] == ["", "prompt", "answer", "score", "model"]
    (duplicates,) = run("client.estimate('gpt-6.1-sol', ['a', 'b'] + ['a'] * 17)")
    assert all("19 inputs, 17 duplicates" in data for data in duplicates.data.values())
    (raised,) = run("client.call('gpt-6.1-sol', 'fails')", fails=True)
    assert raised.ename == "BadRequestError"
    assert any("Traceback" in line for line in raised.traceback)
    shown = "\n".join(raised.traceback)
    assert "client.call('gpt-6.1-sol', 'fails')" in shown
    assert re.search(r"\n  \[\d+ frames of installed packages; .*\nBadRequestError: ", shown)
    assert len(raised.traceback) < 10
    (client,) = run("Client(keys={'openai': 'sk-secret-1234567890'}, max_concurrent=3)")
    assert "max_concurrent=3" in client.data["text/plain"]
    assert "keys=..." in client.data["text/html"]
    assert "sk-secret" not in str(client.data)
    if importlib.util.find_spec("matplotlib") is not None:
        for code in ("client.usage.plot()", "import matplotlib.pyplot\nclient.usage.plot()"):
            (output,) = run(code)
            assert base64.b64decode(output.data["image/png"]).startswith(b"\x89PNG")
        assert texts(run("matplotlib.pyplot.get_fignums()")) == "[]"


INTERRUPTED = (
    "client.call('gpt-6.1-sol', 'a')",
    "client.call_many('gpt-6.1-sol', ['2+2?', *map(str, range(40))])",
    "for piece in client.stream('gpt-6.1-sol', 'b'): pass",
    "client.embed('text-embedding-3-small', ['c', 'd'])",
    "await client.acall('gpt-6.1-sol', 'e')",
    "await client.acall_many('gpt-6.1-sol', ['2+2?', *map(str, range(50, 90))])",
    "async for piece in client.astream('gpt-6.1-sol', 'f'): pass",
)


def test_an_interrupt_ends_the_cell_and_its_requests(run: Run, server: Simulator) -> None:
    pid = int(texts(run("client.call('gpt-6.1-sol', '2+2?')\nos.getpid()")))
    # The answers come later than the time limit of a cell.
    server.configure(latency=600.0)

    def interrupt() -> None:
        if wait_until(lambda: server.ledger().in_flight > 0):
            os.kill(pid, signal.SIGINT)

    for cell in INTERRUPTED:
        thread = threading.Thread(target=interrupt)
        thread.start()
        outputs = run(cell, fails=True)
        thread.join()
        assert outputs[-1].ename in ("KeyboardInterrupt", "CancelledError"), cell
        lines = "\n".join(outputs[-1].traceback)
        assert "stream" in cell or "llm_provider/_core" not in lines, (cell, lines)
        assert ("calls are answered" in lines) == ("many" in cell), (cell, lines)
        assert wait_until(lambda: server.ledger().in_flight == 0), cell
        sent = server.ledger().requests
        # The cell after it works, and finds stored answers.
        assert texts(run("client.call('gpt-6.1-sol', '2+2?').cached")) == "True"
        assert (server.ledger().requests, server.ledger().in_flight) == (sent, 0), cell
