"""The final response of a stream, leaving it early, and the deltas of several samples."""

import gc

import pytest

from llm_provider import Choice, Client, Delta, LLMError, Stream, ToolCall, ToolCallDelta
from llm_provider._core.journey.call import delta_of_choice
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer, streaming
from support import ask, wait_until

MODEL = "gpt-6.1-sol"
STORY = "tell a story of several words, please"


def test_response_is_there_only_at_the_end(client: Client) -> None:
    stream = client.stream(MODEL, STORY)
    with pytest.raises(RuntimeError, match="has not ended"):
        _ = stream.response
    list(stream)
    assert stream.response.finish_reason == "stop"
    assert list(stream) == []


def test_a_stream_that_is_left_has_no_more(client: Client) -> None:
    with client.stream(MODEL, STORY) as stream:
        next(stream)
    with pytest.raises(RuntimeError):
        _ = stream.response
    assert list(stream) == []


MODELS = ("gpt-6.1-sol", "gpt-5.5-pro", "claude-haiku-5-5", "gemini-3.8-flash")


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", ["abort_after", "error_after", "cut_after"])
@pytest.mark.parametrize("shown", [0, 1])
def test_a_stream_begins_again_only_before_its_first_delta(
    client: Client, simulator: Simulator, way: str, model: str, fault: str, shown: int
) -> None:
    """Its first events have no text, so nothing has been shown after them."""
    text, deltas = "one two three four five", list[Delta]()
    simulator.inject(Fault(text=text, **{fault: shown}))
    simulator.inject(Fault(text=text))
    if shown:
        with pytest.raises(LLMError):
            ask(client, way, model, deltas=deltas)
        assert text.startswith("".join(delta.text for delta in deltas))
    else:
        assert ask(client, way, model, deltas=deltas).text == text
        assert "".join(delta.text for delta in deltas) == text
    assert len(simulator.requests()) == 2 - shown
    simulator.clear()
    simulator.inject(Fault(text=text, **{fault: shown}))
    asked = {"fallback": ["groq/llama"], "max_retries": 0, "cache": "refresh"}
    if shown:
        with pytest.raises(LLMError):
            ask(client, way, model, **asked)
    else:
        assert ask(client, way, model, **asked).model.startswith("llama")
    assert len(simulator.requests()) == 2 - shown


def test_a_stream_that_is_dropped_is_cancelled(client: Client, simulator: Simulator) -> None:
    simulator.configure(chunk_interval=0.2, chunks=100)
    stream = client.stream(MODEL, STORY)
    next(stream)
    del stream
    gc.collect()
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


def by_sample(stream: Stream) -> dict[int, str]:
    """The text of each sample, from the deltas."""
    texts: dict[int, str] = {}
    for delta in stream:
        texts[delta.index] = texts.get(delta.index, "") + delta.text
    return texts


@pytest.mark.parametrize(
    ("model", "requests"), [(MODEL, 1), ("gemini-3.8-flash", 1), ("claude-sonnet-5-5", 2)]
)
def test_deltas_carry_their_sample(client: Client, simulator: Simulator, model: str, requests: int) -> None:
    stream = client.stream(model, STORY, n=2)
    assert by_sample(stream) == dict(enumerate(stream.response.texts))
    assert len(stream.response.texts) == 2
    assert simulator.ledger().requests == requests
    # The stored samples are streamed as well, and only the third is asked for.
    more = client.stream(model, STORY, n=3)
    assert by_sample(more) == dict(enumerate(more.response.texts))
    assert more.response.texts[:2] == stream.response.texts
    assert simulator.ledger().requests == requests + 1
    again = client.stream(model, STORY, n=3)
    assert by_sample(again) == dict(enumerate(more.response.texts))
    assert again.response.cached
    assert simulator.ledger().requests == requests + 1


def test_a_stored_sample_is_one_delta() -> None:
    choice = Choice(text="Hi", reasoning="why", tool_calls=(ToolCall(id="c", name="f", arguments="{}"),))
    call = ToolCallDelta(index=0, id="c", name="f", arguments="{}")
    assert delta_of_choice(choice, 2) == Delta(text="Hi", reasoning="why", tool_calls=(call,), index=2)


def chunk(*choices: tuple[int, str, str | None]) -> dict[str, object]:
    pieces = [
        {"index": index, "delta": {"content": text}, "finish_reason": end} for index, text, end in choices
    ]
    return {"id": "c1", "model": "m", "choices": pieces}


def test_samples_that_arrive_together_are_told_apart() -> None:
    together = [
        chunk((1, "B", None), (0, "a", None)),
        chunk((0, "", "stop"), (1, "", "stop")),
        # More than was asked for.
        chunk((2, "x", "stop")),
    ]
    with RawServer(streaming(together)) as server, Client(cache="off") as client:
        stream = client.stream("local/m", STORY, n=2, base_url=f"{server.root}/v1")
        assert by_sample(stream) == {0: "a", 1: "B"} == dict(enumerate(stream.response.texts))
        assert server.requests == 1


def test_a_server_that_streams_one_sample_is_asked_again() -> None:
    with RawServer(streaming([chunk((0, "a", "stop"))])) as server, Client(cache="off") as client:
        stream = client.stream("local/m", STORY, n=2, base_url=f"{server.root}/v1")
        assert by_sample(stream) == {0: "a", 1: "a"} == dict(enumerate(stream.response.texts))
        assert server.requests == 2
