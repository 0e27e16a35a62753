"""A cache that a group shares, and those that are refused."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_provider import CacheWarning, Client, RequestError
from llm_provider._core.store.response_cache import ResponseCache
from llm_provider._core.store.store import find_problem
from llm_provider.simulator import Simulator
from support import RunScript

USER, OTHER_USER, GROUP = 54320, 54321, 54322

needs_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can run a program as another user"
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_shared_cache_is_writable_for_its_group(simulator: Simulator, tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    mask = os.umask(0o022)
    try:
        with Client(cache_dir=directory, cache_shared=True) as client:
            client.call("gpt-6.1-sol", "What is 2+2?")
            assert client.call("gpt-6.1-sol", "What is 2+2?").cached
            assert client.cache.own_directory == directory / "users" / str(os.getuid())
            # While the files are open.
            files = [path for path in (directory / "v2").rglob("*") if path.is_file()]
            assert files
            assert {mode(path) for path in files} == {0o660}
    finally:
        os.umask(mask)
    folders = [directory, directory / "users", *(p for p in (directory / "v2").rglob("*") if p.is_dir())]
    assert {mode(path) for path in folders} == {0o2770}
    assert mode(directory / "users" / str(os.getuid()) / "leases") & 0o777 == 0o700


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A directory below folders that every user may enter. Those of `tmp_path` are their owner's."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


@needs_root
def test_a_group_shares_answers(simulator: Simulator, reachable: Path, run_warm_script: RunScript) -> None:
    directory = reachable / "lab"
    directory.mkdir()
    os.chown(directory, -1, GROUP)
    directory.chmod(0o2770)
    program = f"""
        import os
        from llm_provider import Client

        def asked(user, *numbers, directory={str(directory)!r}):
            os.seteuid(0)
            os.setresuid(user, user, 0)
            with Client(cache_dir=directory, cache_shared=True) as client:
                os.seteuid(0)
                client.models("openai")  # reads the prices
                os.seteuid(user)
                return [client.call("gpt-6.1-sol", f"What is 2+{{n}}?").cached for n in numbers]

        os.umask(0o022)
        # The package may lie where only root reads. So root takes every step once, and imports all modules.
        for _ in range(2):
            asked(0, 1, 2, directory={str(reachable / "root")!r})
        os.setgroups([])
        os.setgid({GROUP})
        print(asked({USER}, 1), asked({OTHER_USER}, 1, 2), asked({USER}, 1, 2, 3))
    """
    done = run_warm_script(program)
    assert done.stdout == "[False] [True, False] [True, True, False]\n", done.stderr


def test_without_the_switch_it_is_refused_with_its_name(simulator: Simulator, tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    directory.mkdir()
    directory.chmod(0o2770)
    with Client(cache_dir=directory) as client, pytest.warns(CacheWarning, match="cache_shared=True"):
        assert client.call("gpt-6.1-sol", "Hi").cost is not None


def test_a_directory_that_all_can_write_to_is_refused_always(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    for shared in (True, False):
        assert "chmod o-w" in str(find_problem(tmp_path.lstat(), shared=shared))
    tmp_path.chmod(0o700)
    assert find_problem(tmp_path.lstat(), shared=False) is None


def test_the_environment_can_set_the_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_PROVIDER_CACHE_SHARED", "1")
    assert ResponseCache(tmp_path).own_directory != tmp_path
    assert ResponseCache(tmp_path, shared=False).own_directory == tmp_path
    monkeypatch.setenv("LLM_PROVIDER_CACHE_SHARED", "maybe")
    with pytest.raises(RequestError, match="must be 1 or 0, not 'maybe'"):
        Client()
