"""Clients in other processes: the settings travel, keys do not."""

import copy
import pickle
import subprocess
from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Budget, Client
from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"


TASKS = f"""
import pickle, sys

for number in (1, 2, 2):
    client = pickle.load(sys.stdin.buffer)
    answer = client.call({MODEL!r}, f"What is {{number}}+1?")
    print([id(client._original or client), answer.text, str(client.cache.directory), client.usage.requests])
"""
"""What the tasks of another process find."""


def test_tasks_of_another_process_share_one_client(
    simulator: Simulator, tmp_path: Path, warm_python: list[str]
) -> None:
    with Client(cache_dir=tmp_path / "cache", ledger=tmp_path / "runs.jsonl", max_concurrent=3) as client:
        variant = client.with_options(max_tokens=50)
        sent = b"".join(map(pickle.dumps, (client, client, variant)))
        ended = subprocess.run([*warm_python, "-c", TASKS], input=sent, capture_output=True, check=True)
        first, second, third = map(literal_eval, ended.stdout.decode().splitlines())
        # The second question is not in the cache with another limit of tokens.
        assert [first[1], second[1], third[1]] == ["2", "3", "3"]
        assert first[0] == second[0] == third[0]
        assert [first[3], second[3], third[3]] == [1, 2, 3]
        assert first[2] == str(tmp_path / "cache")
        assert client.call(MODEL, "What is 1+1?").cached
    assert len((tmp_path / "runs.jsonl").read_text(encoding="utf-8").splitlines()) == 4
    assert [50 in request.body.values() for request in simulator.requests()] == [False, False, True]


def test_in_its_own_process_it_is_the_same_client(own_cache: Path) -> None:
    with Client(cache_dir=own_cache, temperature=0) as client:
        assert pickle.loads(pickle.dumps(client)) is client
        assert copy.copy(client) is copy.deepcopy({"a": client})["a"] is client
        variant = pickle.loads(pickle.dumps(client.with_options(temperature=1, stop="END")))
        assert variant.usage is client.usage
        assert variant._runner.defaults == {"temperature": 1, "stop": ("END",)}
    # A closed client is no use to a task.
    with pickle.loads(pickle.dumps(client)) as other:
        assert other is not client
        assert other._runner.defaults == {"temperature": 0}


def test_paths_do_not_depend_on_a_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Client(cache_dir="cache") as client:
        (_, _, settings, _, _) = client.__reduce__()[1]
    assert settings["cache_dir"] == str(tmp_path / "cache")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keys": {"openai": "sk-secret-1"}}, r"keys= holds API keys: .*env_file='\.env'"),
        ({"api_key": "sk-secret-1"}, r"api_key= is an API key: .*env_file='\.env'"),
        (
            {"budget": 5.0},
            r"budget=5\.0 holds within one process: write budget=Budget\(5\.0, path='run\.budget'\)",
        ),
        ({"budget": Budget(5)}, r"path='run\.budget'"),
    ],
)
def test_a_client_that_cannot_travel_says_what_to_write(settings: Any, said: str) -> None:
    with Client(**settings) as client, pytest.raises(TypeError, match=said) as caught:
        pickle.dumps(client)
    assert "sk-secret" not in str(caught.value)
    with Client() as client, pytest.raises(TypeError, match="api_key= is an API key"):
        pickle.dumps(client.with_options(api_key="sk-secret-1"))
