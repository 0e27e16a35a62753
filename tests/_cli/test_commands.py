"""The tree of commands: what help imports, and what a shell completes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider._cli.commands import _COMMANDS
from llm_provider._cli.output import EXIT_CODES
from llm_provider.simulator import Simulator
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


PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
FILES = {
    "article.txt": "A long article.\n",
    "error.log": "disk full\n",
    "report.csv": "city,days\nBern,3\n",
    "page.pdf": "%PDF-1.7 a page",
    "city.json": '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}',
    "prompts.txt": "What is 1+1?\nWhat is 2+2?\n",
    "reviews.csv": "number,review\n1,Great soup\n2,Slow service\n",
    "questions.jsonl": '{"question": "Which city has the Eiffel Tower?"}\n',
}


def test_every_command_of_its_page_runs(
    run: RunCommand, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process: a file or `cat` gives the standard input, and `jq` reads JSON."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    with Client(ledger="costs.jsonl") as client:
        client.call("gpt-6.1-sol", "Hi")
    shutil.copy("costs.jsonl", "worker-1.jsonl")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = "".join(blocks).splitlines()
    assert len(commands) > 20
    for command in commands:
        before, program, rest = command.partition("llm-provider ")
        words, reads_json = shlex.split(rest), " | jq " in rest
        if reads_json:
            words = words[: words.index("|")]
        given = Path(before.split()[1]).read_bytes() if before else b""
        if "<" in words:
            given = Path(words.pop()).read_bytes()
            words.pop()
        words = [
            found
            for word in words
            for found in (sorted(map(str, Path().glob(word))) if word.endswith("*.jsonl") else [word])
        ]
        ended = run(*words, given=given)
        assert ended.code == 0, (command, ended.err)
        assert program
        assert ended.out.strip() or ended.err == "no batches\n" or words[0] == "batches", command
        if reads_json:
            assert [json.loads(line) for line in ended.out.splitlines()]
    simulated = {request.path for request in simulator.requests()}
    assert simulated


def test_its_page_and_its_help_have_the_same_exit_codes() -> None:
    table = {
        code: text.replace("\\|", "|")
        for code, text in re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    }
    listed = dict(re.findall(r"^  (\d+) +(.*(?:\n {7}.*)*)", EXIT_CODES, re.MULTILINE))
    assert set(table) == set(listed)
    for code, text in listed.items():
        assert table[code].startswith(" ".join(text.split()))
