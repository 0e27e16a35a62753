"""A file system without locks: calls go on, with their answers in memory, and nothing waits for a lock."""

import subprocess
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider.simulator import Simulator
from no_locks import SUPPORTED

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="the filter of system calls is Linux's")

PROGRAM = """
import errno, sys, warnings
sys.path.insert(0, {tests!r})
warnings.simplefilter("ignore")
from no_locks import refuse_locks
import llm_provider
from llm_provider import Budget, Client, LLMError
from llm_provider._features.cli.main import main
refuse_locks(getattr(errno, {error!r}))
client = Client(ledger={ledger!r})
prompts = [f"question {{number}}" for number in range(20)]
assert [answer.cached for answer in client.call_many("gpt-6.1-sol", prompts)] == [False] * 20
assert [answer.cached for answer in client.call_many("gpt-6.1-sol", prompts)] == [True] * 20
try:
    Budget(1, path={budget!r})
except LLMError as error:
    print(error)
main(["ask", "gpt-6.1-sol", "Hi"])
"""


@pytest.mark.parametrize("stored", [False, True], ids=["new", "existing"])
@pytest.mark.parametrize("error", ["ENOLCK", "EACCES", "EIO", "ESTALE"])
def test_calls_go_on_without_locks(
    error: str, stored: bool, simulator: Simulator, client: Client, tmp_path: Path, warm_python: list[str]
) -> None:
    if stored:
        client.call("gpt-6.1-sol", "stored")
    code = PROGRAM.format(
        tests=str(Path(__file__).parents[1]),
        error=error,
        ledger=str(tmp_path / "ledger.jsonl"),
        budget=str(tmp_path / "budget"),
    )
    # Less than one wait of SQLite for a lock that nobody holds, for each call.
    ended = subprocess.run([*warm_python, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "cannot be used" in ended.stdout
    assert "the file system has no locks" in ended.stdout
    assert "the answer is not in the log" in ended.stderr
    assert "the file system has no locks" in ended.stderr
    assert len((tmp_path / "ledger.jsonl").read_text().splitlines()) == 40
