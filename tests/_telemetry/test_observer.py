"""Which calls are observed, and what an observer keeps of them."""

from __future__ import annotations

import gc
from typing import Any

from llm_provider import AskedCall, Client
from llm_provider._telemetry.observer import Observer
from llm_provider.simulator import Simulator


class Statistics:
    """Stands for the engine, whose method an observer refers to."""

    def rows(self) -> list[Any]:
        return ["a scope"]


def test_nothing_is_observed_unless_it_was_asked_for() -> None:
    engine = Statistics()
    observer = Observer(False, content=False, statistics=engine.rows)
    assert not observer.is_on
    assert not observer.find_providers()
    assert observer.take_call(object()) is None
    observer.remember_calls()
    assert observer.is_on


def test_an_observer_does_not_keep_the_engine() -> None:
    engine = Statistics()
    observer = Observer(False, content=False, statistics=engine.rows)
    assert observer.statistics() == ["a scope"]
    del engine
    assert observer.statistics() == []


def test_calls_of_results_that_were_told_are_forgotten(simulator: Simulator) -> None:
    lines: list[str] = []
    with Client(on_result=lambda result, call: lines.append(f"{call.model}: {result.text}")) as client:
        for number in range(3):
            client.call("gpt-6.1-sol", f"{number}+1?")
        assert lines == [f"gpt-6.1-sol: {number}" for number in (1, 2, 3)]
        gc.collect()
        assert [call for call in gc.get_objects() if isinstance(call, AskedCall)] == []
