"""Requests to the simulator in each wire format, and golden exchanges: requests and the answers to them.

`tests/data/simulator/FORMAT.json` maps a sentence to `steps` and what they give. A step changes a setting,
orders a fault, clears the simulator, or posts a body. `show` names headers of the answer; with `brief` only
its status and its text count. `python tests/golden.py` writes the answers anew.
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from openai.types import CreateEmbeddingResponse
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from golden import as_json
from json_lines import json_lines
from llm_provider.simulator import Fault, Simulator
from sdk_types import checker

FOLDER = Path(__file__).parents[1] / "data" / "simulator"
MADE_UP = re.compile(r"(chatcmpl-|[a-z]+_|sim-)?[0-9a-f]{24}")
"""Identifiers, which are never used twice."""
TYPES: Mapping[str, tuple[Any, Any]] = {
    "/chat/completions": (ChatCompletion, ChatCompletionChunk),
    "/responses": (Response, ResponseStreamEvent),
    "/messages": (Message, RawMessageStreamEvent),
    "enerateContent": (GenerateContentResponse, GenerateContentResponse),
    "/embeddings": (CreateEmbeddingResponse, None),
}
"""End of a path → the types of the SDK for its answers and for the events of its streams."""


HELLO = [{"role": "user", "content": "one two three"}]
REQUESTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "openai": ("/openai/v1/chat/completions", {"model": "gpt-6.1-sol", "messages": HELLO}),
    "groq": ("/groq/v1/chat/completions", {"model": "openai/gpt-oss-120b", "messages": HELLO}),
    "responses": ("/openai/v1/responses", {"model": "gpt-6.1-sol", "input": "one two three"}),
    "anthropic": (
        "/anthropic/v1/messages",
        {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": HELLO},
    ),
    "gemini": (
        "/gemini/v1/models/gemini-4-argon:generateContent",
        {"contents": [{"parts": [{"text": "one two three"}]}]},
    ),
}
"""A request of each format, which is answered with an echo."""


def streaming(name: str) -> tuple[str, dict[str, Any]]:
    """The same request for a stream."""
    path, body = REQUESTS[name]
    if name == "gemini":
        return path.replace(":generateContent", ":streamGenerateContent?alt=sse"), body
    return path, {**body, "stream": True}


def exchanges() -> pytest.MarkDecorator:
    """Calls a test with each exchange of each file."""
    found = {
        f"{path.stem}: {sentence}": exchange
        for path in sorted(FOLDER.glob("*.json"))
        for sentence, exchange in read(path.stem).items()
    }
    return pytest.mark.parametrize("exchange", found.values(), ids=found.keys())


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def check(simulator: Simulator, exchange: Mapping[str, Any]) -> None:
    """The simulator answers as written, in the forms of the SDKs' types."""
    made = carried_out(simulator, exchange["steps"])
    assert made == {name: value for name, value in exchange.items() if name != "steps"}


def carried_out(simulator: Simulator, steps: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The answers to the steps, and what the ledger has counted after them."""
    answers = []
    for step in steps:
        if "configure" in step:
            simulator.configure(step.get("provider"), **step["configure"])
        elif "clear" in step:
            simulator.clear()
        elif "inject" in step:
            simulator.inject(Fault.from_json(step["inject"]), **step.get("order", {}))
        else:
            answers.append(_answer(simulator, step))
    models = [
        {**as_json(model), "billed": model.billed and str(model.billed)}
        for model in simulator.ledger().models
    ]
    return _without_identifiers({"answers": answers, "models": models})


def _answer(simulator: Simulator, step: Mapping[str, Any]) -> dict[str, Any]:
    url = f"{simulator.root}{step['post']}"
    request = urllib.request.Request(url, json.dumps(step["body"]).encode(), dict(step.get("headers", {})))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, headers, body = answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            status, headers, body = error.code, error.headers, error.read().decode()
    shown = {"headers": {name: headers[name] for name in step["show"]}} if "show" in step else {}
    path = step["post"].partition("?")[0]
    # The answers of compatible hosts differ from those of OpenAI.
    own = path.startswith(("/openai/", "/anthropic/", "/gemini/")) and status == 200
    types = next((found for end, found in TYPES.items() if own and path.endswith(end)), None)
    if body.startswith(("data: ", "event: ")):
        data = re.findall(r"^data: (.*)$", body.replace("\r", ""), re.MULTILINE)
        events = [json.loads(one) for one in data if one != "[DONE]"]
        if types:
            # The types of Anthropic have no ping.
            known = [event for event in events if event.get("type") != "ping"]
            checker(list[types[1]]).validate_python(known)
        return {"status": status, **shown, "events": events, "done": data[-1] == "[DONE]"}
    whole = json.loads(body)
    if step.get("brief"):
        text = whole["choices"][0]["message"]["content"] if status == 200 else whole["error"]["message"]
        return {"status": status, **shown, "text": text}
    if types:
        checker(types[0]).validate_python(whole)
    return {"status": status, **shown, "json": whole}


def _without_identifiers(value: Any) -> Any:
    """Identifiers by their order, and times as 0."""
    seen: dict[str, str] = {}
    text = MADE_UP.sub(
        lambda found: seen.setdefault(found[0], f"{found[1] or ''}{len(seen)}"), json.dumps(value)
    )
    # These hold the number of the request.
    text = re.sub(r'("(?:responseId|signature|thoughtSignature)"): "[^"]+"', r'\1: "…"', text)
    text = re.sub(r'("created(?:_at)?"): [0-9.]+', r"\1: 0", text)
    return json.loads(text)


def write(name: str, found: Mapping[str, Any]) -> None:
    """Write the exchanges of a file, with the answers of today."""
    with Simulator() as simulator:
        made = {}
        for sentence, exchange in found.items():
            simulator.clear()
            made[sentence] = {"steps": exchange["steps"], **carried_out(simulator, exchange["steps"])}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json_lines(made), encoding="utf-8")


def write_all() -> None:
    """Write the answers of all files anew."""
    for path in FOLDER.glob("*.json"):
        write(path.stem, read(path.stem))
