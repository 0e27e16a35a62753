"""The store in a Valkey server without a server; `tests/cluster/test_valkey.py` has one."""

import pickle
import socket
from pathlib import Path

import pytest

from llm_provider import CacheWarning, Client
from llm_provider._features.second_level.valkey_store import PREFIX, ValkeyStore
from llm_provider.simulator import Simulator


def test_a_store_is_pickled_as_its_url() -> None:
    store = pickle.loads(pickle.dumps(ValkeyStore("valkey://cache.lab")))
    assert store._url == "valkey://cache.lab"
    assert PREFIX == "llm_provider:2:"
    store.close()  # it was never connected


def test_a_server_that_is_not_there_is_one_warning(simulator: Simulator, tmp_path: Path) -> None:
    pytest.importorskip("valkey", reason="the extra valkey is not installed")
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    with Client(cache_dir=tmp_path, cache=f"valkey://:hidden@127.0.0.1:{port}/0") as client:
        with pytest.warns(CacheWarning) as warned:
            assert client.call("gpt-6.1-sol", "Hi").text
            assert client.call("gpt-6.1-sol", "Ho").text
        with pytest.warns(CacheWarning, match="not in the second level"):
            client.close()
    assert len(warned) == 1
    assert "hidden" not in str(warned[0].message)
    assert f"valkey://127.0.0.1:{port}/0" in str(warned[0].message)
