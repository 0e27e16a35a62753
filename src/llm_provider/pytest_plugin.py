"""A pytest fixture that records the answers of a test once and then replays them without keys or network.

    def test_summary(llm_cassette):
        assert "cat" in summarise(story)  # summarise() calls llm_provider

The first run sends the requests and writes the answers to `cassettes/<module>.<test>.jsonl` beside the test.
The file belongs under version control. Later runs answer from it, and a request that it lacks raises
`CacheMissError`. `--llm-cassettes=record` records all answers again. `--llm-cassettes=replay` sends no
request, as does a run with `CI` in its environment.
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

    from ._client.client import Client

__all__ = ["Cassette", "llm_cassette"]

_OPTION = "--llm-cassettes"
_FAILED = pytest.StashKey[bool]()


@dataclass(frozen=True, slots=True)
class Cassette:
    """The answers of one test, in the file `path`; with `recording`, this run records and does not replay.

    `client` is that of `llm_provider.call` and the other functions during the test.
    """

    path: Path
    recording: bool
    client: Client


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--llm-cassettes`."""
    parser.getgroup("llm_provider").addoption(
        _OPTION,
        choices=("auto", "record", "replay"),
        default="auto",
        help="answers of tests that use llm_cassette: auto records where there is no file yet, except in an "
        "environment with CI; record records all again; replay sends nothing (default: auto)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test failed, because the answers of a failed test are not recorded."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


@pytest.fixture
def llm_cassette(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cassette]:
    """Record the answers of this test, or replay them."""
    # Imported here because every run of pytest loads this module as a plugin.
    from ._client import functions
    from ._client.client import Client

    path = request.path.parent / "cassettes" / f"{request.path.stem}.{_file_name(request.node.name)}.jsonl"
    recording = _records(request.config.getoption(_OPTION), path)
    directory = tmp_path_factory.mktemp("cassette")
    directory.chmod(0o700)
    # Clients that the test makes itself read these variables.
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(directory))
    monkeypatch.setenv("LLM_PROVIDER_CACHE", "use" if recording else "only")
    with Client(cache_dir=directory, cache="use" if recording else "only") as client:
        if not recording:
            client.cache.load(path)
        monkeypatch.setitem(functions._default, os.getpid(), client)  # noqa: SLF001 -- the functions' own client
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
        pytest.fail(
            f"there is no recording {path}; run the test once with API keys and without CI to record it"
        )
    return True


def _file_name(name: str) -> str:
    """A test's name in a form that is a valid part of a file name on every system.

    >>> _file_name("test_it[a/b c]")
    'test_it-a-b-c'
    """
    return re.sub(r"[^\w.]+", "-", name).strip("-")
