"""Rehearses a release on an index of this machine, from the build to the upgrade: `make release-rehearsal`.

    python -m tools.release_rehearsal                         # in an empty environment
    python -m tools.release_rehearsal --chroot FOLDER --python /usr/bin/python3.14

The old version is the last commit. The new one differs in its number alone. Each step is a row of a table. The
first one that fails ends the program with status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

from tools.local_index import USER, serve_index
from tools.release import DISTRIBUTIONS, PROGRAMS, ROOT, ReleaseError, build_tree, read_project, unpack_commit
from tools.release_pins import REQUIREMENTS, write_pins

NAME, WIDTH = "llm-provider-call", 40
MACHINE = ("PIP_", "SSL_CERT", "REQUESTS_CA", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
"""The beginnings of the variables by which pip reaches the machine's own index."""
PROGRAM = """
import json, sys
from importlib.metadata import version
from llm_provider import batches, call_many, submit_many
model, is_new = "gpt-6.1-sol", sys.argv[1] == "new"
questions = [f"What is {number}+{number}?" for number in range(20)]
answers = call_many(model, questions, max_tokens=60, cache="only" if is_new else "use")
found = [each.status for each in batches()]
batch = submit_many(model, [f"What is {number}+7?" for number in range(12)], max_tokens=60)
texts, rows = answers.texts, batch.results().texts if is_new else []
told = {"version": version("llm-provider-call"), "texts": texts, "cost": answers.cost, "found": found}
print(json.dumps(told | {"status": batch.status, "rows": rows}))
"""
"""What each version runs in the same folder: 20 answers, and a batch of 12 rows that only the new one waits for."""


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
        sys.exit(f"{'the next step':{WIDTH}}  failed\n\n{error}")


def next_version(version: str) -> str:
    """The next correction of a version.

    >>> next_version("0.1.9")
    '0.1.10'
    """
    start, _, last = version.rpartition(".")
    return f"{start}.{int(last) + 1}"


def build_version(folder: Path, version: str) -> list[Path]:
    """Build the last commit with another version, and its constraints beside it. Returns the distributions."""
    folder.mkdir()
    unpack_commit(folder / "tree")
    for name in ("pyproject.toml", "src/llm_provider/__init__.py"):
        path = folder / "tree" / name
        text = re.sub(r'^((?:__)?version(?:__)? = )"[^"]*"', rf'\1"{version}"', path.read_text(), flags=re.M)
        path.write_text(text)
    build_tree(folder / "tree", folder / DISTRIBUTIONS, "--wheel", "--sdist")
    write_pins(folder, version)
    return sorted((folder / DISTRIBUTIONS).iterdir())


def run(command: list[Any], *, refusal: str = "", **variables: str) -> str:
    """What a command prints. With `refusal` it must fail, and print this too.

    Raises:
        ReleaseError: it ended otherwise.
    """
    words = list(map(str, command))
    environment = {**os.environ, **variables}
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    output = done.stdout + done.stderr
    if bool(done.returncode) != bool(refusal) or refusal not in output:
        raise ReleaseError(f"{' '.join(words[-8:])} ended with {done.returncode}:\n{output}")
    return output


def expect(is_so: bool, problem: str) -> None:
    """Raise a `ReleaseError` unless something is so."""
    if not is_so:
        raise ReleaseError(problem)


class Place:
    """An empty environment: a home of its own and no variable of this process, in a chroot if there is one."""

    def __init__(self, folder: Path, python: str, root: Path | None) -> None:
        self.folder, self.root, self.variables = folder, root, dict[str, str]()
        self.run(python, "-m", "venv", "environment")

    def inside(self, path: Path) -> Path:
        """The path as programs in the chroot see it."""
        return path if self.root is None else Path("/", path.relative_to(self.root))

    def run(self, *command: Any, refusal: str = "", **variables: str) -> str:
        """Like the function `run`, in this place."""
        home = self.inside(self.folder)
        given = {"HOME": home, "PATH": f"{home}/environment/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
        words = [f"{name}={value}" for name, value in {**given, **self.variables, **variables}.items()]
        enter = [] if self.root is None else ["chroot", self.root]
        return run([*enter, "env", "-i", f"--chdir={home}", *words, *command], refusal=refusal)


def upload(address: str, password: str, paths: list[Path], refusal: str = "") -> None:
    """Publish files with twine, as the workflow does."""
    command = [PROGRAMS / "twine", "upload", "--non-interactive", "--disable-progress-bar", *paths]
    index = {"TWINE_REPOSITORY_URL": f"http://{address}/", "TWINE_USERNAME": USER, "TWINE_PASSWORD": password}
    run(command, refusal=refusal, **index)


def rehearse(python: str, root: Path | None) -> Iterator[tuple[str, str]]:
    """Yield each step that went well, with what it showed.

    Raises:
        ReleaseError: a step went otherwise.
    """
    from llm_provider.simulator import Simulator

    old = read_project()["version"]
    new = next_version(old)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root)))
        built = {version: build_version(work / version, version) for version in (old, new)}
        yield "build two versions", f"{old} and {new}, a wheel and an sdist each"

        packages, yanked, password = work / "packages", dict[str, str](), secrets.token_urlsafe()
        place = Place(work, python, root)
        machine = {name: value for name, value in os.environ.items() if name.upper().startswith(MACHINE)}
        pinned = {version: ["--require-hashes", "-r", place.inside(work / version / REQUIREMENTS)] for version in built}
        fetch = ["pip", "download", "--only-binary", ":all:", "-d", place.inside(packages)]
        place.run(*fetch, *pinned[old], f"--find-links={place.inside(work / old / DISTRIBUTIONS)}", **machine)
        for path in packages.glob("llm_provider_call-*"):
            path.unlink()
        yield "fetch what it needs, each file by its hash", f"{len(list(packages.iterdir()))} wheels"

        address = stack.enter_context(serve_index(packages, password, yanked))
        upload(address, "wrong", built[old], refusal="403")
        yield "publish with a wrong password", "refused: 403"
        upload(address, password, built[old])
        yield "publish", f"{len(built[old])} files of {old}"
        upload(address, password, built[old], refusal="400")
        yield "publish the same version again", "refused: 400"

        place.variables = {"PIP_INDEX_URL": f"http://{USER}:{password}@{address}/simple/", "PIP_NO_CACHE_DIR": "1"}
        place.run("pip", "install", NAME)
        yield "install by name", place.run("pip", "check").strip()

        simulator = stack.enter_context(Simulator(prices="shipped", batch_clock=0.001))
        ledger = work / "calls.jsonl"
        place.variables |= {**simulator.environment(), "LLM_PROVIDER_LEDGER": str(place.inside(ledger))}
        example = (ROOT / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
        shown = place.run("python", "-I", "-W", "error", "-c", example)
        expect(re.match(r"4\n[\d.e-]+ USD for \d+ tokens\n0\.0\n", shown) is not None, shown)
        yield "run README's first lines", "; ".join(shown.splitlines())
        before = json.loads(place.run("python", "-W", "error", "-c", PROGRAM, "old"))
        expect(before["version"] == old and len(before["texts"]) == 20 and before["cost"] > 0, str(before))
        written, sent = ledger.read_bytes(), simulator.ledger().requests
        yield f"fill cache, ledger and a batch with {old}", f"{len(before['texts'])} answers, the batch is {before['status']}"

        yanked |= dict.fromkeys((path.name for path in built[old]), "a rehearsal")
        look = ["pip", "download", "--no-deps", "-d", "seen"]
        place.run(*look, NAME, refusal="No matching distribution found")
        expect("yanked" in place.run(*look, f"{NAME}=={old}"), "pip does not warn of a yanked version")
        yield f"yank {old}", "not found by name; its exact version is, with a warning"

        upload(address, password, built[new])
        wrong = work / "wrong.txt"
        wrong.write_text(re.sub(rf"(?s)({NAME}==.*)", lambda found: re.sub("sha256:.{4}", "sha256:0000", found[1]), (work / new / REQUIREMENTS).read_text()))
        place.run("pip", "install", "--require-hashes", "-r", place.inside(wrong), refusal="DO NOT MATCH THE HASHES")
        expect(f"Version: {old}" in place.run("pip", "show", NAME), f"{old} is no longer installed")
        yield "install with a wrong hash", f"refused; {old} stays"
        place.run("pip", "install", *pinned[new])
        yield f"upgrade to {new} by hash", place.run("pip", "check").strip()

        simulator.configure(batch_clock=1e9)
        after, again = (json.loads(place.run("python", "-W", "error", "-c", PROGRAM, "new")) for _ in range(2))
        expect((after["version"], after["texts"], after["cost"]) == (new, before["texts"], 0), str(after))
        yield "find the answers again", f"{len(after['texts'])} of {len(before['texts'])}, 0 USD"
        submitted = [each for each in simulator.requests("openai") if each.path.endswith("/batches") and each.method == "POST"]
        expect(after["found"] == [before["status"]] and len(after["rows"]) == 12 == len(set(after["rows"])), str(after))
        expect(after["rows"] == again["rows"] and len(submitted) == 1, f"{again}, {len(submitted)} batches")
        yield "collect the open batch", f"{len(after['rows'])} rows, {len(submitted)} batch was submitted"
        lines = [json.loads(line) for line in ledger.read_bytes().splitlines()]
        paid = sum(Decimal(line["usd"]) for line in lines if line["outcome"] == "answered")
        billed = sum(model.billed or 0 for model in simulator.ledger().models)
        expect(ledger.read_bytes().startswith(written) and paid == billed, f"the ledger has {paid} USD, the bill {billed}")
        yield "continue the ledger", f"{len(written.splitlines())} and {len(lines) - len(written.splitlines())} lines, {paid} USD as billed"


if __name__ == "__main__":
    main()
