"""The error tree: its shape, what an error carries and shows, and that every class pickles."""

import copy
import inspect
import json
import pickle
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider._core import errors as _errors
from llm_provider._core.errors import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    BatchError,
    BudgetExceededError,
    CacheMissError,
    EvidenceError,
    FailedAttempt,
    InternalServerError,
    LLMError,
    ModelDriftError,
    OutputError,
    OverloadedError,
    PendingBatchError,
    ProviderError,
    RateLimitError,
    RequestError,
    SchemaMismatchError,
    ScoreCheckError,
    ToolArgumentsError,
    ToolRoundsExceededError,
    TooManyErrorsError,
    UncertainBatchError,
    UnsupportedParameterError,
)
from llm_provider._core.types.usage import Usage
from support import response

CLASSES = [kind for kind in vars(_errors).values() if inspect.isclass(kind) and issubclass(kind, LLMError)]
CONTEXT: dict[str, Any] = {
    "provider": "openai", "model": "gpt-5.5", "status": 429, "code": "slow_down", "request_id": "req_1",
    "attempts": 3, "retry_after": 1.5, "retryable": False, "maybe_billed": True,
}  # fmt: skip
EXTRA: dict[type[LLMError], dict[str, Any]] = {
    UnsupportedParameterError: {"parameter": "seed"},
    CacheMissError: {"key": "0" * 64},
    ModelDriftError: {"served": "gpt-5.5-2026-11-19", "served_before": "gpt-5.5-2026-10-21"},
    BudgetExceededError: {"budget": Decimal(5), "spent": Decimal("4.5"), "needed": Decimal(1)},
    ToolArgumentsError: {"tool_call_id": "1", "tool_name": "add", "arguments": "{}"},
    ToolRoundsExceededError: {"response": response()},
    SchemaMismatchError: {"text": "{", "validation_error": "it is not JSON", "cost": 0.5},
    PendingBatchError: {"batch": "b1"},
    ScoreCheckError: {"check": "count"},
    UncertainBatchError: {"batch": "b1", "candidates": ("batch_1",)},
    BatchError: {"results": [RateLimitError("slow"), 1]},
}


def make(kind: type[LLMError], **context: Any) -> LLMError:
    return kind("It failed.", **EXTRA.get(kind, {}), **context)


def test_the_page_has_a_row_for_every_error() -> None:
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    page = page.partition("## What a failure means")[0]
    rows = re.findall(r"^\| (?:\*\*)?`(\w+Error)`", page, re.MULTILINE)
    assert sorted([*rows, "LLMError"]) == sorted(kind.__name__ for kind in CLASSES)


@pytest.mark.parametrize("kind", CLASSES)
class TestEveryClass:
    def test_pickles_whole(self, kind: type[LLMError]) -> None:
        error = make(kind, **CONTEXT)
        error.add_note("in the third cell")
        for back in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(back) is kind
            assert str(back) == str(error)
            assert back.__notes__ == error.__notes__
            for name in vars(error).keys() - {"results"}:
                assert getattr(back, name) == getattr(error, name)
            assert repr(getattr(back, "results", None)) == repr(getattr(error, "results", None))

    def test_comes_back_from_json(self, kind: type[LLMError]) -> None:
        error = make(kind, **CONTEXT)
        error.failures = (FailedAttempt(error="RateLimitError", status=429, waited=0.5, maybe_billed=True),)
        error.cost, error.usage, error.metadata = 0.5, Usage(input_tokens=3), {"id": 7}
        fields = error.to_dict()
        back = LLMError.from_dict(json.loads(json.dumps(fields)))
        assert type(back) is kind
        assert str(back) == str(error)
        assert (back.failures, back.cost, back.usage) == (error.failures, 0.5, error.usage)
        assert back.to_dict() == fields
        for name in EXTRA.get(kind, {}).keys() - {"results"}:
            assert getattr(back, name) == getattr(error, name)

    def test_carries_its_context_and_shows_nothing_that_is_absent(self, kind: type[LLMError]) -> None:
        error = make(kind, **CONTEXT)
        assert {name: getattr(error, name) for name in CONTEXT} == CONTEXT
        assert str(error) == "It failed. [openai, gpt-5.5, HTTP 429, request req_1, 3 attempts]"
        assert str(make(kind)) == "It failed."
        bare = make(kind)
        assert (bare.status, bare.attempts, bare.retry_after) == (None, 0, None)
        assert (bare.retryable, bare.maybe_billed) == (kind.retryable, kind.maybe_billed)

    @pytest.mark.parametrize("part", ["ok", 0, slice(1)])
    def test_a_part_of_an_answer_in_its_place_raises_it(self, kind: type[LLMError], part: Any) -> None:
        error: Any = make(kind)
        with pytest.raises(kind) as raised:
            error[part]
        assert raised.value is error

    def test_has_one_of_the_branches(self, kind: type[LLMError]) -> None:
        branches = (
            RequestError, ProviderError, OutputError, BudgetExceededError, TooManyErrorsError, BatchError,
            EvidenceError,
        )  # fmt: skip
        assert sum(issubclass(kind, branch) for branch in branches) == (kind is not LLMError)


def test_what_may_pass_is_retried() -> None:
    retried = {kind for kind in CLASSES if kind.retryable}
    assert retried == {
        RateLimitError, OverloadedError, InternalServerError, APITimeoutError, APIConnectionError,
        APIResponseValidationError,
    }  # fmt: skip


def test_a_request_error_is_a_value_error_too() -> None:
    assert issubclass(RequestError, ValueError)
    assert not issubclass(ProviderError, ValueError)


def test_an_error_has_the_facts_of_a_response_that_it_knows_and_raises_itself_for_the_others() -> None:
    error = RateLimitError("slow")
    assert (error.cost, error.usage, error.cached, error.failures) == (0, None, False, ())
    assert APITimeoutError("late").cost is None
    answer = response()
    public = {name for name in dir(answer) if not name.startswith("_")} - {"from_dict", "to_dict"}
    # openai's errors have a body too.
    assert public - set(dir(error)) == _errors._OF_RESPONSES | {"body"}
    with pytest.raises(AttributeError, match=r"'body': use \.message, \.code and \.status"):
        _ = error.body
    with pytest.raises(AttributeError, match="RateLimitError has no attribute 'txt'"):
        _ = error.txt  # type: ignore[attr-defined]  # on purpose


@pytest.mark.parametrize("kind", CLASSES)
def test_an_attribute_that_an_error_lacks_is_the_error_itself_or_a_default(kind: Any) -> None:
    error = _errors._rebuild(kind, {**LLMError("slow", status=429).__dict__, "marks": [1]})
    error.__cause__ = ValueError("first")
    for name in (_errors._OF_RESPONSES | {"body", "anything"}) - set(dir(kind)):
        assert not hasattr(error, name)
        assert getattr(error, name, 3) == 3
        with pytest.raises(AttributeError) as caught:
            getattr(error, name)
        raised = caught.value
        assert isinstance(raised, kind) == (name in _errors._OF_RESPONSES)
        if isinstance(raised, LLMError):
            assert (str(raised), vars(raised), raised.__cause__) == (str(error), vars(error), error.__cause__)
            assert (repr(type(raised)), raised.to_dict()) == (repr(kind), error.to_dict())
            # What leaves the process is the plain error.
            for copied in (pickle.loads(pickle.dumps(raised)), copy.copy(raised)):
                assert (type(copied), vars(copied)) == (kind, vars(error))
            assert not hasattr(raised, name)
    assert error.__traceback__ is None


@pytest.mark.parametrize(
    "fields", [{}, {"error": "Response", "message": ""}, {"error": "LLMError"}, {"error": 1}]
)
def test_what_is_not_the_dict_of_an_error_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(RequestError, match="not the dict of an error"):
        LLMError.from_dict(fields)


def test_a_batch_error_tells_which_calls_failed() -> None:
    answer = response()
    failure = RateLimitError("slow")
    error = BatchError("1 of 2 calls failed", results=[answer, failure])
    assert error.errors == {1: failure}
    back = pickle.loads(pickle.dumps(error))
    assert back.results[0] == answer
    assert list(back.errors) == [1]
