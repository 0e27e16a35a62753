"""Results as JSON lines and HTML."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    Choice,
    FailedAttempt,
    LLMError,
    RateLimitError,
    RequestError,
    Response,
    Results,
    ToolCall,
)
from llm_provider._core.runtime.json_pieces import LARGE
from llm_provider._features.views import results_views
from support import response


@pytest.fixture
def results() -> Results[Response | LLMError]:
    error = RateLimitError("slow", provider="p", model="m", attempts=2)
    error.failures = (FailedAttempt(error="RateLimitError", status=429),)
    error.metadata = {"id": 8}
    return Results([response("a", metadata={"id": 7, "text": "own"}), error, response("b", cost=None)])


class TestJSONLines:
    @pytest.mark.parametrize("large", [0, LARGE])
    def test_come_back_equal(
        self,
        results: Results[Response | LLMError],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        large: int,
    ) -> None:
        monkeypatch.setattr(results_views, "LARGE", large)
        path = tmp_path / "results.jsonl"
        results.append(response("ü\ud800\n"))
        results.to_jsonl(path)
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [line.get("error") for line in lines] == [None, "RateLimitError", None, None]
        back = Results.from_jsonl(path)
        assert type(back) is Results
        assert back.ok == results.ok
        assert back.errors[0].to_dict() == results.errors[0].to_dict()
        assert str(back.errors[0]) == str(results.errors[0])

    def test_replace_a_file_only_when_they_are_complete(
        self, results: Results[Response | LLMError], tmp_path: Path
    ) -> None:
        path = tmp_path / "results.jsonl"
        path.write_text("before")
        broken: Any = Results([*results, "no result"])
        with pytest.raises(AttributeError):
            broken.to_jsonl(path)
        assert [file.name for file in tmp_path.iterdir()] == [path.name]
        assert path.read_text() == "before"
        link = tmp_path / "link"
        link.symlink_to(path)
        results.to_jsonl(link)
        assert link.is_symlink()
        assert len(Results.from_jsonl(path)) == 3

    def test_may_begin_with_a_mark(self, results: Results[Response | LLMError], tmp_path: Path) -> None:
        path = tmp_path / "results.jsonl"
        results.to_jsonl(path)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
        assert Results.from_jsonl(path).ok == results.ok

    def test_that_are_none_are_named_by_their_line(
        self, results: Results[Response | LLMError], tmp_path: Path
    ) -> None:
        path = tmp_path / "results.jsonl"
        results.to_jsonl(path)
        whole = path.read_text()
        wrong = ("{", "[]", "null", "5", '"a"', "[" * 100_000, "1" * 5000, '{"text": "a"}', '{"scores": 5}')
        amounts = ("NaN", "1e400", "-1", '"x"', "[]", "1" + "0" * 400)
        costs = (whole.splitlines()[0].replace('"cost": 0.25', f'"cost": {amount}') for amount in amounts)
        for line in (*wrong, *costs, '{"error": "NoSuchError", "message": ""}', "\udcff\udcfe"):
            path.write_bytes(f"\n{line}\n".encode("utf-8", "surrogateescape"))
            with pytest.raises(RequestError, match=r"results\.jsonl, line 2: "):
                Results.from_jsonl(path)


class TestHTML:
    def test_shows_errors_and_facts(self, results: Results[Response | LLMError]) -> None:
        html = results._repr_html_()
        assert "2 responses · 1 error · ≥ $0.25, 1 cost unknown" in html
        assert "RateLimitError: slow [p, m, 2 attempts]" in html
        assert "<td>1,234</td>" in html
        assert "<td>?</td>" in html
        assert "<td>cached</td>" in Results([response(cached=True, cost=0.0)])._repr_html_()
        assert "<th>id</th><th>metadata_text</th>" in html
        assert html.count("<tr>") == 4
        # No colour of its own.
        assert "color" not in html
        assert "background" not in html

    def test_is_short_and_never_leaves_out_an_error(self) -> None:
        many: list[Response | LLMError] = [response("x" * 10_000) for _ in range(300)]
        many[250] = RateLimitError("slow")
        html = Results(many)._repr_html_()
        assert len(html) < 20_000
        assert "<td>250</td>" in html
        assert "280 more are not shown" in html
        several = response(choices=tuple(Choice(text="x") for _ in range(30)))
        html = Results([several, RateLimitError("slow"), several])._repr_html_()
        assert (html.count("<tr>"), "<td>1</td>" in html) == (21, True)
        assert "41 more are not shown" in html

    def test_shows_question_answer_score_and_model(self) -> None:
        prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 1+1?"}]
        parsed = response('{"sum": 2, "by": {"name": "m"}}', prompt=prompt, metadata={"id": 1, "score": 0.5})
        parsed = dataclasses.replace(parsed, response_format={"type": "object", "properties": {}})
        html = Results([parsed, response("b", prompt="x" * 999)])._repr_html_()
        assert re.findall("<th[^>]*>([^<]*)</th>", html) == [
            "", "prompt", "answer", "score", "id", "in", "out", "cost", "s",
        ]  # fmt: skip
        assert ">What is 1+1?</td>" in html
        assert "Be brief" not in html
        assert ">sum: 2\nby.name: m</td>" in html
        assert html.startswith("<div>m · 2 responses")
        cut = response(choices=(Choice(text="a", finish_reason="length"),))
        assert "<td" in Results([cut])._repr_html_().partition("<th>finish</th>")[2]
        two = Results([parsed, dataclasses.replace(parsed, model="other")])._repr_html_()
        assert re.findall("<th[^>]*>([^<]*)</th>", two)[3:5] == ["score", "model"]
        strange = (
            [],
            [{"role": "user", "content": None}],
            [{"role": "user", "content": [{"type": "image_url"}]}],
        )
        for each in strange:
            assert "<table>" in Results([response("a", prompt=each)])._repr_html_()

    def test_of_an_answer_without_text_has_its_calls(self) -> None:
        called = Choice(tool_calls=(ToolCall(id="1", name="weather", arguments="{}"),))
        several = (Choice(text="a"), Choice(text="b"))
        answers = [dataclasses.replace(response(), choices=choices) for choices in ((called,), several)]
        html = Results(answers)._repr_html_()
        assert "→ weather({})" in html
        assert ("<th>sample</th>" in html, html.count("<tr>")) == (True, 4)
        assert "<th>model</th>" not in html
        answers[0] = dataclasses.replace(answers[0], model="other")
        assert "<th>model</th>" in Results(answers)._repr_html_()
        assert Results([])._repr_html_() == "<div>0 responses · $0.00</div>"
