"""Files of evidence with any content: `verify` finds nothing, or ends with an `EvidenceError`."""

import copy
import hashlib
import json
import os
import stat
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fuzz.mutations import byte_changes, changed, changed_bytes, fuzzed, json_changes, nested
from llm_provider import Client, EvidenceError, Results, verify
from llm_provider._features.evidence.container import read_parts, write_json, write_parts
from llm_provider.simulator import Fault, Simulator

HOSTILE: tuple[Any, ...] = (
    nested(200), nested(300), 10**400, -(10**18), 2**63, float("nan"), float("inf"), 1e308, "\ud800",
    "../../etc/passwd",
    "x" * 100_000, "(a+)+$", {"$ref": "#"}, {"type": "json_schema", "json_schema": {"schema": {"$ref": "#"}}},
    {"type": "json_schema", "json_schema": {"schema": {"pattern": "(a|aa)+$"}}}, "litellm", [""] * 1000,
)  # fmt: skip
MOST_MEMORY = 64 << 20
"""Bytes that a check may hold at once. The largest file here has 0.3 MB."""
places = st.lists(st.tuples(st.integers(0, 4095), st.integers(0, len(HOSTILE) - 1)), max_size=2)

Files = dict[str, list[Any]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Files]]:
    """A file of all kinds of rows, and its parts as JSON."""
    folder = tmp_path_factory.mktemp("evidence")
    with Simulator() as simulator, pytest.MonkeyPatch.context() as patch:
        for name, value in simulator.environment("openai", "together_ai").items():
            patch.setenv(name, value)
        simulator.inject(Fault(status=400), match="fails", times=None)
        form = {"type": "object", "properties": {"a": {"type": "integer"}}}
        with Client(cache_dir=folder / "cache") as client:
            results: Results[Any] = Results(
                client.call_many("gpt-6.1-sol", ["a", "fails"], n=2, max_tokens=9)
            )
            results += client.call_many("gpt-6.1-sol", ["b"], response_format=form)
            results += client.score_many(
                "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo", ["2+2="], [[" 4"]]
            )
            results.export(folder / "a.zip", client=client, scores=[1, None, 0.5, 1], evaluation="sums")
    with (folder / "a.zip").open("rb") as file:
        parts = read_parts(file)
        yield folder, {name: list(part.read_lines(file)) for name, part in parts.items()}


def check(path: Path) -> bool:
    """Whether a file is refused; any other error fails the test."""
    tracemalloc.start()
    try:
        verify(path)
    except EvidenceError as error:
        return len(str(error)) < 2000
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < MOST_MEMORY
    return False


def place(value: Any, where: int, hostile: Any) -> Any:
    """JSON with one value replaced."""
    holders = [([value], 0)]
    for holder, key in holders:
        inside = holder[key]
        if isinstance(inside, (dict, list)):
            holders += [
                (inside, name) for name in (inside if isinstance(inside, dict) else range(len(inside)))
            ]
    holder, key = holders[where % len(holders)]
    holder[key] = hostile
    return holders[0][0][0]


@fuzzed
@given(
    st.sampled_from(["rows.jsonl", "prices.jsonl", "manifest.json", "row 1", "row 3"]), json_changes, places
)
@example("manifest.json", [], [(0, 0)])
def test_values_of_any_kind_whose_digests_are_right(
    files: tuple[Path, Files], name: str, changes: list[tuple[str, int, int]], hostile: list[tuple[int, int]]
) -> None:
    folder, texts = files
    name, _, number = name.partition(" ")
    part, index = ("rows.jsonl", int(number)) if number else (name, 0)
    parts = {key: list(lines) for key, lines in texts.items()}
    value = (
        changed([json.loads(parts[part][index])], changes) if changes else [json.loads(parts[part][index])]
    )
    for where, which in hostile:
        value = place(value, where, copy.deepcopy(HOSTILE[which]))
    parts[part][index : index + 1] = list(map(write, value if isinstance(value, list) else [value]))
    data = {key: b"".join(line + b"\n" for line in lines) for key, lines in parts.items()}
    if part != "manifest.json":
        manifest = json.loads(parts["manifest.json"][0])
        described = {"bytes": len(data[part]), "sha256": hashlib.sha256(data[part]).hexdigest()}
        manifest["parts"][part] = described
        data["manifest.json"] = write_json(manifest) + b"\n"
    write_parts(folder / "b.zip", [(key, [text]) for key, text in data.items()], [])
    check(folder / "b.zip")


def write(value: Any) -> bytes:
    try:
        return write_json(value)
    except RecursionError:
        return b"[" * 100_000 + b"]" * 100_000


@fuzzed
@given(byte_changes, st.sampled_from(["", "utf-16", "utf-8-sig", "latin-1"]), st.booleans())
def test_bytes_of_any_kind(
    files: tuple[Path, Files], changes: list[tuple[str, int, int]], encoding: str, beside: bool
) -> None:
    folder, _ = files
    whole = (folder / "a.zip").read_bytes()
    statement = (folder / "a.zip.intoto.json").read_bytes()
    target, path = (statement if beside else whole), folder / "c.zip"
    data = changed_bytes(target, changes)
    if encoding:
        data = data.decode("latin-1").encode(encoding)
    path.write_bytes(whole if beside else data)
    other = folder / "c.zip.intoto.json"
    other.write_bytes(data if beside else statement.replace(b'"a.zip"', b'"c.zip"'))
    assert check(path) or data == whole or beside


def test_zips_with_bombs_links_and_names_that_lead_out(files: tuple[Path, Files], tmp_path: Path) -> None:
    folder, texts = files
    link = zipfile.ZipInfo("rows.jsonl")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    members: list[list[tuple[Any, bytes, int]]] = [
        [("rows.jsonl", b"0" * (100 << 20), zipfile.ZIP_DEFLATED)],
        [("rows.jsonl", b"[" * (10 << 20), zipfile.ZIP_LZMA)],
        [("../rows.jsonl", b"{}\n", 0), ("/etc/passwd", b"", 0), ("manifest.json", b"{}\n", 0)],
        [(link, b"/etc/passwd", 0)],
        [(name, b"\n".join(lines), 0) for name, lines in texts.items()],
        [(f"{number}.json", b"", 0) for number in range(5000)],
    ]
    for number, each in enumerate(members):
        path = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data, method in each:
                archive.writestr(name, data, method)
        assert check(path), each
    for name, data in {
        "a": b"", "b": b"PK", "c": b"PK\3\4" * 100_000, "d": b"\0" * 10**6, "e": "{}".encode("utf-16"),
        "f": b"[" * 10**6,
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(data)
        assert check(tmp_path / name), name
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "link").symlink_to(folder / "a.zip")
    assert not check(tmp_path / "link")
    for path in (tmp_path, tmp_path / "loop", tmp_path / "absent", Path(os.devnull)):
        with pytest.raises((OSError, EvidenceError)):
            verify(path)


def test_numbers_of_scores_that_no_float_holds(files: tuple[Path, Files], tmp_path: Path) -> None:
    """A line without values has any length; what it holds is bounded before it is read."""
    path = tmp_path / "a.zip"
    for line in (b"9" * 10**6, b"1e999999999", b'"' + b"\\ud800" * 10**5 + b'"', b"[" * 10**6 + b"]" * 10**6):
        row = b'{"index":0,"not_computed":{},"requests":[],"result":{},"score":' + line + b"}\n"
        parts = {"rows.jsonl": row, "prices.jsonl": b""}
        described = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in parts.items()
        }
        manifest = {"format": "llm_provider evidence", "version": 1, "parts": described, "figures": {}}
        parts["manifest.json"] = write_json(manifest) + b"\n"
        write_parts(path, [(name, [data]) for name, data in parts.items()], [])
        assert check(path)
