"""Decisions by models that only write text, with the real SDK against a server of our own."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counting_server import CountingServer
from llm_provider import (
    Client,
    OutputError,
    Question,
    RequestError,
    UnsupportedParameterError,
    choice,
    predicate,
    score_levels,
)
from llm_provider._features.decide.chats import list_codes, read_code
from llm_provider._features.decide.conversation import flatten

MODEL = "gpt-4.1"
POLITE = predicate("The text is polite.")
TOPIC = choice("What is it about?", {"bills": "Invoices.", "other": ""})
CLARITY = score_levels("How clear is it?", ["poor", "fair", "good"])


class ChatServer(CountingServer):
    """Answers chats with the texts and the likeliest first tokens that a test sets."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.texts = ["A"]
        self.odds: dict[str, float] | None = {"A": 0.6, " A": 0.1, "B": 0.2, "I": 0.1}
        self.drawn: tuple[str, float] | None = None
        """The first token and its probability, where it is none of `odds`."""
        self.finish = "stop"
        self.bodies: list[Any] = []

    def answer(self, path: str, headers: Any, body: Any) -> Any:
        start = sum(each.get("n", 1) for each in self.bodies)
        self.bodies.append(body)
        count = body.get("n", 1)
        choices = [
            self._choose(index, self.texts[(start + index) % len(self.texts)], body) for index in range(count)
        ]
        usage = {"prompt_tokens": 100, "completion_tokens": count, "total_tokens": 100 + count}
        return (
            200,
            {},
            {"id": "c", "object": "chat.completion", "model": MODEL, "choices": choices, "usage": usage},
        )

    def _choose(self, index: int, text: str, body: Any) -> Any:
        logprobs = None
        if body.get("logprobs") and self.odds is not None:
            top = [{"token": token, "logprob": math.log(p), "bytes": None} for token, p in self.odds.items()]
            first = top[0]
            if self.drawn is not None:
                first = {"token": self.drawn[0], "logprob": math.log(self.drawn[1]), "bytes": None}
            logprobs = {"content": [{**first, "top_logprobs": top}]}
        message = {"role": "assistant", "content": text}
        return {"index": index, "message": message, "finish_reason": self.finish, "logprobs": logprobs}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture
def client(own_cache: Path) -> Iterator[Client]:
    with Client(cache_dir=own_cache, max_retries=0) as client:
        yield client


def ask(client: Client, server: ChatServer, question: Question, **parameters: Any) -> Any:
    here = {"base_url": server.root + "/v1", "api_key": "sk-test"}
    return client.decide(MODEL, "Hello", [question], **here, **parameters)


class TestLogprobs:
    def test_the_odds_of_the_letters_are_made_to_add_up(self, client: Client, server: ChatServer) -> None:
        found = ask(client, server, POLITE, method="logprobs")[0]
        assert found.probability == pytest.approx(0.7 / 0.9)
        assert found.mass == pytest.approx(0.9)
        assert (found.method, found.value, found.asked_with, found.intervals) == ("logprobs", True, 0, {})
        body = server.bodies[0]
        assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
        assert body["messages"][0]["content"].startswith(
            "Hello\n\n---\nAbout the text above: is this statement true?"
        )

    def test_a_choice_and_a_score(self, client: Client, server: ChatServer) -> None:
        server.odds = {"B": 0.5, "A": 0.25, "C": 0.25}
        topic, clarity = (ask(client, server, each, method="logprobs")[0] for each in (TOPIC, CLARITY))
        assert topic.choice == topic.value == "other"
        assert topic.probabilities == pytest.approx({"bills": 1 / 3, "other": 2 / 3})
        assert clarity.score == pytest.approx(0.5 + 2 * 0.25)
        assert clarity.confidence == pytest.approx(0.5)

    def test_the_drawn_token_counts_where_it_is_not_among_the_likeliest(
        self, client: Client, server: ChatServer
    ) -> None:
        server.odds, server.drawn = {"A": 0.5, "I": 0.3}, ("B", 0.1)
        judged = ask(client, server, POLITE, method="logprobs")[0]
        assert (judged.probability, judged.mass) == (pytest.approx(0.5 / 0.6), pytest.approx(0.6))

    def test_an_option_beyond_the_likeliest_tokens_has_nothing(
        self, client: Client, server: ChatServer
    ) -> None:
        server.odds = {"A": 0.5, "x": 0.5}
        found = ask(client, server, TOPIC, method="logprobs")[0]
        assert (found.probabilities, found.mass) == ({"bills": 1.0, "other": 0.0}, pytest.approx(0.5))

    @pytest.mark.parametrize(
        ("odds", "says"), [({"The": 0.9}, "none of the options is among"), (None, "told no log")]
    )
    def test_an_answer_without_odds_is_none(
        self, client: Client, server: ChatServer, odds: Any, says: str
    ) -> None:
        server.odds = odds
        with pytest.raises(OutputError, match=says):
            ask(client, server, POLITE, method="logprobs")

    @pytest.mark.parametrize("largest", [0.6, 1.0, 1.005, 1.02, 2.0, 1e300])
    @pytest.mark.parametrize("others", [{}, {"B": 0.001}, {"B": 0.6}])
    @pytest.mark.parametrize("drawn", [None, ("X", 0.001), ("X", 2.0)])
    def test_a_probability_of_more_than_1_is_refused(
        self, client: Client, server: ChatServer, largest: float, others: dict[str, float], drawn: Any
    ) -> None:
        """But for the rounding of a server."""
        server.odds, server.drawn = {"A": largest, **others}, drawn
        if max([largest, *others.values(), drawn[1] if drawn else 0.0]) < 1.01:
            assert ask(client, server, POLITE, method="logprobs")[0].mass > 0
        else:
            with pytest.raises(OutputError, match="which is no number up to 0"):
                ask(client, server, POLITE, method="logprobs")

    def test_a_model_without_log_probabilities_is_named(self, client: Client) -> None:
        with pytest.raises(
            UnsupportedParameterError, match="claude-haiku-5-5 does not tell log probabilities: use"
        ) as caught:
            client.decide("claude-haiku-5-5", "Hello", [POLITE], method="logprobs")
        assert caught.value.parameter == "method"

    def test_more_options_than_a_reply_tells_are_refused(self, client: Client, server: ChatServer) -> None:
        with pytest.raises(RequestError, match="has 21 options, and method='logprobs' sees the 20 likeliest"):
            ask(client, server, choice("Which?", list(map(str, range(21)))), method="logprobs")


class TestSampled:
    def test_answers_are_counted_with_wilsons_interval(self, client: Client, server: ChatServer) -> None:
        server.texts = ["A", "A.", "**A**", "B", "A", "A", "A", "A", "B", "Both are fine"]
        found = ask(client, server, POLITE, method="sampled")[0]
        assert (found.probability, found.draws) == (pytest.approx(7 / 9), 9)
        low, high = found.intervals["true"]
        # The interval of 7 of 9 by statsmodels' `proportion_confint(7, 9, method="wilson")`.
        assert (low, high) == (pytest.approx(0.4526, abs=1e-4), pytest.approx(0.9368, abs=1e-4))
        assert ask(client, server, POLITE, method="sampled").cached

    @pytest.mark.parametrize(
        ("text", "code"),
        [("b", "B"), ("\u200bB\ufeff", "B"), ("B.", "B"), ("(B)", "B"), ("AB", None), ("D", None), ("", None),
         ("Both", None), ("A good text.", None), ("I would say B", None), ("downgrade: B", None)],
    )  # fmt: skip
    def test_only_an_option_by_itself_is_an_answer(self, text: str, code: str | None) -> None:
        assert read_code(text, ["A", "B"]) == code

    def test_more_draws_ask_only_for_the_others(self, client: Client, server: ChatServer) -> None:
        first = ask(client, server, POLITE, method="sampled", draws=4)
        second = ask(client, server, POLITE, method="sampled", draws=10)
        assert [body.get("n", 1) for body in server.bodies] == [4, 6]
        assert second[0].draws == 10
        assert first.cost is not None
        assert second.cost == pytest.approx((100 * 2 + 6 * 8) / 1e6)

    def test_answers_that_name_no_option_are_an_error(self, client: Client, server: ChatServer) -> None:
        server.texts = ["I would say it is polite."]
        with pytest.raises(
            OutputError, match="none of 10 answers names an option; the first is 'I would say"
        ):
            ask(client, server, POLITE, method="sampled")

    def test_refusals_are_told(self, client: Client, server: ChatServer) -> None:
        server.texts, server.finish = [""], "content_filter"
        assert ask(client, server, POLITE, method="sampled")[0].refusal == "content_filter"

    def test_many_options_have_numbers(self, client: Client, server: ChatServer) -> None:
        server.texts = ["30"]
        found = ask(client, server, choice("Which?", [f"o{n}" for n in range(1, 41)]), method="sampled")[0]
        assert found.choice == "o30"

    def test_an_estimate_has_every_draw(self, client: Client, server: ChatServer) -> None:
        here = {"base_url": server.root + "/v1", "kind": "decision", "method": "sampled"}
        one, ten = (client.estimate(MODEL, [("Hello", [POLITE])], draws=draws, **here) for draws in (1, 10))
        assert ten.input_tokens.likely == one.input_tokens.likely, "OpenAI reads the prompt once for all"
        assert ten.output_tokens == one.output_tokens.times(10)
        assert ten.assumptions[-1].startswith("the input is paid again in each of 1 requests; an answer is a")


def test_methods_never_share_a_key(client: Client, server: ChatServer) -> None:
    for number, parameters in enumerate(
        [{"method": "logprobs"}, {"method": "sampled"}, {"method": "sampled", "draws": 5}], start=1
    ):
        assert not ask(client, server, POLITE, **parameters).cached, number
    assert {
        len(ask(client, server, POLITE, method=method).cache_keys) for method in ("logprobs", "sampled")
    } == {1}


@given(st.text(max_size=12))
def test_only_an_option_alone_is_read(text: str) -> None:
    codes = list_codes(CLARITY)
    code = read_code(text, codes)
    assert code is None or code in codes
    assert read_code(f" {codes[1]}\n", codes) == "B"


@given(st.lists(st.sampled_from(["user", "assistant", "system"]), min_size=1, max_size=5), st.text())
def test_a_conversation_keeps_every_text(roles: list[str], text: str) -> None:
    (part,) = flatten([{"role": role, "content": text} for role in roles])
    assert part["text"].count(text) >= len(roles) if text else part["type"] == "text"
