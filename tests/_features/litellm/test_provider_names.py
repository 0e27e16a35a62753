"""A model whose prefix nobody has is refused before anything is sent, and without an import of litellm."""

from pathlib import Path
from typing import Any

import pytest

from litellm_support import needs_litellm
from llm_provider import Client, Host, UnknownModelError
from llm_provider._features.cli.main import main
from llm_provider._features.litellm.provider_names import check_provider
from raw_server import RawServer, answering
from support import RunScript

pytestmark = needs_litellm
WAYS: dict[str, Any] = {
    "call": lambda client, model: client.call(model, "x", max_tokens=5),
    "stream": lambda client, model: list(client.stream(model, "x", max_tokens=5)),
    "call_many": lambda client, model: client.call_many(model, ["x"], max_tokens=5),
    "fallback": lambda client, model: client.call("lab/qwen-small", "x", max_tokens=5, fallback=[model]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_prefix_is_refused_before_anything_is_sent(way: str) -> None:
    with (
        RawServer(answering(b"{}")) as server,
        Client(hosts=[Host("lab", server.root), Host("spare", server.root)], cache="off") as client,
    ):
        with pytest.raises(UnknownModelError, match=r"'spaer' is known; did you mean spare/\?.*lab, spare"):
            WAYS[way](client, "spaer/qwen-small")
        assert not server.requests


def test_litellm_is_not_imported_to_refuse(run_script: RunScript) -> None:
    code = """if True:
        import sys, llm_provider
        try:
            llm_provider.call("labb/qwen-small", "x", max_tokens=5)
        except llm_provider.UnknownModelError as error:
            print(error, "litellm" in sys.modules)
    """
    printed = run_script(code, LLM_PROVIDER_HOSTS="").stdout
    assert "'labb' is known (LLM_PROVIDER_HOSTS is not set" in printed
    assert printed.split()[-1] == "False"


@pytest.mark.parametrize(
    "models", [("labb/m",), ("gpt-6.1-sol,labb/m",), ("gpt-6.1-sol", "--fallback", "labb/m")]
)
def test_map_ends_with_2_and_writes_nothing(models: tuple[str, ...], tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "x"}\n')
    assert main(("map", models[0], str(source), str(tmp_path / "{model}.out"), *models[1:])) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize(
    "model",
    ["ollama/m", "nano-gpt/m", "replicate/m", "petals-team/StableBeluga2", f"replit/m:{'0a' * 32}"],
)
def test_what_litellm_knows_passes(model: str) -> None:
    check_provider(model, ())


def test_what_a_program_registers_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    import litellm

    with pytest.raises(UnknownModelError):
        check_provider("mine/m", ())
    monkeypatch.setattr(litellm, "custom_provider_map", [{"provider": "mine", "custom_handler": object()}])
    check_provider("mine/m", ())
    monkeypatch.setattr(litellm, "model_alias_map", {"own/m": "openai/gpt-6.1-sol"})
    check_provider("own/m", ())


def test_litellms_proxy_takes_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_LITELLM_PROXY", "True")
    check_provider("mine/m", ())
