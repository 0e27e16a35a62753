"""API keys, of `.env` files too: where they come from, and that none shows itself."""

import hashlib
import os
import pickle
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client, MissingAPIKeyError, RequestError
from llm_provider._core.requests.api_keys import Accounts, APIKey, EnvFile, find_accounts, seal_keys
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import ROUTES, Target, find_key, resolve
from llm_provider.simulator import Simulator

CANARY = "sk-canary-4f0c9a1e77"
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)


class TestAPIKey:
    def test_shows_itself_nowhere(self) -> None:
        key = APIKey(CANARY)
        request = Request.build("gpt-5.5", "Hi", {"api_key": CANARY})
        written = (
            f"{key!r} {key!s} {key}",
            key.identity,
            repr([key]),
            repr({key: key}),
            f"{request!r} {request!s}",
        )
        assert CANARY not in "".join(written)
        assert key.reveal() == CANARY

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_is_never_pickled(self, protocol: int) -> None:
        for value in (APIKey(CANARY), Request.build("gpt-5.5", "Hi", {"api_key": CANARY})):
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(value, protocol)

    @given(PRINTABLE, PRINTABLE)
    def test_is_told_apart_by_its_text(self, key: str, other: str) -> None:
        assert (APIKey(key) == APIKey(other)) == (key == other)
        assert (APIKey(key).identity == APIKey(other).identity) == (key == other)
        assert len({APIKey(key), APIKey(key)}) == 1
        assert APIKey(key) != key

    @pytest.mark.parametrize(
        "text", ["", " ", "sk-\n", f"{CANARY}\r\nX-Evil: 1", f"{CANARY}\u2013", "sk key", "\x00"]
    )
    def test_that_no_header_can_carry_is_refused_without_being_quoted(self, text: str) -> None:
        with pytest.raises(RequestError) as caught:
            APIKey(text)
        assert CANARY not in "".join(traceback.format_exception(caught.value, limit=0))

    def test_another_type_is_named_and_its_value_is_not(self) -> None:
        with pytest.raises(RequestError, match="not int") as caught:
            Request.build("gpt-5.5", "Hi", {"api_key": 12345})
        assert "12345" not in str(caught.value)

    def test_is_blotted_out_of_texts(self) -> None:
        assert APIKey(CANARY).scrub(f"Incorrect API key: {CANARY}.") == "Incorrect API key: ***."
        # A stand-in of a few letters would blot out words.
        assert APIKey("no").scrub("no such model") == "no such model"


VARIABLES = ("TEST_ONE_API_KEY", "TEST_TWO_API_KEY")
TARGET = Target(replace(ROUTES["openai"], key_variables=VARIABLES), "m", None)


class TestFindKey:
    def test_the_first_variable_that_is_set_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_ONE_API_KEY", " \n")
        monkeypatch.setenv("TEST_TWO_API_KEY", " from-environment\n")
        assert find_key(TARGET).reveal() == "from-environment"
        monkeypatch.setenv("TEST_ONE_API_KEY", "first")
        assert find_key(TARGET).reveal() == "first"

    def test_a_missing_key_names_its_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable in VARIABLES:
            monkeypatch.delenv(variable, raising=False)
        named = "set TEST_ONE_API_KEY or TEST_TWO_API_KEY, or pass api_key="
        with pytest.raises(MissingAPIKeyError, match=named) as caught:
            find_key(TARGET)
        assert caught.value.provider == "openai"

    def test_a_server_that_wants_no_key_gets_a_stand_in(self) -> None:
        assert find_key(resolve("local/m")) == APIKey("not-needed")


def revealed(accounts: Accounts | None) -> list[list[str]] | None:
    return None if accounts is None else [[key.reveal() for key in account] for account in accounts]


class TestFindAccounts:
    def test_the_clients_win_then_the_first_list(self, monkeypatch: pytest.MonkeyPatch) -> None:
        configured = seal_keys({"openai": ["sk-c1", "sk-c2"]}, dict.fromkeys(ROUTES, True))
        assert find_accounts("openai", VARIABLES, {}) is None
        for name in ("TEST_TWO_KEYS", "TEST_TWO_API_KEYS", "TEST_ONE_KEYS", "TEST_ONE_API_KEYS"):
            monkeypatch.setenv(name, f"{name},sk-b")
            assert revealed(find_accounts("openai", VARIABLES, {})) == [[name], ["sk-b"]]
        assert revealed(find_accounts("openai", VARIABLES, configured)) == [["sk-c1"], ["sk-c2"]]

    def test_what_no_header_can_carry_is_never_quoted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TEST_ONE_API_KEYS", f"sk-good, {CANARY}\u2013")
        with pytest.raises(RequestError, match="TEST_ONE_API_KEYS: an API key must be") as caught:
            find_accounts("openai", VARIABLES, {})
        written = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        frames = "".join(line for line in written.format() if "_keys.py" in line)
        assert "find_accounts" in frames
        assert CANARY not in frames


class TestSealed:
    def test_a_key_a_list_and_lists_within_it(self) -> None:
        keys = {"openai": "sk-a", "xai": ["sk-b", ("sk-c", "sk-d"), "sk-b"]}
        accounts = seal_keys(keys, dict.fromkeys(ROUTES, True))
        assert revealed(accounts["openai"]) == [["sk-a"]]
        assert revealed(accounts["xai"]) == [["sk-b"], ["sk-c", "sk-d"]]
        assert seal_keys({}, dict.fromkeys(ROUTES, True)) == {}

    def test_a_name_that_is_no_text_is_not_shown(self) -> None:
        with pytest.raises(RequestError, match=r"keys names no provider: \*\*\*"):
            Client(keys={7: "sk-a"})  # type: ignore[dict-item]  # that is the point


KEY, OTHER = "sk-of-the-file-123456", "sk-of-the-environment-1"
NAMES = ("OPENAI_API_KEY",)


@pytest.fixture
def env_file(tmp_path: Path) -> Path:
    path = tmp_path / ".env"
    path.write_text(f"# keys\nexport OPENAI_API_KEY='{KEY}'\nEMPTY=\n", encoding="utf-8-sig")
    return path


def test_its_key_and_server_are_used_and_nothing_else_changes(
    env_file: Path, llm_simulator: Simulator, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name)
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
