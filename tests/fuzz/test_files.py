"""Files of this library with any content: a typed error, or what is whole of them, and always an end."""

import contextlib
import copy
import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuzz.mutations import byte_changes, changed, changed_bytes, fuzzed, json_changes
from fuzz.test_evidence import HOSTILE, place, places
from llm_provider import Client, LLMError, Results
from llm_provider._features.cli.answer_files import read_answers
from llm_provider._features.recheck.comparisons import BorderPrompts, read_history
from llm_provider._features.recheck.report import Recheck
from llm_provider.simulator import Simulator
from support import response

damages = st.one_of(
    byte_changes.map(lambda changes: ("bytes", changes)),
    st.tuples(st.just("line"), st.integers(0, 99), json_changes, places),
    st.tuples(st.sampled_from(["end", "end and NULs", "NULs"]), st.integers(0, 4095)),
)


def damaged(text: bytes, damage: Any) -> bytes:
    """A file of JSON lines, of which bytes, a line or the end are others."""
    kind, how, *more = damage
    if kind == "bytes":
        return changed_bytes(text, how)
    if kind != "line":
        rest = text[: 0 if kind == "NULs" else how % len(text)]
        return rest + b"\0" * (0 if kind == "end" else 5000)
    lines, (changes, hostile) = text.splitlines(), more
    value = changed([json.loads(lines[how % len(lines)])], changes)
    for where, which in hostile:
        value = place(value, where, copy.deepcopy(HOSTILE[which]))
    written = value if isinstance(value, list) else [value]
    lines[how % len(lines)] = b"\n".join(json.dumps(each, separators=(",", ":")).encode() for each in written)
    return b"\n".join(lines) + b"\n"


def read(reader: Callable[[], object]) -> bool:
    """Whether a reader takes a file; any other error than ours fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            reader()
        except LLMError as error:
            return len(str(error)) > 2000
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


# --- lists of hosts -------------------------------------------------------------------------------------
HOST = {
    "urls": '"http://127.0.0.1:8000/v1"', "dialect": '"vllm"', "accepts": '["top_k"]', "lacks": '["seed"]',
    "limits": "{m = {context_window = 9}}", "prices": "{m = {input = 0.1, output = 1}}",
    "embeddings": "{texts = 9}", "key_variable": '"PATH"', "tokenizer": '"o200k_base"',
}  # fmt: skip
VALUES = (
    *HOST.values(), "1e400", "inf", "nan", "-1", "0", "9" * 5000, '""', '"\\u0000"', '"../../x"', "true",
    "[]", "[[]]", "{}", "1979-05-27", "12:00:00", "[" * 5000, "[" * 300 + "]" * 300, "[{}]", "[nan]",
    f'"{"x" * 5000}"', '{"*" = [1]}', "{m = {input = inf}}", "{m = {context_window = 1e300}}",
    '["http://127.0.0.1:1/v1", "b"]',
)  # fmt: skip


@fuzzed
@example({"limits": "9" * 5000}, [], b"")
@given(
    st.dictionaries(st.sampled_from(list(HOST)), st.sampled_from(VALUES), max_size=2),
    byte_changes,
    st.sampled_from([b"", b"\0" * 5000, b"[" * 5000]),
)
def test_a_list_of_hosts(folder: Path, values: dict[str, str], changes: Any, end: bytes) -> None:
    fields = "".join(f"{name} = {value}\n" for name, value in {**HOST, **values}.items())
    path = folder / "hosts.toml"
    path.write_bytes(changed_bytes(f"[lab]\n{fields}".encode(), changes) + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM_PROVIDER_HOSTS", str(path))
        read(lambda: Client(cache="off").estimate("lab/m", ["Hi"]))


# --- histories of rechecks ------------------------------------------------------------------------------
PLAN = Recheck(model="m", kind="border", draw=0, time=1_800_000_000.0)
BORDER = {str(number): ["a", "b"] * 2 for number in range(2)}
RECHECKED = {"target": "t", **PLAN.to_dict(), "after": {"model": ["m"]}, "time": 1_700_000_000.0}
HISTORY = b"".join(
    json.dumps({**RECHECKED, **more}).encode() + b"\n"
    for more in ({"border": BORDER}, {"off": True}, {"off": False})
)


@fuzzed
@given(damages)
def test_a_history_of_rechecks(folder: Path, damage: Any) -> None:
    path = folder / "history.jsonl"
    path.write_bytes(damaged(HISTORY, damage))

    def recheck() -> None:
        test = BorderPrompts(path, "t", 0.0001)
        if next((line["border"] for line in read_history(path, "t") if "border" in line), {}):
            str(test.ask(PLAN, lambda prompts, draw: Results([response() for _ in prompts])))

    read(recheck)


# --- files of answers -----------------------------------------------------------------------------------
ANSWERS = b"".join(json.dumps(response(text).to_dict()).encode() + b"\n" for text in ("4", "5", "6"))


@fuzzed
@given(damages)
def test_a_file_of_answers(folder: Path, damage: Any) -> None:
    path = folder / "answers.jsonl"
    path.write_bytes(damaged(ANSWERS, damage))
    read(lambda: Results(read_answers(path)).to_html(folder / "page.html"))
    read(lambda: repr(Results.from_jsonl(path)))


# --- journals of batches --------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache directory of a client that has submitted a batch, which has ended since."""
    folder = tmp_path_factory.mktemp("batches")
    with Simulator() as simulator, pytest.MonkeyPatch.context() as patch:
        for name, value in simulator.environment("openai").items():
            patch.setenv(name, value)
        with Client(cache_dir=folder / "cache") as client:
            client.submit_many("gpt-5.5", ["1+1?", "2+2?", "3+3?"], n=2, metadata=[{"a": 1}, 2, None])
        yield folder / "cache"


@settings(fuzzed, max_examples=20)
@given(damages)
def test_a_journal_of_a_batch(submitted: Path, folder: Path, damage: Any) -> None:
    copied = folder / "cache"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(submitted, copied)
    (path,) = (copied / "batches").glob("*.jsonl")
    path.write_bytes(damaged(path.read_bytes(), damage))
    with Client(cache_dir=copied, timeout=1, max_retries=0) as client:

        def collect() -> None:
            for batch in client.batches():
                str(batch), batch._repr_html_(), batch.counts
                with contextlib.suppress(TimeoutError):
                    batch.wait(0.5)
                    batch.results()

        read(collect)


def test_a_damaged_row_of_a_journal_loses_itself_alone(submitted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(submitted, folder)
    (path,) = (folder / "batches").glob("*.jsonl")
    lines = path.read_bytes().splitlines()
    (first, *_) = (number for number, line in enumerate(lines) if line.startswith(b'{"row"'))
    lines[first] = lines[first].replace(b'"parts":[0,1]', b'"parts":[null]')
    path.write_bytes(b"\n".join(lines) + b"\n")
    with Client(cache_dir=folder) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (batch,) = client.batches()
        results = batch.results()
    assert [isinstance(result, LLMError) for result in results] == [True, False, False]
