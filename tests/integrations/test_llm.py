"""The command `llm` and its Python API with models of this library, against the simulator."""

from __future__ import annotations

import asyncio
import json
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from llm_provider.simulator import Fault, Simulator

if TYPE_CHECKING:
    from conftest import Run

pytestmark = [
    pytest.mark.plugins,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

FUNCTION = "def add(x: int, y: int) -> int:\n    'Add two numbers.'\n    return x + y"
CALL = 'Please use the tool add({"x": 1, "y": 2})'
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture
def llm(simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import llm
    return llm


def test_the_command(llm_simulator: Simulator, run_tool: Run) -> None:
    model = "llm_provider/claude-haiku-5-5"
    for arguments in (("-o", "max_tokens", "500"), ("-o", "max_tokens", "500", "--no-stream")):
        ended = run_tool("llm", "-m", model, "What is 2+2?", "-s", "Be brief.", "-u", *arguments)
        assert (ended.returncode, ended.stdout) == (0, "4\n"), ended.stderr
        assert '"cached": ' + ("true" if "--no-stream" in arguments else "false") in ended.stderr
    (request,) = llm_simulator.requests()
    assert (request.body["max_tokens"], request.body["system"]) == (500, "Be brief.")
    assert run_tool("llm", "-c", "What is 3+3?").stdout == "6\n"
    assert len(llm_simulator.requests()[1].body["messages"]) == 3
    (logged,) = json.loads(run_tool("llm", "logs", "--json", "-n", "1").stdout)
    assert logged["response_json"]["llm_provider"]["cost"] > 0
    refused = run_tool("llm", "-m", "llm_provider/gpt-6.1-sol", "Hi", "-o", "temperature", "0.3")
    assert refused.returncode == 1
    assert "does not accept temperature" in refused.stderr


def test_models_of_the_users_files(
    llm_simulator: Simulator, run_tool: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = tmp_path / "hosts.toml"
    hosts.write_text(f'[lab]\nurls = "{llm_simulator.url("local")}"\nprices.mine = {{ input = 1 }}\n')
    monkeypatch.setenv("LLM_PROVIDER_HOSTS", str(hosts))
    assert "llm_provider/lab/mine" in run_tool("llm", "models", "-q", "llm_provider/lab").stdout
    assert run_tool("llm", "-m", "llm_provider/lab/mine", "What is 2+3?").stdout == "5\n"
    assert run_tool("llm", "llm-provider", "add", "local/mine").stdout == "llm -m llm_provider/local/mine\n"
    assert run_tool("llm", "-m", "llm_provider/local/mine", "What is 2+3?").stdout == "5\n"
    wrong = run_tool("llm", "llm-provider", "add", "no-such-model")
    assert (wrong.returncode, "no-such-model" in wrong.stderr) == (1, True)
    with (tmp_path / "llm" / "llm-provider-models.txt").open("a") as file:
        file.write("# a comment\n\nno-such-model\n")
    listed = run_tool("llm", "models", "-q", "llm_provider/local")
    assert listed.returncode == 0
    assert "llm_provider/local/mine" in listed.stdout
    assert "no-such-model" in listed.stderr  # and all other models still work


def test_only_models_with_a_key_are_listed(llm: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from llm_provider.integrations.llm import register_models

    def registered() -> set[str]:
        names: list[Any] = []
        register_models(lambda model, other: names.append(model.model_id))
        return {re.split("[-/]", name.removeprefix("llm_provider/"))[0] for name in names}

    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BEDROCK"))]:
        monkeypatch.delenv(name)
    assert registered() == set()
    monkeypatch.setenv("ANTHROPIC_API_KEYS", "sk-one,sk-two")
    assert registered() == {"claude"}
    (tmp_path / "llm").mkdir(exist_ok=True)
    (tmp_path / "llm" / "keys.json").write_text('{"gemini": "stored-key"}')
    assert registered() == {"claude", "gemini"}


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-3.8-flash"])
def test_tools_in_a_chain(llm: Any, simulator: Simulator, model: str) -> None:
    def add(x: int, y: int) -> str:
        """Add two numbers."""
        return f"the sum is {x + y}"

    chain = llm.get_model(f"llm_provider/{model}").chain(
        CALL, tools=[add], options={"reasoning_effort": "high"}
    )
    assert "the sum is 3" in chain.text()
    kept = json.dumps(simulator.requests()[1].body)
    assert {"gpt-6.1-sol": "rs_", "claude-sonnet-5-5": '"signature"'}.get(model, "thoughtSignature") in kept
    assert simulator.ledger().requests == 2


def test_the_asynchronous_model(llm: Any, simulator: Simulator) -> None:
    model = llm.get_async_model("llm_provider/claude-sonnet-5-5")

    async def ask(*, stream: bool) -> Any:
        response = model.prompt("What is 5+5?", stream=stream, reasoning_effort="high")
        events = [event async for event in response.astream_events()]
        return {event.type for event in events if event.chunk}, await response.text(), await response.usage()

    for stream in (True, False):
        kinds, text, usage = asyncio.run(ask(stream=stream))
        assert (kinds, text) == ({"reasoning", "text"}, "10")
        assert usage.details["cached"] is not stream
        assert usage.details["reasoning"] > 0
    assert simulator.ledger().requests == 1


def test_schemas_attachments_and_keys(llm: Any, simulator: Simulator, tmp_path: Path) -> None:
    model = llm.get_model("llm_provider/gpt-4.1")
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    (tmp_path / "notes.txt").write_text("some notes")
    files = [
        llm.Attachment(content=PNG),
        llm.Attachment(url="https://127.0.0.1/a.png", type="image/png"),
        llm.Attachment(path=str(tmp_path / "notes.txt"), type="text/plain"),
    ]
    response = model.prompt("How old?", schema=schema, attachments=files, key="sk-of-the-prompt")
    assert json.loads(response.text()) == {"age": 1}
    (request,) = simulator.requests()
    assert [part["type"] for part in request.body["messages"][0]["content"]] == [
        "image_url",
        "image_url",
        "text",
        "text",
    ]
    assert response.resolved_model == "gpt-4.1"
    assert response.input_tokens > 0


def test_errors_name_what_is_wrong(llm: Any, simulator: Simulator) -> None:
    model = llm.get_model("llm_provider/gpt-4.1")
    with pytest.raises(ValueError, match="reasoning_effort"):
        model.prompt("Hi", reasoning_effort="much").text()
    simulator.inject(Fault(status=500))
    assert model.prompt("What is 8+8?").text() == "16"


def test_the_example_of_the_page(
    run_tool: Run, examples: Callable[[str], list[str]], llm_simulator: Simulator
) -> None:
    (code,) = examples("import llm\n")
    ended = run_tool("python", "-c", code)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("4 ")
    assert llm_simulator.ledger().requests == 1
