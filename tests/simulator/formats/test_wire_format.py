"""Each wire format implements the whole protocol, and answers as its golden exchanges say."""

import inspect
from typing import Any

import pytest

from llm_provider.simulator import Simulator
from llm_provider.simulator._server.routing import OPERATIONS
from llm_provider.simulator.formats.wire_format import WireFormat
from simulator.exchanges import check, exchanges


@pytest.mark.parametrize("module", [operation.format for operation in OPERATIONS])
def test_a_module_has_the_functions_of_the_protocol_and_offers_no_others(module: Any) -> None:
    functions = dict(inspect.getmembers(WireFormat, inspect.isfunction))
    wanted = {name for name in functions if not name.startswith("_")}
    assert set(module.__all__) == wanted
    for name in wanted:
        parameters = inspect.signature(getattr(module, name)).parameters
        assert len(parameters) == len(inspect.signature(functions[name]).parameters) - 1


@exchanges()
def test_exchanges(simulator: Simulator, exchange: Any) -> None:
    check(simulator, exchange)
