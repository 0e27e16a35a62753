"""A second level is named by a URL or by an object with five methods, and a wrong name is refused at once."""

import itertools
import pickle
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_provider import CacheWarning, Client, MissingDependencyError, RequestError, SecondLevel
from llm_provider._features.second_level.settings import CONNECT_SECONDS, PREFIX, ValkeyStore
from llm_provider.simulator import Simulator
from support import needs


class Half:
    def get_many(self, keys: Any) -> Any: ...

    def put_many(self, values: Any) -> Any: ...


class Whole(Half):
    def stats(self) -> Any:
        return {}

    def export(self) -> Any:
        return ()

    def close(self) -> Any: ...


class Awaited(Whole):
    async def get_many(self, keys: Any) -> Any: ...


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        (Half(), "has no stats and no export and no close"),
        (Whole, "an object, not the class Whole"),
        (Awaited(), "Awaited.get_many is a coroutine function"),
        (Path("answers"), "a URL such as 'valkey://host:6379/0', or an object with the methods get_many"),
    ],
)
def test_what_cannot_be_a_second_level_is_refused(cache: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Client(cache=cache)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SecondLevel(Whole(), wait_for_writes="yes"),  # type: ignore[arg-type]  # wrong on purpose
        lambda: SecondLevel(Whole(), mode="sometimes"),
    ],
)
def test_settings_of_a_second_level_are_checked(make: Callable[[], object]) -> None:
    with pytest.raises(RequestError, match=r"wait_for_writes must be True or False|mode must be one of"):
        make()


def test_a_url_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkey", None)
    with pytest.raises(
        MissingDependencyError, match=r"package valkey: pip install 'llm-provider-call\[valkey\]'"
    ):
        Client(cache="valkey://host:6379/0")
    monkeypatch.setenv("LLM_PROVIDER_CACHE", "redis://host:6379/0")
    with pytest.raises(MissingDependencyError, match="LLM_PROVIDER_CACHE: a cache of redis:// needs"):
        Client()


def test_a_variable_names_a_level_only_for_clients_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_PROVIDER_CACHE", "ftp://me:hidden@host")
    with pytest.raises(RequestError, match="LLM_PROVIDER_CACHE: the URL of a second level begins") as raised:
        Client()
    assert "hidden" not in str(raised.value)
    with Client(cache="off") as client:
        assert not client.cache.has_second_level


def test_the_mode_of_a_call_is_no_url() -> None:
    with Client() as client, pytest.raises(RequestError, match=r"a URL belongs in Client\(cache=") as raised:
        client.call("gpt-6.1-sol", "Hi", cache="valkey://:hidden@host")  # type: ignore[arg-type]  # wrong on purpose
    assert "hidden" not in str(raised.value)
    with Client() as client, pytest.raises(RequestError, match="this one has none"):
        client.cache.push()


@needs("valkey")
def test_a_url_shows_no_password_and_travels_with_its_settings() -> None:
    level = SecondLevel("valkeys://me:hidden@cache.lab:6380/2?socket_timeout=3&wait_for_writes=true")
    assert (
        repr(level)
        == "SecondLevel('valkeys://cache.lab:6380/2', wait_for_writes=True, leases=False, mode='use')"
    )
    copy = pickle.loads(pickle.dumps(level))
    assert (copy, copy.store) == (level, "valkeys://me:hidden@cache.lab:6380/2?socket_timeout=3")


def test_leases_need_two_more_methods() -> None:
    with pytest.raises(
        RequestError, match="release_lease, not Whole, which has no take_lease and no release_lease"
    ):
        SecondLevel(Whole(), leases=True)
    with pytest.raises(RequestError, match="leases must be True or False, not 1"):
        SecondLevel(Whole(), leases=1)  # type: ignore[arg-type]  # wrong on purpose


def test_a_store_is_pickled_as_its_url() -> None:
    store = pickle.loads(pickle.dumps(ValkeyStore("valkey://cache.lab")))
    assert store._url == "valkey://cache.lab"
    assert PREFIX == "llm_provider:2:"
    store.close()  # it was never connected


def test_a_connection_has_an_end_and_shows_that_it_lives() -> None:
    pytest.importorskip("valkey")
    options = ValkeyStore("valkey://cache.lab?socket_timeout=5")._server.connection_pool.connection_kwargs
    assert options["socket_keepalive"]
    assert (options["socket_connect_timeout"], options["socket_timeout"]) == (CONNECT_SECONDS, 5.0)


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


class Written(socketserver.StreamRequestHandler):
    """Agrees to every command, in the protocol of Valkey, and notes what is written together."""

    together: list[dict[str, bytes]]

    def handle(self) -> None:
        while head := self.rfile.readline():
            words = []
            for _ in range(int(head[1:])):
                length = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(length + 2)[:-2])
            if words[0] == b"MSET":
                pairs = dict(zip(words[1::2], words[2::2], strict=True))
                self.together.append({key.decode(): value for key, value in pairs.items()})
            self.wfile.write(b"+OK\r\n")


@needs("valkey")
@pytest.mark.parametrize("sizes", [[], [1], [5, 3], [5, 4], [3, 3, 3, 3], [9], [1, 9, 1], [4, 4, 8, 1, 7]])
def test_what_is_written_together_has_a_size_that_a_server_takes(sizes: list[int]) -> None:
    values = {f"{number}": bytes([number]) * (size * 1_000_000) for number, size in enumerate(sizes)}
    handler = type("Handler", (Written,), {"together": []})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        store = ValkeyStore(f"valkey://127.0.0.1:{server.server_address[1]}")
        store.put_many(values)
        store.close()
        server.shutdown()
    assert {key: value for each in handler.together for key, value in each.items()} == {
        PREFIX + key: value for key, value in values.items()
    }
    written = [[len(value) // 1_000_000 for value in each.values()] for each in handler.together]
    assert all(sum(each) <= 8 or len(each) == 1 for each in written), written
    # No two neighbours would fit together.
    assert all(sum(one) + two[0] > 8 for one, two in itertools.pairwise(written)), written
