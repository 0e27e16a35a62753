"""Answers that do not match `response_format`: asked for again, paid for, and never stored."""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import threading
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from llm_provider import (
    APITimeoutError,
    CacheMissError,
    Client,
    JSONSchemaValidationError,
    LengthFinishReasonError,
    LLMError,
    RefusalError,
    RequestError,
    Response,
    SchemaMismatchError,
)
from llm_provider.simulator import Fault, Simulator
from support import WAYS, ask, wait_until

MODEL = "gpt-6.1-sol"
FORMATS = [MODEL, "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash", "groq/llama", "claude-3-opus"]
GOOD = '{"name": "Bern", "people": 2}'
BAD = '{"name": "Bern", "people": 0}'


class City(BaseModel):
    name: str
    people: int = Field(ge=1)


BERN = City(name="Bern", people=2)


def answers(simulator: Simulator, *texts: str) -> None:
    """Order the texts of the next answers."""
    for text in texts:
        simulator.inject(Fault(text=text))


def ask_for_city(client: Client, model: str = MODEL, **parameters: Any) -> Response[Any]:
    return client.call(model, "Name a city.", **{"response_format": City, **parameters})


class TestRepair:
    @pytest.mark.parametrize("model", FORMATS)
    def test_a_model_is_asked_again_with_why(self, client: Client, simulator: Simulator, model: str) -> None:
        answers(simulator, BAD, GOOD)
        answer = ask_for_city(client, model=model)
        assert answer.parsed == BERN
        first, second = simulator.requests()
        assert "greater than or equal to 1" not in json.dumps(first.body)
        sent = json.dumps(second.body)
        assert "$.people: Input should be greater than or equal to 1" in sent
        assert sent.count("people") > json.dumps(first.body).count("people")
        assert (answer.timing.attempts, answer.cached) == (2, False)
        assert [failure.error for failure in answer.failures] == ["SchemaMismatchError"]
        assert answer.price == answer.cost
        assert answer.cost in (None, float(client.usage.spent))
        assert answer.usage == client.usage.usage
        # The repaired answer is stored under the key of the question.
        again = ask_for_city(client, model=model)
        assert (again.parsed, again.cached, again.cost, again.price) == (BERN, True, 0.0, answer.price)
        assert len(simulator.requests()) == 2

    def test_an_answer_that_never_matches_is_an_error(self, client: Client, simulator: Simulator) -> None:
        answers(simulator, BAD, "no JSON")
        with pytest.raises(SchemaMismatchError, match="it is not JSON") as caught:
            ask_for_city(client)
        error = caught.value
        assert isinstance(error, JSONSchemaValidationError)
        assert (error.text, error.attempts, error.model, error.provider) == ("no JSON", 2, MODEL, "openai")
        assert error.validation_error.startswith("it is not JSON")
        assert error.usage.output_tokens == simulator.ledger().output_tokens
        assert error.cost == float(client.usage.spent)
        assert error.maybe_billed
        back = pickle.loads(pickle.dumps(error))
        assert (back.text, back.usage, back.cost) == (error.text, error.usage, error.cost)
        # Nothing was stored.
        with pytest.raises(CacheMissError):
            ask_for_city(client, cache="only")
        assert ask_for_city(client).parsed.name == "text"

    @pytest.mark.parametrize("way", [way for way in WAYS if "stream" not in way])
    @pytest.mark.parametrize(("texts", "stored"), [((BAD, "no JSON"), 0), ((BAD, GOOD), 1), ((GOOD,), 1)])
    def test_only_an_answer_that_matches_is_in_the_cache(
        self, client: Client, simulator: Simulator, way: str, texts: tuple[str, ...], stored: int
    ) -> None:
        """A look-up checks again, so it cannot tell what is stored."""
        answers(simulator, *texts)
        with contextlib.nullcontext() if stored else pytest.raises(SchemaMismatchError):
            ask(client, way, MODEL, "Name a city.", response_format=City)
        assert client.cache.stats().entries == stored

    @pytest.mark.parametrize("most", [0, 2])
    def test_how_often_is_a_parameter(self, client: Client, simulator: Simulator, most: int) -> None:
        answers(simulator, *[BAD] * (most + 1))
        with pytest.raises(SchemaMismatchError) as caught:
            ask_for_city(client, max_repairs=most)
        assert caught.value.attempts == len(simulator.requests()) == most + 1
        contents = [message["content"] for message in simulator.requests()[-1].body["messages"]]
        assert contents.count(BAD) == most

    def test_a_repair_that_fails_leaves_the_paid_answer(self, client: Client, simulator: Simulator) -> None:
        answers(simulator, BAD)
        simulator.inject(Fault(status=400, message="no more"))
        with pytest.raises(SchemaMismatchError, match=r"asking again failed: .*no more") as caught:
            ask_for_city(client)
        assert caught.value.text == BAD
        assert caught.value.cost == float(client.usage.spent)

    @pytest.mark.parametrize(
        ("finish", "kind"),
        [("refusal", RefusalError), ("content_filter", RefusalError), ("length", LengthFinishReasonError)],
    )
    def test_a_refused_or_cut_answer_is_not_asked_for_again(
        self, client: Client, simulator: Simulator, finish: str, kind: type[Exception]
    ) -> None:
        simulator.inject(Fault(finish=finish))
        answer = ask_for_city(client)
        with pytest.raises(kind):
            _ = answer.parsed
        assert len(simulator.requests()) == 1

    def test_json_without_a_schema_is_checked_too(self, client: Client, simulator: Simulator) -> None:
        answers(simulator, "none", "[1]")
        answer = ask_for_city(client, response_format={"type": "json_object"})
        assert (answer.parsed, answer.timing.attempts) == ([1], 2)


class TestStreams:
    def test_an_answer_that_was_shown_is_not_asked_again(self, client: Client, simulator: Simulator) -> None:
        answers(simulator, BAD)
        with client.stream(MODEL, "Name a city.", response_format=City) as deltas:
            assert "".join(map(str, deltas)) == BAD
        with pytest.raises(SchemaMismatchError, match="people") as caught:
            _ = deltas.response.parsed
        assert (caught.value.text, caught.value.cost) == (BAD, deltas.response.cost)
        assert len(simulator.requests()) == 1
        assert not ask_for_city(client).cached

    def test_a_schema_keeps_the_order_of_its_fields(self, client: Client, simulator: Simulator) -> None:
        class Thought(BaseModel):
            reasoning: str
            answer: int

        with client.stream(MODEL, "Hi", response_format=Thought) as deltas:
            list(deltas)
        client.call(MODEL, "Hi", response_format=Thought, cache="refresh")
        client.call(MODEL, "Hi", response_format=Thought, n=2, cache="refresh")
        for request in simulator.requests():
            schema = request.body["response_format"]["json_schema"]["schema"]
            assert list(schema["properties"]) == ["reasoning", "answer"]


class Swiss(City):
    model_config = {"title": "City"}

    @field_validator("name")
    @classmethod
    def is_swiss(cls, name: str) -> str:
        if name != "Bern":
            raise ValueError("it is not in Switzerland")
        return name


# A class of the same name elsewhere.
Swiss.__name__ = "City"


class TestOtherTypes:
    """Types with equal schemas share a cache key, and may accept different answers."""

    def test_a_stored_answer_that_does_not_fit_is_a_miss(self, client: Client, simulator: Simulator) -> None:
        assert ask_for_city(client).parsed.name == "text"
        with pytest.raises(CacheMissError, match="not of response_format"):
            ask_for_city(client, response_format=Swiss, cache="only")
        answers(simulator, GOOD)
        assert ask_for_city(client, response_format=Swiss).parsed == Swiss(name="Bern", people=2)
        # The new answer took the place of the old one.
        assert ask_for_city(client).parsed == BERN

    def test_equal_calls_at_once_get_what_each_accepts(self, client: Client, simulator: Simulator) -> None:
        simulator.configure(latency=0.3)
        answers: dict[str, Any] = {}
        simulator.inject(Fault(text=GOOD), match="does not match the JSON schema", times=None)

        def ask_for(kind: type[BaseModel]) -> None:
            answers[kind.__qualname__] = ask_for_city(client, response_format=kind).parsed

        loose, strict = (threading.Thread(target=ask_for, args=(kind,)) for kind in (City, Swiss))
        loose.start()
        assert wait_until(lambda: simulator.ledger().requests == 1)
        strict.start()
        loose.join()
        strict.join()
        assert (answers["City"].name, answers["Swiss"].name) == ("text", "Bern")


@pytest.mark.parametrize("model", ["deepseek/deepseek-v4-pro", "claude-3-opus"])
def test_a_response_tells_of_a_schema_in_the_prompt(client: Client, simulator: Simulator, model: str) -> None:
    answers(simulator, GOOD)
    for _ in range(2):
        answer = ask_for_city(client, model=model)
        assert (answer.parsed, answer.schema_in_prompt) == (BERN, True)
    (request,) = simulator.requests()
    assert "matches this JSON schema" in json.dumps(request.body)
    assert "json_schema" not in str(request.body.get("response_format"))
    assert "output_config" not in request.body


WHOLE = [way for way in WAYS if "stream" not in way]


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.sampled(4)
def test_a_long_check_blocks_nothing_and_ends_in_time(client: Client, simulator: Simulator, way: str) -> None:
    """The validator waits for the end of another call, and then until the deadline has passed."""
    entered, leave = threading.Event(), threading.Event()

    class Slow(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def wait(cls, value: str) -> str:
            entered.set()
            assert leave.wait(120)
            return value

    outcomes: list[LLMError] = []

    def work() -> None:
        try:
            ask(client, way, MODEL, response_format=Slow, deadline=2, n=2, cache="off")
        except LLMError as error:
            outcomes.append(error)

    answers(simulator, *['{"name": "Bern"}'] * 2)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert entered.wait(60)
        assert client.call(MODEL, "Something else.", cache="off").text
        thread.join(60)
        assert not thread.is_alive()
    finally:
        leave.set()
    assert isinstance(outcomes[0], APITimeoutError)
    assert outcomes[0].phase == "deadline"


class InPython(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    name: str = Field(pattern="^(a+)+$")


class Compiled(BaseModel):
    name: Annotated[str, Field(pattern=re.compile("^(a+)+$"))]


@pytest.mark.parametrize("schema", [InPython, Compiled, list[Compiled]])
def test_unbounded_patterns_are_refused_unsent(client: Client, simulator: Simulator, schema: Any) -> None:
    with pytest.raises(RequestError, match="may take any time"):
        client.call(MODEL, "Go.", response_format=schema)

    def tool(name: schema) -> None:
        """A tool."""

    tool.__annotations__["name"] = schema
    with pytest.raises(RequestError, match="may take any time"):
        client.call(MODEL, "Go.", tools=[tool])
    assert not simulator.requests()
