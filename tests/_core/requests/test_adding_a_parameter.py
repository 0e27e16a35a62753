"""A new parameter: its documentation, a row of the table, entries of `ACCEPTS` in the formats with it."""

from pathlib import Path

import pytest

from llm_provider._core.requests.parameter_table import PARAMETERS
from llm_provider.simulator import Simulator
from support import copy_package, run_copy

ADDED = (
    ("_core/requests/parameters.py", "    modalities: Sequence[Modality] | None\n",
     '    creativity: Literal["low", "high"] | None\n    """How freely the model invents."""\n'),
    ("_core/requests/parameter_table.py", "from typing import NamedTuple\n", "from typing import Literal\n"),
    ("_core/requests/parameter_table.py", '    "verbosity": Parameter(\n',
     '    "creativity": Parameter(one_of(Literal["low", "high"]), "ask for ideas"),\n'),
    ("_core/formats/openai_chat/encode.py", '    "allowed_tools": ', '    "creativity": "creativity",\n'),
    ("_core/formats/openai_responses/encode.py", '    "verbosity": ',
     '    "creativity": "text.creativity",\n'),
    ("_core/formats/gemini/encode.py", '    "cached_content": ',
     '    "creativity": "generationConfig.creativity",\n'),
)  # fmt: skip
"""File, the line before which a test puts other lines, and those."""

PROGRAM = """
from llm_provider import Client, RequestError, UnsupportedParameterError, call

def refusal(kind, model, **parameters):
    try:
        call(model, "Hi", **parameters)
    except kind as error:
        return str(error)
    raise AssertionError(f"{model} takes {parameters}")

wrong = refusal(RequestError, "gpt-4.1", creativity="High")
assert "creativity must be 'low' or 'high', not 'High': write creativity='high'" in wrong, wrong
assert "did you mean 'creativity'" in refusal(TypeError, "gpt-4.1", creativty="high")
assert "creativity: How freely the model invents." in str(call.__doc__)

for model in ("gpt-4.1", "gpt-5.5-pro", "gemini/gemini-4-argon"):
    assert not call(model, "Hi").cached
    for value in ("low", "high"):
        assert not call(model, "Hi", creativity=value).cached
        assert call(model, "Hi", creativity=value).cached
with Client(creativity="low") as client:
    assert client.call("gpt-4.1", "Hi").cached

for model in ("claude-sonnet-5-5", "together_ai/x"):
    refused = refusal(UnsupportedParameterError, model, creativity="low")
    assert "does not accept creativity: ask for ideas" in refused, refused
dropped = call("claude-sonnet-5-5", "Hi", creativity="low", unsupported="drop")
assert dropped.dropped == ("creativity",)
"""


@pytest.fixture
def extended(tmp_path: Path) -> Path:
    """A copy of the package that has one parameter more."""
    assert "creativity" not in PARAMETERS
    return copy_package(tmp_path, ADDED)


def test_it_is_checked_sent_refused_by_name_and_in_the_key(
    extended: Path, llm_simulator: Simulator, tmp_path: Path
) -> None:
    variables = {**llm_simulator.environment(), "LLM_PROVIDER_CACHE_DIR": str(tmp_path / "cache")}
    ended = run_copy(extended, "-W", "ignore", "-c", PROGRAM, **variables)
    assert ended.returncode == 0, ended.stderr
    bodies = [request.body for request in llm_simulator.requests("openai")]
    assert [body.get("creativity") for body in bodies if "messages" in body] == [None, "low", "high"]
    texts = [body.get("text", {}) for body in bodies if "input" in body]
    assert [text.get("creativity") for text in texts] == [None, "low", "high"]
    settings = [request.body.get("generationConfig", {}) for request in llm_simulator.requests("gemini")]
    assert [setting.get("creativity") for setting in settings] == [None, "low", "high"]
    assert ["creativity" in request.body for request in llm_simulator.requests("anthropic")] == [False]
