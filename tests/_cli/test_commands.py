"""The tree of commands: what help imports, and what a shell completes."""

from __future__ import annotations

import pytest

from llm_provider._cli.commands import _COMMANDS
from support import RunCommand, RunScript

SDKS = {"openai", "anthropic", "google.genai", "litellm", "httpx", "httpx2", "aiohttp", "pydantic", "asyncio"}


def test_help_imports_no_command_and_no_sdk(run_script: RunScript) -> None:
    ended = run_script(
        f"""
        import sys
        from llm_provider._cli.main import main
        for arguments in (["--help"], ["--version"], ["ask", "--help"]):
            try:
                main(arguments)
            except SystemExit as ending:
                assert ending.code == 0
        loaded = set(sys.modules)
        assert not {SDKS!r} & loaded
        own = {{name for name in loaded if name.startswith("llm_provider.")}}
        commands = {{name.rpartition(".")[2] for name in own if "._cli." in name}}
        print(sorted(commands & {set(_COMMANDS)!r}), len(own), file=sys.stderr)
        """
    )
    commands, _, count = ended.stderr.rpartition(" ")
    assert commands == "['ask']"
    # With 200 modules more it would not start at once.
    assert int(count) <= 12


def test_every_command_is_in_the_help(run: RunCommand) -> None:
    shown = run("--help").out
    for name, command in _COMMANDS.items():
        assert f"\n  {name} " in shown
        assert command.text[:40] in shown
        assert run(name, "--help").code == 0


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("llm-provider ma", "map"),
        ("llm-provider ask claude-haiku-5", "claude-haiku-5-5"),
        ("llm-provider map --temp", "--template"),
        ("llm-provider batches wa", "wait"),
        ("llm-provider completion b", "bash"),
    ],
)
def test_a_shell_completes_commands_options_and_models(
    run: RunCommand, monkeypatch: pytest.MonkeyPatch, line: str, completed: str
) -> None:
    monkeypatch.setenv("_LLM_PROVIDER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    assert f"plain,{completed}" in run().out.splitlines()
