"""A pytest fixture that records a test's answers once and replays them ever after, without keys or network.

    def test_summary(llm_cassette):
        assert "cat" in summarise(story)  # whatever calls llm_provider in there

The first run asks the providers and writes `cassettes/<module>.<test>.jsonl` beside the test, to be kept
under version control; later runs answer from it, and a request that is not in it raises `CacheMissError`.
With `--llm-cassettes=record` everything is asked anew, with `replay`, or where the environment has `CI`,
nothing is ever asked.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ._client import Client

__all__ = ["Cassette", "llm_cassette"]

_OPTION = "--llm-cassettes"
_FAILED = pytest.StashKey[bool]()


@dataclass(frozen=True, slots=True)
class Cassette:
    """The answers of one test.

    Args:
        path: The file that holds them.
        recording: Whether they are being asked for now, instead of replayed.
        client: What `llm_provider.call` and the other functions use during the test.
    """

    path: Path
    recording: bool
    client: Client


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("llm_provider").addoption(
        _OPTION,
        choices=("auto", "record", "replay"),
        default="auto",
        help="answers of tests that use llm_cassette: recorded where there are none yet (auto, the default), "
        "all recorded anew, or only replayed (as auto does where the environment has CI)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test failed: half of its answers are no recording."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


@pytest.fixture
def llm_cassette(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cassette]:
    """Record this test's answers, or replay them; see the module's text."""
    # Imported here because the entry point loads this module into every run of pytest.
    from . import _api
    from ._client import Client

    path = request.path.parent / "cassettes" / f"{request.path.stem}.{_file_name(request.node.name)}.jsonl"
    recording = _records(request.config.getoption(_OPTION), path)
    directory = tmp_path_factory.mktemp("cassette")
    directory.chmod(0o700)
    # For clients that the test makes itself.
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(directory))
    monkeypatch.setenv("LLM_PROVIDER_CACHE", "use" if recording else "only")
    with Client(cache_dir=directory, cache="use" if recording else "only") as client:
        if not recording:
            client.cache.load(path)
        monkeypatch.setitem(_api._default, os.getpid(), client)  # noqa: SLF001 -- the functions' own client
        yield Cassette(path, recording, client)
        if recording and not request.node.stash.get(_FAILED, True):
            path.parent.mkdir(exist_ok=True)
            client.cache.export(path)


def _records(option: str, path: Path) -> bool:
    if option == "record":
        return True
    if path.exists():
        return False
    if option == "replay" or os.environ.get("CI"):
        pytest.fail(f"there is no recording {path}; run the test once where the providers can be asked")
    return True


def _file_name(name: str) -> str:
    """A test's name as part of a file's, on every system.

    >>> _file_name("test_it[a/b c]")
    'test_it-a-b-c'
    """
    return re.sub(r"[^\w.]+", "-", name).strip("-")
