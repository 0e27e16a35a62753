"""API keys and servers from a `.env` file."""

import hashlib
import os
import pickle
from pathlib import Path

import pytest

from llm_provider import Client, MissingAPIKeyError, RequestError
from llm_provider._core.requests.api_keys import find_accounts, find_key
from llm_provider._core.requests.env_file import EnvFile
from llm_provider._core.requests.routing import resolve
from llm_provider.simulator import Simulator

KEY, OTHER = "sk-of-the-file-123456", "sk-of-the-environment-1"
NAMES = ("OPENAI_API_KEY",)


@pytest.fixture
def env_file(tmp_path: Path) -> Path:
    path = tmp_path / ".env"
    path.write_text(f"# keys\nexport OPENAI_API_KEY='{KEY}'\nEMPTY=\n", encoding="utf-8-sig")
    return path


def test_its_key_and_server_are_used_and_nothing_else_changes(
    env_file: Path, llm_simulator: Simulator, own_cache: Path
) -> None:
    with env_file.open("a", encoding="utf-8") as file:
        file.write(f"OPENAI_BASE_URL={llm_simulator.url('openai')}\n")
    before = dict(os.environ)
    with Client(env_file=env_file, cache_dir=own_cache) as client:
        assert client.call("gpt-6.1-sol", "What is 2+2?").text == "4"
        assert client.call_many("gpt-6.1-sol", ["What is 2+3?"]).texts == ["5"]
        assert KEY not in repr(vars(client))
    digest = hashlib.sha256(KEY.encode()).hexdigest()[:8]
    sent = llm_simulator.requests("openai")
    assert [request.headers["authorization"] for request in sent] == [f"sha256:{digest}"] * 2
    assert dict(os.environ) == before


def test_the_environment_and_the_call_come_first(env_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = EnvFile(env_file)
    assert find_key(resolve("gpt-4o"), variables).reveal() == KEY
    with env_file.open("a", encoding="utf-8") as file:
        file.write("OPENAI_API_KEYS=sk-a,sk-b\n")
    variables = EnvFile(env_file)
    assert len(find_accounts("openai", NAMES, {}, variables) or ()) == 2
    monkeypatch.setenv("OPENAI_API_KEY", OTHER)
    assert find_accounts("openai", NAMES, {}, variables) is None
    assert find_key(resolve("gpt-4o"), variables).reveal() == OTHER


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("OPENAI_API_KEY='sk-cut\n", "line 1, which is not NAME=value"),
        ("A=b\nthis is no line =\n", "line 2, which is not NAME=value"),
        ("LLM_PROVIDER_CACHE_DIR=x\n", r"write Client\(cache_dir=...\)"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / ".env"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RequestError, match=said) as caught:
        Client(env_file=path)
    assert "sk-cut" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path, said in [
        (tmp_path / "no.env", r"no.env' is not there"),
        (Path("no.env"), "is not there in"),
        (tmp_path, "is a folder"),
        (5, "env_file must be a path"),
    ]:
        with pytest.raises(RequestError, match=said):
            Client(env_file=path)  # type: ignore[arg-type]  # one is no path, on purpose
    (tmp_path / "latin").write_bytes(b"A=\xe9\n")
    with pytest.raises(RequestError, match="not UTF-8"):
        EnvFile(tmp_path / "latin")


def test_the_keys_stay_inside(env_file: Path) -> None:
    variables = EnvFile(env_file)
    assert KEY not in repr(variables)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(variables)
    with pytest.raises(MissingAPIKeyError, match=r"it is not in .*\.env either"):
        find_key(resolve("groq/m"), variables)
    env_file.write_text("OPENAI_API_KEY='sk with spaces'\n", encoding="utf-8")
    with pytest.raises(RequestError, match=r"OPENAI_API_KEY in .*printable ASCII") as caught:
        find_key(resolve("gpt-4o"), EnvFile(env_file))
    assert "sk with" not in str(caught.value)


def test_no_file_is_read_unless_it_is_asked_for(env_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(env_file.parent)
    with Client() as client, pytest.raises(MissingAPIKeyError):
        client.call("gpt-6.1-sol", "Hi")
