"""The tools of one round: at the same time, bounded, in threads or as tasks, and their results as content."""

import asyncio
import base64
import contextvars
import datetime as dt
import enum
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import PIL.Image
import pytest
from pydantic import BaseModel

from llm_provider import ToolCall, ToolResult
from llm_provider._core.requests.tools import FunctionTool, read_tools
from llm_provider._features.tool_rounds import runner as tool_runner
from llm_provider._features.tool_rounds.runner import content_of, run_tools

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="")


async def run(*functions: Callable[..., Any], seconds: float | None = 20, times: int = 1) -> list[ToolResult]:
    read = read_tools("tools", list(functions))
    tools = {tool["function"]["name"]: tool for tool in read if isinstance(tool, FunctionTool)}
    names = list(tools) * times
    calls = [ToolCall(id=f"{name}{at}", name=name, arguments="{}") for at, name in enumerate(names)]
    return await run_tools(calls, tools, seconds, lambda _: None)


async def test_tools_of_a_round_run_at_the_same_time() -> None:
    """Each waits for the other two: one by one, they would never end."""
    barrier, met, loop = threading.Barrier(2), asyncio.Event(), asyncio.get_running_loop()

    def first() -> str:
        barrier.wait(20)
        return threading.current_thread().name

    def second() -> str:
        barrier.wait(20)
        return variable.get()

    async def third() -> int:
        met.set()
        return 3

    async def fourth() -> bool:
        await met.wait()
        return asyncio.get_running_loop() is loop

    variable.set("copied")
    results = await run(fourth, first, second, third)
    assert [result.content for result in results] == ["true", "llm_provider-tool", "copied", "3"]
    assert [result.call.name for result in results] == ["fourth", "first", "second", "third"]


async def test_only_so_many_tools_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_runner, "MOST_AT_ONCE", 3)
    running, most, lock = 0, 0, threading.Lock()

    def tool() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        everybody.wait(0.02)
        with lock:
            running -= 1

    everybody = threading.Event()
    await run(tool, times=9)
    assert 1 < most <= 3


def test_a_tool_that_runs_tools_does_not_wait_for_its_own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_runner, "MOST_AT_ONCE", 1)

    async def inner() -> str:
        return "inner"

    async def outer() -> Any:
        (result,) = await run(inner)
        return result.content

    (result,) = asyncio.run(run(outer))
    assert result.content == "inner"


def test_wrapped_functions_and_objects_are_run_as_what_they_are() -> None:
    async def later() -> str:
        """Later."""
        return threading.current_thread().name

    @functools.wraps(later)
    def returns_a_coroutine() -> Any:
        return later()

    @functools.wraps(later)
    def runs_a_loop() -> str:
        return asyncio.run(later())

    class Service:
        async def __call__(self) -> str:
            """Call."""
            return "called"

    here = threading.current_thread().name
    for function, content in (
        (later, here),
        (functools.partial(later), here),
        (returns_a_coroutine, here),
        (runs_a_loop, "llm_provider-tool"),
        (Service(), "called"),
    ):
        (result,) = asyncio.run(run(function))
        assert result.message == {"role": "tool", "tool_call_id": result.call.id, "content": content}


class Word(str, enum.Enum):  # noqa: UP042  # the older form, whose str() is "Word.YES"
    YES = "yes"


@dataclass
class Point:
    x: int


class Model(BaseModel):
    day: dt.date


PNG = b"\x89PNG\r\n\x1a\n..."
TEXT_PART = {"type": "text", "text": "Hi"}


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        (Word.YES, "yes"),
        (None, "null"),
        (2.5, "2.5"),
        ({"a": [1, "b"], "when": dt.date(2026, 1, 2)}, '{"a":[1,"b"],"when":"2026-01-02"}'),
        (Point(1), '{"x":1}'),
        (Model(day=dt.date(2026, 1, 2)), '{"day":"2026-01-02"}'),
        ([Point(1), {2}], '[{"x":1},[2]]'),
        (numpy.array([1, 2]), "[1,2]"),
        ({"n": numpy.int64(3)}, '{"n":3}'),
        ([TEXT_PART], [TEXT_PART]),
        ([{"type": "text"}], '[{"type":"text"}]'),
        ([], "[]"),
    ],
)
def test_values_become_content(value: Any, content: Any) -> None:
    assert content_of(value) == content


@pytest.mark.parametrize(
    ("data", "kind"),
    [(PNG, "png"), (bytearray(b"\xff\xd8\xff"), "jpeg"), (b"GIF89a", "gif"), (b"RIFF0000WEBP", "webp")],
)
def test_images_become_parts(data: bytes, kind: str) -> None:
    url = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    assert content_of(data) == [{"type": "image_url", "image_url": {"url": url}}]


def test_images_of_pillow_and_documents_become_parts_beside_texts() -> None:
    image = PIL.Image.new("RGB", (2, 2))
    (alone,) = content_of(image)
    assert isinstance(alone, dict)
    assert alone["image_url"]["url"].startswith("data:image/png;base64,")
    assert content_of(["A map:", image]) == [{"type": "text", "text": "A map:"}, alone]
    (document,) = content_of(b"%PDF-1.7")
    assert document["file"]["file_data"].startswith("data:application/pdf;base64,")  # type: ignore[index]  # a part
    with pytest.raises(TypeError, match=r"the tool returned a value that cannot be sent: .*convert\('RGB'\)"):
        content_of(image.convert("CMYK"))


@pytest.mark.parametrize("value", [object(), {"x": object()}, functools.partial(print), b"no picture"])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"the tool returned .*: return a str"):
        content_of(value)
