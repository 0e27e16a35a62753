"""The tree of commands: what help imports, and what a shell completes."""

import contextlib
import json
import re
import shlex
import shutil
import signal
import subprocess
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from llm_provider import Client, Results, track
from llm_provider._core.requests.routing import ROUTES
from llm_provider._features.cli.commands import _COMMANDS, program
from llm_provider._features.cli.output import EXIT_CODES
from llm_provider.simulator import Simulator
from support import Program, RunCommand, RunScript, errors_of, response

SDKS = {"openai", "anthropic", "google.genai", "litellm", "httpx", "httpx2", "aiohttp", "pydantic", "asyncio"}


def test_help_imports_no_command_and_neither_it_nor_a_look_up_an_sdk(run_script: RunScript) -> None:
    ended = run_script(
        f"""
        import sys
        from llm_provider._features.cli.main import main
        for arguments in (["--help"], ["--version"], ["ask", "--help"]):
            try:
                main(arguments)
            except SystemExit as ending:
                assert ending.code == 0
        loaded = set(sys.modules)
        assert not {SDKS!r} & loaded
        own = {{name for name in loaded if name.startswith("llm_provider.")}}
        commands = {{name.rpartition(".")[2] for name in own if "._features.cli." in name}}
        print(sorted(commands & {set(_COMMANDS)!r}), len(own), file=sys.stderr)
        main(["prices", "gpt-6.1-sol"])
        main(["cache", "path"])
        assert not {SDKS - {"asyncio"}!r} & set(sys.modules)
        """
    )
    commands, _, count = ended.stderr.rpartition(" ")
    assert commands == "['ask']"
    # With 200 modules more it would not start at once.
    assert int(count) <= 25


def test_every_command_is_in_the_help(run: RunCommand) -> None:
    help_text = run("--help").out
    for name, (_, text) in _COMMANDS.items():
        assert f"\n  {name} " in help_text
        assert text[:40] in help_text
        ended = run(name, "--help")
        assert ended.code == 0
        assert f"\n  llm-provider {name} " in ended.out or name == "simulator", "it has an example"
        assert "--api-key" not in ended.out


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


PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"
PAGES = [
    page for page in (PAGE.parents[1] / "README.md", *sorted(PAGE.parent.rglob("*.md")))
    if "llm-provider " in page.read_text(encoding="utf-8")
]  # fmt: skip
FILES = {
    "article.txt": "A long article.\n",
    "mails.txt": "Pay me!\nHello\n",
    "error.log": "disk full\n",
    "report.csv": "city,days\nBern,3\n",
    "page.pdf": "%PDF-1.7 a page",
    "city.json": '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}',
    "prompts.txt": "".join(f"What is {number}+{number}?\n" for number in range(120)),
    "reviews.csv": "number,review\n1,Great soup\n2,Slow service\n",
    "questions.jsonl": '{"question": "Which city has the Eiffel Tower?"}\n',
    "scoring.py": "def exact(sample):\n    return sample.text == 'Paris'\n",
}


def test_every_command_of_its_page_runs(
    run: RunCommand, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process: a file or `cat` gives the standard input, and `jq` reads JSON."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setattr(webbrowser, "open", lambda _: True)
    for day in ("monday", "friday"):
        Results([response(day)]).to_jsonl(f"{day}.jsonl")
    with Client(ledger="costs.jsonl") as client:
        client.call("gpt-6.1-sol", "Hi")
        with track("study"):
            client.call_many("gpt-6.1-sol", [f"What is {number}?" for number in range(150)])
    shutil.copy("costs.jsonl", "worker-1.jsonl")
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = "".join(blocks).splitlines()
    assert len(commands) > 20
    for command in commands:
        before, program, rest = command.partition("llm-provider ")
        words, reads_json = shlex.split(rest), " | jq " in rest
        if reads_json:
            words = words[: words.index("|")]
        stdin = Path(before.split()[1]).read_bytes() if before else b""
        if "<" in words:
            stdin = Path(words.pop()).read_bytes()
            words.pop()
        words = [
            path
            for word in words
            for path in (sorted(map(str, Path().glob(word))) if word.endswith("*.jsonl") else [word])
        ]
        simulator.configure(border=0.3 if "--history" in words else 0.0)
        # A real account refuses wrong names and long prompts.
        checks = words[0] == "check"
        window = 20_000 if checks else None
        simulator.configure(only_listed_models=checks, prompt_cache=checks, context_window=window)
        ended = run(*words, stdin=stdin)
        # The other commands have used the key too, without a ledger.
        assert ended.code == (words[0] == "reconcile"), (command, ended.err)
        assert program
        assert ended.out.strip() or ended.err == "no batches\n" or words[0] == "batches", command
        if reads_json:
            assert [json.loads(line) for line in ended.out.splitlines()]
    simulated = {request.path for request in simulator.requests()}
    assert simulated


def _named_commands(page: Path) -> list[str]:
    """The arguments of each `llm-provider …` in the code of a page: in blocks, in lines and within a text."""
    text = page.read_text(encoding="utf-8")
    blocks = [*re.findall(r"```sh\n(.*?)```", text, re.DOTALL), *re.findall(r"^ {4}.*", text, re.MULTILINE)]
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", text)
    return [
        command for line in lines for command in re.findall(r"(?:^|[ (])(?<!llm )llm-provider (.*)", line)
    ]


def _parse(command: click.Command, words: list[str]) -> None:
    """Parse a command line without running it; raises what the command would tell."""
    context = command.make_context(command.name, words)
    if isinstance(command, click.Group) and context._protected_args:
        _, subcommand, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert subcommand is not None
        _parse(subcommand, rest)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_exists(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it cannot run: `batches claim ID`, a download of prices, a command without its arguments."""
    for name in (*FILES, "FILE"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_PROVIDER_PRICES", "")  # a command that is only parsed does not put it back
    for line in _named_commands(page):
        # `[ID]` is optional, and a shell ends the words.
        words = re.split(r"[|<)]", re.sub(r"\[|\]", "", line))[0]
        # `--help` exits, and a command may be named without its arguments.
        stops = (click.exceptions.Exit, *([click.MissingParameter] if len(words.split()) <= 2 else []))
        with contextlib.suppress(*stops):
            _parse(program, shlex.split(words.replace("COMMAND", "ask"), comments=True))


def test_every_option_of_its_page_exists() -> None:
    known = {
        name
        for each in _every_command(program)
        for option in each.params
        for name in (*option.opts, *option.secondary_opts)
    }
    assert set(re.findall(r"`(--?[a-z][\w-]*)", PAGE.read_text(encoding="utf-8"))) <= {*known, "--help"}


def _every_command(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from _every_command(subcommand)


def test_the_commands_of_the_page_on_batches(
    client: Client, simulator: Simulator, run: RunCommand, own_cache: Path
) -> None:
    """An ID of the page stands for the beginning of that of a batch that is under way."""
    simulator.configure(batch_seconds=86_000.0, batch_clock=100_000.0)
    batch = client.submit_many("gpt-5.5", ["1+1?"])
    page = PAGE.with_name("batches.md")
    listed = [line for line in _named_commands(page) if "#" in line and "claim" not in line]
    assert len(listed) >= 6
    for line in listed:
        words = [batch.id[:8] if re.fullmatch(r"ID|3f9a1c", word) else word
                 for word in shlex.split(re.sub(r"\[|\]", "", line), comments=True)]  # fmt: skip
        assert run(*words).code == 0, line


def test_its_page_and_its_help_have_the_same_exit_codes() -> None:
    table = {
        code: text.replace("\\|", "|")
        for code, text in re.findall(r"^\| (\d+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    }
    listed = dict(re.findall(r"^  (\d+) +(.*(?:\n {7}.*)*)", EXIT_CODES, re.MULTILINE))
    assert set(table) == set(listed)
    for code, text in listed.items():
        assert table[code].startswith(" ".join(text.split()))


def test_the_simulator_runs_until_interrupted(program: Program) -> None:
    with program("simulator", "--port", "0") as process:
        assert process.stdout is not None
        assert b"listening at http://127.0.0.1:" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.stdout.read(), errors_of(process)
    assert (process.returncode, err) == (0, "")
    assert b"0 requests" in out
    for route in ROUTES.values():
        variable = route.base_url_variable if route.cloud is None else route.cloud.server_variables[0]
        assert f"export {variable}=".encode() in out or route.adapter == "litellm"


def test_without_its_extra_the_simulator_says_what_to_install(run_script: RunScript) -> None:
    ended = run_script(
        """
        import sys
        sys.modules["granian"] = None  # as if the package were missing
        from llm_provider._features.cli.main import main
        assert main(["simulator", "--port", "0"]) == 1
        """
    )
    assert "pip install 'llm-provider-call[simulator]'" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(run: RunCommand, shell: str) -> None:
    ended = run("completion", shell)
    assert (ended.code, ended.err) == (0, "")
    assert f"_LLM_PROVIDER_COMPLETE={shell}_complete" in ended.out
    assert "llm-provider" in ended.out


def test_bash_accepts_its_script(run: RunCommand) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash on this machine")
    script = run("completion", "bash").out
    program = f"{script}\ncomplete -p llm-provider"
    completed = subprocess.run([bash, "--norc", "-c", program], capture_output=True, text=True)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "_llm_provider_completion" in completed.stdout


@pytest.mark.parametrize("path", ["", "ask", "cache", "cache prune", "simulator"])
def test_help_has_a_short_name(run: RunCommand, path: str) -> None:
    short, long = run(*path.split(), "-h"), run(*path.split(), "--help")
    assert short == long
    assert (short.code, "sage: llm-provider" in short.out) == (0, True)


def test_too_many_arguments_speak_of_a_prompt_only_where_there_is_one(run: RunCommand) -> None:
    for words, has_prompt in (("ask m what is", True), ("map m a.txt b.txt c.jsonl", False)):
        assert ("does the prompt need quotes" in run(*words.split()).err) == has_prompt
