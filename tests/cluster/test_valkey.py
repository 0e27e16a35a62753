"""Two machines share the answers in a real Valkey server, which may be killed at any time."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llm_provider import CacheWarning, Client
from llm_provider._features.second_level.settings import ValkeyStore
from llm_provider.simulator import Simulator
from support import RunScript, wait_until

if TYPE_CHECKING:
    from conftest import ValkeyServer

pytestmark = pytest.mark.cluster

MODEL = "gpt-6.1-sol"
PROMPTS = [f"row {number}" for number in range(1000)]


def test_the_store_keeps_what_it_is_given(valkey_server: ValkeyServer) -> None:
    store = ValkeyStore(valkey_server.url)
    values = {f"{number:064x}": bytes([number % 256]) * number for number in range(300)}
    store.put_many(values)
    copy = pickle.loads(pickle.dumps(store))
    assert copy.get_many([*values, "f" * 64]) == values
    assert dict(copy.export()) == values
    assert copy.stats()["entries"] == 300
    store.close()
    assert len(store.get_many(list(values)[:3])) == 3
    store.put_many({f"{number:064x}": b"x" * 5_000_000 for number in range(3)})
    assert len(store.get_many([f"{2:064x}"])[f"{2:064x}"]) == 5_000_000
    store.close()
    copy.close()


def test_the_environment_names_the_server_for_the_functions_of_the_module(
    valkey_server: ValkeyServer,
    llm_simulator: Simulator,
    tmp_path: Path,
    where: dict[str, Any],
    run_script: RunScript,
) -> None:
    code = f"""
        from llm_provider import call
        print(call({MODEL!r}, "Hi", **{where!r}).cached)
    """
    outputs = [
        run_script(
            code, LLM_PROVIDER_CACHE=valkey_server.url, LLM_PROVIDER_CACHE_DIR=str(tmp_path / name)
        ).stdout
        for name in ("one", "two")
    ]
    assert outputs == ["False\n", "True\n"]


def test_leases_end_with_their_owner_or_their_time(valkey_server: ValkeyServer) -> None:
    store = ValkeyStore(valkey_server.url)
    assert store.take_lease("a", "one", 30)
    assert store.take_lease("a", "one", 30)
    assert not store.take_lease("a", "two", 30)
    store.release_lease("a", "two")
    assert not store.take_lease("a", "two", 30)
    store.release_lease("a", "one")
    assert store.take_lease("a", "two", 0.05)
    assert wait_until(lambda: store.take_lease("a", "one", 30))
    assert dict(store.export()) == {}
    store.close()


def test_two_machines_at_the_same_time_pay_once(
    valkey_server: ValkeyServer, llm_simulator: Simulator, tmp_path: Path, where: dict[str, Any]
) -> None:
    llm_simulator.configure(latency=0.5)
    level = valkey_server.url + "?leases=true"
    with (
        Client(cache_dir=tmp_path / "one", cache=level) as first,
        Client(cache_dir=tmp_path / "two", cache=level) as second,
        ThreadPoolExecutor() as threads,
    ):
        both = list(
            threads.map(lambda client: client.call_many(MODEL, PROMPTS[:200], **where), (first, second))
        )
    assert sum(result.cached for results in both for result in results) == 200
    assert llm_simulator.ledger().requests == 200


def killed(server: ValkeyServer) -> None:
    server.kill()


def stopped(server: ValkeyServer) -> None:
    server.process.send_signal(signal.SIGSTOP)


@pytest.mark.parametrize("gone", [killed, stopped])
def test_a_server_that_goes_away_costs_one_warning_and_no_answer(
    gone: Callable[[ValkeyServer], None],
    valkey_server: ValkeyServer,
    llm_simulator: Simulator,
    tmp_path: Path,
    where: dict[str, Any],
) -> None:
    with Client(cache_dir=tmp_path / "one", cache=valkey_server.url) as first:
        with pytest.warns(CacheWarning, match="go on with the local store") as warned:
            for number, (_, result) in enumerate(first.iter_many(MODEL, PROMPTS, **where)):
                assert result.text
                if number == 300:
                    gone(valkey_server)
            assert wait_until(lambda: not first.cache.stats().second_level.available)  # type: ignore[union-attr]  # known to be set here
        assert len(warned) == 1
        assert "secret" not in str(warned[0].message)
        assert first.cache.stats().entries == len(PROMPTS)
        valkey_server.kill()
        valkey_server.start()
        assert wait_until(lambda: not first.cache.stats().second_level.pending, 60)  # type: ignore[union-attr]  # known to be set here
        # The server lost its memory.
        first.cache.push()
    with Client(cache_dir=tmp_path / "two", cache=valkey_server.url) as two:
        assert all(result.cached for result in two.call_many(MODEL, PROMPTS, **where))
    assert llm_simulator.ledger().requests == len(PROMPTS)
