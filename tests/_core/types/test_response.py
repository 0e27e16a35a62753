"""A complete answer, and the value in it."""

import copy
import dataclasses
import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

import support
from llm_provider._core.errors import (
    FailedAttempt,
    JSONSchemaValidationError,
    LengthFinishReasonError,
    RateLimitError,
    RequestError,
    SchemaMismatchError,
)
from llm_provider._core.types.messages import ToolCall
from llm_provider._core.types.response import Choice, Response
from llm_provider._core.types.usage import Timing, TokenLogprob, Usage

CHOICE_FIELDS = frozenset({"finish_reason", "reasoning", "tool_calls", "message"})


class Sized(BaseModel):
    size: int = 0


DEEP = "[" * 100_000

_FIRST = TokenLogprob(token="a", logprob=-0.1, id=3)
LOGPROBS = (TokenLogprob(token="a", logprob=-0.1, id=3, top=(_FIRST,)),)


class City(BaseModel):
    name: str
    people: int


def response(text: str = "Hello", **fields: Any) -> Response:
    choice = {name: fields.pop(name) for name in CHOICE_FIELDS & fields.keys()}
    fields = {"usage": Usage(input_tokens=10, output_tokens=5), "model": "m", "provider": "p", **fields}
    return Response(choices=(Choice(text=text, **choice),), **fields)


class TestResponse:
    def test_the_first_sample_is_at_hand(self) -> None:
        calls = (ToolCall(id="1", name="f", arguments="{}"),)
        message = {"role": "assistant", "content": "a"}
        first = Choice(
            text="a", reasoning="r", tool_calls=calls, finish_reason="tool_calls", message=message,
            logprobs=LOGPROBS,
        )  # fmt: skip
        answer = dataclasses.replace(response(), choices=(first, Choice(text="b")))
        assert (answer.text, answer.texts, str(answer)) == ("a", ["a", "b"], "a")
        assert (answer.reasoning, answer.tool_calls, answer.finish_reason) == ("r", calls, "tool_calls")
        assert (answer.message, answer.logprobs) == (message, LOGPROBS)

    def test_is_frozen_and_pickles(self) -> None:
        answer = response(cost=0.5, timing=Timing(total=1.0, attempts=1), response_format=City)
        with pytest.raises(dataclasses.FrozenInstanceError):
            answer.cost = 0  # type: ignore[misc]  # on purpose
        for back in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
            assert back == answer
            assert back.response_format is City

    @pytest.mark.parametrize(
        "answer",
        [
            response(
                "ü", cost=0.1, cost_source="prices", id="x", metadata={"id": 7}, body='{"a":"ü"}'.encode()
            ),
            response(cost=0.0, cached=True, timing=Timing(total=1.0, first_token=0.5), body=b"\xff"),
            response(
                "",
                finish_reason="tool_calls",
                reasoning="r",
                tool_calls=(ToolCall(id="1", name="f", arguments="{", type="custom"),),
                message={"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
                failures=(FailedAttempt(error="RateLimitError", status=429, maybe_billed=True),),
            ),
            dataclasses.replace(response(), choices=(Choice(text="a", logprobs=LOGPROBS), Choice())),
        ],
    )
    def test_comes_back_from_json(self, answer: Response) -> None:
        fields = answer.to_dict()
        assert Response.from_dict(json.loads(json.dumps(fields))) == answer
        assert (fields["text"], fields["finish_reason"]) == (answer.text, answer.finish_reason)

    def test_what_was_parsed_is_in_the_dict(self) -> None:
        answer = response('{"name": "Bern", "people": 134000}', response_format=City)
        fields = json.loads(json.dumps(answer.to_dict()))
        assert fields["parsed"] == {"name": "Bern", "people": 134000}
        assert Response.from_dict(fields).parsed == fields["parsed"]
        assert Response.from_dict(fields, response_format=City).parsed == City(name="Bern", people=134000)
        assert response("no JSON", response_format=City).to_dict()["parsed"] is None

    @pytest.mark.parametrize("fields", [{}, {"choices": 1}, response().to_dict() | {"usage": {"tokens": 1}}])
    def test_what_is_not_its_dict_is_refused(self, fields: dict[str, Any]) -> None:
        with pytest.raises(RequestError, match="not the dict of a response"):
            Response.from_dict(fields)
        with pytest.raises(RequestError, match="the dict of RateLimitError"):
            Response.from_dict(RateLimitError("slow").to_dict())

    def test_shows_the_text_the_tokens_and_the_cost(self) -> None:
        assert repr(response(cost=0.0123)) == (
            "Response('Hello', model='m', finish_reason='stop', tokens=10+5, $0.0123)"
        )
        assert "cost unknown" in repr(response())
        assert "cached" in repr(response(cached=True, cost=0.0))
        assert len(repr(response("x" * 10_000))) < 200

    def test_a_notebook_shows_it_without_running_it(self) -> None:
        html = response("<script>alert(1)</script> & more", model="<m>")._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html
        assert "&lt;m&gt;" in html

    def test_a_notebook_shows_every_part_of_it(self) -> None:
        call = ToolCall(id="1", name="weather", arguments='{"city": "Bern"}')
        first = Choice(text="one", reasoning="Let me think.", tool_calls=(call,), finish_reason="length")
        full = Response(
            choices=(first, Choice(text="two")), usage=Usage(input_tokens=1234, output_tokens=5), model="m",
            provider="p", dropped=("top_k",), metadata={"id": 7},
            failures=(FailedAttempt(error="RateLimitError"),),
        )  # fmt: skip
        html = full._repr_html_()
        for part in (
            "one", "two", "sample 2 of 2", "Let me think.", "→ weather({&quot;city&quot;: &quot;Bern",
            "⚠ length · 1,234 + 5 tokens · cost unknown · 0.00 s · 1 failed before · dropped top_k",
            "{&#x27;id&#x27;: 7}",
        ):  # fmt: skip
            assert part in html
        assert len(response("x" * 100_000)._repr_html_()) < 7_000


class TestParsed:
    @pytest.mark.parametrize(
        ("text", "response_format", "value"),
        [
            ('{"name": "Bern", "people": 134591}', City, City(name="Bern", people=134591)),
            # What a provider adapted is read: an answer in a wrapper, and null for a field that is absent.
            ('{"answer": [1]}', list[int], [1]),
            ('{"size": null}', Sized, Sized()),
            ('{"a": 1}', {"type": "json_object"}, {"a": 1}),
            ('{"a": 1}', {"type": "json_schema", "json_schema": {"schema": {}}}, {"a": 1}),
            # None where no JSON was asked for.
            ("Hello", None, None),
            ("Hello", {"type": "text"}, None),
        ],
    )
    def test_is_the_value_of_the_text(self, text: str, response_format: Any, value: Any) -> None:
        answer = response(text, response_format=response_format)
        assert answer.parsed == value
        again = Response.from_dict(json.loads(json.dumps(answer.to_dict()))).parsed
        assert again == value or isinstance(value, BaseModel)

    @pytest.mark.parametrize("response_format", [City, {"type": "json_object"}])
    @pytest.mark.parametrize("text", ["", "no json", DEEP])
    def test_what_does_not_match_is_our_error(self, text: str, response_format: Any) -> None:
        with pytest.raises(JSONSchemaValidationError) as caught:
            _ = response(text, response_format=response_format).parsed
        assert (caught.value.provider, caught.value.model, caught.value.maybe_billed) == ("p", "m", True)

    def test_the_error_holds_the_answer_and_the_reason(self) -> None:
        with pytest.raises(JSONSchemaValidationError, match="people"):
            _ = response('{"name": "Bern", "people": "many"}', response_format=City).parsed
        calls = (ToolCall(id="1", name="f", arguments="{}"),)
        with pytest.raises(SchemaMismatchError, match="called tools") as caught:
            _ = response("", response_format=City, cost=0.5, tool_calls=calls).parsed
        error = caught.value
        assert (error.text, error.validation_error, error.cost) == ("", "it is empty", 0.5)
        assert error.usage == Usage(input_tokens=10, output_tokens=5)

    def test_all_samples(self) -> None:
        choices = tuple(Choice(text=str(number)) for number in range(3))
        answer = dataclasses.replace(response(response_format=int), choices=choices)
        assert (answer.parsed, answer.all_parsed) == (0, [0, 1, 2])
        assert response("Hello").all_parsed == []
        cut = (*choices, Choice(text="4", finish_reason="length"))
        with pytest.raises(LengthFinishReasonError):
            _ = dataclasses.replace(answer, choices=cut).all_parsed


def test_a_pickled_answer_reads_its_citations() -> None:
    reply = b'{"content": [{"type": "text", "text": "A", "citations": [{"title": "Zug"}]}]}'
    answer = support.response("A", provider="anthropic", body=reply)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).citations[0].title)"
    ended = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(answer), capture_output=True, check=True
    )
    assert ended.stdout.strip() == b"Zug"
