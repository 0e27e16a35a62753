"""The operation `chat`: kept answers and dropped parameters. Golden pairs have all that are dropped."""

import json
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llm_provider import Client, UnsupportedParameterError
from llm_provider._core.formats import registry
from llm_provider._core.journey.call import Call
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import LARGE, takes_long
from llm_provider._core.schemas.structure import Structure
from llm_provider.simulator import Fault, Simulator
from support import WAYS, ask

MODEL = "gpt-6.1-sol"


@pytest.mark.parametrize(
    ("finish", "stored_by_default"),
    [
        ("tool_calls", True),
        *((finish, False) for finish in ("length", "empty", "content_filter", "refusal", "null_content")),
    ],
)
def test_only_complete_answers_are_kept(
    client: Client, simulator: Simulator, finish: str, stored_by_default: bool
) -> None:
    simulator.inject(Fault(finish=finish), times=1)
    assert not client.call(MODEL, "Hi").cached
    assert client.call(MODEL, "Hi").cached == stored_by_default


def test_answers_list_it_and_one_warning_names_it(simulator: Simulator, own_cache: Path) -> None:
    options: dict[str, Any] = {"temperature": 0, "unsupported": "drop"}
    with (
        Client(cache_dir=own_cache) as client,
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        live = client.call("gpt-6.1-sol", "1+1?", **options)
        hit = client.call("gpt-6.1-sol", "1+1?", **options)
        batch = client.call_many("gpt-6.1-sol", ["1+1?", "1+2?"], **options)
        with client.stream("gpt-6.1-sol", "1+4?", **options) as deltas:
            list(deltas)
        plain = client.call("gpt-6.1-sol", "1+1?")
    assert (live.cached, hit.cached, plain.cached) == (False, True, True)
    answers = [live, hit, *batch, deltas.response]
    assert [answer.dropped for answer in answers] == [("temperature",)] * 5  # type: ignore[union-attr]  # known to be set here
    assert plain.dropped == ()
    (warning,) = caught
    assert issubclass(warning.category, UserWarning)
    assert "gpt-6.1-sol does not accept temperature" in str(warning.message)


@pytest.mark.parametrize("size", [0, LARGE, LARGE + 1])
@pytest.mark.parametrize("runs_code", [None, False, True])
async def test_what_takes_long_is_read_in_a_thread(size: int, runs_code: bool | None) -> None:
    structure = None if runs_code is None else Structure("x", {}, json.loads, runs_code=runs_code)
    call: Any = SimpleNamespace(encoded=SimpleNamespace(structure=structure))
    thread = await Call.run_off_loop(call, lambda: threading.current_thread().name, bytes(size))
    is_slow = takes_long(bytes(size)) or bool(runs_code)
    assert thread == ("llm_provider-check" if is_slow else threading.current_thread().name)


PENALTIES = {"presence_penalty", "frequency_penalty"}
GPT_5 = PENALTIES | {"stop", "logit_bias"}
NOTHING: set[str] = set()
SAMPLING = {"temperature", "top_p", "logprobs"}
ASKED: dict[str, Any] = {
    "stop": "X", "presence_penalty": 0.5, "frequency_penalty": 0, "logit_bias": {"1": 1}, "temperature": 0.5,
    "top_p": 0.5, "logprobs": True,
}  # fmt: skip
REFUSED = {
    **dict.fromkeys(("gpt-4.1", "gpt-5-chat-latest", "openrouter/x-ai/grok-4", "xai/grok-3"), NOTHING),
    # OpenAI excludes `o3` and `o4-mini` alone.
    **dict.fromkeys(("o1", "o3-mini", "o3-mini-2025-01-31"), PENALTIES | SAMPLING | {"logit_bias"}),
    **dict.fromkeys(("o3", "o3-2025-04-16", "o4-mini", "ft:o4-mini:us::1"), GPT_5 | SAMPLING),
    **dict.fromkeys(("gpt-5", "gpt-5-nano", "gpt-5.6", "gpt-6-astra", MODEL), GPT_5 | SAMPLING),
    **dict.fromkeys(("gpt-5.1", "gpt-5.2-2025-12-11", "azure/gpt-5.4-mini"), GPT_5),
    "gpt-4o-search-preview": PENALTIES | {"temperature", "top_p"},
    "gpt-5-search-api": GPT_5 | SAMPLING,
    **dict.fromkeys(
        ("xai/grok-4", "xai/grok-4.6", "xai/grok-3-mini", "xai/grok-code-fast-1", "azure/grok-4"),
        PENALTIES | {"stop"},
    ),
    "xai/grok-4.20-0309-non-reasoning": PENALTIES,
    "xai/grok-4-fast-non-reasoning": NOTHING,
    "deepseek/deepseek-reasoner": {"logit_bias", "logprobs"},
}  # fmt: skip


@pytest.mark.parametrize("model", REFUSED)
def test_parameters_that_a_model_refuses_are_not_sent(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://one.openai.azure.com")
    target, refused = resolve(model), set()
    for name, value in ASKED.items():
        try:
            CHAT.encode(Request.build(model, "Hi", {name: value}), target, registry.load("openai"))
        except UnsupportedParameterError as error:
            refused.add(error.parameter)
    assert refused == REFUSED[model]
    request = Request.build(model, "Hi", {**ASKED, "unsupported": "drop"})
    encoded = CHAT.encode(request, target, registry.load("openai"))
    assert set(encoded.dropped) == refused
    assert not refused & encoded.payload.keys()


@pytest.mark.parametrize("detail", ["low", "high", "auto", None])
@pytest.mark.parametrize("model", [MODEL, "claude-sonnet-5-5", "gemini-2.5-flash", "gemini-3.8-flash"])
def test_the_detail_of_an_image_is_sent_or_dropped(
    client: Client, simulator: Simulator, model: str, detail: str | None
) -> None:
    image = {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": detail}
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": image}]}] * 2
    is_dropped = model != MODEL and detail in ("low", "high")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = client.call(model, messages, unsupported="drop")
    assert answer.dropped == (("detail",) if is_dropped else ())
    assert [str(warning.message) for warning in caught] == [
        f"{model} does not accept detail: unsupported='drop' leaves it out"
    ] * is_dropped
    assert ("detail" in json.dumps(simulator.requests()[0].body)) is (model == MODEL)
    if is_dropped:
        with pytest.raises(UnsupportedParameterError, match=r"image_url\.detail is not"):
            client.call(model, messages)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("model", "stop", "sent"),
    [
        ("gpt-6.1-sol", ["END"], None),
        ("claude-haiku-5-5", ["\n"], None),
        ("claude-haiku-5-5", ["\n", "END", " "], ["END"]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*does not accept stop")
def test_stop_texts_are_dropped_in_every_way_of_calling(
    client: Client, simulator: Simulator, way: str, model: str, stop: list[str], sent: list[str] | None
) -> None:
    with pytest.raises(UnsupportedParameterError, match="does not accept stop"):
        ask(client, way, model, stop=stop)
    assert simulator.requests() == []
    answer = ask(client, way, model, stop=stop, unsupported="drop")
    assert answer.dropped == ("stop",)
    (request,) = simulator.requests()
    assert request.body.get("stop_sequences", request.body.get("stop")) == sent


def test_another_server_decides_about_blank_stop_texts() -> None:
    target = replace(resolve("anthropic/mine"), base_url="http://localhost", custom_base_url=True)
    request = Request.build("anthropic/mine", "Hi", {"stop": ["\n"]})
    assert CHAT.encode(request, target, registry.load("anthropic")).payload["stop_sequences"] == ["\n"]
