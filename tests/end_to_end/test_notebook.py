"""Cells of a real Jupyter kernel: bars, pictures, views and interrupts."""

from __future__ import annotations

import base64
import importlib.util
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llm_provider._requests.routing import COMPATIBLE_HOSTS
from llm_provider.simulator import Fault, Simulator
from support import wait_until

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None,
        reason="the environment has no Jupyter kernel",
    ),
    pytest.mark.xdist_group("notebook"),
]

Run = Callable[..., list[Any]]
"""Runs a cell and returns its outputs, as they are saved."""

SETUP = """
import os, sys
import llm_provider
from llm_provider import Client
client = Client()
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
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
        executor = NotebookClient(new_notebook(), kernel_name="python3", allow_errors=True, timeout=60)
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


class TestBar:
    CELL = "results = {call}('gpt-6.1-sol', [f'{a}+{{n}}?' for n in range(60)])"

    @pytest.mark.parametrize("call", ["client.call_many", "await client.acall_many"])
    def test_of_widgets_is_saved_as_it_was_at_last(self, run: Run, call: str) -> None:
        if importlib.util.find_spec("ipywidgets") is None:
            pytest.skip("the environment has no ipywidgets")
        (shown,) = run(self.CELL.format(call=call, a=len(call)))
        assert list(shown.data) == ["text/plain"]
        assert re.match(r"100%\|.*\| 60/60 \[.*cost=\$0\.0", texts([shown]))
        assert "60 from the cache" in texts(run(f"{self.CELL.format(call=call, a=len(call))}\nresults"))

    def test_without_widgets_is_text(self, run: Run) -> None:
        run("there = sys.modules.pop('ipywidgets', None); sys.modules['ipywidgets'] = None")
        shown = run(self.CELL.format(call="client.call_many", a=100))
        run("sys.modules.pop('ipywidgets')\nif there: sys.modules['ipywidgets'] = there")
        assert {output.output_type for output in shown} == {"stream"}
        last = texts(shown).splitlines()[-1].split("\r")[-1]
        assert re.match(r"100%\|.*\| 60/60 \[.*cost=\$0\.0", last)

    def test_of_a_batch_is_saved_too(self, run: Run) -> None:
        shown = run("batch = client.call_many('gpt-6.1-sol', ['1+1?', '1+2?'], delivery='batch')")
        assert re.search(r"2/2 \[.*elapsed", texts(shown))


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
class TestPlot:
    def test_is_a_picture_without_and_with_pyplot(self, run: Run) -> None:
        run("client.call('gpt-6.1-sol', '7+7?')")
        for code in ("client.usage.plot()", "import matplotlib.pyplot\nclient.usage.plot()"):
            (shown,) = run(code)
            assert base64.b64decode(shown.data["image/png"]).startswith(b"\x89PNG")
        assert texts(run("matplotlib.pyplot.get_fignums()")) == "[]"


def test_values_have_views_and_raised_errors_tracebacks(run: Run, server: Simulator) -> None:
    server.inject(Fault(status=400), match="fails", times=None)
    run("results = client.call_many('gpt-6.1-sol', ['7+8?', 'fails <b>'], progress=False)")
    for value in (
        "results", "results[0]", "results[1]", "client.usage", "client.estimate('gpt-6.1-sol', ['7+9?'])",
        "client.embed('text-embedding-3-small', ['a'])",
        "client.call_many('gpt-6.1-sol', ['7+9?'], delivery='batch', wait=False)",
    ):  # fmt: skip
        (shown,) = run(value)
        assert shown.data["text/html"].startswith(("<div>", "<table>")), value
        assert "fails <b>" not in shown.data["text/html"]
    (raised,) = run("client.call('gpt-6.1-sol', 'fails')", fails=True)
    assert raised.ename == "BadRequestError"
    assert any("Traceback" in line for line in raised.traceback)


class TestInterrupt:
    CELLS = (
        "client.call('gpt-6.1-sol', 'a')",
        "client.call_many('gpt-6.1-sol', ['2+2?', *map(str, range(40))])",
        "for piece in client.stream('gpt-6.1-sol', 'b'): pass",
        "client.embed('text-embedding-3-small', ['c', 'd'])",
        "await client.acall('gpt-6.1-sol', 'e')",
        "await client.acall_many('gpt-6.1-sol', ['2+2?', *map(str, range(50, 90))])",
        "async for piece in client.astream('gpt-6.1-sol', 'f'): pass",
        "await client.aembed('text-embedding-3-small', ['g', 'h'])",
    )

    @pytest.mark.parametrize("cell", CELLS)
    def test_ends_the_cell_and_its_requests(self, run: Run, server: Simulator, cell: str) -> None:
        # The answers come later than the time limit of a cell.
        pid = int(texts(run("client.call('gpt-6.1-sol', '2+2?')\nos.getpid()")))
        server.configure(latency=600.0)

        def interrupt() -> None:
            if wait_until(lambda: server.ledger().in_flight > 0):
                os.kill(pid, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        outputs = run(cell, fails=True)
        thread.join()
        assert outputs[-1].ename in ("KeyboardInterrupt", "CancelledError")
        assert wait_until(lambda: server.ledger().in_flight == 0)
        sent = server.ledger().requests
        # The cell after it works, and finds stored answers.
        assert texts(run("client.call('gpt-6.1-sol', '2+2?').cached")) == "True"
        assert server.ledger().requests == sent
        assert server.ledger().in_flight == 0
