"""API keys: where they come from, and that none shows itself."""

import pickle
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._errors import MissingAPIKey, RequestError
from llm_provider._keys import Accounts, APIKey, find_key
from llm_provider._request import Request

CANARY = "sk-canary-4f0c9a1e77"
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)


class TestAPIKey:
    def test_shows_itself_nowhere(self) -> None:
        key = APIKey(CANARY)
        request = Request.build("gpt-5.5", "Hi", {"api_key": CANARY})
        for shown in (
            repr(key),
            str(key),
            f"{key}",
            key.identity,
            repr([key]),
            repr({key: key}),
            repr(request),
            str(request),
        ):
            assert CANARY not in shown
        assert key.reveal() == CANARY

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_is_never_pickled(self, protocol: int) -> None:
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(APIKey(CANARY), protocol)
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(Request.build("gpt-5.5", "Hi", {"api_key": CANARY}), protocol)

    def test_has_no_attributes_to_list(self) -> None:
        assert not hasattr(APIKey(CANARY), "__dict__")

    @given(PRINTABLE, PRINTABLE)
    def test_is_told_apart_by_its_text(self, one: str, other: str) -> None:
        assert (APIKey(one) == APIKey(other)) == (one == other)
        assert (APIKey(one).identity == APIKey(other).identity) == (one == other)
        assert len({APIKey(one), APIKey(one)}) == 1
        assert APIKey(one) != one

    @pytest.mark.parametrize(
        "text", ["", " ", "sk-\n", f"{CANARY}\r\nX-Evil: 1", f"{CANARY}\u2013", "sk key", "\x00"]
    )
    def test_that_no_header_can_carry_is_refused_without_being_quoted(self, text: str) -> None:
        with pytest.raises(RequestError) as caught:
            APIKey(text)
        assert CANARY not in "".join(traceback.format_exception(caught.value, limit=0))

    def test_is_blotted_out_of_texts(self) -> None:
        assert (
            APIKey(CANARY).scrub(f"Incorrect API key provided: {CANARY}.")
            == "Incorrect API key provided: ***."
        )
        # A stand-in of a few letters would blot out words.
        assert APIKey("no").scrub("no such model") == "no such model"


class TestFindKey:
    VARIABLES = ("TEST_ONE_API_KEY", "TEST_TWO_API_KEY")

    def test_the_calls_own_comes_first_then_the_clients_then_the_environments(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TEST_ONE_API_KEY", " \n")
        monkeypatch.setenv("TEST_TWO_API_KEY", " from-environment\n")
        given, configured = APIKey("given"), ((APIKey("configured"),),)

        def found(given: APIKey | None, accounts: Accounts) -> str:
            return find_key("openai", self.VARIABLES, given=given, accounts=accounts, required=True).reveal()

        assert found(given, configured) == "given"
        assert found(None, configured) == "configured"
        assert found(None, ()) == "from-environment"
        monkeypatch.setenv("TEST_ONE_API_KEY", "first")
        assert found(None, ()) == "first"

    def test_a_missing_key_names_its_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable in self.VARIABLES:
            monkeypatch.delenv(variable, raising=False)
        with pytest.raises(
            MissingAPIKey, match="set TEST_ONE_API_KEY or TEST_TWO_API_KEY, or pass api_key="
        ) as caught:
            find_key("openai", self.VARIABLES, given=None, accounts=(), required=True)
        assert caught.value.provider == "openai"

    def test_a_server_that_wants_no_key_gets_a_stand_in(self) -> None:
        assert find_key("local", (), given=None, accounts=(), required=False) == APIKey("not-needed")

    def test_a_key_in_the_environment_that_no_header_can_carry_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TEST_ONE_API_KEY", f"{CANARY}\u2026")
        with pytest.raises(RequestError) as caught:
            find_key("openai", self.VARIABLES, given=None, accounts=(), required=True)
        assert CANARY not in str(caught.value)
