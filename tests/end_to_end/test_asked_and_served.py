"""A model is asked under one name and answers under another: a table has one name for it, failures too."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Results
from llm_provider._core.types.results_table import columns
from llm_provider._features.cli.main import main
from llm_provider._features.pictures.pictures import plot_results
from llm_provider.simulator import Fault, Simulator
from support import needs

FAMILIES = (
    ("gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"),
    ("gpt-5", "gpt-5-mini", "gpt-5.1"),
    ("openrouter/openai/gpt-5", "openrouter/openai/gpt-5-mini", "openrouter/other/gpt-5"),
    ("gpt-4o", "claude-haiku-5-5", "gemini-3.8-flash"),
)
SUFFIXES = ("", "-2025-04-14", "-0414")
ANSWERED = 4


@needs("matplotlib")
@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family[0])
@pytest.mark.sampled(8)
def test_each_model_has_one_name_and_all_its_calls(
    client: Client, simulator: Simulator, tmp_path: Path, capsys: Any,
    family: tuple[str, ...], suffix: str, fallback: bool,
) -> None:  # fmt: skip
    for provider in ("openai", "anthropic", "gemini", "openrouter"):
        simulator.configure(provider, snapshot_suffix=suffix)
        simulator.inject(Fault(status=400, code="content_filter"), provider, times=None, match="fails")
    runs = {}
    # Of each model no call fails, some, or all.
    for model, name in product(family, ("none", "some", "all")):
        questions = [f"What is {number}+1?" for number in range(ANSWERED)] if name != "all" else []
        questions += [f"{name} fails {number}" for number in range(2)] if name != "none" else []
        options: dict[str, Any] = {"fallback": [family[1]]} if fallback and model == family[0] else {}
        options["metadata"] = [model] * len(questions)
        runs[model, name] = client.call_many(model, questions, max_tokens=50, **options)
    for states in product(("none", "some", "all"), ("none", "some", "all"), ("some",)):
        parts = [runs[each] for each in zip(family, states, strict=True)]
        results = sum(parts, Results[Any]()).score(lambda _: 1, failed=0)
        expected: dict[str, list[int]] = {}
        for model, part in zip(family, parts, strict=True):
            # The last model of a fallback has failed.
            last = family[1] if fallback and model == family[0] else model
            for name, calls, score in ((model, len(part.ok), 1), (last, len(part.errors), 0)):
                # Nothing answered in the name of a model whose calls all failed.
                plain = name.removeprefix("openrouter/") + suffix
                served = name if states[family.index(name)] == "all" else plain
                counts = expected.setdefault(served, [0, 0])
                counts[0] += calls
                counts[1] += calls * score
        expected = {name: counts for name, counts in expected.items() if counts[0]}
        check(results, expected, tmp_path, capsys)


def check(results: Results[Any], expected: dict[str, list[int]], folder: Path, capsys: Any) -> None:
    means = {name: answered / calls for name, (calls, answered) in expected.items()}
    results.to_jsonl(path := folder / "results.jsonl")
    for each in (results, Results.from_jsonl(path)):
        table = each.summarize_scores()
        assert {row["model"]: row["mean"] for row in table.rows} == means
        assert len(table.to_latex().splitlines()) == len(results.summarize_scores().to_latex().splitlines())
        cells = columns(each)
        assert {name: cells["model"].count(name) for name in set(cells["model"])} == {
            name: calls for name, (calls, _) in expected.items()
        }
        ticks = plot_results(each, "scores", None, None, None).axes[0].get_yticklabels()
        assert len(ticks) == len(expected)
    results.to_html(page := folder / "page.html")
    strip = json.loads(page.read_text().partition('id="data">')[2].partition("</script>")[0])
    models = {row["model"]: row["errors"] for row in strip["runs"][0]["models"]}
    assert models == {name: calls - answered for name, (calls, answered) in expected.items()}
    assert main(["report", str(path), "--json"]) == 0
    assert {row["model"]: row["mean"] for row in json.loads(capsys.readouterr().out)["rows"]} == means
