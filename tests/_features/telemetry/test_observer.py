"""Which calls are observed, and what an observer keeps of them."""

import gc

from llm_provider import AskedCall, Client
from llm_provider.simulator import Simulator


def test_calls_of_results_that_were_told_are_forgotten(simulator: Simulator) -> None:
    def kept() -> list[AskedCall]:
        gc.collect()
        return [call for call in gc.get_objects() if isinstance(call, AskedCall)]

    lines, of_other_tests = list[str](), kept()
    with Client(on_result=lambda result, call: lines.append(f"{call.model}: {result.text}")) as client:
        for number in range(3):
            client.call("gpt-6.1-sol", f"{number}+1?")
        assert lines == [f"gpt-6.1-sol: {number}" for number in (1, 2, 3)]
        assert kept() == of_other_tests
