"""Arguments in every order, and the values of options; golden pairs have the messages for mistakes."""

import itertools
import json
import time
from pathlib import Path

import click
import pytest

from llm_provider import RequestError
from llm_provider._features.cli.parsing import parameters_of, parse_since, read_schema
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
