"""Databases of SQLite from which nothing runs."""

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from llm_provider import Budget, Client, RequestError
from llm_provider._core.runtime.databases import forbid_code
from llm_provider._features.cli.main import main
from llm_provider.simulator import Simulator


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE VIEW facts AS SELECT 'other' AS name FROM kept",
        "CREATE TABLE facts (name); CREATE TRIGGER t AFTER INSERT ON facts BEGIN DELETE FROM kept; END",
        "CREATE TABLE facts (a); CREATE TRIGGER t BEFORE INSERT ON facts BEGIN UPDATE kept SET name=1; END",
    ],
)
def test_neither_a_view_nor_a_trigger_runs(planted: str) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(f"CREATE TABLE kept (name); INSERT INTO kept VALUES ('mine'); {planted}")
        forbid_code(database)
        with pytest.raises(sqlite3.DatabaseError):
            database.execute("INSERT INTO facts VALUES ('x')")
        if "VIEW" in planted:
            with pytest.raises(sqlite3.DatabaseError):
                database.execute("SELECT name FROM facts")
        assert database.execute("SELECT name FROM kept").fetchall() == [("mine",)]
        with pytest.raises(sqlite3.DatabaseError):
            database.execute("ATTACH ':memory:' AS other")


def test_an_interrupt_within_a_statement_is_no_damage() -> None:
    code = """
import signal, sqlite3
from llm_provider._core.runtime.databases import forbid_code, is_corrupt

def interrupt(number, frame):
    if frame.f_code.co_name == "decide":
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
database = sqlite3.connect(":memory:")
forbid_code(database)
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
number = 0
while True:
    number += 1
    try:
        database.execute(f"SELECT {number}")
    except sqlite3.DatabaseError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            print("damaged:", is_corrupt(error))
        except KeyboardInterrupt:
            print("interrupted")
        break
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_an_interrupt_at_any_question_of_a_statement_is_no_damage() -> None:
    code = """
import sqlite3
from llm_provider._core.runtime.databases import is_corrupt

STATEMENTS = (
    "SELECT name FROM kept WHERE number = 1 AND typeof(name) = 'text' ORDER BY name",
    "INSERT INTO kept VALUES (2, 'new') ON CONFLICT (number) DO UPDATE SET name = excluded.name",
)
database = sqlite3.connect(":memory:", isolation_level=None)
database.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, name)")
interrupted = complete = 0
for statement in STATEMENTS:
    for ask in range(1, 30):
        left = ask

        def decide(*_):
            global left
            left -= 1
            if not left:
                raise KeyboardInterrupt
            return sqlite3.SQLITE_OK

        database.set_authorizer(decide)
        try:
            database.execute(statement + " -- " + str(ask)).fetchall()
            complete += 1
        except sqlite3.Error as error:
            try:
                print("damaged:", is_corrupt(error), error)
            except KeyboardInterrupt:
                interrupted += 1
print(interrupted > 5, complete > 10)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True True\n", "")


def test_the_file_of_a_budget_runs_nothing(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "budget.sqlite"
    client.call("gpt-6.1-sol", "Hi", budget=Budget(10, path=file))
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.executescript("ALTER TABLE balance RENAME TO m; CREATE VIEW balance AS SELECT * FROM m")
    with pytest.raises(RequestError, match="cannot be used"):
        client.call("gpt-6.1-sol", "Hi again", budget=Budget(10, path=file))


def test_the_log_of_the_command_line_runs_nothing(
    tmp_path: Path, simulator: Simulator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["ask", "gpt-6.1-sol", "Hi"]) == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "logs.db")) as database:
        database.executescript(
            "CREATE TRIGGER planted AFTER INSERT ON asks BEGIN UPDATE asks SET answer = 'other'; END"
        )
    main(["ask", "gpt-6.1-sol", "Hi again"])
    main(["logs"])
    assert "other" not in capsys.readouterr().out
