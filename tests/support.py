"""What several test modules use."""

import ast
import asyncio
import functools
import gc
import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

import llm_provider
from llm_provider import Choice, Client, Delta, LLMError, Response, Usage
from llm_provider._core.money.pricing import find_table
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.attachments import Attachment
from llm_provider._core.requests.routing import resolve
from llm_provider._core.schemas.structure import Structure, structure_of
from llm_provider._features.uploads.uploads import UploadedFile

WAYS = ("call", "acall", "stream", "astream", "call_many", "acall_many", "iter_many", "aiter_many")
"""The methods of a client that ask a model."""


def ask(
    client: Client, way: str, model: str, prompt: Any = "Hi", deltas: list[Delta] | None = None, **more: Any
) -> Any:
    """The response to one prompt in one of the `WAYS`. The error of a call that fails is raised.

    The deltas of a stream are added to `deltas`.
    """
    method, seen = getattr(client, way), [] if deltas is None else deltas

    async def awaited() -> Any:
        if way == "acall":
            return await method(model, prompt, **more)
        if way == "astream":
            async with method(model, prompt, **more) as stream:
                seen.extend([delta async for delta in stream])
            return stream.response
        if way == "acall_many":
            return (await method(model, [prompt], **more))[0]
        results = [result async for _, result in method(model, [prompt], **more)]
        return results[0]

    if way.startswith("a"):
        result = asyncio.run(awaited())
    elif way == "call":
        result = method(model, prompt, **more)
    elif way == "stream":
        with method(model, prompt, **more) as stream:
            seen.extend(stream)
        result = stream.response
    elif way == "call_many":
        result = method(model, [prompt], **more)[0]
    else:
        [(_, result)] = method(model, [prompt], **more)
    if isinstance(result, LLMError):
        raise result
    return result


def upload(connect: Callable[..., Any], model: str, kind: str, data: bytes) -> UploadedFile:
    """What a provider's connection for files makes of a file of this kind."""

    async def work() -> UploadedFile:
        connection = connect(resolve(model), APIKey("sk-files"))
        try:
            uploaded: UploadedFile = await connection.upload(
                Attachment("large", kind, len(data), data=data), "llm_provider-1"
            )
            return uploaded
        finally:
            await connection.close()

    return asyncio.run(work())


def finish(result: Any) -> Any:
    """A result, awaited on a loop of its own if it has to be."""
    return asyncio.run(result) if inspect.isawaitable(result) else result


class RunScript(Protocol):
    """Runs a Python program in a process of its own."""

    def __call__(self, code: str, **variables: str) -> subprocess.CompletedProcess[str]: ...


class Ended(NamedTuple):
    """How a command ended: its exit code, and its text on standard output and standard error."""

    code: object
    out: str
    err: str


class RunCommand(Protocol):
    """Runs a command in this process, with some bytes as its standard input."""

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Ended: ...


class Program(Protocol):
    """Starts the program in a process of its own, without standard input; it is killed at the end."""

    def __call__(
        self, *arguments: str, stdout: int = subprocess.PIPE, **variables: str
    ) -> AbstractContextManager[subprocess.Popen[bytes]]: ...


def errors_of(process: subprocess.Popen[bytes]) -> str:
    """The standard error of a program that has ended."""
    assert process.stderr is not None
    return process.stderr.read().decode()


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether `condition()` becomes true in time, which is ample: only a failing test waits for all of it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def run_in_thread(work: Callable[[], object]) -> None:
    """Do some work in another thread, which waits for no lock of this one."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def process_ended(pid: int) -> bool:
    """Whether a process ends in time; a zombie, which nobody has waited for yet, has ended."""

    def gone() -> bool:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        return state == "Z"

    return wait_until(gone)


class TooSlowError(AssertionError):
    """The machine paused for as long as an attempt would wait, so the attempt showed nothing."""


def patiently(attempt: Callable[[float], None]) -> None:
    """Make an attempt that raises `TooSlowError` with short times, then with 5 and 25 times longer ones."""
    for longer in (1, 5):
        try:
            attempt(longer)
        except TooSlowError:
            continue
        return
    attempt(25)


def ignore(_: object) -> None:
    """Takes headers that a test does not look at."""


def needs(package: str) -> pytest.MarkDecorator:
    """Skips a test where a package is not installed."""
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed in this environment")


def response(*texts: str, **fields: Any) -> Response:
    """An answer with a sample for each text. It has 1,234 and 1 tokens, and cost 0.25 USD."""
    choices = tuple(Choice(text=text) for text in texts or ("4",))
    usage = Usage(input_tokens=1234, output_tokens=1)
    values = {"choices": choices, "usage": usage, "cost": 0.25, "model": "m", "provider": "p"}
    return Response(**(values | fields))


def describe_format(response_format: Any) -> Structure:
    """The structure that a format asks for, which is not plain text."""
    structure = structure_of(response_format)
    assert structure is not None
    return structure


@functools.cache
def parse_module(path: Path) -> ast.Module:
    """The tree of a module, made once in a process. Looking for garbage would take half of the time."""
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


def copy_package(folder: Path, additions: Iterable[tuple[str, str, str]]) -> Path:
    """A checkout with a copy of the package, in which some files have other lines. The others stay compiled.

    Each addition is a file, the line before which lines are added, and these lines.
    """
    root = folder / "extended"
    package = root / "src" / "llm_provider"
    shutil.copytree(Path(llm_provider.__file__).parent, package)
    for name in ("prices.csv", "model_limits.csv"):
        shutil.copy(find_table(name), root / name)
    for file, anchor, lines in additions:
        before, line, after = (package / file).read_text(encoding="utf-8").partition(anchor)
        assert line, f"{file} has no {anchor!r}"
        (package / file).write_text(before + lines + line + after, encoding="utf-8")
    return root


def run_copy(root: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the package of a checkout; the rest comes from this one."""
    paths = os.pathsep.join((str(root / "src"), str(Path(__file__).parents[1])))
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": paths, **variables},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
