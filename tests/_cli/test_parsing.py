"""Arguments in every order, messages for mistakes, and the values of options."""

from __future__ import annotations

import itertools
import json
import time

import click
import pytest

from llm_provider._cli.parsing import parse_since
from llm_provider.simulator import Simulator
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("aks",), "there is no COMMAND of this name; did you mean ask?; see llm-provider --help"),
        (("cache", "stat"), "there is no ACTION of this name; did you mean stats?; see llm-provider cache"),
        (("cache", "zzz"), "ACTION is one of path, stats, verify"),
        (("ask", "--mx-tokens", "4"), "there is no option --mx-tokens; did you mean --max-tokens?"),
        (("ask", MODEL, "-2+5"), "there is no option -2; an argument that begins with a dash goes after --"),
        (("map", MODEL), "the argument IN is missing; see llm-provider map --help"),
        (("ask", MODEL, "Hi", "--system"), "option '--system' requires an argument"),
        (("logs", "-n", "0"), "invalid value for '-n'"),
        (("cache", "prune", "--dry-rnu"), "did you mean --dry-run?; see llm-provider cache prune --help"),
    ],
)
def test_a_mistake_is_explained_in_one_line(
    run: RunCommand, arguments: tuple[str, ...], message: str
) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert message in ended.err


@pytest.mark.parametrize("command", ["ask", "map", "logs", "usage", "estimate", "models", "batches", "cache"])
def test_every_help_has_an_example(run: RunCommand, command: str) -> None:
    ended = run(command, "--help")
    assert ended.code == 0
    assert f"\n  llm-provider {command} " in ended.out
    assert "--api-key" not in ended.out


def test_a_period_begins_at_a_day_a_time_or_an_age() -> None:
    day = 1_795_132_800.0  # 2026-11-20, midnight in UTC
    assert parse_since("2026-11-20") == day
    assert parse_since("2026-11-20T01:00") == day + 3600
    assert parse_since("2026-11-20T01:00+01:00") == day
    assert parse_since("1h") == pytest.approx(time.time() - 3600, abs=60)
    for wrong in ("yesterday", "20.11.2026", "2026-13-01", "2026-W47"):
        with pytest.raises(click.BadParameter, match="expected a day"):
            parse_since(wrong)
