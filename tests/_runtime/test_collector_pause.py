"""The garbage collector rests while a block is open in any thread, and only then."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from llm_provider._runtime.collector_pause import collector_paused


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_it_rests_until_the_last_block_of_any_thread_ends() -> None:
    with ThreadPoolExecutor(1) as other:
        collector_paused.__enter__()
        other.submit(collector_paused.__enter__).result()
        collector_paused.__exit__()
        assert not gc.isenabled()
        other.submit(collector_paused.__exit__).result()
    assert gc.isenabled()


def test_it_is_enabled_after_an_error() -> None:
    with pytest.raises(ValueError, match="bad"), collector_paused:
        raise ValueError("bad")
    assert gc.isenabled()


def test_a_collector_that_the_user_has_disabled_stays_so() -> None:
    gc.disable()
    with collector_paused:
        pass
    assert not gc.isenabled()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_collects() -> None:
    with collector_paused:
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert not gc.isenabled()
