"""`decide` and its forms from end to end: the real SDKs over real sockets against a server of our own."""

import asyncio
import json
import os
import pickle
import signal
import subprocess
import textwrap
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from decision_server import INPUT_PRICE, DecisionServer, draw, serving
from llm_provider import (
    APIResponseValidationError,
    APITimeoutError,
    BadRequestError,
    BatchError,
    Budget,
    BudgetExceededError,
    CacheMissError,
    Client,
    Decisions,
    Ledger,
    LLMError,
    Question,
    RequestError,
    Results,
    adecide,
    choice,
    decide,
    decide_many,
    predicate,
    score_levels,
    track,
    verify,
)
from llm_provider._core.types.response import result_from_dict
from llm_provider._features.evidence.export import read_entries
from support import wait_until

MODELS = {"openai": "gpt-6-luna", "gemini": "gemini-decision-1"}
NATIVES = sorted(MODELS)

QUESTIONS = {
    "polite": predicate("The text is polite."),
    "topic": choice("What is it about?", {"bills": "Invoices.", "other": ""}),
    "clarity": score_levels("How clear is it?", ["poor", "fair", "good"]),
}


@pytest.fixture
def server() -> Iterator[DecisionServer]:
    with serving() as server:
        yield server


@pytest.fixture
def client(own_cache: Path) -> Iterator[Client]:
    with Client(cache_dir=own_cache, max_retries=0) as client:
        yield client


def where(server: DecisionServer, native: str) -> dict[str, Any]:
    return {"base_url": server.root + ("/v1" if native == "openai" else ""), "api_key": "sk-test"}


def numbered(count: int) -> dict[str, Question]:
    return {f"n{number}": predicate(f"Statement {number} is true.") for number in range(count)}


def sent_question(native: str, question: Question) -> Any:
    """A question as the server reads it."""
    written: Any = {"type": question.kind, "instructions": question.instructions}
    if question.kind == "predicate":
        return written | ({} if native == "openai" else {"type": "noul"})
    if native == "gemini":
        pairs = dict(zip(question.options, question.descriptions, strict=True))
        return written | {"criteria": pairs if question.kind == "choice" else list(pairs)}
    field, name = ("choices", "value") if question.kind == "choice" else ("levels", "label")
    entries = [
        {name: option} | ({"description": means} if means else {})
        for option, means in zip(question.options, question.descriptions, strict=True)
    ]
    return written | {field: entries}


def truth(native: str, given: Any, question: Question) -> list[float]:
    """The probabilities that the server gives to the options, to the last digit."""
    return draw(given, sent_question(native, question), count=len(question.options))


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("native", NATIVES)
def test_a_token_budget_counts_every_request_for_decisions(
    client: Client, server: DecisionServer, native: str, pack: bool
) -> None:
    budget, more = Budget(40_000, unit="tokens"), {"pack": pack, **where(server, native)}
    for _ in range(2):
        decisions = client.decide(MODELS[native], "Hello", QUESTIONS, token_budget=budget, **more)
        assert budget.spent == decisions.usage.total_tokens >= server.tokens > 0
        assert (budget.reserved, budget.uncertain) == (0, 0)
    with pytest.raises(BudgetExceededError) as caught:
        client.decide(MODELS[native], "Another", QUESTIONS, token_budget=2_100, **more)
    assert caught.value.unit == "tokens"


@pytest.mark.parametrize("native", NATIVES)
class TestAnswers:
    def test_probabilities_are_the_servers_to_the_digit(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        decisions = client.decide(MODELS[native], "Hello", QUESTIONS, **where(server, native))
        for again in (False, True):
            polite, topic, clarity = decisions
            yes = truth(native, "Hello", QUESTIONS["polite"])[0]
            assert (polite.probability, polite.probabilities["true"], polite.value) == (yes, yes, yes >= 0.5)
            assert polite.confidence == max(yes, 1 - yes)
            found = truth(native, "Hello", QUESTIONS["topic"])
            assert topic.probabilities == dict(zip(("bills", "other"), found, strict=True))
            assert (topic.choice, topic.confidence) == (
                ("bills", "other")[found.index(max(found))],
                max(found),
            )
            levels = truth(native, "Hello", QUESTIONS["clarity"])
            assert clarity.probabilities == dict(zip(("poor", "fair", "good"), levels, strict=True))
            assert (clarity.score, clarity.confidence) == (levels[1] + 2 * levels[2], max(levels))
            assert [each.cached for each in decisions] == [again] * 3
            assert {each.method for each in decisions} == {"native"}
            decisions = client.decide(MODELS[native], "Hello", QUESTIONS, **where(server, native))
        assert len(server.bodies) == 1

    def test_one_more_question_asks_only_that_one(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        model, texts = MODELS[native], [f"input {number}" for number in range(40)]
        client.decide_many(model, texts, QUESTIONS, on_error="raise", **where(server, native))
        more = QUESTIONS | {"new": predicate("It is new.")}
        results = client.decide_many(model, texts, more, on_error="raise", **where(server, native))
        assert set(server.asked.values()) == {1}
        assert len(server.asked) == 40 * 4
        assert [len(body["questions"]) for body in server.bodies] == [3] * 40 + [1] * 40
        assert {result.asked_together for result in results} == {(("polite", "topic", "clarity"), ("new",))}
        assert results.cost + results[0].stored_price * 40 > 0

    def test_a_name_an_order_and_a_repetition_ask_nothing_again(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        model, here = MODELS[native], where(server, native)
        first = client.decide(model, "Hi", QUESTIONS, **here)
        turned = {f"other {name}": each for name, each in reversed(QUESTIONS.items())}
        second = client.decide(model, "Hi", turned | {"again": QUESTIONS["polite"]}, **here)
        assert second.cached
        assert second["again"].probability == second["other polite"].probability == first[0].probability
        assert len(server.bodies) == 1

    def test_another_model_input_option_or_field_is_another_question(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        here, one = where(server, native), [choice("Which?", ["a", "b"])]
        client.decide(MODELS[native], "Hi", one, **here)
        client.decide(MODELS[native], "Hi!", one, **here)
        client.decide(MODELS[native] + "-2", "Hi", one, **here)
        client.decide(MODELS[native], "Hi", [choice("Which?", {"a": "", "b": "no a"})], **here)
        client.decide(MODELS[native], "Hi", [choice("Which?", ["b", "a"])], **here)
        server.validates = False
        client.decide(MODELS[native], "Hi", one, extra_body={"depth": 2}, **here)
        assert (len(server.bodies), server.bodies[-1]["depth"]) == (6, 2)

    @pytest.mark.parametrize(("pack", "sizes"), [(None, [5]), (True, [5]), (2, [2, 2, 1]), (False, [1] * 5)])
    def test_questions_are_packed(
        self, client: Client, server: DecisionServer, native: str, pack: Any, sizes: list[int]
    ) -> None:
        decisions = client.decide(MODELS[native], "Hi", numbered(5), pack=pack, **where(server, native))
        assert sorted((len(body["questions"]) for body in server.bodies), reverse=True) == sizes
        assert [len(names) for names in decisions.asked_together] == sizes
        assert [each.asked_with for each in decisions] == [size - 1 for size in sizes for _ in range(size)]
        stored = client.decide(MODELS[native], "Hi", numbered(5), **where(server, native))
        assert stored.asked_together == decisions.asked_together

    def test_prices_and_usage_add_up_to_the_bill(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        model, here = MODELS[native], where(server, native)
        with track("judge") as sums:
            first = client.decide(model, "Hi", numbered(7), **here)
            second = client.decide(model, "Hi", numbered(9), **here)
        assert first.usage.input_tokens + json.dumps(server.bodies[1]).__len__() // 4 == server.tokens
        assert first.cost is not None
        assert second.cost is not None
        assert first.cost + second.cost == pytest.approx(float(server.bill), abs=1e-15)
        assert second.price == pytest.approx(float(server.bill), abs=1e-15)
        assert float(sums.cost) == pytest.approx(float(server.bill), abs=1e-15)
        assert client.decide(model, "Hi", numbered(9), **here).usage.input_tokens == server.tokens

    def test_a_table_has_a_row_for_each_question(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        results = client.decide_many(
            MODELS[native], ["a", "b"], QUESTIONS, metadata=[{"id": 7}, {"id": 8}], **where(server, native)
        )
        frame = results.to_pandas()
        assert frame["id"].tolist() == [7] * 3 + [8] * 3
        assert frame["question"].tolist() == list(QUESTIONS) * 2
        assert frame["kind"].tolist() == ["predicate", "choice", "score"] * 2
        assert frame["probability"].tolist()[0] == truth(native, "a", QUESTIONS["polite"])[0]
        assert json.loads(frame["probabilities"][1]).keys() == {"bills", "other"}
        assert frame["cost"].sum() == pytest.approx(float(server.bill), abs=1e-15)
        assert "polite" in results._repr_html_()

    @pytest.mark.parametrize("form", ["frame", "dicts", "iterator"])
    def test_rows_fill_a_template(
        self, client: Client, server: DecisionServer, native: str, form: str
    ) -> None:
        rows: Any = [{"id": 7, "text": "a"}, {"id": 8, "text": "b"}]
        given = {"frame": pandas.DataFrame(rows), "dicts": rows, "iterator": iter(rows)}[form]
        model, here = MODELS[native], where(server, native)
        parameters: Any = {"rows": given, "metadata": lambda row: {"id": int(row["id"])}, **here}
        results = client.decide_many(model, "Text: {text}", QUESTIONS, **parameters)
        plain = client.decide_many(model, ["Text: a", "Text: b"], QUESTIONS, cache="only", **here)
        assert not any(each.cached for each in results.raise_for_errors())
        assert all(each.cached for each in plain.raise_for_errors())
        assert [each.metadata for each in results] == [{"id": 7}, {"id": 8}]
        again = {**parameters, "rows": rows, "cache": "only"}
        read = asyncio.run(client.adecide_many(model, "Text: {text}", QUESTIONS, **again))
        assert [each.metadata for each in read.raise_for_errors()] == [{"id": 7}, {"id": 8}]
        with pytest.raises(RequestError, match="text"):
            client.decide_many(model, "Text: {text}", QUESTIONS, rows=[{"id": 7}], **here)

    def test_results_are_read_back_equal(self, client: Client, server: DecisionServer, native: str) -> None:
        results = client.decide_many(MODELS[native], ["a", ""], QUESTIONS, **where(server, native))
        (found, error) = results
        assert isinstance(found, Decisions)
        assert isinstance(error, LLMError)
        assert Decisions.from_dict(json.loads(json.dumps(found.to_dict()))) == found
        assert pickle.loads(pickle.dumps(found)) == found
        assert result_from_dict(json.loads(json.dumps(found.to_dict()))) == found

    def test_every_form_answers_the_same(
        self, client: Client, server: DecisionServer, native: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model, here = MODELS[native], where(server, native)

        async def texts() -> AsyncIterator[str]:
            yield "Hi"

        async def ask() -> list[Decisions]:
            many = await client.adecide_many(model, texts(), QUESTIONS, cache="off", **here)
            return [await client.adecide(model, "Hi", QUESTIONS, cache="off", **here),
                    await adecide(model, "Hi", QUESTIONS, **here), *many]  # type: ignore[list-item]  # fmt: skip

        found = [
            client.decide(model, "Hi", QUESTIONS, cache="off", **here),
            decide(model, "Hi", QUESTIONS, **here),
            *decide_many(model, ["Hi"], list(QUESTIONS.values()), **here),
            *asyncio.run(ask()),
        ]
        assert len(found) == 6
        assert len({tuple(tuple(each.probabilities.values()) for each in entry) for entry in found}) == 1  # type: ignore[union-attr]

    def test_evidence_of_decisions_can_be_verified(
        self, client: Client, server: DecisionServer, native: str, tmp_path: Path
    ) -> None:
        results = client.decide_many(MODELS[native], ["a", "b"], QUESTIONS, **where(server, native))
        evidence = results.export(tmp_path / "judge.zip", client=client, scores=[1, 0])
        assert "2 decisions" in str(evidence)
        assert verify(tmp_path / "judge.zip").manifest["figures"]["total"]["decisions"] == 2
        (stored,) = read_entries(client.cache, [results[0].cache_keys[1]], lambda *_: None)  # type: ignore[union-attr,list-item]
        assert isinstance(stored, Decisions)
        assert stored[0].choice == results[0][1].choice  # type: ignore[index,union-attr]

    def test_a_file_of_results_and_a_page_hold_every_answer(
        self, client: Client, server: DecisionServer, native: str, tmp_path: Path
    ) -> None:
        results = client.decide_many(MODELS[native], ["a", ""], QUESTIONS, **where(server, native))
        results.to_jsonl(tmp_path / "judge.jsonl")
        read = Results.from_jsonl(tmp_path / "judge.jsonl")
        assert read[0] == results[0]
        assert read.to_pandas()["question"].tolist()[:3] == list(QUESTIONS)
        results.to_html(tmp_path / "judge.html")
        assert "clarity" in (tmp_path / "judge.html").read_text(encoding="utf-8")

    def test_a_deadline_ends_it_and_the_answer_is_asked_again(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        server.fault = lambda number, body: time.sleep(1) if number == 0 else None
        with pytest.raises(APITimeoutError):
            client.decide(MODELS[native], "Hi", QUESTIONS, deadline=0.3, **where(server, native))
        assert not client.decide(MODELS[native], "Hi", QUESTIONS, **where(server, native)).cached


KEYS = [
    "2b0ec624ac13b598310953b745ebb55b1b09cff0bb4ab3663a87e6d3c199db6b",
    "d0762c40b39c40ccc5f6f027a324f51c87773cd34c2127114eaf1c4ed217e428",
    "d012f6d1c71b38252b261397547cfdb3474bd18899b67270c40074cab9e6abc1",
    "63fa04044486ca5ebcdf5e3cbd05e56e59dafa0ac701b8f4df9c5451b139ea17",
]
"""Of both endpoints, and of both other methods."""


class Tone(Enum):
    DRY = "dry"
    WARM = "warm"


class Verdict(BaseModel):
    polite: bool = Field(description="The text is polite.")
    tone: Tone = Field(description="Which tone has it?")
    stars: Literal[1, 2, 3] = Field(description="How many stars?")


def test_keys_stay(client: Client) -> None:
    """An answer that was paid for must be found by later versions too."""
    calls = [
        ("gpt-6-luna", None),
        ("gemini-decision-1", None),
        ("gpt-4.1", "logprobs"),
        ("gpt-4.1", "sampled"),
    ]
    keys = []
    for model, method in calls:
        with pytest.raises(CacheMissError) as caught:
            client.decide(model, "Hello", [QUESTIONS["topic"]], cache="only", method=method)  # type: ignore[arg-type]
        keys.append(caught.value.key)
    assert keys == KEYS


class TestModels:
    @pytest.mark.parametrize("native", NATIVES)
    def test_a_pydantic_model_asks_and_is_answered(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        found = client.decide(MODELS[native], "Hi", Verdict, **where(server, native))
        (one,) = client.decide_many(MODELS[native], ["Hi"], Verdict, **where(server, native))
        assert isinstance(one, Decisions)
        verdict = one.parsed
        assert found.parsed == verdict
        assert isinstance(verdict, Verdict)
        assert verdict.tone is found["tone"].value
        assert found["tone"].choice == verdict.tone.value
        assert (str(verdict.stars), verdict.polite) == (found["stars"].choice, found["polite"].value)
        assert one.cached

    def test_a_refused_question_leaves_the_model_out(self, client: Client, server: DecisionServer) -> None:
        server.refuses = lambda question: question["type"] == "predicate"
        found = client.decide("gpt-6-luna", "Hi", Verdict, **where(server, "openai"))
        assert found.parsed is None
        assert found["polite"].value is None


class TestRefusals:
    def test_one_question_is_refused_and_the_others_are_answered(
        self, client: Client, server: DecisionServer
    ) -> None:
        server.refuses = lambda question: question["instructions"].endswith("polite.")
        for asked in (3, 1):
            found = client.decide("gpt-6-luna", "Hi", QUESTIONS, **where(server, "openai"))
            assert [each.refusal for each in found] == ["refusal", None, None]
            assert (found["polite"].probability, found["topic"].choice is None) == (None, False)
            assert repr(found).startswith("Decisions(polite=refused: refusal")
            # A refusal is not kept: another request may succeed.
            assert len(server.bodies[-1]["questions"]) == asked
        server.refuses = lambda question: False
        assert client.decide("gpt-6-luna", "Hi", QUESTIONS, **where(server, "openai"))["polite"].probability
        assert client.decide("gpt-6-luna", "Hi", QUESTIONS, **where(server, "openai")).cached

    def test_a_blocked_input_refuses_every_question(self, client: Client, server: DecisionServer) -> None:
        server.refuses = lambda question: question["type"] == "noul"
        found = client.decide("gemini-decision-1", "Hi", QUESTIONS, **where(server, "gemini"))
        assert {each.refusal for each in found} == {"safety"}
        assert found.cost == pytest.approx(float(server.bill))

    def test_a_client_may_keep_refusals(self, server: DecisionServer, own_cache: Path) -> None:
        server.refuses = lambda question: True
        kept = ["stop", "refusal"]
        with Client(cache_dir=own_cache, cache_finish_reasons=kept) as client:  # type: ignore[arg-type]  # words
            for cached in (False, True):
                found = client.decide("gpt-6-luna", "Hi", QUESTIONS, **where(server, "openai"))
                assert (found.cached, found[0].refusal) == (cached, "refusal")


def conversation() -> list[Any]:
    return [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        ]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "a bird"},
        {"role": "assistant", "content": "It is a bird."},
    ]  # fmt: skip


class TestInputs:
    def test_openai_gets_messages_and_calls_of_tools(self, client: Client, server: DecisionServer) -> None:
        client.decide("gpt-6-luna", conversation(), QUESTIONS, **where(server, "openai"))
        assert server.bodies[0]["input"] == [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"},
            ]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "a bird"},
            {"role": "assistant", "content": "It is a bird."},
        ]  # fmt: skip

    def test_google_gets_roles_as_text(self, client: Client, server: DecisionServer) -> None:
        client.decide("gemini-decision-1", conversation(), QUESTIONS, **where(server, "gemini"))
        first, image, rest = server.bodies[0]["input"]
        assert first == {"type": "text", "text": "[system]\nBe kind.\n\n[user]\nWhat is this?"}
        assert image == {"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"}
        assert rest["text"] == (
            '[assistant]\n[call of look]\n{"at":1}\n\n[tool]\na bird\n\n[assistant]\nIt is a bird.'
        )

    def test_a_document_is_refused_by_name_or_sent(self, client: Client, server: DecisionServer) -> None:
        data = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}
        messages: Any = [{"role": "user", "content": [{"type": "file", "file": data}]}]
        with pytest.raises(RequestError, match="holds 'input_file', which OpenAI's decisions do not take"):
            client.decide("gpt-6-luna", messages, QUESTIONS, **where(server, "openai"))
        client.decide("gemini-decision-1", messages, QUESTIONS, **where(server, "gemini"))
        assert server.bodies[0]["input"] == [
            {"type": "document", "data": "AAAA", "mime_type": "application/pdf"}
        ]

    @pytest.mark.parametrize(
        ("url", "block"),
        [
            ("https://a.b/c.png", {"type": "image", "uri": "https://a.b/c.png", "mime_type": "image/png"}),
            ("https://a.b/c", {"type": "image", "uri": "https://a.b/c"}),
        ],
    )
    def test_an_image_at_an_address_is_an_image(
        self, client: Client, server: DecisionServer, url: str, block: Any
    ) -> None:
        content = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": url}}]
        messages: Any = [{"role": "user", "content": content}]
        client.decide("gemini-decision-1", messages, QUESTIONS, **where(server, "gemini"))
        assert server.bodies[0]["input"] == [{"type": "text", "text": "Look."}, block]

    def test_an_answer_with_reasoning_can_be_judged(self, client: Client, server: DecisionServer) -> None:
        items = [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
            ]},
        ]  # fmt: skip
        own = {"provider": "openai", "content": items}
        messages: Any = [
            {"role": "user", "content": "Say hi."},
            {"role": "assistant", "content": "Hi", "provider_specific_fields": own},
        ]
        client.decide("gpt-6-luna", messages, QUESTIONS, **where(server, "openai"))
        assert server.bodies[0]["input"][1] == {
            "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]
        }  # fmt: skip

    def test_fields_of_the_prompt_cache_are_sent_and_in_no_key(
        self, client: Client, server: DecisionServer
    ) -> None:
        options = {"prompt_cache_options": {"mode": "implicit", "ttl": "30m"}, "prompt_cache_key": "judge"}
        for extra in (options, {}):
            found = client.decide("gpt-6-luna", "Hi", QUESTIONS, extra_body=extra, **where(server, "openai"))
        assert found.cached
        assert server.bodies[0]["prompt_cache_options"] == options["prompt_cache_options"]

    def test_cached_tokens_are_counted(self, client: Client, server: DecisionServer) -> None:
        answer = server.answer

        def cached(path: str, headers: Any, body: Any) -> Any:
            status, fields, reply = answer(path, headers, body)
            details = {"cached_tokens": 10, "cache_write_tokens": 5}
            return status, fields, reply | {"usage": reply["usage"] | {"input_tokens_details": details}}

        server.reply = cached
        found = client.decide("gpt-6-luna", "Hi" * 100, QUESTIONS, **where(server, "openai"))
        usage = found.usage
        assert (usage.cache_read_input_tokens, usage.cache_write_input_tokens) == (10, 5)
        plain = usage.input_tokens - 15
        assert found.cost == pytest.approx((plain * 0.1 + 10 * 0.01 + 5 * 0.125) / 1e6)


WRONG: list[tuple[Any, Any, dict[str, Any], str]] = [
    ("Hi", {}, {}, "questions is empty: ask one question at least"),
    ("Hi", [], {}, "questions is empty"),
    ("Hi", "polite?", {}, "questions must be a list or a dict of questions"),
    ("Hi", ["polite?"], {}, "question 'q1' is .* make it with predicate"),
    ("Hi", [predicate("a", name="x"), predicate("b", name="x")], {}, "two questions have the name 'x'"),
    ("Hi", {1: predicate("a")}, {}, "the name of a question must be a text"),
    ("", QUESTIONS, {}, "input is empty"),
    ("  ", QUESTIONS, {}, "input is empty"),
    ([], QUESTIONS, {}, "input is empty"),
    (7, QUESTIONS, {}, "messages must be a str or a list of messages, not int"),
    ("Hi", QUESTIONS, {"method": "magic"}, "method must be one of native, logprobs, sampled"),
    ("Hi", QUESTIONS, {"pack": 0}, "pack must be an int from 1 to 1000"),
    ("Hi", QUESTIONS, {"draws": 3}, "draws belongs to method='sampled'"),
    ("Hi", QUESTIONS, {"reasoning_effort": "low"}, "reasoning_effort belongs to method="),
    ("Hi", QUESTIONS, {"method": "sampled", "pack": 3}, "asks each question alone"),
    ("Hi", QUESTIONS, {"extra_body": {"questions": []}}, "extra_body cannot set 'questions'"),
]


class TestWrongInputs:
    @pytest.mark.parametrize(("given", "questions", "parameters", "says"), WRONG)
    def test_a_wrong_call_gets_one_sentence_before_anything_is_sent(
        self, client: Client, server: DecisionServer, given: Any, questions: Any, parameters: Any, says: str
    ) -> None:
        with pytest.raises(RequestError, match=says) as caught:
            client.decide("gpt-6-luna", given, questions, **parameters, **where(server, "openai"))
        assert "\n" not in str(caught.value)
        assert not server.bodies

    @pytest.mark.parametrize(("native", "most"), [("openai", 400), ("gemini", 1000)])
    def test_too_many_questions_are_asked_only_where_the_caller_says_how(
        self, client: Client, server: DecisionServer, native: str, most: int
    ) -> None:
        model, many, here = MODELS[native], numbered(most + 1), where(server, native)
        for parameters in ({}, {"pack": True}):
            with pytest.raises(RequestError, match=f"takes {most} in one request: write pack={most}"):
                client.decide(model, "Hi", many, **parameters, **here)  # type: ignore[arg-type]
        with pytest.raises(RequestError, match=r"pack=401: openai takes 400 in one request|must be an int"):
            client.decide(model, "Hi", many, pack=401 if native == "openai" else 1001, **here)
        with pytest.raises(RequestError, match=f"takes {most} in one request"):
            client.decide_many(model, ["Hi"], many, **here)
        assert not server.bodies
        found = client.decide(model, "Hi", many, pack=most, **here)
        assert sorted(len(body["questions"]) for body in server.bodies) == [1, most]
        assert len(found) == most + 1

    @pytest.mark.parametrize(
        "model", ["claude-haiku-5-5", "groq/llama-3.3-70b-versatile", "mistral/mistral-large-4"]
    )
    def test_a_provider_without_the_endpoint_is_named(self, client: Client, model: str) -> None:
        provider = model.partition("/")[0] if "/" in model else "anthropic"
        with pytest.raises(
            RequestError, match=f"{provider} has no endpoint for decisions: .*method='logprobs'"
        ):
            client.decide(model, "Hi", QUESTIONS)

    def test_an_unknown_parameter_is_a_type_error(self, client: Client) -> None:
        wrong: Any = {"temperature": 1}
        with pytest.raises(TypeError, match="temperature"):
            client.decide("gpt-6-luna", "Hi", QUESTIONS, **wrong)

    def test_a_wrong_input_of_a_batch_fails_alone(self, client: Client, server: DecisionServer) -> None:
        with pytest.raises(BatchError) as caught:
            client.decide_many(
                "gpt-6-luna", ["a", "", "b"], QUESTIONS, on_error="raise", **where(server, "openai")
            )
        assert [type(each).__name__ for each in caught.value.results] == [
            "Decisions",
            "RequestError",
            "Decisions",
        ]

    def test_a_single_input_is_no_batch(self, client: Client) -> None:
        with pytest.raises(TypeError, match=r"inputs must be .* goes to decide\(\) \(a template needs rows="):
            client.decide_many("gpt-6-luna", "Hi", QUESTIONS)


BROKEN: list[tuple[str, Any]] = [
    ("openai", lambda reply: reply | {"answers": reply["answers"][1:]}),
    ("openai", lambda reply: reply | {"answers": None}),
    ("openai", lambda reply: reply | {"answers": reply["answers"][::-1]}),
    ("openai", lambda reply: reply["answers"][0].update(probability=1.5) or reply),
    ("openai", lambda reply: reply["answers"][0].update(probability=None) or reply),
    ("openai", lambda reply: reply["answers"][0].update(probability=True) or reply),
    ("openai", lambda reply: reply["answers"][1].update(choice="none of them") or reply),
    ("openai", lambda reply: reply["answers"][1]["probabilities"].pop() and reply),
    ("openai", lambda reply: reply["answers"][2]["probabilities"][0].update(value=3) or reply),
    ("openai", lambda reply: reply["answers"][2].update(score=2.5) or reply),
    ("openai", lambda reply: [reply]),
    ("gemini", lambda reply: reply["answers"].pop("1") and reply),
    ("gemini", lambda reply: reply["answers"].update(x=reply["answers"].pop("1")) or reply),
    ("gemini", lambda reply: reply | {"answers": []}),
    ("gemini", lambda reply: {"prompt_feedback": "blocked"}),
    ("gemini", lambda reply: reply["answers"]["1"].update(noul=-0.1) or reply),
    ("gemini", lambda reply: reply["answers"]["1"].update(type="vector") or reply),
    ("gemini", lambda reply: reply["answers"]["2"].update(choice="x") or reply),
    ("gemini", lambda reply: reply["answers"]["2"]["probabilities"].pop("bills") and reply),
    ("gemini", lambda reply: reply["answers"]["3"].update(probabilities=None) or reply),
]


class TestFailures:
    @pytest.mark.parametrize(("native", "change"), BROKEN)
    def test_a_reply_without_every_answer_is_no_answer(
        self, client: Client, server: DecisionServer, native: str, change: Any
    ) -> None:
        answer = server.answer

        def broken(path: str, headers: Any, body: Any) -> Any:
            status, fields, reply = answer(path, headers, body)
            return status, fields, change(reply)

        server.reply = broken
        with pytest.raises(APIResponseValidationError):
            client.decide(MODELS[native], "Hi", QUESTIONS, **where(server, native))
        server.reply = answer
        assert not client.decide(MODELS[native], "Hi", QUESTIONS, **where(server, native)).cached

    @pytest.mark.parametrize("native", NATIVES)
    def test_a_request_that_is_too_long_is_divided(
        self, client: Client, server: DecisionServer, native: str
    ) -> None:
        def too_long(number: int, body: Any) -> Any:
            if len(body["questions"]) <= 3:
                return None
            if native == "openai":
                error = {"message": "maximum context length", "code": "context_length_exceeded", "type": "x"}
                return 400, {}, {"error": error}
            message = "The input token count (300000) exceeds the maximum number of tokens allowed (262144)."
            return 400, {}, {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}

        server.fault = too_long
        found = client.decide(MODELS[native], "Hi", numbered(10), **where(server, native))
        assert set(server.asked.values()) == {1}
        assert len(server.asked) == len(found) == 10

    @pytest.mark.parametrize("native", NATIVES)
    def test_retries_are_made_and_errors_of_the_provider_are_typed(
        self, own_cache: Path, server: DecisionServer, native: str
    ) -> None:
        error = {"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}
        server.fault = lambda number, body: (429, {"retry-after": "0.01"}, error) if number < 2 else None
        with Client(cache_dir=own_cache) as client:
            found = client.decide(MODELS[native], "Hi", QUESTIONS, **where(server, native))
            assert (found.attempts, [each.error for each in found.failures]) == (3, ["RateLimitError"] * 2)
            server.fault = lambda number, body: (
                400,
                {},
                {"error": {"code": 400, "message": "no", "status": "x"}},
            )
            with pytest.raises(BadRequestError):
                client.decide(MODELS[native], "Ho", QUESTIONS, **where(server, native))

    def test_what_was_answered_beside_a_failure_is_stored(
        self, client: Client, server: DecisionServer
    ) -> None:
        server.fault = lambda number, body: (400, {}, {}) if "Statement 3" in json.dumps(body) else None
        with pytest.raises(BadRequestError):
            client.decide("gpt-6-luna", "Hi", numbered(6), pack=2, **where(server, "openai"))
        server.fault = lambda number, body: None
        found = client.decide("gpt-6-luna", "Hi", numbered(6), pack=2, **where(server, "openai"))
        assert [each.cached for each in found] == [True, True, False, False, True, True]
        assert set(server.asked.values()) == {1}

    def test_cache_only_and_off_and_refresh(self, client: Client, server: DecisionServer) -> None:
        here = where(server, "openai")
        with pytest.raises(CacheMissError):
            client.decide("gpt-6-luna", "Hi", QUESTIONS, cache="only", **here)
        client.decide("gpt-6-luna", "Hi", QUESTIONS, **here)
        assert client.decide("gpt-6-luna", "Hi", QUESTIONS, cache="only", **here).cached
        for mode in ("off", "refresh"):
            assert not client.decide("gpt-6-luna", "Hi", QUESTIONS, cache=mode, **here).cached  # type: ignore[arg-type]
        assert len(server.bodies) == 3

    def test_a_budget_holds(self, client: Client, server: DecisionServer) -> None:
        texts = [f"input {number} " * 50 for number in range(200)]
        results = client.decide_many(
            "gpt-6-luna", texts, QUESTIONS, budget=0.002, max_concurrent=4, **where(server, "openai")
        )
        failed = [each for each in results if isinstance(each, LLMError)]
        assert 0 < len(failed) < 200
        assert {type(each) for each in failed} == {BudgetExceededError}
        assert 0.001 < float(server.bill) <= 0.002

    def test_equal_calls_at_once_share_a_request(self, client: Client, server: DecisionServer) -> None:
        async def ask() -> None:
            await asyncio.gather(
                *(client.adecide("gpt-6-luna", "Hi", QUESTIONS, **where(server, "openai")) for _ in range(8))
            )

        asyncio.run(ask())
        assert len(server.bodies) == 1

    def test_an_estimate_pays_the_input_again_for_each_request(
        self, client: Client, server: DecisionServer
    ) -> None:
        text, here = "word " * 2000, {"base_url": server.root + "/v1"}
        pairs = [(text, numbered(6))]
        one = client.estimate("gpt-6-luna", pairs, kind="decision", **here)
        three = client.estimate("gpt-6-luna", pairs, kind="decision", pack=2, **here)
        assert (one.requests, three.requests) == (1, 3)
        assert 2.8 * one.input_tokens.likely < three.input_tokens.likely < 3 * one.input_tokens.likely
        assert one.cost is not None
        assert one.output_tokens.high == 0
        assert three.assumptions[-1] == "the input is paid again in each of 3 requests"
        client.decide("gpt-6-luna", text, numbered(6), **where(server, "openai"))
        # The server counts other tokens than the model's tokenizer.
        assert one.cost.low / 2 <= float(server.bill) <= one.cost.high * 2
        again = client.estimate("gpt-6-luna", [(text, numbered(8))], kind="decision", **here)
        assert (again.inputs, again.cached, again.requests) == (8, 6, 1)


@pytest.mark.parametrize("native", NATIVES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(data=st.data())
def test_whatever_is_packed_stored_refused_or_failing_each_question_is_answered_once(
    tmp_path_factory: pytest.TempPathFactory, native: str, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 8), "questions")
    questions = numbered(count)
    stored = data.draw(st.sets(st.integers(0, count - 1)), "stored")
    packs = st.one_of(st.none(), st.booleans(), st.integers(1, 9))
    before, pack = data.draw(packs, "pack before"), data.draw(packs, "pack")
    refused = data.draw(st.sets(st.integers(0, count - 1)), "refused") if native == "openai" else set()
    failing = data.draw(st.sets(st.integers(0, 6), max_size=3), "failing requests")
    status = data.draw(st.sampled_from([400, 429, 500]), "status")
    with serving() as server, Client(cache_dir=tmp_path_factory.mktemp("cache"), max_retries=0) as client:
        server.validates = False
        here = where(server, native)
        chosen = {name: each for index, (name, each) in enumerate(questions.items()) if index in stored}
        if chosen:
            client.decide(MODELS[native], "Hi", chosen, pack=before, **here)
        first = len(server.bodies)
        server.refuses = lambda question: any(
            f"Statement {index} " in question["instructions"] for index in refused
        )
        server.fault = lambda number, body: (
            (status, {}, {"error": {"code": status, "message": "no", "status": "x"}})
            if number - first in failing
            else None
        )
        for _ in range(len(failing) + 1):
            try:
                found = client.decide(MODELS[native], "Hi", questions, pack=pack, outage_patience=0, **here)
                break
            except LLMError:
                continue
        else:
            raise AssertionError("no failing request is left")
        for index, (decision, question) in enumerate(zip(found, questions.values(), strict=True)):
            if index in refused - stored:
                assert decision.refusal == "refusal"
            else:
                assert decision.probability == truth(native, "Hi", question)[0]
        assert sum(map(len, found.asked_together)) == count
        once = [key for key, number in server.asked.items() if number > 1]
        assert not [key for key in once if not any(f"Statement {index} " in key[1] for index in refused)]
        most = pack if type(pack) is int else 1 if pack is False else 400
        assert all(len(body["questions"]) <= most for body in server.bodies[first:])
        assert float(client.usage.spent) == pytest.approx(float(server.bill), abs=1e-12)


PROGRAM = """
    import os
    from llm_provider import BudgetExceededError, Client, Decisions, predicate

    print(os.getpid(), flush=True)
    questions = {f"n{number}": predicate(f"Statement {number} is true.") for number in range(%(questions)d)}
    texts = [f"input {number}" for number in range(%(inputs)d)]
    where = dict(base_url=%(url)r, api_key="sk-test", progress=False, max_concurrent=16)
    with Client(cache_dir=%(folder)r + "/cache", ledger=%(folder)r + "/ledger", budget=%(budget)s) as client:
        results = client.decide_many("gpt-6-luna", texts, questions, **where)
        print(*(sum(isinstance(each, kind) for each in results) for kind in (Decisions, BudgetExceededError)))
"""


class Runs:
    """Processes that ask the same questions about the same inputs, one after another."""

    def __init__(self, python: list[str], server: DecisionServer, folder: Path, inputs: int) -> None:
        self.python, self.server, self.folder, self.inputs = python, server, folder, inputs

    def start(self, budget: str = "1", questions: int = 20) -> subprocess.Popen[str]:
        values = {"inputs": self.inputs, "folder": str(self.folder), "url": self.server.root + "/v1"}
        code = textwrap.dedent(PROGRAM) % {**values, "budget": budget, "questions": questions}
        return subprocess.Popen([*self.python, "-c", code], stdout=subprocess.PIPE, text=True)

    def run_and_kill(self, requests: int) -> None:
        """`kill -9` after so many requests."""
        before = len(self.server.bodies)
        with self.start() as process:
            assert process.stdout is not None
            pid = int(process.stdout.readline())
            assert wait_until(
                lambda: len(self.server.bodies) > before + requests, seconds=120 + self.inputs // 20
            )
            os.kill(pid, signal.SIGKILL)

    def run(self, budget: str = "1", questions: int = 20) -> list[int]:
        """Run to the end: how many inputs were answered, and for how many the budget was too small.

        What the ledger notes is what the server bills.
        """
        bill, noted = self.server.bill, self.noted
        with self.start(budget, questions) as process:
            assert process.stdout is not None
            _, counts = process.stdout.read().splitlines()
        assert self.noted - noted == self.server.bill - bill
        return [int(count) for count in counts.split()]

    @property
    def noted(self) -> Decimal:
        return Decimal(Ledger.read(self.folder / "ledger").spent)


@pytest.mark.parametrize(
    "inputs", [120, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])]
)
def test_killed_runs_ask_only_what_was_in_flight_again(
    server: DecisionServer, tmp_path: Path, inputs: int, warm_python: list[str]
) -> None:
    """20 questions about each input, every tenth request refused with 429, two kills, and a small budget."""
    server.validates = False
    busy = (429, {"retry-after": "0.01"}, {"error": {"message": "slow down"}})
    server.fault = lambda number, body: busy if number % 10 == 9 else None
    runs = Runs(warm_python, server, tmp_path, inputs)
    runs.run_and_kill(inputs // 4)
    runs.run_and_kill(inputs // 4)
    bill, before = server.bill, len(server.asked) // 20
    # Half of what the rest costs.
    limit = bill / sum(server.asked.values()) * 20 * (inputs - before) / 2
    answered, over = runs.run(str(float(limit)))
    assert (answered + over, answered >= before - 2 * 16, over > 0) == (inputs, True, True)
    assert 0 < server.bill - bill <= limit
    assert runs.run() == [inputs, 0]
    assert len(server.asked) == inputs * 20, "no answer is lost"
    # The requests that were under way when a process died, and the answers that were not on disk yet.
    again = {given for (given, _), number in server.asked.items() if number > 1}
    assert len(again) <= 2 * 2 * 16
    assert max(server.asked.values()) <= 3
    # Two processes could not write down what those cost.
    lost = sum(len(json.dumps(body)) // 4 for body in server.bodies if json.dumps(body["input"]) in again)
    assert server.bill - lost * INPUT_PRICE <= runs.noted <= server.bill
    known, requests = server.asked.copy(), len(server.bodies)
    assert runs.run() == [inputs, 0]
    assert (server.asked, len(server.bodies)) == (known, requests)
    assert runs.run(questions=21) == [inputs, 0]
    assert {len(body["questions"]) for body in server.bodies[requests:]} == {1}
    assert server.asked - known == Counter(dict.fromkeys(server.asked - known, 1))
    assert len(server.asked) == inputs * 21
