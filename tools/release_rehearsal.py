"""Rehearses a release on an index of this machine, from the build to the upgrade: `make release-rehearsal`.

    python -m tools.release_rehearsal                         # in an empty environment
    python -m tools.release_rehearsal --chroot FOLDER --python /usr/bin/python3.14

The old version is the last commit. The new one differs in its number alone. Each step is a row of a table.
The first one that fails ends the program with status 1.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

from tools.empty_place import Place, expect
from tools.local_index import USER, serve_index, upload
from tools.release import DISTRIBUTIONS, ROOT, ReleaseError, build_version, read_project
from tools.release_pins import REQUIREMENTS, write_pins

NAME, WIDTH = "llm-provider-call", 28
PROGRAM = Path(__file__).with_name("rehearsed_program.py")


def main() -> None:
    """Read the command line, rehearse, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.release_rehearsal", description=__doc__)
    parser.add_argument("--chroot", type=Path, help="the root of a system, such as the one of `tools.chroot`")
    parser.add_argument("--python", default=getattr(sys, "_base_executable", sys.executable))
    arguments = parser.parse_args()
    print(f"{'step':{WIDTH}}  result  detail", flush=True)
    try:
        for step, detail in rehearse(arguments.python, arguments.chroot):
            print(f"{step:{WIDTH}}  ok      {detail}", flush=True)
    except ReleaseError as error:
        step, _, problem = str(error).partition(": ")
        sys.exit(f"{step:{WIDTH}}  failed\n\n{problem}")


class Rehearsal:
    """The steps in their order. Each returns what it showed, or raises a `ReleaseError`."""

    def __init__(self, work: Path, place: Place, stack: ExitStack) -> None:
        self.work, self.place, self.stack = work, place, stack
        self.old = read_project()["version"]
        start, _, last = self.old.rpartition(".")
        self.new = f"{start}.{int(last) + 1}"
        self.packages, self.yanked, self.password = (
            work / "packages",
            dict[str, str](),
            secrets.token_urlsafe(),
        )
        self.ledger = work / "calls.jsonl"

    def _pin(self, version: str) -> list[Any]:
        """The options that install a version by the digests of its release."""
        return ["--require-hashes", "-r", self.place.inside(self.work / version / REQUIREMENTS)]

    def _use(self, version: str) -> dict[str, Any]:
        """What the program tells in the version that is installed."""
        told: dict[str, Any] = json.loads(
            self.place.run("python", "-W", "error", "-c", PROGRAM.read_text(), version)
        )
        return told

    def build_two_versions(self) -> str:
        """Build two versions."""
        self.built = {}
        for version in (self.old, self.new):
            self.built[version] = build_version(self.work / version, version)
            write_pins(self.work / version, version)
        return f"{self.old} and {self.new}, a wheel and an sdist each"

    def fetch_the_rest_by_hash(self) -> str:
        """Fetch the rest by hash."""
        own = self.place.inside(self.work / self.old / DISTRIBUTIONS)
        self.place.download(self.packages, f"--find-links={own}", *self._pin(self.old))
        for path in self.packages.glob("llm_provider_call-*"):
            path.unlink()
        return f"{len(list(self.packages.iterdir()))} wheels"

    def publish(self) -> str:
        """Publish."""
        self.address = self.stack.enter_context(serve_index(self.packages, self.password, self.yanked))
        upload(self.address, "wrong", self.built[self.old], refusal="403")
        upload(self.address, self.password, self.built[self.old])
        upload(self.address, self.password, self.built[self.old], refusal="400")
        return "with a password. Refused: a wrong password, and the same files again"

    def install_by_name(self) -> str:
        """Install by name."""
        index = f"http://{USER}:{self.password}@{self.address}/simple/"
        self.place.variables = {"PIP_INDEX_URL": index, "PIP_NO_CACHE_DIR": "1"}
        self.place.run("pip", "install", NAME)
        return self.place.run("pip", "check").strip()

    def run_the_first_example(self) -> str:
        """Run README's first example."""
        from llm_provider.simulator import Simulator

        self.simulator = self.stack.enter_context(
            Simulator(prices="shipped", batch_clock=120)
        )  # half a minute
        self.place.variables |= self.simulator.environment()
        self.place.variables["LLM_PROVIDER_LEDGER"] = str(self.place.inside(self.ledger))
        example = (ROOT / "README.md").read_text(encoding="utf-8").partition("```python\n")[2]
        shown = self.place.run("python", "-I", "-W", "error", "-c", example.partition("```")[0])
        expect(re.fullmatch(r"4\n[\d.e-]+ USD for \d+ tokens\n0\.0\n", shown) is not None, shown)
        return "; ".join(shown.splitlines())

    def fill_cache_ledger_and_batch(self) -> str:
        """Fill cache, ledger and batch."""
        self.before = self._use("old")
        expect(self.before["version"] == self.old and self.before["cost"] > 0, str(self.before))
        self.written = self.ledger.read_bytes()
        return f"{len(self.before['texts'])} answers, a batch that is {self.before['status']}"

    def yank_the_old_version(self) -> str:
        """Yank the old version."""
        self.yanked |= dict.fromkeys((path.name for path in self.built[self.old]), "a rehearsal")
        look = ["pip", "download", "--no-deps", "-d", "seen"]
        self.place.run(*look, NAME, refusal="No matching distribution found")
        told = self.place.run(*look, f"{NAME}=={self.old}")
        expect("Reason for being yanked: a rehearsal" in told, told)
        return "not found by name; its exact version is, with a warning"

    def refuse_a_wrong_hash(self) -> str:
        """Refuse a wrong hash."""
        upload(self.address, self.password, self.built[self.new])
        pins, own, last = (self.work / self.new / REQUIREMENTS).read_text(encoding="utf-8").partition(NAME)
        wrong = re.sub("sha256:....", "sha256:0000", last)
        (self.work / "wrong.txt").write_text(pins + own + wrong, encoding="utf-8")
        line = ["pip", "install", "--require-hashes", "-r", "wrong.txt"]
        self.place.run(*line, refusal="DO NOT MATCH THE HASHES")
        expect(f"Version: {self.old}\n" in self.place.run("pip", "show", NAME), "the old version is gone")
        return f"{self.old} stays"

    def upgrade_by_hash(self) -> str:
        """Upgrade by hash."""
        self.place.run("pip", "install", *self._pin(self.new))
        return f"{self.new}. {self.place.run('pip', 'check').strip()}"

    def find_the_answers(self) -> str:
        """Find the answers."""
        self.after, again = self._use("new"), self._use("new")
        found = (self.after["version"], self.after["texts"], self.after["cost"])
        expect(found == (self.new, self.before["texts"], 0), str(self.after))
        expect(again["rows"] == self.after["rows"], str(again))
        return f"{len(self.after['texts'])}, for 0 USD"

    def collect_the_open_batch(self) -> str:
        """Collect the open batch."""
        bodies = [each.body for each in self.simulator.requests("openai") if each.path.endswith("/batches")]
        submitted = sum("input_file_id" in (body or {}) for body in bodies)
        rows = set(self.after["rows"])
        (found,) = self.after["found"]  # asked of the provider, before the rows were read
        expect(found in ("in_progress", "ended") and (len(rows), submitted) == (12, 1), str(self.after))
        return f"{len(rows)} rows; submitted once in both versions"

    def continue_the_ledger(self) -> str:
        """Continue the ledger."""
        lines = [json.loads(line) for line in self.ledger.read_bytes().splitlines()]
        paid = sum(Decimal(line["usd"]) for line in lines if line["outcome"] == "answered")
        billed = sum(model.billed or 0 for model in self.simulator.ledger().models)
        expect(self.ledger.read_bytes().startswith(self.written), "the lines of the old version have changed")
        expect(paid == billed, f"the ledger has {paid} USD, and the bill {billed} USD")
        return f"{len(self.written.splitlines())} lines became {len(lines)}; {paid} USD, as billed"


STEPS = [step for name, step in vars(Rehearsal).items() if not name.startswith("_")]


def rehearse(python: str, root: Path | None = None) -> Iterator[tuple[str, str]]:
    """Take each step, and yield what it showed.

    Raises:
        ReleaseError: a step went otherwise; the message begins with its name.
    """
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root)))
        rehearsal = Rehearsal(work, Place(work, python, root), stack)
        for step in STEPS:
            name = step.__doc__.rstrip(".")
            try:
                yield name, step(rehearsal)
            except ReleaseError as error:
                raise ReleaseError(f"{name}: {error}") from error


if __name__ == "__main__":
    main()
