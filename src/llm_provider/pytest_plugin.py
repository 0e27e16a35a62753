"""A pytest fixture that records the answers of a test once and then replays them without keys or network.

    def test_summary(llm_cassette):
        assert "cat" in summarise(story)  # summarise() calls llm_provider

The first run sends the requests and writes the answers to `cassettes/<module>.<test>.jsonl` beside the test.
The file belongs under version control. Later runs answer from it, and a request that it lacks raises
`CacheMissError`. `--llm-cassettes=record` records all answers again. `--llm-cassettes=replay` sends no
request, as does a run with `CI` in its environment. While a cassette is replayed, no client and no function
sends anything, whatever the mode of the cache. While it is recorded, `cache="off"` keeps answers too.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ._core.client.client import Client

__all__ = ["Cassette", "llm_cassette"]

_OPTION = "--llm-cassettes"
_FAILED = pytest.StashKey[bool]()


@dataclass(frozen=True, slots=True)
class Cassette:
    """The answers of one test, in the file `path`; with `recording`, this run records and does not replay.

    `client` is the client of `llm_provider.call` and the other functions during the test.
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
    from ._core.client import functions
    from ._core.client.client import Client
    from ._core.runtime import cassette

    option: str = request.config.getoption(_OPTION)
    classes = [node.name for node in request.node.listchain() if isinstance(node, pytest.Class)]
    folder = request.path.parent / "cassettes"
    path = folder / _file_name(request.path.name, [*classes, request.node.name])
    if option != "record" and not path.exists():
        # The name that it had when several tests could share one.
        name = re.sub(r"[^\w.]+", "-", request.node.name).strip("-")
        old = folder / f"{request.path.stem}.{name}.jsonl"
        # `Path.exists` raises an error for a name that is too long.
        path = old if os.path.exists(old) else path  # noqa: PTH110
    recording = option == "record" or not path.exists()
    if recording and option != "record" and (option == "replay" or os.environ.get("CI")):
        pytest.fail(
            f"there is no recording {path}; run the test once with API keys and without CI to record it"
        )
    directory = tmp_path_factory.mktemp("cassette")
    directory.chmod(0o700)
    # Clients that the test makes itself read these variables.
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(directory))
    monkeypatch.setenv("LLM_PROVIDER_CACHE", "use" if recording else "only")
    named = f"{'record' if recording else 'replay'}:{path}"
    monkeypatch.setenv(cassette.VARIABLE, named)
    with Client(cache_dir=directory, cache="use" if recording else "only") as client, cassette.using(named):
        if not recording:
            client.cache.load(path)
        monkeypatch.setitem(functions._default, os.getpid(), client)  # noqa: SLF001 -- the functions' own client
        yield Cassette(path, recording, client)
        if recording and not request.node.stash.get(_FAILED, True):
            path.parent.mkdir(exist_ok=True)
            client.cache.export(path)


_PLAIN = re.compile(r"[a-z0-9_]{1,80}")
"""What differs in file names of every system, however they treat case and accents."""

_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")
"""What no file name of Windows may have before its first dot."""


def _file_name(module: str, names: list[str]) -> str:
    """The name of the cassette of a test: another one for every test, and valid on every system.

    `names` are the names of its classes, then its own.

    >>> _file_name("test_sums.py", ["test_it"])
    'test_sums.test_it.jsonl'
    >>> _file_name("test_sums.py", ["TestA", "test_it[2+2]"])
    'test_sums.TestA-test_it-2-2-71dbb5fed9.jsonl'
    """
    stem = module.removesuffix(".py")
    is_plain = len(names) == 1 and all(map(_PLAIN.fullmatch, (stem, *names)))
    if is_plain and stem != module and not _RESERVED.fullmatch(stem):
        return f"{stem}.{names[0]}.jsonl"
    digest = hashlib.sha256("\0".join([module, *names]).encode("utf-8", "surrogatepass")).hexdigest()[:10]
    readable = [re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")[:80] for text in (stem, "-".join(names))]
    # The underscore makes a name that is reserved another one.
    stem = f"{readable[0]}_" if _RESERVED.fullmatch(readable[0].lower()) else readable[0]
    return f"{stem}.{readable[1]}-{digest}.jsonl"
