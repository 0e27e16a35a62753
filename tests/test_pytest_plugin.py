"""The fixture as a stranger's test suite meets it."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from llm_provider.pytest_plugin import _file_name
from llm_provider.simulator import Simulator

SUITE = """
import os, pytest
from llm_provider import CacheMissError, Client, call

@pytest.mark.parametrize("question", ["1+1?", "2+2?"])
def test_sum(llm_cassette, question):
    assert call("gpt-6.1-sol", question).text == str(eval(question[:-1]))
    assert llm_cassette.path.name.startswith("test_suite.test_sum-")

def test_failing(llm_cassette):
    call("gpt-6.1-sol", "Hi")
    assert "FAIL" not in os.environ
    if not llm_cassette.recording:
        with pytest.raises(CacheMissError):
            call("gpt-6.1-sol", "Something else")
"""


Run = Callable[..., str]
"""Runs pytest with some arguments and variables, and returns its output."""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(suite: Path, warm_python: list[str]) -> Run:
    def run(*arguments: str, **variables: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "CI"}
        return subprocess.run(
            [*warm_python, "-m", "pytest", "-q", "-p", "llm_provider.pytest_plugin", *arguments],
            cwd=suite,
            env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
            capture_output=True,
            text=True,
        ).stdout

    return run


def test_answers_are_recorded_once_and_replayed(suite: Path, run: Run, simulator: Simulator) -> None:
    recorded = run()
    assert "3 passed" in recorded, recorded
    assert simulator.ledger().requests == 3
    names = sorted(path.name for path in (suite / "cassettes").iterdir())
    readable = [re.sub(r"-[0-9a-f]{10}(?=\.jsonl)", "", name) for name in names]
    assert readable == [
        f"test_suite.{test}.jsonl" for test in ("test_failing", "test_sum-1-1", "test_sum-2-2")
    ]
    before = {path.name: path.read_bytes() for path in (suite / "cassettes").iterdir()}
    replayed = run(OPENAI_API_KEY="", OPENAI_BASE_URL=os.environ["OPENAI_BASE_URL"], CI="true")
    assert "3 passed" in replayed, replayed
    assert simulator.ledger().requests == 3
    assert {path.name: path.read_bytes() for path in (suite / "cassettes").iterdir()} == before
    assert "3 passed" in run("--llm-cassettes=record")
    assert simulator.ledger().requests == 6


def test_a_recording_of_another_address_says_so(run: Run, simulator: Simulator) -> None:
    assert "2 passed" in run("-k", "sum")
    elsewhere = run("-k", "sum", OPENAI_BASE_URL="https://example.com/v1", CI="true")
    assert "2 failed" in elsewhere
    assert f'differs in base_url: stored "{os.environ["OPENAI_BASE_URL"]}"' in elsewhere
    assert simulator.ledger().requests == 2


def test_a_failed_test_leaves_no_recording(suite: Path, run: Run, simulator: Simulator) -> None:
    assert "1 failed" in run("-k", "failing", FAIL="1")
    assert not (suite / "cassettes").exists()


@pytest.mark.parametrize("variables", [{}, {"CI": "true"}])
def test_nothing_is_asked_where_only_replaying_is_allowed(
    suite: Path, run: Run, simulator: Simulator, variables: dict[str, str]
) -> None:
    ended = run(*([] if variables else ["--llm-cassettes=replay"]), **variables)
    assert "3 errors" in ended
    assert "there is no recording" in ended
    assert simulator.ledger().requests == 0


WAYS = """
import asyncio, multiprocessing, os, subprocess, sys
import pytest
import llm_provider
from llm_provider import CacheMissError, Client, Host
from llm_provider._features.second_level.settings import SecondLevel

MODEL, EMBEDDER = "gpt-6.1-sol", "text-embedding-3-small"
early = Client(cache_dir=os.environ["EARLY"])


class Store:
    def get_many(self, *_): raise AssertionError("the second level was asked")
    put_many = stats = export = get_many
    def close(self): pass


def first(results):
    raise results[0]


def in_child():
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: llm_provider.call(MODEL, "Hi", cache="off"))
    child.start()
    child.join()
    assert child.exitcode == 1
    raise CacheMissError("in the child", key="")


def in_program():
    code = "import llm_provider; llm_provider.call('gpt-6.1-sol', 'Hi', cache='refresh')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "CacheMissError" in ended.stderr, ended.stderr
    assert "'Hi'" in ended.stderr
    raise CacheMissError("in the program", key="")


WAYS = {
    "a call": lambda **mode: llm_provider.call(MODEL, "Hi", **mode),
    "samples": lambda **mode: llm_provider.call(MODEL, "Hi", n=2, **mode),
    "a stream": lambda **mode: list(llm_provider.stream(MODEL, "Hi", **mode)),
    "an awaited call": lambda **mode: asyncio.run(llm_provider.acall(MODEL, "Hi", **mode)),
    "a batch": lambda **mode: first(llm_provider.call_many(MODEL, ["Hi", "Ho"], **mode)),
    "a provider's batch": lambda **mode: first(
        llm_provider.call_many(MODEL, ["Hi"], delivery="batch", **mode)
    ),
    "an embedding": lambda **mode: llm_provider.embed(EMBEDDER, ["Hi"], **mode),
    "a score": lambda **mode: Client(hosts=[Host("lab", "http://127.0.0.1:9/v1", "vllm")]).score(
        "lab/x", "Hi", [" you"], **mode
    ),
    "litellm": lambda **mode: llm_provider.call("litellm/gpt-6.1-sol", "Hi", **mode),
    "Claude": lambda **mode: llm_provider.call("claude-haiku-5-5", "Hi", **mode),
    "another client": lambda **mode: Client(**mode).call(MODEL, "Hi"),
    "an older client": lambda **mode: early.call(MODEL, "Hi", **mode),
    "a second level": lambda **mode: Client(cache=SecondLevel(Store())).call(MODEL, "Hi", **mode),
    "a file": lambda **mode: llm_provider.call(
        MODEL, [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], **mode
    ),
    "a child": lambda **mode: in_child(),
    "a program": lambda **mode: in_program(),
}
@pytest.mark.parametrize("mode", ["use", "refresh", "off"])
@pytest.mark.parametrize("way", WAYS)
def test_way(llm_cassette, way, mode):
    if llm_cassette.recording:
        return
    with pytest.raises(CacheMissError) as raised:
        WAYS[way](cache=mode)
    assert way in ("a child", "a program") or "Hi" in str(raised.value), raised.value


def test_lists_and_counts(llm_cassette):
    if not llm_cassette.recording:
        with pytest.raises(CacheMissError):
            llm_provider.models("openai", live=True)
        assert llm_provider.count_tokens("claude-haiku-5-5", "Hi").method != "provider"


@pytest.mark.parametrize("mode", ["use", "refresh", "off"])
def test_recorded(llm_cassette, mode):
    assert Client().call(MODEL, "1+1?", cache=mode).text == "2"
"""


def test_a_replay_sends_nothing_in_any_way_of_calling(
    suite: Path, run: Run, simulator: Simulator, tmp_path: Path
) -> None:
    (suite / "test_suite.py").write_text(WAYS, encoding="utf-8")
    early = str(tmp_path / "early")
    recorded = run(EARLY=early)
    assert "52 passed" in recorded, recorded
    # A cassette without answers is no file.
    assert simulator.ledger().requests == 3
    replayed = run("--llm-cassettes=replay", EARLY=early, CI="1")
    assert "52 passed" in replayed, replayed
    assert simulator.ledger().requests == 3


CLASSES = """
import pytest
from llm_provider import call

@pytest.mark.parametrize("sum", ["2+2", "2-2", "2*2", "\u00df" * 300])
def test_sum(llm_cassette, sum):
    call("gpt-6.1-sol", sum)

class TestA:
    def test_same(self, llm_cassette):
        call("gpt-6.1-sol", "A")

class TestB:
    def test_same(self, llm_cassette):
        call("gpt-6.1-sol", "B")
"""


def test_every_test_has_a_cassette_of_its_own(suite: Path, run: Run, simulator: Simulator) -> None:
    (suite / "test_suite.py").write_text(CLASSES, encoding="utf-8")
    assert "6 passed" in run()
    assert len(list((suite / "cassettes").iterdir())) == 6
    assert "6 passed" in run("--llm-cassettes=replay")
    assert simulator.ledger().requests == 6


def test_a_cassette_with_an_older_name_is_read(suite: Path, run: Run, simulator: Simulator) -> None:
    run("-k", "test_sum")
    for path in (suite / "cassettes").iterdir():
        path.rename(path.with_name(re.sub(r"-[0-9a-f]{10}(?=\.jsonl)", "", path.name)))
    assert "2 passed" in run("--llm-cassettes=replay", "-k", "test_sum")
    assert simulator.ledger().requests == 2


NAMES = strategies.lists(
    strategies.text("aA+-*.[]/ :\u00e9e\u0301nul0", max_size=120), min_size=1, max_size=3
)
MODULES = strategies.sampled_from(
    ["test_a.py", "Test_a.py", "test_a.txt", "con.py", "nul.x.py", "t" * 240 + ".py"]
)


@hypothesis.given(MODULES, NAMES, MODULES, NAMES)
def test_no_two_tests_share_a_file_on_any_system(a: str, b: list[str], c: str, d: list[str]) -> None:
    name, other = _file_name(a, b), _file_name(c, d)
    assert name.isascii()
    assert len(name) < 255
    assert not re.search(r'[<>:"/\\|?*]', name)
    assert name.partition(".")[0].lower() not in ("con", "nul")
    assert (name.lower() == other.lower()) == ((a, b) == (c, d))
