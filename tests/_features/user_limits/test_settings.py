"""The limits of a client: from a dict, a file or the environment. Wrong ones are refused by name."""

from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Limit, LLMError, RequestError
from llm_provider.simulator import Simulator

FILE = '["gpt-6.1-sol"]\nrpm = 1\n\n["anthropic/*"]\nconcurrent = 3\ntpm = 100_000\n'


@pytest.mark.parametrize("way", ["argument", "environment", "dict", "plain dict"])
def test_limits_come_from_a_file_or_a_dict(
    simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    path = tmp_path / "limits.toml"
    path.write_text(FILE)
    values: dict[str, Any] = {"argument": path, "environment": None, "dict": {"gpt-6.1-sol": Limit(rpm=1)}}
    limits = values.get(way, {"gpt-6.1-sol": {"rpm": 1}})
    if way == "environment":
        monkeypatch.setenv("LLM_PROVIDER_LIMITS", str(path))
    # Limits hold for an account.
    keys = {"openai": f"sk-{tmp_path.name}"}
    with Client(limits=limits, keys=keys) as client:
        client.call("gpt-6.1-sol", "1+1?")
        with pytest.raises(LLMError, match="deadline"):
            client.call("gpt-6.1-sol", "2+2?", deadline=0.05)
        client.call("claude-haiku-5-5", "2+2?")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (5, "limits must be a dict"),
        ({"gpt-6.1-sol": 5}, "limits must be a dict"),
        ({"gpt-6.1-sol": {"requests": 5}}, r"wrong limit for 'gpt-6.1-sol'.*'gpt-6.1-sol': Limit\(rpm=500"),
        ({"nothing/*": Limit(rpm=1)}, r"limits has the key 'nothing/\*'"),
        ({"no-such-model": Limit(rpm=1)}, "limits has the key 'no-such-model'"),
        ({5: Limit(rpm=1)}, "limits has the key 5"),
        ({"": Limit(rpm=1)}, "limits has the key ''"),
        (
            {"gpt-6.1-sol": Limit(rpm=1), "openai/gpt-6.1-sol": Limit(rpm=2)},
            "limits has 'gpt-6.1-sol' and 'openai/gpt-6.1-sol', which are limited together",
        ),
        ("no such file.toml", "limits: the file 'no such file.toml' cannot be read"),
    ],
)
def test_wrong_limits_are_refused_by_name(wrong: Any, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        Client(limits=wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "cannot be read"),
        ('["gpt-6.1-sol"]\nrps = 1', "has a wrong limit for 'gpt-6.1-sol'"),
        ('["gpt-6.1-sol"]\nrpm = 0', "rpm must be an int above 0"),
        ('"gpt-6.1-sol" = 5', "has a wrong limit for 'gpt-6.1-sol'"),
        ('["gpt-6.1-sol"]', "give rpm, tpm or concurrent"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "limits.toml"
    path.write_text(text)
    with pytest.raises(RequestError, match=said):
        Client(limits=str(path))
