import json
import os
import warnings
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import Client, Ledger, LedgerWarning, RequestError, Usage
from llm_provider._core.money.ledger_file import LedgerFile, read_postings
from llm_provider._core.money.totals import Key, Posting
from llm_provider.simulator import Fault, Simulator
from support import RunScript

EVENTS = [
    Posting(
        1.5, "answered", Key("openai", "gpt-5.5", "gpt-5.5-2026-10-21", "a/b"), Decimal("1E-20"), Usage()
    ),
    Posting(2.0, "hit", Key("gemini", "g", "g", ""), Decimal("12.50"), Usage(input_tokens=3, web_searches=1)),
    Posting(3.25, "failed", Key("groq", "ü\n", "x", "="), None, None, Decimal("0.25")),
    Posting(4.0, "answered", Key("xai", "m", "m", ""), None),
]


def append(path: Path, *events: Posting, **others: object) -> Path:
    """Write postings to a ledger's file."""
    file = LedgerFile(path)
    for event in events:
        file.append(event, **others)
    file.close()
    return path


def test_postings_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = append(tmp_path / "calls.jsonl", *EVENTS, id="an id", error=None)
    assert list(read_postings(path)) == EVENTS
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["usd"] for line in lines] == ["0.00000000000000000001", "12.50", None, None]
    assert "error" not in json.loads(lines[0])


def test_a_file_is_closed_and_opened_again(tmp_path: Path) -> None:
    file = LedgerFile(tmp_path / "calls.jsonl")
    for number in (1, 2):
        file.append(EVENTS[0])
        assert file._file._descriptor is not None
        file.close()
        assert file._file._descriptor is None
        assert list(read_postings(file.path)) == EVENTS[:1] * number


def test_a_client_appends_what_its_calls_cost(simulator: Simulator, tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    for _ in range(2):
        with Client(ledger=file) as client:
            simulator.inject(Fault(finish="no_choices"), match="again")
            client.call_many("gpt-5.5", ["one", "two", "again"], progress=False)
            client.call("claude-haiku-5-5", "secret words", system="more secrets", api_key="sk-secret")
            # Before the call returned, not when the client closes.
            read = Ledger.read(file)
    assert (read.requests, read.hits, read.failed, read.unknown) == (4, 4, 1, 0)
    assert (read.wasted > 0, read.saved) == (True, read.spent)
    assert simulator.ledger().requests == 5
    text = file.read_text()
    assert "secret" not in text
    assert [json.loads(line)["outcome"] for line in text.splitlines()].count("hit") == 4


@pytest.mark.parametrize("left", [1, 8, 40])
def test_a_line_behind_the_beginning_of_another_is_read(tmp_path: Path, left: int) -> None:
    """A process that is killed while it writes leaves the beginning of a line."""
    path = append(tmp_path / "calls.jsonl", EVENTS[0], metadata={"time": 1})
    whole = path.read_bytes()
    path.write_bytes(whole[:left] + whole)
    assert list(read_postings(path)) == [EVENTS[0]]


def test_a_name_that_json_cannot_hold_is_read_again(tmp_path: Path) -> None:
    odd = EVENTS[0]._replace(key=EVENTS[0].key._replace(tag="half a pair: \ud83d"))
    assert list(read_postings(append(tmp_path / "calls.jsonl", odd))) == [odd]


def test_a_line_that_is_not_whole_is_left_out(tmp_path: Path) -> None:
    path = append(tmp_path / "calls.jsonl", EVENTS[0])
    whole = path.read_bytes()
    # The machine stopped in the middle of a line.
    path.write_bytes(whole + whole[:40])
    with pytest.warns(LedgerWarning, match=r"invalid lines are left out \(1, the first is line 2\)"):
        assert Ledger.read(path).requests == 1
    # The next writer begins a new line.
    append(path, EVENTS[0])
    with pytest.warns(LedgerWarning, match=r"invalid lines are left out \(1, the first is line 2\)"):
        assert Ledger.read(path).requests == 2


def test_a_file_that_cannot_be_opened_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"ledger: .*No such file or directory"):
        Client(ledger=tmp_path / "missing" / "calls.jsonl")
    with pytest.raises(RequestError, match="ledger: "):
        Client(ledger=tmp_path)
    with pytest.raises(FileNotFoundError):
        Ledger.read(tmp_path / "missing.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to try")
def test_a_full_disk_is_told_once_and_fails_no_call(simulator: Simulator, tmp_path: Path) -> None:
    full = tmp_path / "calls.jsonl"
    full.symlink_to("/dev/full")
    with Client(ledger=full, cache="off") as client:
        with pytest.warns(LedgerWarning, match=r"cannot be written, calls go on: .*No space left") as caught:
            for _ in range(3):
                assert client.call("gpt-5.5", "Hi").text
        assert len(caught) == 1
        assert client.usage.requests == 3
    with warnings.catch_warnings(action="error"), Client(ledger=full, cache="off") as client:
        assert client.call("gpt-5.5", "Hi").text


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("step", ["rename", "delete", "rename twice", "replace", "truncate"])
def test_a_file_that_is_moved_away_is_made_again(tmp_path: Path, step: str, processes: int) -> None:
    path = tmp_path / "calls.jsonl"
    writers = [LedgerFile(path) for _ in range(processes)]
    moved = [tmp_path / "calls.1", tmp_path / "calls.2"]

    def append_all() -> None:
        for writer in writers:
            writer.append(EVENTS[0])

    append_all()
    if step == "delete":
        path.unlink()
    elif step == "truncate":
        os.truncate(path, 0)
    else:
        path.rename(moved[0])
    if step == "replace":
        path.touch()
    append_all()
    if step == "rename twice":
        path.rename(moved[1])
        append_all()
    for each in [path, *(each for each in moved if each.exists())]:
        assert len(list(read_postings(each))) == processes
    for writer in writers:
        writer.close()


def test_a_folder_that_is_deleted_is_told_once(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    writer = LedgerFile(folder / "calls.jsonl")
    writer.append(EVENTS[0])
    writer.path.unlink()
    folder.rmdir()
    with pytest.warns(LedgerWarning, match=r"cannot be written, calls go on: .*No such file") as caught:
        writer.append(EVENTS[0])
        writer.append(EVENTS[0])
    assert len(caught) == 1
    folder.mkdir()
    writer.append(EVENTS[0])
    assert len(list(read_postings(writer.path))) == 1
    writer.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_writes_to_the_same_file(run_script: RunScript, tmp_path: Path) -> None:
    program = """
        import os, sys, warnings
        from decimal import Decimal
        from llm_provider._core.money.totals import Key, Posting
        from llm_provider._core.money.ledger_file import LedgerFile, read_postings
        warnings.simplefilter("ignore", DeprecationWarning)
        file = LedgerFile(os.environ["FILE"])
        with file._lock:  # as if another thread were writing at this moment
            child = os.fork()
        for _ in range(100):
            file.append(Posting(1.0, "answered", Key("a", "b", "c", ""), Decimal(1)))
        if child:
            assert os.waitpid(child, 0)[1] == 0
            assert len(list(read_postings(file.path))) == 200
        else:
            os._exit(0)
    """
    run_script(program, FILE=str(tmp_path / "calls.jsonl"))


def test_calls_that_run_while_the_program_ends_are_in_the_file(
    run_warm_script: RunScript, simulator: Simulator, tmp_path: Path
) -> None:
    path = tmp_path / "calls.jsonl"
    simulator.inject(Fault(hang=True), match="hang")
    program = """
        import os, threading, time
        from llm_provider import Client
        client = Client(ledger=os.environ["FILE"], cache="off")
        client.call("gpt-5.5", "answered")
        threading.Thread(target=client.call, args=("gpt-5.5", "hang"), daemon=True).start()
        while client.statistics()[0].in_flight == 0:
            time.sleep(0.01)
    """
    run_warm_script(program, FILE=str(path))
    read = Ledger.read(path)
    assert (read.requests, read.failed, read.unknown) == (1, 1, 1)
