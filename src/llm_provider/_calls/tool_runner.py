"""Runs the tools of one round at the same time: asynchronous ones as tasks, the others in threads.

At most `MOST_AT_ONCE` tools run at a time for the calls of one event loop. A tool may make calls that run
tools. These wait for places of their own, one level deeper, so that no tool waits for a place that it holds.

A thread cannot be interrupted. When a call is cancelled, its threads run to their end, and nobody waits for
them, not even the exit of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

from .._errors import RequestError, ToolArgumentsError
from .._requests.media import PART_TYPES, is_image, media_type, part_of
from .._requests.tools import FunctionTool
from .._types.messages import ToolCall, ToolResult

MOST_AT_ONCE = 64

_GRACE = 1.0
"""Seconds that a cancelled asynchronous tool has to clean up."""

_depth: contextvars.ContextVar[int] = contextvars.ContextVar("llm_provider_tool_depth", default=0)
"""How many tools are around the code that runs: a tool may call a model that calls tools."""

_places: MutableMapping[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]] = weakref.WeakKeyDictionary()
"""The places of each loop, by depth."""

_RETURNED = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
"""The media types of bytes that a tool may return."""

_Outcome: TypeAlias = tuple[Any, BaseException | None]
"""What a function returned, or what it raised."""


async def run_tools(
    calls: Sequence[ToolCall],
    tools: Mapping[str, FunctionTool],
    seconds: float | None,
    emit: Callable[[ToolResult], object],
) -> list[ToolResult]:
    """Run the tools of one answer.

    Args:
        calls: The calls of the answer.
        tools: The tools that can be run, by name.
        seconds: The most seconds for all of them together.
        emit: Receives each result as soon as it is there.

    Returns:
        The results in the order of the calls. The exception of a tool is a result.

    Raises:
        TimeoutError: a tool runs longer. The asynchronous tools are cancelled.
    """

    async def run(call: ToolCall) -> ToolResult:
        result = await _run(call, tools)
        emit(result)
        return result

    tasks = [asyncio.create_task(run(call)) for call in calls]
    try:
        _, late = await asyncio.wait(tasks, timeout=seconds)
        if late:
            names = sorted({call.name for call, task in zip(calls, tasks, strict=True) if task in late})
            raise TimeoutError(", ".join(names))
    finally:
        await _end(tasks)
    results = []
    for call, task in zip(calls, tasks, strict=True):
        if task.cancelled():
            # The tool was cancelled, and not this call.
            results.append(_failed(call, asyncio.CancelledError("the tool was cancelled")))
            emit(results[-1])
        else:
            results.append(task.result())
    return results


async def _end(tasks: Sequence[asyncio.Task[ToolResult]]) -> None:
    """Cancel the tools that still run, and let them clean up."""
    unfinished = [task for task in tasks if not task.done()]
    for task in unfinished:
        task.cancel()
    if unfinished:
        await asyncio.wait(unfinished, timeout=_GRACE)


async def _run(call: ToolCall, tools: Mapping[str, FunctionTool]) -> ToolResult:
    """Run the tool of one call."""
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(tools)
        return _failed(call, LookupError(f"there is no tool {call.name!r}; the tools are: {known}"))
    try:
        arguments = tool.parse(call)
    # The validators of a pydantic model may raise any exception.
    except Exception as error:
        return _failed(call, error)
    assert tool.function is not None  # the calls of a class end the rounds
    value, raised = await _value(tool.function, arguments)
    if raised is None:
        try:
            return ToolResult(call=call, content=content_of(value))
        except Exception as error:  # values of any class are converted by code of their own
            raised = error
    return _failed(call, raised)


def _failed(call: ToolCall, error: BaseException) -> ToolResult:
    """The result of a call that failed. The model is told the type of the exception and its message."""
    told = error.message if isinstance(error, ToolArgumentsError) else f"{type(error).__name__}: {error}"
    return ToolResult(call=call, content=f"Error: {told}", error=error)


async def _value(function: Callable[..., Any], arguments: Mapping[str, Any]) -> _Outcome:
    depth = _depth.get()
    places = _places.setdefault(asyncio.get_running_loop(), {}).setdefault(
        depth, asyncio.Semaphore(MOST_AT_ONCE)
    )
    await places.acquire()
    # This task has a copy of the context of its own.
    _depth.set(depth + 1)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        try:
            return await _awaited(function, arguments)
        finally:
            places.release()
    value, error = await _in_thread(function, arguments, places.release)
    if error is None and inspect.isawaitable(value):
        # A function that returns a coroutine, as many decorators do.
        return await _awaited(lambda: value, {})
    return value, error


async def _awaited(function: Callable[..., Any], arguments: Mapping[str, Any]) -> _Outcome:
    try:
        return await function(**arguments), None
    # `sys.exit()` in a task would end the thread of the loop.
    except (Exception, SystemExit) as error:
        return None, error


async def _in_thread(
    function: Callable[..., Any], arguments: Mapping[str, Any], release: Callable[[], None]
) -> _Outcome:
    """Call a function in a thread of its own, which keeps its place until it ends."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_Outcome] = loop.create_future()
    context = contextvars.copy_context()

    def settle(found: _Outcome) -> None:
        release()
        if not outcome.done():
            outcome.set_result(found)

    def work() -> None:
        found: _Outcome
        try:
            found = context.run(function, **arguments), None
        except BaseException as error:  # given to the task that waits
            found = None, error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, found)

    # The threads of asyncio's own pool would delay the exit of the process.
    threading.Thread(target=work, name="llm_provider-tool", daemon=True).start()
    return await outcome


def content_of(value: Any) -> str | Sequence[Mapping[str, Any]]:
    """The content of a tool message for a value: a text as it is, media as parts, all else as JSON.

    Raises:
        TypeError: the value has no form in JSON.

    >>> content_of({"sunny": True}), content_of(None), content_of("warm")
    ('{"sunny":true}', 'null', 'warm')
    >>> content_of([{"type": "text", "text": "warm"}])
    [{'type': 'text', 'text': 'warm'}]
    """
    if isinstance(value, str):
        # An enum of texts is told by its value.
        return str.__str__(value)
    if isinstance(value, (list, tuple)) and value and all(map(_is_part, value)):
        return list(value)
    if isinstance(value, (bytes, bytearray, memoryview)) or is_image(value):
        return [_medium(value)]
    if isinstance(value, (list, tuple)) and any(map(is_image, value)):
        return [_medium(one) for one in value]
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(value, fallback=_plain).decode()
    except (PydanticSerializationError, ValueError, TypeError) as error:
        raise TypeError(
            f"the tool returned a value of type {type(value).__name__}, which JSON cannot express ({error}): "
            "return a str, numbers, lists, dicts, a dataclass or a pydantic model"
        ) from None


def _is_part(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") in PART_TYPES and value["type"] in value


def _plain(value: Any) -> Any:
    """The Python value of an array or a number of NumPy or a similar package."""
    convert = getattr(value, "tolist", None)
    if convert is None:
        raise TypeError(f"{type(value).__name__} is not supported")
    return convert()


def _medium(value: Any) -> Mapping[str, Any]:
    """An image, a document or a text as a content part."""
    if isinstance(value, (bytes, bytearray, memoryview)) and media_type(bytes(value)) not in _RETURNED:
        raise TypeError(
            "the tool returned bytes that are no PNG, JPEG, GIF, WebP or PDF: return a str, or a list of "
            "content parts"
        )
    try:
        return part_of(value, "the value")
    except RequestError as error:
        raise TypeError(f"the tool returned a value that cannot be sent: {error}") from None
