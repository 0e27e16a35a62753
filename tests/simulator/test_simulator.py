"""Starting, finding, ending: the simulator as a part of somebody's program."""

import pytest

from llm_provider.simulator import Simulator
from support import RunScript, process_ended


def test_starts_and_closes_without_with() -> None:
    simulator = Simulator(latency=0.01).start()
    with pytest.raises(RuntimeError, match="running already"):
        simulator.start()
    pid = simulator.pid
    assert pid is not None
    assert simulator.ledger().requests == 0
    simulator.close()
    simulator.close()
    assert process_ended(pid)
    with pytest.raises(RuntimeError, match="not running"):
        simulator.ledger()
    with simulator:
        assert simulator.pid != pid


def test_closing_in_a_fork_leaves_the_server_to_its_owner(run_script: RunScript) -> None:
    program = (
        "import os, warnings\n"
        "from llm_provider.simulator import Simulator\n"
        "with Simulator() as simulator:\n"
        "    if os.fork() == 0:\n"
        "        simulator.close()\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "    print(simulator.ledger().requests)\n"
    )
    assert run_script(program).stdout == "0\n"


def test_the_import_is_light(run_script: RunScript) -> None:
    program = (
        "import sys; import llm_provider.simulator, llm_provider.simulator.pytest_plugin\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = set(run_script(program).stdout.split())
    heavy = {"granian", "orjson", "asyncio", "cryptography", "httpx", "openai", "anthropic", "pydantic"}
    assert not loaded & heavy
