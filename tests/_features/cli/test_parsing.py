"""Arguments in every order, and the values of options; golden pairs have the messages for mistakes."""

import itertools
import json
import time

import click
import pytest

from llm_provider._features.cli.parsing import parse_since
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


def test_a_period_begins_at_a_day_a_time_or_an_age() -> None:
    day = 1_795_132_800.0  # 2026-11-20, midnight in UTC
    assert parse_since("2026-11-20") == day
    assert parse_since("2026-11-20T01:00") == day + 3600
    assert parse_since("2026-11-20T01:00+01:00") == day
    assert parse_since("1h") == pytest.approx(time.time() - 3600, abs=60)
    for wrong in ("yesterday", "20.11.2026", "2026-13-01", "2026-W47"):
        with pytest.raises(click.BadParameter, match="expected a day"):
            parse_since(wrong)
