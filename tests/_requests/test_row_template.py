"""Templates read names, indices and fields of rows, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client, RequestError
from llm_provider._cli.main import main
from llm_provider._requests.row_template import parse_template
from llm_provider.simulator import Simulator

ROW: dict[str, Any] = {"q": "Why?", "person": {"name": "Ada", "tags": ["a", "b"]}, "n": 3.14159, "w": "9"}


class Secret:
    key = "sk-secret"


HOSTILE = [
    "{q.__init__.__globals__}", "{q.__class__.__mro__[1].__subclasses__}", "{q.__class__}",
    "{person[name].__class__}", "{q. __class__}", "{q.}", "{q..x}", "{q:{w}}", "{q:{q.__class__}}",
    "{q:1000000000}", "{n:.1000000000f}", "{q:>99999}",
]  # fmt: skip
UNFILLABLE = ["{q.upper}", "{person.keys}", "{person[__class__]}", "{q[name]}", "{person.tags[9]}", "{q!x}"]


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{q} {{}}", "Why? {}"), ("{person.name}", "Ada"), ("{person[name]:>5}|", "  Ada|"),
        ("{person.tags[1]}", "b"), ("{person.tags.0}", "a"), ("{n:.2f} {q!r}", "3.14 'Why?'"),
    ],
)  # fmt: skip
def test_fields_of_rows_are_filled_in(template: str, filled: str, client: Client) -> None:
    (answer,) = client.call_many("gpt-6.1-sol", template, rows=[ROW], progress=False)
    assert answer.text == f"echo: {filled}"


@pytest.mark.parametrize("template", HOSTILE + UNFILLABLE)
@pytest.mark.parametrize("row", [ROW, {**ROW, "q": Secret()}, {**ROW, "q": Secret}, {**ROW, "q": [Secret()]}])
def test_nothing_else_is_read_and_nothing_is_sent(
    client: Client, simulator: Simulator, template: str, row: Any
) -> None:
    with pytest.raises(RequestError, match="template") as caught:
        client.call_many("gpt-6.1-sol", f"Hi {template}", rows=[row], progress=False)
    assert "sk-secret" not in str(caught.value)
    assert not simulator.requests()


@pytest.mark.parametrize("template", HOSTILE + UNFILLABLE)
def test_nor_by_the_command_line(simulator: Simulator, tmp_path: Path, template: str, capsys: Any) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(ROW) + "\n")
    assert main(["map", "gpt-6.1-sol", str(source), str(target), "--template", f"Hi {template}"]) != 0
    assert "template" in capsys.readouterr().err
    assert not simulator.requests()


@given(st.text(alphabet="{}q.[]_:!09 a", max_size=20))
def test_any_template_reads_columns_or_is_refused(template: str) -> None:
    try:
        safe, columns = parse_template(template, "the template", "{text}")
    except RequestError:
        return
    assert columns
    assert parse_template(safe, "the template", "{text}") == (safe, columns)
