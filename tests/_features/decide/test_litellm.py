"""Decisions of hosts that litellm reaches, through the real litellm, and the endpoint of Azure."""

from collections.abc import Iterator
from typing import Any

import pytest

from decision_server import DecisionServer, draw, serving
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import Client, RequestError, choice, predicate, score_levels

pytestmark = [*IGNORED_WARNINGS, needs_litellm]

QUESTIONS: Any = {
    "polite": predicate("The text is polite."),
    "topic": choice("What is it about?", {"bills": "Money.", "bugs": ""}),
    "tone": score_levels("How kind is it?", {"rude": "Insults.", "kind": ""}),
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
SYSTEMONE = ["typesafe/tm", "nace/m", "hosted_vllm/kit", "litellm/openrouter/o/m"]


@pytest.fixture
def server() -> Iterator[DecisionServer]:
    with serving() as running:
        yield running


@pytest.fixture
def client(tmp_path: Any) -> Iterator[Client]:
    with Client(cache_dir=tmp_path, max_retries=0) as made:
        yield made


def here(server: DecisionServer, model: str) -> dict[str, Any]:
    return {"base_url": server.root + ("/v1" if "openai" in model else ""), "api_key": "sk-x"}


@pytest.mark.parametrize("model", [*SYSTEMONE, "litellm/openai/gpt-6-luna"])
def test_the_answers_are_those_of_the_server(client: Client, server: DecisionServer, model: str) -> None:
    found = client.decide(model, "Pay me!", QUESTIONS, **here(server, model))
    (body,) = server.bodies
    given = "Pay me!" if "openai" in model else ["Pay me!", None]
    asked = dict(
        zip(QUESTIONS, body["questions"] if "openai" in model else body["questions"].values(), strict=True)
    )
    assert found["polite"].probability == draw(given, asked["polite"], count=2)[0]
    assert list(found["topic"].probabilities.values()) == draw(given, asked["topic"], count=2)
    assert found["topic"].confidence == max(draw(given, asked["topic"], count=2))
    assert found["tone"].score == draw(given, asked["tone"], count=2)[1]
    assert "Insults." in str(asked["tone"])
    assert "Money." in str(asked["topic"])
    assert found.usage.input_tokens == server.tokens
    assert found.asked_together == (tuple(QUESTIONS),)
    if "openai" in model:
        assert found.cost == pytest.approx(float(server.bill), abs=1e-12)
    else:
        assert found.cost is None, "no price is known, and it is not 0"


@pytest.mark.parametrize("model", SYSTEMONE[1:3])
def test_each_question_is_asked_once(client: Client, server: DecisionServer, model: str) -> None:
    first = client.decide(model, "Hi", list(QUESTIONS.values()), **here(server, model))
    more = [*QUESTIONS.values(), predicate("It is long.")]
    again = client.decide(model, "Hi", more, **here(server, model))
    assert [len(body["questions"]) for body in server.bodies] == [3, 1]
    assert [each.probabilities for each in again][:3] == [each.probabilities for each in first]
    many = client.decide_many(model, ["Hi", "Ho"], more, **here(server, model)).raise_for_errors()
    assert len(many) == 2
    assert set(server.asked.values()) == {1}


def test_images_and_conversations(client: Client, server: DecisionServer) -> None:
    talk: Any = [{"role": "assistant", "content": "Hello"}, {"role": "user", "content": ["Look", PNG]}]
    client.decide("hosted_vllm/kit", talk, QUESTIONS, **here(server, ""))
    (body,) = server.bodies
    assert body["state"].startswith("[assistant]\nHello\n\n[user]\nLook")
    assert body["images"][0].startswith("data:image/png;base64,")
    with pytest.raises(RequestError, match=r"does not support parameters.*input_image"):
        client.decide("nace/m", talk, QUESTIONS, **here(server, ""))
    assert len(server.bodies) == 1


@pytest.mark.parametrize("kind", ["polite", "topic", "tone"])
def test_a_missing_answer_is_asked_again_and_the_others_are_kept(
    client: Client, server: DecisionServer, kind: str
) -> None:
    complete = server.answer

    def drop(path: str, headers: Any, body: Any) -> Any:
        status, fields, reply = complete(path, headers, body)
        del reply["answers"][str([*QUESTIONS].index(kind))]
        return status, fields, reply

    server.reply = drop
    found = client.decide("nace/m", "Hi", QUESTIONS, **here(server, ""))
    assert [each.refusal for each in found if each.refusal] == [found[kind].refusal]
    assert found[kind].refusal == "a refusal, or no answer"
    server.reply = complete
    assert client.decide("nace/m", "Hi", QUESTIONS, **here(server, ""))[kind].refusal is None
    assert [len(body["questions"]) for body in server.bodies] == [3, 1]


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_failures_are_retried_like_others(server: DecisionServer, status: int, tmp_path: Any) -> None:
    server.fault = lambda number, body: None if number else (status, {"retry-after": "0"}, {"error": "no"})
    with Client(cache_dir=tmp_path, max_retries=2) as client:
        if status in (429, 500):
            found = client.decide("nace/m", "Hi", QUESTIONS, **here(server, ""))
            assert (found.attempts, len(server.bodies)) == (2, 2)
        else:
            with pytest.raises(Exception, match="no"):
                client.decide("nace/m", "Hi", QUESTIONS, **here(server, ""))
            assert len(server.bodies) == 1


def test_what_litellm_lacks_is_refused_by_name(client: Client, server: DecisionServer) -> None:
    with pytest.raises(RequestError, match="cohere has no endpoint for decisions"):
        client.decide("cohere/command", "Hi", QUESTIONS, **here(server, ""))
    levels = score_levels("How kind?", [f"level {number}" for number in range(11)])
    with pytest.raises(RequestError, match="11 levels, and litellm takes 10"):
        client.decide("nace/m", "Hi", [levels], **here(server, ""))
    with pytest.raises(RequestError, match=r"openrouter has no endpoint.*use litellm/openrouter/o/m"):
        client.decide("openrouter/o/m", "Hi", QUESTIONS)
    with pytest.raises(RequestError, match="takes 128 in one request"):
        many = [predicate(f"It is {number}.") for number in range(129)]
        client.decide("nace/m", "Hi", many, **here(server, ""))
    assert not server.bodies


def test_azure_has_the_endpoint_of_openai(client: Client, server: DecisionServer) -> None:
    found = client.decide("azure/mine", "Hi", QUESTIONS, **here(server, ""))
    assert list(server.paths) == ["POST /openai/v1/decisions"]
    assert server.bodies[0]["model"] == "mine"
    assert (found.cost, found.usage.input_tokens) == (None, server.tokens)
