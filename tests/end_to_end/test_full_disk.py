"""A disk that is really full: every file that is written names itself, what is safe, and the remedy."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from llm_provider.simulator import Simulator

ALONE = ("unshare", "--user", "--map-root-user", "--mount")
"""Runs a program that may mount file systems, which only it sees."""

PROGRAM = """
import os, sys, warnings
from pathlib import Path
from llm_provider import Client
from llm_provider._features.cli.main import main

warnings.simplefilter("always")
disk, model = Path.cwd(), "gpt-6.1-sol"

def fill(but=0):
    with (disk / "filler").open("wb", 0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - but))

os.environ |= {"LLM_PROVIDER_LOGS": str(disk / "logs.db"), "LLM_PROVIDER_CACHE_DIR": str(disk / "cache")}
main(["ask", model, "1+1?"])
Path("in.txt").write_text("1+1?\\n2+2?\\n3+3?\\n")
main(["map", model, "in.txt", "out.jsonl"])
lines = Path("out.jsonl").read_bytes()
Path("out.jsonl").write_bytes(b"".join(reversed(lines.splitlines(keepends=True))))
fill()
main(["ask", model, "x" * 100_000])
main(["map", model, "in.txt", "out.jsonl"])
assert sorted(Path("out.jsonl").read_bytes().splitlines()) == sorted(lines.splitlines())
with Client(ledger="costs.jsonl") as client:
    answers = client.call_many(model, ["1+1?"])
    try:
        answers.to_jsonl("results.jsonl")
    except OSError as error:
        print(error, file=sys.stderr)
assert sorted(path.name for path in disk.iterdir() if path.stat().st_size == 0) == ["costs.jsonl"]
"""


@pytest.mark.long
def test_each_file_names_itself_what_is_safe_and_the_remedy(simulator: Simulator, tmp_path: Path) -> None:
    if (
        sys.platform != "linux"
        or subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this system mounts nothing for its users")
    mounted = f'mount -t tmpfs -o size=2m none {tmp_path} && cd {tmp_path} && exec "$@"'
    ended = subprocess.run(
        [*ALONE, "sh", "-c", mounted, "sh", sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    warnings = re.findall(r"the disk of (\S+) is full \(.+?\): (.*); free space on this disk", ended.stderr)
    assert list(dict.fromkeys((Path(path).name, safe) for path, safe in warnings)) == [
        ("cache", "stored answers are safe"),
        ("logs.db", "earlier answers are safe"),
        ("out.jsonl", "3 of 3 rows are answered in out.jsonl; the same command asks the rest"),
        ("costs.jsonl", "its earlier lines are safe"),
        ("results.jsonl", "the results are in memory, and an earlier file is as it was"),
    ], ended.stderr
