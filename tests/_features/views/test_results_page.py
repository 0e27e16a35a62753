"""The page of results: what it holds, and that nothing in it can run. `tests/browser` opens it."""

import csv
import hashlib
import json
import math
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import (
    Choice,
    LLMError,
    RateLimitError,
    RequestError,
    Response,
    Results,
    ToolCall,
    call,
    call_many,
)
from llm_provider._core.types.response import Result
from llm_provider._features.evaluation import summary as score_summaries
from llm_provider._features.views import results_page
from llm_provider._features.views.results_page import embed_json, pair_results
from llm_provider.simulator import Simulator
from support import response

VENDOR = Path(results_page.__file__).parent / "page" / "vendor"
HOSTILE = (
    "</script><script>alert(1)</script><!-- <script> ]]> \u2028\u2029 &lt; \u202e \ud800 \0 {data}{scripts}"
)
"""What closes a script, opens a comment, ends a line, reverses a text and is no Unicode."""


class Scripts(HTMLParser):
    """The scripts of a page as a browser finds them, and its policy."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.policy = ""
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag == "script":
            self.texts.append("")
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"]

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] == ["script"]:
            self.texts[-1] += data


def read_page(results: Any, folder: Path, **options: Any) -> tuple[dict[str, Any], Scripts]:
    path = folder / "page.html"
    Results(results).to_html(path, **options)
    scripts = Scripts(path.read_bytes().decode())
    return json.loads(scripts.texts[0]), scripts


def failure(**fields: Any) -> RateLimitError:
    error = RateLimitError("slow", provider="p", model="m")
    error.__dict__.update(fields)
    return error


@given(st.text() | st.just(HOSTILE))
def test_every_text_comes_back_and_closes_no_script(text: str) -> None:
    encoded = embed_json({"answer": text, text: [text]})
    assert json.loads(encoded) == {"answer": text, text: [text]}
    assert not set(b"<>&") & set(encoded)
    assert not re.search("[\u2028\u2029]", encoded.decode())


def test_a_hostile_answer_adds_nothing_to_the_page(tmp_path: Path) -> None:
    calls = (ToolCall(id="1", name=HOSTILE, arguments=HOSTILE),)
    choice = Choice(text=HOSTILE, reasoning=HOSTILE, tool_calls=calls)
    hostile = response(choices=(choice,), prompt=HOSTILE, metadata={HOSTILE: HOSTILE}, model=HOSTILE)
    _, plain = read_page([response("a")], tmp_path)
    data, page = read_page([hostile, failure(message=HOSTILE)], tmp_path)
    assert page.tags == plain.tags
    assert page.texts[1:] == plain.texts[1:]
    assert page.policy == plain.policy
    texts = [text for row in data["rows"] for text in json.dumps(row).split('"') if "alert" in text]
    assert len(texts) == 7
    assert data["prompts"][0] == HOSTILE


def test_the_policy_lets_the_own_scripts_run_and_nothing_else(tmp_path: Path) -> None:
    _, page = read_page([response("a")], tmp_path)
    assert page.policy.startswith("default-src 'none'; script-src 'sha256-")
    assert page.policy.count("'sha256-") == len(page.texts) - 1 == 3
    assert "connect" not in page.policy
    assert not re.search(
        r'(src|href)="', "".join((tmp_path / "page.html").read_text().partition("<script")[0])
    )
    _, two = read_page([response("a")], tmp_path, beside=Results([response("b")]))
    assert two.policy.count("'sha256-") == 4


def test_failures_come_first_then_what_is_incomplete(tmp_path: Path) -> None:
    cut = response(choices=(Choice(text="a", finish_reason="length"),))
    data, _ = read_page([response("a"), cut, failure(samples=(response("b"),)), response("c", "d")], tmp_path)
    cells = [dict(zip(data["runs"][0]["columns"], row[0]["cells"], strict=True)) for row in data["rows"]]
    assert [(cell["input_index"], cell["sample"]) for cell in cells] == [
        (2, 1), (1, 0), (0, 0), (2, 0), (3, 0), (3, 1),
    ]  # fmt: skip
    assert [(state, count) for state, count in data["states"].items() if count] == [
        ("failed", 1), ("incomplete", 1), ("ok", 4),
    ]  # fmt: skip


def test_of_two_runs_differences_come_before_equal_rows(tmp_path: Path) -> None:
    ours = [response(text, prompt=text) for text in ("same", "changed", "left")]
    theirs = [response("same", prompt="same"), response("new", prompt="changed"), failure(metadata=1)]
    data, _ = read_page([*ours, response("x", metadata=1)], tmp_path, beside=Results(theirs))
    assert [[side and side["cells"][0] for side in row] for row in data["rows"]] == [
        [3, 2], [2, None], [1, 1], [0, 0],
    ]  # fmt: skip
    assert [state for state, count in data["states"].items() if count] == [
        "failed", "single", "different", "same",
    ]  # fmt: skip
    assert [run["name"] for run in data["runs"]] == ["m (1)", "m (2)"]


def test_a_model_is_summed_up_by_its_questions(tmp_path: Path) -> None:
    """Two samples of one question are no two questions, so the interval does not shrink."""
    alone = [response(str(n), metadata={"score": n % 2}) for n in range(8)]
    twice = [response(choices=(Choice(text="a"),) * 2, metadata={"score": n % 2}) for n in range(8)]
    lines = [read_page(results, tmp_path)[0]["runs"][0]["models"][0] for results in (alone, twice)]
    assert [line["counts"] for line in lines] == [
        {"questions": 8, "samples": 8}, {"questions": 8, "samples": 16},
    ]  # fmt: skip
    repeated = Results([response("a", prompt="q"), response("b", prompt="q"), failure()])
    [line] = read_page(repeated.score(scores=[1, 0, 1]), tmp_path)[0]["runs"][0]["models"]
    assert line["counts"] == {"questions": 2, "samples": 3}
    assert (line["questions"], line["samples"]) == ("2", "3")
    assert [(line["mean"], line["interval"]) for line in lines] == [
        ("0.500", "[0.215, 0.785]"), ("0.500", "[0.202, 0.798]"),
    ]  # fmt: skip
    data, _ = read_page([failure(), response("a", metadata={"score": None}, price=None)], tmp_path)
    [line] = data["runs"][0]["models"]
    assert (line["counts"]["samples"], line["errors"], line["price"]) == (2, 1, "1 cost unknown")
    assert "mean" not in line


@pytest.mark.parametrize("name", ["expected", "Target", "gold", "label", "answer", None])
def test_what_was_expected_stands_beside_the_answer(name: str | None, tmp_path: Path) -> None:
    metadata = "4" if name is None else {"kind": "sum", name: "4", "id": 1}
    data, _ = read_page([response("4", metadata=metadata)], tmp_path)
    names = data["runs"][0]["columns"]
    assert names[names.index("text") + 1] == (name or "metadata")


LARGE = 2.0**1023


@st.composite
def scored_runs(draw: st.DrawFn) -> Results[Any]:
    """Results of two models, with failed calls, and scores of each sample, which may be missing."""
    numbers = draw(
        st.sampled_from([
            st.sampled_from([0.0, 1.0]), st.sampled_from([0.25, 1.0, -3.0]), st.floats(0, 1e-5),
            st.sampled_from([LARGE, -LARGE, 1e300, 0.0]), st.floats(allow_nan=False, allow_infinity=False),
        ])
    )  # fmt: skip
    names = draw(st.sampled_from([(), ("right",), ("right", "length")]))
    number = st.none() | numbers
    score = st.fixed_dictionaries(dict.fromkeys(names, number)) if names else number
    results, scores = [], []
    for place in range(draw(st.integers(1, 12))):
        model, count = draw(st.sampled_from("ab")), draw(st.integers(1, 3))
        if draw(st.integers(0, 5)) == 0:
            results.append(failure(model=model, metadata=place))
            count = 1
        else:
            results.append(response(*"x" * count, prompt=str(place % 9), model=model))
        scores.append([draw(score) for _ in range(count)])
    return Results(results).score(scores=scores)


@given(scored_runs())
def test_page_table_and_evidence_have_the_same_numbers(results: Results[Any]) -> None:
    head = results_page._Table(results, "run", "").head
    if not score_summaries.has_scores(results):
        assert all("mean" not in line for line in head["models"])
        with pytest.raises(RequestError, match="no result has a score: all"):
            results.summarize_scores()
        return
    table = results.summarize_scores()
    name = table.rows[0]["score"]
    rows = {row["model"]: row for row in table.rows if row["score"] == name}
    texts = {text["model"]: text for text in table.texts() if text.get("score", name) == name}
    names = ("mean", "interval", "samples")
    assert {line["model"]: [line[name] for name in names] for line in head["models"]} == {
        model: [text[name] for name in names] for model, text in texts.items()
    }
    assert all(math.isfinite(row["mean"]) for row in rows.values() if row["mean"] is not None)
    means: dict[int, float] = {}
    for index, result in enumerate(results):
        failed = isinstance(result, LLMError)
        read = list(score_summaries.read_samples(result.score_values, name, failed=failed))
        if numbers := [each for each in read if each is not None]:
            means[index] = score_summaries.average(numbers)
    for model, row in rows.items():
        own = [mean for at, mean in means.items() if results[at].model == model]
        if len({results[at].prompt for at in means}) == len(means) and own:
            expected, noise = math.fsum(each / len(own) for each in own), 1e-12 * max(map(abs, own))
            assert row["mean"] == pytest.approx(expected, abs=noise)


def test_an_index_that_counts_the_rows_is_there_once(simulator: Simulator, tmp_path: Path) -> None:
    import pandas

    for index, shown in (([0, 1], False), ([7, 8], True)):
        results = call_many("gpt-5.5", pandas.Series(["1+1?", "2+2?"], index=index), max_tokens=50)
        data, _ = read_page(results, tmp_path)
        assert ("index" in data["runs"][0]["columns"]) == shown


def test_values_that_javascript_lacks_are_text(tmp_path: Path) -> None:
    metadata = {"id": 2**60 + 1, "none": float("nan"), "deep": {"far": [float("inf")]}}
    data, _ = read_page([response("a", metadata=metadata)], tmp_path)
    cells = dict(zip(data["runs"][0]["columns"], data["rows"][0][0]["cells"], strict=True))
    assert (cells["id"], cells["none"], cells["deep"]) == (str(2**60 + 1), "nan", {"far": ["inf"]})


class NoTruth:
    """As the missing value of pandas, an array or a column: comparing it has no truth value."""

    def __eq__(self, other: object) -> Any:
        return self

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("the truth value is ambiguous")

    __hash__ = None  # type: ignore[assignment]  # as that of an array

    def tolist(self) -> list[int]:
        return [1, 2]


@pytest.mark.parametrize("write", ["to_html", "to_jsonl", "_repr_html_", "to_pandas", "beside"])
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"a": value}, lambda value: [value]])
def test_a_value_of_a_user_needs_no_truth_value(write: str, wrap: Any, tmp_path: Path) -> None:
    import numpy
    import pandas

    for value in (NoTruth(), pandas.NA, pandas.NaT, numpy.array([1, 2]), pandas.Series([1, 2])):
        results = Results([response("a", metadata=wrap(value)), failure(metadata=wrap(value))])
        if write == "beside":
            results.to_html(tmp_path / "out", beside=results)
        elif write in ("to_html", "to_jsonl"):
            getattr(results, write)(tmp_path / "out")
        else:
            getattr(results, write)()


def test_a_row_opens_into_its_parts(simulator: Simulator, tmp_path: Path) -> None:
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    prompt = 'use the tool weather({"city": "Bern"})'
    answer = call("gpt-5.5", prompt, tools=[weather], max_tool_rounds=3, reasoning_effort="none")
    data, _ = read_page([answer, response("a", body=b"no JSON")], tmp_path)
    extra = data["rows"][0][0]["extra"]
    messages = extra["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1]["tool_calls"][0]["function"]["name"] == "weather"
    assert messages[2]["content"] == "sunny in Bern"
    columns, cells = data["runs"][0]["columns"], data["rows"][0][0]["cells"]
    assert cells[columns.index("output_tokens")] == answer.usage.output_tokens


def test_files_of_a_prompt_are_short_texts(tmp_path: Path) -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    content = [{"type": "text", "text": "What is this?"}, part]
    data, _ = read_page([response("a", prompt=[{"role": "user", "content": content}])], tmp_path)
    shown = data["prompts"][0][0]["content"]
    assert shown[0]["text"] == "What is this?"
    assert len(shown[1]["text"]) < 250


def test_an_earlier_page_stays_if_the_new_one_fails(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("before")
    results: Results[Response | LLMError] = Results([response("a")])
    with pytest.raises(RequestError, match="beside takes the Results"):
        results.to_html(tmp_path / "page.html", beside=["b"])  # type: ignore[list-item]  # no results
    with pytest.raises(RequestError, match="path must be a path"):
        results.to_html("")
    with pytest.raises(RequestError, match="a name for each of 1 runs"):
        results.to_html(tmp_path / "page.html", names="ab")
    with pytest.raises(FileNotFoundError):
        results.to_html(tmp_path / "none" / "page.html")
    assert (tmp_path / "page.html").read_text() == "before"


def test_each_component_is_the_file_that_its_line_names() -> None:
    with (VENDOR / "components.csv").open(encoding="utf-8", newline="") as lines:
        components = list(csv.DictReader(lines))
    assert len(components) == 3
    for line in components:
        code = (VENDOR / f"{line['name']}.min.js").read_bytes()
        assert hashlib.sha256(code).hexdigest() == line["sha256"]
        assert b"</script" not in code.lower()
        # After a comment's begin, a script would end only at its second end.
        assert b"<script" not in code.lower()
        assert "Copyright" in (VENDOR / f"{line['name']}.LICENSE.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize(
    "name", ["constructor", "toString", "valueOf", "__proto__", "hasOwnProperty", "isPrototypeOf", "watch"]
)
def test_a_column_may_be_named_like_a_method_of_objects(name: str, beside: bool, tmp_path: Path) -> None:
    results: list[Any] = [response(metadata={name: "value of it"}), response(metadata={"other": 1})]
    page = tmp_path / "page.html"
    Results(results).to_html(page, beside=Results([response(metadata={"other": 2})] * 2) if beside else None)
    shown = show_in_node(page)
    columns = [values for header, values in shown["cells"] if header == name]
    assert {text for values in columns for text in values} == {"", "value of it"}
    assert "[native code]" not in str(shown)
    assert f"{name} value of it" in " ".join(shown["row"].split())


def show_in_node(page: Path) -> dict[str, Any]:
    """The headings of a page's columns with the texts of their cells, and the text of a row."""
    script = Path(__file__).parents[2] / "data" / "page_in_node.js"
    ended = subprocess.run(
        ["node", str(script)], input=page.read_text(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    shown: dict[str, Any] = json.loads(ended.stdout)
    return shown


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2464, "2464"),
        (2000.0, "2000"),
        (0.30000000000000004, "0.3"),
        (2**53 - 1, "9007199254740991"),
        (-17, "-17"),
        (True, "true"),
    ],
)
@pytest.mark.parametrize("name", ["expected", "year", "input"])
def test_a_number_of_the_metadata_stays_as_it_is(value: float, shown: str, name: str, tmp_path: Path) -> None:
    results: list[Any] = [response(metadata={name: value}), response(metadata={name: 5})]
    Results(results).to_html(page := tmp_path / "page.html")
    assert [values for header, values in show_in_node(page)["cells"] if header == name] == [[shown, "5"]]


def asked(*prompts: str) -> list[Result]:
    """A response to each prompt."""
    return [response("4", prompt=prompt) for prompt in prompts]


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")), st.randoms(use_true_random=False))
def test_each_result_has_one_place(first: list[str], second: list[str], order: random.Random) -> None:
    pairs = list(pair_results(asked(*first), asked(*second)))
    for side, run in enumerate((first, second)):
        assert sorted(pair[side] for pair in pairs if pair[side] is not None) == list(range(len(run)))
    # The order of the inputs does not matter where each is there once.
    prompts = [f"{number}{letter}" for number, letter in enumerate(first)]
    mixed = order.sample(prompts, len(prompts))
    for left, right in pair_results(asked(*prompts), asked(*mixed)):
        assert left is not None
        assert right is not None
        assert prompts[left] == mixed[right]
