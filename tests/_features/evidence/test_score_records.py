"""Who reads what `Results.export` writes: Every Eval Ever's validator, inspect_ai and in-toto's package."""

import json
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from llm_provider import Client, LLMError, Results, Scores, call_many, verify
from llm_provider._core.types.score_values import with_scores
from llm_provider.simulator import Fault, Simulator

pytestmark = [
    pytest.mark.plugins,
    pytest.mark.timeout(400),  # a package takes seconds to import
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),  # inspect's own
]

MODELS = ("gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash", "groq/openai/gpt-oss-120b")
SCORED = "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo"
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
VARIANTS: tuple[dict[str, Any], ...] = (
    {}, {"system": "Be brief."}, {"n": 3}, {"reasoning_effort": "high", "unsupported": "drop"},
    {"tools": [WEATHER], "tool_choice": "required"}, {"cache": "off"},
    {"response_format": {"type": "object", "properties": {"a": {"type": "integer"}}}},
)  # fmt: skip


def make_results(client: Client, simulator: Simulator, source: random.Random) -> Results[Any]:
    simulator.inject(Fault(status=400), match="fails", times=None)
    simulator.inject(Fault(finish="length"), match="cut", times=None)
    results: Results[Any] = Results()
    prompts: list[Any] = ["What is 1+1?", "fails", "cut", '<b>\u2028\ud83d\ude00 \\ "q"\n]}', "\x00"]
    prompts.append(
        [
            {"role": "user", "content": "1"},
            {"role": "assistant", "content": "2"},
            {"role": "user", "content": "3"},
        ]
    )
    prompts.append([{"role": "user", "content": [{"type": "text", "text": "4"}]}])
    for model in MODELS:
        for variant in VARIANTS:
            some = source.sample(prompts, k=3)
            results += client.call_many(model, some, metadata=[{"id": n} for n in range(3)], **variant)
    results += client.score_many(SCORED, ["2+2=", "1+1="], [[" 4", " 5"], [" 2"]])
    source.shuffle(results)
    return results


@pytest.mark.parametrize("evaluation", ["sums", "../ä b/c:d", "x" * 200])
def test_scores_are_read_by_the_programs_that_the_forms_belong_to(
    client: Client, simulator: Simulator, tmp_path: Path, evaluation: str
) -> None:
    source = random.Random(evaluation)
    results = make_results(client, simulator, source)
    scores = [source.choice([None, 0, 1, 0.25, True, -3]) for _ in results]
    path = tmp_path / "a.zip"
    results.export(path, client=client, scores=scores, evaluation=evaluation)
    verify(path)
    with ZipFile(path) as archive:
        archive.extractall(tmp_path)
    records = [str(file.relative_to(tmp_path)) for file in (tmp_path / "data").rglob("*") if file.is_file()]
    program = Path(sys.executable).parent / "every_eval_ever"
    ended = subprocess.run(
        [program, "validate", *records], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    check_logs(tmp_path / "inspect", results, scores, evaluation)


def test_the_samples_of_a_question_are_epochs(client: Client, simulator: Simulator, tmp_path: Path) -> None:
    """As inspect_ai and Every Eval Ever name them: each with its own score and answer."""
    simulator.configure(noise=0.5)
    results = Results(
        client.call_many(MODELS[0], [f"What is {number} + 1?" for number in range(6)], n=3, max_tokens=50)
    ).score(lambda sample: None if sample.text.startswith("2 ") else "Noise" not in sample.text)
    check_epochs(results, client, tmp_path)


def check_epochs(results: Results[Any], client: Client, folder: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        from inspect_ai.log import list_eval_logs, read_eval_log
    results.export(folder / "a.zip", client=client)
    verify(folder / "a.zip")
    with ZipFile(folder / "a.zip") as archive:
        archive.extractall(folder)
    expected = {
        (index, epoch): (score, sample.text)
        for index, result in enumerate(results)
        for epoch, (score, sample) in enumerate(zip(result.score_values, result.samples, strict=True), 1)
        if score is not None
    }
    (part,) = (folder / "data").rglob("*_samples.jsonl")
    lines = [json.loads(line) for line in part.read_text().splitlines()]
    assert {
        (int(line["sample_id"]), int(line["metadata"]["epoch"])): (
            line["evaluation"]["score"], line["output"]["raw"][0],
        )
        for line in lines
    } == expected  # fmt: skip
    assert all(line["evaluation"]["is_correct"] == (line["evaluation"]["score"] >= 1) for line in lines)
    program = Path(sys.executable).parent / "every_eval_ever"
    records = [str(file.relative_to(folder)) for file in (folder / "data").rglob("*") if file.is_file()]
    subprocess.run([program, "validate", *records], cwd=folder, check=True, capture_output=True, timeout=200)
    (info,) = list_eval_logs(str(folder / "inspect"))
    log = read_eval_log(info)
    assert log.samples is not None
    assert log.results is not None
    assert log.eval.config.epochs == 3
    assert log.eval.dataset.samples == len({index for index, _ in expected})
    assert log.results.total_samples == len(expected)
    assert {
        (sample.id, sample.epoch): (sample.scores["scores"].as_float(), sample.output.completion)
        for sample in log.samples
        if sample.scores
    } == expected
    table = results.summarize_scores()
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(table.rows[0]["mean"])
    used = sum(sample.output.usage.total_tokens for sample in log.samples if sample.output.usage)
    assert used == results.usage.total_tokens == log.stats.model_usage[log.eval.model].total_tokens


def check_logs(folder: Path, results: Results[Any], scores: list[Any], evaluation: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        from inspect_ai.log import list_eval_logs, read_eval_log
        from inspect_ai.model import ChatMessageAssistant
    seen = {}
    pairs = zip(results, scores, strict=True)
    table = Results(with_scores(result, [score]) for result, score in pairs).summarize_scores()
    means = {row["model"]: pytest.approx(row["mean"]) for row in table.rows}
    logs = list_eval_logs(str(folder))
    assert len(logs) == len(list(folder.iterdir()))
    for info in logs:
        log, head = read_eval_log(info), read_eval_log(info, header_only=True)
        assert log.results is not None
        for name in ("results", "eval", "stats"):
            assert getattr(head, name).model_dump() == getattr(log, name).model_dump()
        assert (log.status, log.eval.task) == ("success", evaluation)
        assert log.samples is not None
        values = [sample.scores[evaluation].as_float() for sample in log.samples if sample.scores]
        assert len(values) == len(log.samples) == log.results.total_samples
        assert log.results.completed_samples == sum(sample.error is None for sample in log.samples)
        assert log.results.scores[0].metrics["mean"].value == means[log.eval.model.partition("/")[2]]
        used = log.stats.model_usage[log.eval.model]
        assert used.total_tokens == sum(s.output.usage.total_tokens for s in log.samples if s.output.usage)
        for sample in log.samples:
            seen[sample.id] = sample.scores[evaluation].value if sample.scores else None
            result = results[int(sample.id)]
            if isinstance(result, LLMError):
                assert sample.error
                assert not sample.output.choices
                continue
            texts = [result.best.text] if isinstance(result, Scores) else result.texts
            assert [choice.message.text for choice in sample.output.choices] == texts
            assert isinstance(sample.messages[-1], ChatMessageAssistant)
            if not isinstance(result, Scores):
                calls = [call.function for call in sample.output.message.tool_calls or ()]
                assert calls == [call.name for call in result.tool_calls]
                assert f"{result.provider}/{result.model}" == log.eval.model
    assert seen == {index: float(score) for index, score in enumerate(scores) if score is not None}


def test_the_statement_is_one_of_in_toto(simulator: Simulator, tmp_path: Path) -> None:
    from google.protobuf.json_format import ParseDict
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    path = tmp_path / "a.zip"
    written = call_many("gpt-6.1-sol", ["1"], base_url=simulator.url("openai")).export(path)
    statement = json.loads((tmp_path / "a.zip.intoto.json").read_bytes())
    Statement.copy_from_pb(ParseDict(statement, Message())).validate()
    assert statement["subject"] == [{"name": "a.zip", "digest": {"sha256": written.sha256}}]
