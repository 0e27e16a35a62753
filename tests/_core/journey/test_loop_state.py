"""The state of a client on one event loop: when it is made, shared, and left behind."""

import os

import pytest

from llm_provider.simulator import Simulator
from support import RunScript

MODEL = "gpt-6.1-sol"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_gets_its_own_and_keeps_the_connections_of_its_parent_open(
    run_warm_script: RunScript, simulator: Simulator
) -> None:
    ended = run_warm_script(
        f"""
        import os, warnings
        from llm_provider import Client
        warnings.simplefilter("ignore", DeprecationWarning)
        client = Client(cache="off")
        client.call({MODEL!r}, "parent")
        state = client._engine._state
        child = os.fork()
        if child == 0:
            client.call({MODEL!r}, "child")
            os._exit(0 if client._engine._state is not state else 1)
        assert os.waitpid(child, 0)[1] == 0
        client.call({MODEL!r}, "parent")
        print(client._engine._state is state)
        """
    )
    assert ended.stdout == "True\n"
    assert simulator.ledger().connections == 2
