"""Runs the tools of one round at the same time: asynchronous ones as tasks, the others in threads.

At most `MOST_AT_ONCE` run at a time for the calls of one event loop. The tools of calls that tools make wait
for a semaphore one level deeper, so that no tool waits for itself. When a call is cancelled, its threads run
to their end, and nobody waits for them. The model reads whatever a tool raises. `KeyboardInterrupt` alone
ends the call; it and `SystemExit` are carried as values, as an event loop stops where a task raises them.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._core.errors import RequestError, ToolArgumentsError
from ..._core.journey.call import MAX_REQUEST_BYTES
from ..._core.json_values import JSONMapping
from ..._core.requests.media import PART_TYPES, is_image, media_type, part_of
from ..._core.requests.tools import FunctionTool
from ..._core.runtime.json_pieces import canonical, replace_halves
from ..._core.runtime.threads import Outcome, run_in_thread
from ..._core.types.messages import ToolCall, ToolResult

if TYPE_CHECKING:
    from ..._core.events.events import Listener

MOST_AT_ONCE = 64

_GRACE = 1.0
"""Seconds that a cancelled asynchronous tool has to clean up."""

_depth: contextvars.ContextVar[int] = contextvars.ContextVar("llm_provider_tool_depth", default=0)
"""How many tools are around the code that runs: a tool may call a model that calls tools."""

_Semaphores: TypeAlias = dict[int, asyncio.Semaphore]
_semaphores: MutableMapping[asyncio.AbstractEventLoop, _Semaphores] = weakref.WeakKeyDictionary()
"""The semaphores of each loop, by depth."""

_RETURNED = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
"""The media types of bytes that a tool may return."""


class _InterruptedError(Exception):
    """A tool raised `KeyboardInterrupt`, which is the cause. A task may raise this error."""


async def run_tools(
    calls: Sequence[ToolCall],
    tools: Mapping[str, FunctionTool],
    seconds: float | None,
    emit: Callable[[ToolResult], object],
    listeners: Sequence[Listener] = (),
) -> list[ToolResult]:
    """The results of the tools that an answer calls, in the order of the calls; `emit` gets each at once.

    The exception of a tool is a result. `seconds` are for all together: then `TimeoutError` is raised, and
    `KeyboardInterrupt` if a tool raises it; the asynchronous tools are cancelled then.
    """

    async def run(call: ToolCall) -> ToolResult:
        described = tools[call.name]["function"] if call.name in tools else {}
        # Listeners hear of a tool in the task that runs it.
        ends = [listener.begin_tool(call, described.get("description")) for listener in listeners]
        try:
            result = await _run(call, tools)
        except BaseException as error:
            for end in ends:
                end(error, None)
            raise
        for end in ends:
            end(result.error, result.content)
        if isinstance(result.error, KeyboardInterrupt):
            raise _InterruptedError from result.error
        emit(result)
        return result

    tasks = [asyncio.create_task(run(call)) for call in calls]
    try:
        ended, late = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in ended:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error.__cause__ if isinstance(error, _InterruptedError) and error.__cause__ else error
        if late:
            names = sorted({call.name for call, task in zip(calls, tasks, strict=True) if task in late})
            raise TimeoutError(", ".join(names))
    finally:
        await _end(tasks)
    results = []
    for call, task in zip(calls, tasks, strict=True):
        if task.cancelled():
            # The tool was cancelled, and not this call.
            results.append(_describe_failure(call, asyncio.CancelledError("the tool was cancelled")))
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
    if (tool := tools.get(call.name)) is None:
        problem = f"there is no tool {call.name!r}; the tools are: {', '.join(tools)}"
        return _describe_failure(call, LookupError(problem))
    try:
        arguments = tool.parse(call)
        assert tool.function is not None  # the calls of a class end the rounds
        value, raised = await _value(tool.function, arguments)
        if raised is None:
            return ToolResult(call=call, content=content_of(value))
    except asyncio.CancelledError:
        raise
    # Validators and values have code of the user's, which may raise anything.
    except BaseException as error:
        raised = error
    return _describe_failure(call, raised)


def _describe_failure(call: ToolCall, error: BaseException) -> ToolResult:
    """The result of a call that failed. The model reads the type of the exception and its message."""
    try:
        if isinstance(error, ToolArgumentsError):
            message = error.message
        else:
            message = f"{type(error).__name__}: {error}"
    except BaseException:  # `__str__` is code of the user's
        message = f"{type(error).__name__}, whose message cannot be read"
    return ToolResult(call=call, content=replace_halves(f"Error: {message}"), error=error)


async def _value(function: Callable[..., Any], arguments: JSONMapping) -> Outcome:
    depth, semaphores = _depth.get(), _semaphores.setdefault(asyncio.get_running_loop(), {})
    semaphore = semaphores.setdefault(depth, asyncio.Semaphore(MOST_AT_ONCE))
    await semaphore.acquire()
    # This task has a copy of the context of its own.
    _depth.set(depth + 1)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        try:
            return await _await_result(function, arguments)
        finally:
            semaphore.release()
    work = functools.partial(function, **arguments)
    value, error = await run_in_thread(work, "llm_provider-tool", semaphore.release)
    if error is None and inspect.isawaitable(value):
        # A function that returns a coroutine, as many decorators do.
        return await _await_result(lambda: value, {})
    return value, error


async def _await_result(function: Callable[..., Any], arguments: JSONMapping) -> Outcome:
    try:
        return await function(**arguments), None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, error
    except BaseException as error:
        return None, error


def content_of(value: Any) -> str | Sequence[JSONMapping]:
    """The content of a tool message for a value: a text as it is, media as parts, all else as JSON.

    Half surrogate pairs, as in names of files, become U+FFFD. `TypeError` for no JSON, or too much.
    """
    if isinstance(value, str):
        # The model reads the value of an enum of texts.
        return _sendable(str.__str__(value))
    if isinstance(value, (list, tuple)) and value and all(map(_is_part, value)):
        parts = list(value)
        try:
            canonical(parts)
        except RequestError as error:
            try:
                # Half a surrogate pair is replaced. All else raises.
                parts = json.loads(replace_halves(json.dumps(parts, ensure_ascii=False)))
                canonical(parts)
            except (RequestError, TypeError, ValueError):
                raise TypeError(f"the tool returned content parts that cannot be sent: {error}") from None
        return parts
    if isinstance(value, (bytes, bytearray, memoryview)) or is_image(value):
        return [_medium(value)]
    if isinstance(value, (list, tuple)) and any(map(is_image, value)):
        return [_medium(image) for image in value]
    from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

    try:
        try:
            return _sendable(to_json(value, fallback=_plain).decode())
        except PydanticSerializationError:  # perhaps for half a surrogate pair
            plain = to_jsonable_python(value, fallback=_plain)
            return _sendable(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
    except (PydanticSerializationError, ValueError, TypeError) as error:
        raise TypeError(
            f"the tool returned a value of type {type(value).__name__}, which JSON cannot express ({error}): "
            "return a str, numbers, lists, dicts, a dataclass or a pydantic model"
        ) from None


def _sendable(text: str) -> str:
    if len(text) > MAX_REQUEST_BYTES:
        raise TypeError(
            f"the tool returned {len(text) / 1e6:.1f} MB, and a request has at most "
            f"{MAX_REQUEST_BYTES / 1e6:.0f} MB: return a part of it"
        )
    return replace_halves(text)


def _is_part(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") in PART_TYPES and value["type"] in value


def _plain(value: Any) -> Any:
    """The Python value of an array or a number of NumPy or a similar package."""
    convert = getattr(value, "tolist", None)
    if convert is None:
        raise TypeError(f"{type(value).__name__} is not supported")
    return convert()


def _medium(value: Any) -> JSONMapping:
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
