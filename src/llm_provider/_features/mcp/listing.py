"""The tools of MCP servers, as functions of the calls that name the servers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._core import doors
from ..._core.errors import RequestError
from ..._core.journey.call import delta_of_choice
from ..._core.json_values import JSONObject
from ..._core.requests.tools import FunctionTool, ToolSchema, name_of
from ..._core.runtime import event_loop
from ..._core.runtime.imports import import_optional, install_command
from ..._core.runtime.threads import run_in_thread
from .results import ToolError, read_result
from .server import MCPServer
from .sessions import sessions_of

if TYPE_CHECKING:
    from ..._core.client.call_runner import CallRunner
    from ..._core.journey.engine import Engine
    from ..._core.journey.stream import Arrived, MakeSource
    from ..._core.types.messages import Prompt
    from ..._core.types.response import Response

_MOST_NAME = 64


def list_and_wait(runner: CallRunner, function: str, parameters: JSONObject) -> None:
    """Put the tools of servers in their place among the tools of a call, and wait for them.

    Raises `RequestError` if a server does not list its tools, or two have a tool with the same name.
    """
    event_loop.refuse_own_thread(function)
    _import_package()
    event_loop.wait(_replace(runner, parameters))


async def list_async(runner: CallRunner, parameters: Any) -> None:
    """`list_and_wait` for a task, whose event loop the servers do not block while they start."""
    # The package takes a second to import.
    _, error = await run_in_thread(_import_package, "llm_provider-import", lambda: None)
    if error is not None:
        raise error
    await event_loop.run(_replace(runner, parameters))


def _import_package() -> None:
    import_optional("mcp", install_command("mcp"))


async def _replace(runner: CallRunner, parameters: JSONObject) -> None:
    """Replace the servers by their tools, on the loop."""
    runner.engine.refuse_closed()
    runner.start()
    parameters["tools"] = await _list(runner.engine, parameters["tools"])


def prepare_stream(runner: CallRunner, model: str, messages: Prompt, parameters: Any) -> MakeSource:
    """What makes the stream of `astream`, which begins once the servers have listed their tools."""

    async def run(put: Callable[[Arrived], None]) -> Response:
        runner.fill(parameters)
        await list_async(runner, parameters)
        call, hit = runner.look_up_stream("astream", model, messages, parameters, runner.concurrency)
        if call.encoded.structure is not None:
            add_to: Any = doors.partials.add_partials
            put = add_to(lambda given: given, call.encoded.structure)(put)
        if call.request.max_tool_rounds is not None:
            return await doors.tool_loop.Rounds(runner.engine, call, put).run(hit)
        if hit is None:
            return await event_loop.run(runner.engine.run(call, put), runner.engine.cancel)
        put([delta_of_choice(choice, index) for index, choice in enumerate(hit.choices[: call.request.n])])
        return hit

    return lambda put: event_loop.BackgroundTask(run(put), put, inbox=event_loop.inbox_here())


async def _list(engine: Engine, tools: Sequence[Any]) -> list[Any]:
    """The tools of a call, on the loop: the tools of each server in its place."""
    sessions = sessions_of(engine)
    servers = [tool for tool in tools if isinstance(tool, MCPServer)]
    listed = iter(await asyncio.gather(*(sessions.find(server).list_tools() for server in servers)))
    owners: dict[str | None, str] = {}
    given: list[Any] = []
    for tool in tools:
        if not isinstance(tool, MCPServer):
            given.append(tool)
            continue
        for each in make_tools(weakref.ref(engine), tool, next(listed)):
            if (name := name_of(each)) in owners:
                raise RequestError(
                    f"mcp: the servers {owners[name]!r} and {tool.label!r} both have a tool {name!r}: give "
                    "one of them a prefix, as in mcp(..., prefix='two'), or choose tools by allowed_tools="
                )
            owners[name] = tool.label
            given.append(each)
    return given


def make_tools(
    engine: Callable[[], Engine | None], server: MCPServer, listed: Sequence[Any]
) -> Iterator[FunctionTool]:
    """The tools of a server that a call takes, as functions that run them."""
    # Some servers list them in another order at each start, which would be another question.
    known = {tool.name: tool for tool in sorted(listed, key=lambda tool: tool.name)}
    count = Counter(map(name_for_models, known))
    wanted = known if server.allowed_tools is None else server.allowed_tools
    missing = [name for name in wanted if name not in known]
    if missing or not known:
        which = f"no tool {missing[0]!r}" if missing else "no tools"
        names = ", ".join(known)[:1_000] or "none"
        raise RequestError(f"mcp: the server {server.label!r} has {which}; its tools are: {names}")
    for name in wanted:
        # Several names of the server may become one.
        clashes = count[name_for_models(name)] > 1 and name != name_for_models(name)
        accepted = name_for_models(name, server.prefix, with_hash=clashes)
        yield _make_tool(engine, server, known[name], accepted)


def _make_tool(engine: Callable[[], Engine | None], server: MCPServer, tool: Any, name: str) -> FunctionTool:
    hints = tool.annotations
    repeatable = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)

    async def ask(arguments: JSONObject) -> Any:
        here = engine()
        if here is None or here.closed:
            raise ToolError("the client is closed")
        return await sessions_of(here).find(server).call_tool(tool.name, arguments, repeatable=repeatable)

    async def run(**arguments: Any) -> Any:
        try:
            return read_result(await event_loop.run(ask(arguments)))
        except ToolError as error:
            raise ToolError(server.hide_secrets(str(error))) from None

    parameters = {"properties": {}, **tool.input_schema}
    parameters.pop("$schema", None)
    schema = ToolSchema(tool.description or "", parameters, _parse)
    return FunctionTool(name, schema, run)


def _parse(text: str) -> JSONObject:
    """The arguments that a model wrote. The server checks them by its schema."""
    arguments = json.loads(text)
    if arguments is None:  # as some models write that there are none
        return {}
    if not isinstance(arguments, Mapping):
        raise ValueError("they are no JSON object")  # noqa: TRY004  # as of every text that is not valid
    return dict(arguments)


def name_for_models(name: str, prefix: str | None = None, *, with_hash: bool = False) -> str:
    """A name that every provider accepts: other characters become "_", and a long name ends with its hash.

    >>> name_for_models("files.read"), name_for_models("read", "files"), len(name_for_models("a" * 128))
    ('files_read', 'files_read', 64)
    """
    full = name if prefix is None else f"{prefix}_{name}"
    accepted = re.sub(r"^(?=[^A-Za-z_])", "_", re.sub(r"[^A-Za-z0-9_-]", "_", full))
    if len(accepted) <= _MOST_NAME and not with_hash:
        return accepted
    return f"{accepted[: _MOST_NAME - 9]}_{hashlib.sha256(full.encode()).hexdigest()[:8]}"
