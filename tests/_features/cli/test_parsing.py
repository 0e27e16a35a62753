"""Arguments in every order, and the values of options; golden pairs have the messages for mistakes."""

import itertools
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from llm_provider import RequestError
from llm_provider._core.requests.parameters import Parameters
from llm_provider._features.cli.commands import program
from llm_provider._features.cli.output import in_shell_words
from llm_provider._features.cli.parsing import _NOT_HERE as NOT_HERE
from llm_provider._features.cli.parsing import Command, parameters_of, parse_since, read_schema
from llm_provider._features.foreign.remedies import _read_table
from llm_provider.simulator import Fault, Simulator
from support import RunCommand

MODEL = "gpt-6.1-sol"
CONTEXT, PARAMETER = click.Context(click.Command("x")), click.Option(["--x"])


def test_options_and_arguments_come_in_every_order(run: RunCommand, simulator: Simulator) -> None:
    for order in itertools.permutations([MODEL, "--json", "--max-tokens 40", "1+1"]):
        words = [word for part in order for word in part.split()]
        if words.index(MODEL) < words.index("1+1"):
            ended = run("ask", *words)
            assert (ended.code, json.loads(ended.out)["text"]) == (0, "2")
    assert simulator.ledger().requests == 1


def test_a_period_begins_at_a_day_a_time_or_an_age() -> None:
    day = 1_795_132_800.0  # 2026-11-20, midnight in UTC
    assert parse_since("2026-11-20") == day
    assert parse_since("2026-11-20T01:00") == day + 3600
    assert parse_since("2026-11-20T01:00+01:00") == day
    assert parse_since("1h") == pytest.approx(time.time() - 3600, abs=60)
    for wrong in ("yesterday", "20.11.2026", "2026-13-01", "2026-W47"):
        with pytest.raises(click.BadParameter, match="expected a day"):
            parse_since(wrong)


CALLED_MODEL = "gpt-6.1-sol"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_what_was_not_given_is_left_out() -> None:
    options = {"system": None, "max_tokens": 5, "stop": (), "schema": None, "param": [("top_p", 0.5)]}
    assert parameters_of(options) == {"max_tokens": 5, "top_p": 0.5}
    assert parameters_of({"stop": ("A", "B")}) == {"stop": ["A", "B"]}


def test_any_parameter_of_a_call_can_be_given(run: RunCommand, simulator: Simulator) -> None:
    words = ["--param", "top_p=0.5", "--param", "frequency-penalty=0.25"]
    assert run("ask", "groq/openai/gpt-oss-120b", "Hi", *words).code == 0
    body = simulator.requests()[-1].body
    assert (body["top_p"], body["frequency_penalty"]) == (0.5, 0.25)


def test_another_model_answers_if_the_first_does_not(run: RunCommand, simulator: Simulator) -> None:
    simulator.inject(Fault(quota=True), "openai")
    ended = run(
        "ask", CALLED_MODEL, "2+2?", "--fallback", "claude-haiku-5-5", "--fallback", "gemini-3.8-flash"
    )
    assert (ended.code, ended.out) == (0, "4\n")
    assert [request.provider for request in simulator.requests()] == ["openai", "anthropic"]


def test_a_schema_is_a_file_or_json(tmp_path: Path) -> None:
    path = tmp_path / "city.json"
    path.write_text(json.dumps(CITY))
    assert read_schema(str(path)) == read_schema(json.dumps(CITY)) == CITY
    path.write_bytes(b"\xff")
    with pytest.raises(RequestError, match="not UTF-8"):
        read_schema(str(path))
    assert read_schema('{"type": "json_object"}') == {"type": "json_object"}


def every_command(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))
        yield (*path, name), command


COMMANDS = {" ".join(path): command for path, command in every_command(program) if path != ("simulator",)}


@pytest.mark.parametrize("path", COMMANDS)
def test_an_option_with_a_mistake_names_the_right_one(run: RunCommand, path: str) -> None:
    command = COMMANDS[path]
    known = {name for each in command.params for name in each.opts if name.startswith("--")} - {"--api-key"}
    for name in (each for each in known if len(each) > 6):
        wrong = name[:4] + name[5:]
        if any(each.startswith(wrong) for each in known):
            continue  # an abbreviation
        ended = run(*path.split(), wrong)
        assert (ended.code, f"there is no option {wrong}; did you mean {name}?" in ended.err) == (2, True)


RULES = [
    (path, name, *rule.split())
    for path, command in COMMANDS.items()
    for name, rule in getattr(command, "rules", {}).items()
]
CROSSINGS = [(path, name, kind, other) for path, name, kind, *others in RULES for other in others]


def write(path: str, name: str) -> list[str]:
    """An option or an argument of a command, with a value that it can have."""
    known = {
        each if each[0] == "-" else each.upper(): param
        for param in COMMANDS[path].params
        for each in param.opts
    }
    param = known[name]
    if isinstance(param, click.Argument):
        return ["word"]
    return [name] if param.is_flag else [name, "1d" if name == "--max-age" else "1"]


def words_of(path: str, *names: str) -> list[str]:
    """A command line with its arguments, and with some options."""
    needed = [
        param for param in COMMANDS[path].params if isinstance(param, click.Argument) and param.required
    ]
    options = {param.opts[0] for param in COMMANDS[path].params if param.required and param not in needed}
    words = [word for name in (*names, *options.difference(names)) for word in write(path, name)]
    return [*path.split(), *(__file__ for _ in needed), *[__file__] * (path == "map"), *words]


@pytest.mark.parametrize(
    ("path", "name", "others"), [(path, name, rest) for path, name, kind, *rest in RULES if kind == "needs"]
)
def test_an_option_without_the_one_that_it_needs_is_refused(
    run: RunCommand, path: str, name: str, others: list[str]
) -> None:
    ended = run(*words_of(path, name))
    assert (ended.code, f"{name} needs {' or '.join(others)}" in ended.err) == (2, True), ended.err
    for other in others:
        assert f"{name} needs" not in run(*words_of(path, name, other)).err


@pytest.mark.parametrize(
    ("path", "name", "other"), [(*row[:2], row[3]) for row in CROSSINGS if row[2] == "replaces"]
)
def test_an_option_without_effect_beside_another_is_refused(
    run: RunCommand, path: str, name: str, other: str
) -> None:
    for names in ((name, other), (other, name)):
        ended = run(*words_of(path, *names))
        assert (ended.code, f"{other} has no effect beside {name}" in ended.err) == (2, True), ended.err


HABITS = [
    (owner.split("-")[2:], word, remedy)
    for owner, rows in _read_table().items()
    if owner.startswith("llm-provider")
    for word, remedy in rows.items()
]


@pytest.mark.parametrize(("path", "word", "remedy"), HABITS)
def test_a_command_of_another_tool_says_what_to_write(
    run: RunCommand, simulator: Simulator, path: list[str], word: str, remedy: str
) -> None:
    ended = run(*path, word)
    assert remedy in ended.err
    for command in re.findall(r"`([a-z]+(?: [a-z]+)?)", remedy):
        assert command in {*COMMANDS, "simulator"}
    assert simulator.ledger().requests == 0


@pytest.mark.parametrize(
    "words", [("-m", "gpt-6.1-sol", "Hi"), ("--system", "x"), ("Hi there",), ("gpt-6.1-sol", "Hi")]
)
def test_a_question_without_a_command_is_told_of_ask(run: RunCommand, words: tuple[str, ...]) -> None:
    ended = run(*words)
    assert (ended.code, "`llm-provider ask MODEL PROMPT` asks a question" in ended.err) == (2, True)


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if isinstance(command, Command)])
def test_a_message_names_the_options_of_its_command(path: str) -> None:
    command = COMMANDS[path]
    command.make_context(path, words_of(path)[len(path.split()) :], resilient_parsing=True)
    for param in command.params:
        option, name = param.opts[-1], str(param.name)
        if option.startswith("--") and name != "api_key":
            assert in_shell_words(f"leave {name}='a' out, or {name}=... and {name}=2") == (
                f"leave {option} a out, or {option} and {option} 2"
            )
            quoted = f"'{name}=' and {name}() of {name}s"
            assert in_shell_words(quoted) == quoted
            assert in_shell_words(f"its {name}") == (f"its {option}" if "_" in name else f"its {name}")
    text = "pass api_key=, or Budget(..., unit='tokens', allow_unknown=True) of text=2"
    allowed = {"ask", "decide", "map", "recheck"}
    assert (in_shell_words(text) == text) == (path not in allowed)
    if path in allowed:
        assert in_shell_words(text) == "pass api_key=, or --allow-unknown of text=2"


@pytest.mark.parametrize("command", ["ask", "map", "recheck"])
@pytest.mark.parametrize("name", Parameters.__annotations__)
@pytest.mark.sampled(20)
def test_each_parameter_of_a_call_is_an_option_or_has_a_hint(
    run: RunCommand, command: str, name: str
) -> None:
    option = f"--{name.replace('_', '-')}"
    known = {each: each for param in COMMANDS[command].params for each in param.opts}
    if option in known or any(each.startswith(option) for each in known):
        return
    err = run(command, option).err
    if name == "response_format":
        assert "did you mean --schema?" in err
    elif name in NOT_HERE:
        assert NOT_HERE[name] in err
    else:
        assert f"there is no option {option}; write --param {name}=JSON" in err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("ask --deadline 5", "write --param deadline=JSON"),
        ("ask -m gpt", "MODEL is an argument: write it without -m"),
        ("map --output x", "OUT is an argument"), ("map -o x", "OUT is an argument"),
        ("view --out x", "did you mean --output?"), ("map --workers 5", "did you mean --max-concurrent?"),
        ("map --concurrency 5", "did you mean --max-concurrent?"),
        ("estimate --max-output-tokens 5", "did you mean --max-tokens?"),
        ("ask --instructions x", "did you mean --system?"), ("logs --limit 3", "did you mean --number?"),
        ("ask --openai-key sk-1", "put it into the environment"),
        ("ask -o temperature 0.2", "did you mean --param?"), ("ask -x", "goes after --"),
        ("ask --none-of-these", "there is no option --none-of-these; see"), ("usage -q 3", "option -q; see"),
        ("ask -5", "goes after --"), ("ask -u", "did you mean --verbose?"),
        ("ask --usage", "did you mean --verbose?"), ("ask -f a.txt", "did you mean --attach?"),
        ("ask --option a 1", "did you mean --param?"),
    ],
)  # fmt: skip
def test_an_option_of_another_tool_says_what_to_write(run: RunCommand, words: str, hint: str) -> None:
    ended = run(*words.split())
    assert ("goes after --" in hint) == ("goes after --" in ended.err)
    assert (ended.code, hint in ended.err, "sk-1" in ended.err) == (2, True, False), ended.err
