"""The world of a simulation: virtual time, the network, the providers, and the processes that use them.

The world has an event loop of its own, on which the providers run. While that loop waits, the world gives
turns to the processes: to one at a time, chosen by the seed among those that have something to do. If none
has, time goes on to the next moment at which somebody has.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import random
import re
import signal
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from llm_provider.simulator._behaviour.faults import Fault, FaultQueue
from llm_provider.simulator._records.ledger import RunningLedger
from llm_provider.simulator._server.application import Application
from llm_provider.simulator._server.state import State
from llm_provider.simulator._settings import Settings

from . import scheduler as scheduling
from .event_loop import SimulatedLoop
from .http_server import HTTPConnection
from .network import Faults, Line
from .process import Channel

LAST_CHUNK = b"0\r\n\r\n"
LAST_EVENTS = re.compile(
    rb"(data: \[DONE\]|event: message_stop|event: response.completed|\"finishReason\":).*?\r?\n\r?\n",
    re.DOTALL,
)
"""What ends the answer of a stream. Nothing of the answer is missing, if the connection breaks after it."""

CALLS = ("/chat/completions", "/responses", "/messages", "/embeddings")
CALLS += (":generateContent", ":streamGenerateContent")
"""The ends of the paths by which a model is asked."""

Message = Any
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class World(scheduling.Scheduler):
    """One simulated history.

    Args:
        seed: decides every choice of the history.
        control: asks the template for processes.
        settings: those of the simulated providers.
        faults: those of the network.
        until: virtual seconds after which the history is over, whoever still waits.
    """

    def __init__(
        self, seed: str, control: socket.socket, settings: dict[str, Any], faults: Faults, until: float
    ) -> None:
        super().__init__(seed)
        self._control = control
        self.faults = faults
        self.until = until
        self.processes: list[RunningProcess] = []
        self.history: list[dict[str, Any]] = []
        scheduling.activate(self)
        self.state = State(Settings().copy_with(settings))
        self.state.ledger = self.ledger = RecordingLedger(self)
        self.state.faults = RecordingFaults()
        self._application = Application(self.state)
        self.requests: list[ServedRequest] = []
        self.unused: Counter[str] = Counter()
        """The connections of each process over which no request has come."""
        self.is_calm = False
        """Whether the accidents are over."""
        self.processor_seconds = 0.0
        """Processor time of the processes that have ended."""

    def wait(self, is_ready: Callable[[], bool], deadline: float | None = None) -> bool:
        """Give a process its turn, or let time go on. What the process sent may be work for the loop."""
        runnable = [each for each in self.processes if each.can_run(self.now)]
        if runnable:
            (runnable[0] if len(runnable) == 1 else self.random.choice(runnable)).run()
        else:
            moments = [each.deadline for each in self.processes if each.deadline is not None]
            if deadline is not None:
                moments.append(deadline)
            if not moments or min(moments) > self.until:
                raise StuckError(self.now)
            self.now = max(self.now, min(moments))
        return is_ready()

    def start_process(self, order: dict[str, Any], name: str, *, warm: bool = False) -> RunningProcess:
        """Start a process with an order, which its seed is added to.

        Args:
            order: what the process does.
            name: its name in the history.
            warm: whether the process is the template of all later ones.
        """
        process = RunningProcess(self, name, order, is_template=warm)
        self.processes.append(process)
        return process

    def send_to_all(self, *message: Any) -> None:
        """Have each process take an event with its next turn."""
        for process in self.processes:
            process.send(*message)

    def record(self, kind: str, at: float | None = None, **event: Any) -> None:
        """Add an event to the history, which happens now or happened in the turn that ends."""
        self.history.append({"at": round(self.now if at is None else at, 6), "kind": kind, **event})

    def ask_template(self, message: bytes, descriptors: list[int] | None = None) -> int:
        """Have the template fork a process or wait for the end of one."""
        socket.send_fds(self._control, [message], descriptors or [])
        number: int = struct.unpack("<q", self._control.recv(8))[0]
        return number

    def connect(self, process: RunningProcess, number: int) -> None:
        """Open a connection of a process to the providers."""
        if self.random.random() < self.faults.refuse:
            process.send_later(number, "refused")
            return
        process.connections[number] = ServerConnection(self, process, number)
        self.unused[process.name] += 1
        process.send_later(number, "connected")

    async def answer(
        self, connection: ServerConnection, scope: Message, receive: Receive, send: Send
    ) -> None:
        """Have the providers answer a request, and keep an account of it."""
        first = await receive()
        self.unused[connection.process.name] -= not connection.is_used
        connection.is_used = True
        if float(dict(scope["headers"]).get(b"authorization", b"").partition(b"/")[2] or "inf") < self.now:
            # The library sends it once more, as a part of the same attempt.
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        request = ServedRequest(
            len(self.requests), connection.process.name, scope["path"], first["body"], self.now
        )
        self.requests.append(request)
        facts = {name: getattr(request, name) for name in ("number", "process", "path", "question")}
        self.record("request", **facts)
        _serving.set(request)
        unread = [first]

        async def receive_again() -> Message:
            return unread.pop() if unread else await receive()

        async def watch(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start":
                request.status = message["status"]
            elif not message.get("more_body", False):
                connection.mark_end(request)

        await self._application(scope, receive_again, watch)


_serving: ContextVar[ServedRequest] = ContextVar("_serving")


@dataclass
class ServedRequest:
    """A request that a provider received, as the world saw it."""

    number: int
    process: str
    path: str
    body: bytes
    at: float
    status: int = 0
    bill: Decimal | None = None
    """USD; None if nothing was billed."""
    fault: dict[str, Any] | None = None
    """The provider's fault that it met."""
    is_finished: bool = False
    """Whether the whole answer was billed."""
    delivered_at: float | None = None
    """When the whole answer was at the process."""

    @functools.cached_property
    def question(self) -> str:
        """The question that the body asks, or the questions; a later round names the same one."""
        return ",".join(dict.fromkeys(re.findall(r"\[(q\d+)\]", self.body.decode("utf-8", "replace"))))

    @functools.cached_property
    def is_call(self) -> bool:
        """Whether it asks a model, and is not about a batch or a file."""
        return self.path.endswith(CALLS)

    @property
    def is_above_limit(self) -> bool:
        """Whether the provider refused it for its limits."""
        return self.status == 429 and self.fault is None

    @property
    def is_stream(self) -> bool:
        """Whether the answer comes in pieces."""
        return "streamGenerate" in self.path or b'"stream":true' in self.body

    @functools.cached_property
    def samples(self) -> int:
        """How many answers the body asks for."""
        body = json.loads(self.body)
        return body.get("n") or body.get("generationConfig", {}).get("candidateCount") or 1


class RecordingFaults(FaultQueue):
    """The simulator's ordered faults, each of which is noted with the request that meets it."""

    def take(self, provider: str, text: str, key: str) -> Fault | None:
        fault = super().take(provider, text, key)
        if fault is not None:
            _serving.get().fault = fault.to_json()
        return fault


class RecordingLedger(RunningLedger):
    """The simulator's ledger, which says for each bill what was asked."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.batches = Decimal(0)
        """USD of the rows of batches."""

    def bill(
        self, provider: str, model: str, usage: Any, prices: Any, *, finished: bool, **options: Any
    ) -> None:
        super().bill(provider, model, usage, prices, finished=finished, **options)
        cost = prices.cost(provider, model, usage, options.get("variant", "standard"))
        request = _serving.get()
        request.bill, request.is_finished = (request.bill or Decimal(0)) + cost, finished
        if options.get("variant") == "batch":
            self.batches += cost
        self._world.record("bill", request=request.number, usd=str(cost), finished=finished)


class StuckError(Exception):
    """Somebody waits, and nothing will ever happen; or the end of the history has come."""


@dataclass
class RunningProcess:
    """A process as the world sees it."""

    world: World
    name: str
    order: dict[str, Any]
    is_template: bool = False
    deadline: float | None = None
    connections: dict[int, ServerConnection] = field(default_factory=dict)
    has_ended: bool = False

    def __post_init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.pid = self.world.ask_template(b"warm" if self.is_template else b"fork", [theirs.fileno()])
        theirs.close()
        self._channel = Channel(ours)
        self._incoming: list[Message] = []
        self._ended = asyncio.Event()
        self._lines: dict[int, Line] = {}
        self._first: Message = {**self.order, "seed": f"{self.world.random.random()}"}
        """What the process waits for before it does anything: its first turn may be late."""
        self.deadline = self.world.now

    def can_run(self, now: float) -> bool:
        """Whether something has arrived, or a timer is due."""
        return bool(self._incoming) or (self.deadline is not None and self.deadline <= now)

    def run(self) -> None:
        """Give the process a turn."""
        try:
            if self._first is not None:
                message, self._first = self._first, None
            else:
                message, self._incoming = self._incoming, []
            self._channel.send((self.world.now, message))
            self._take_turn()
        except (EOFError, OSError):
            self.world.record("death", process=self.name)
            self._end()

    def _take_turn(self) -> None:
        now, self.deadline, outgoing = self._channel.receive()
        self.world.now = max(self.world.now, now)
        for kind, *arguments in outgoing:
            match kind:
                case "open":
                    self.world.connect(self, arguments[0])
                case "data" | "close":
                    connection = self.connections.get(arguments[0])
                    if connection is not None:
                        connection.take(kind, *arguments[1:])
                case "report":
                    self.world.record(process=self.name, **arguments[0])
                case "ended" | "crashed":
                    self.world.record(kind, process=self.name, detail=arguments)
                    self._channel.send((self.world.now, []))
                    self._end()
                case _:
                    raise ValueError(kind)

    def order_death(self, steps: int) -> None:
        """Have the process die after so many more of its steps, in the middle of whatever it does."""
        self.send("die", steps)

    def kill(self) -> None:
        """Kill the process where it waits."""
        if not self.has_ended:
            os.kill(self.pid, signal.SIGKILL)
            self.world.record("kill", process=self.name)
            self._end()

    def _end(self) -> None:
        self.has_ended, self.deadline = True, None
        self._incoming.clear()
        if not self.is_template:
            self.world.processor_seconds += self.world.ask_template(b"%d" % self.pid) / 1e6
        self._channel.end.close()
        for connection in self.connections.values():
            connection.lose()
        self.world.processes.remove(self)
        self._ended.set()

    def lose_connections(self) -> None:
        """Break all connections at both ends."""
        for connection in self.connections.values():
            connection.cut()

    async def wait(self) -> None:
        """Wait until the process has ended."""
        await self._ended.wait()

    def send(self, *message: Any) -> None:
        """Have the process take an event with its next turn."""
        if not self.has_ended:
            self._incoming.append(message)

    def send_later(self, number: int, kind: str, *content: Any) -> None:
        """Send an event of a connection after a delay of the network."""
        self.call_in_line(number, self.send, kind, number, *content)

    def call_in_line(self, number: int, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function as soon as everything that was sent over a connection has arrived."""
        line = self._lines.get(number)
        if line is None:
            line = self._lines[number] = Line(self.world)
        line.send(function, *arguments)

    def note_in_line(self, number: int, note: Callable[..., object], *arguments: Any) -> None:
        """`call_in_line` together with what was sent last."""
        self._lines[number].send(note, *arguments, longest=0.0)


class ServerConnection:
    """The server's end of a connection."""

    def __init__(self, world: World, process: RunningProcess, number: int) -> None:
        self._world = world
        self.process = process
        self._number = number
        self._requests = Line(world)
        self._is_cut = False
        self._is_closed = False
        self.is_used = self._is_silent = False
        self._is_doubtful = False
        """Whether an answer comes a second time. A client that sees it takes no further answer from here."""
        self._answer = b""
        answer = functools.partial(world.answer, self)
        self.http = HTTPConnection(answer, self._write, self._close, (process.name, number))

    def take(self, kind: str, data: bytes = b"") -> None:
        """Take an event of the client's end, after a delay of the network, in order."""
        world = self._world
        self._is_closed |= kind == "close"
        if self._is_silent:
            return
        if kind == "close":
            self._requests.send(self.lose)
        elif world.random.random() < world.faults.cut_request:
            self.cut()
        else:
            for piece in self._split(data):
                self._requests.send(self._receive, piece)

    def _receive(self, piece: bytes) -> None:
        if not self._is_silent:
            self.http.receive(piece)

    def lose(self) -> None:
        """Take the end of the client, if the provider notices it."""
        if self._world.random.random() >= self._world.faults.unnoticed:
            self.http.lose()

    def _write(self, data: bytes) -> None:
        world, faults, process = self._world, self._world.faults, self.process
        if self._is_cut or process.has_ended:
            return
        share = faults.cut_end or faults.cut_answer if data == LAST_CHUNK else faults.cut_answer
        if world.random.random() < share:
            part = data[: world.random.randrange(len(data) + 1)]
            if part:
                process.send_later(self._number, "data", part)
            is_whole = LAST_EVENTS.search(self._answer + part) is not None
            if is_whole:
                process.note_in_line(self._number, self._note_delivery, _serving.get())
            self.cut(is_whole)
            return
        for piece in self._split(data):
            process.send_later(self._number, "data", piece)
        self._answer += data

    def mark_end(self, request: ServedRequest) -> None:
        """Note when the end of an answer is at the client, if nothing cuts the connection before."""
        world, answer = self._world, self._answer
        self._answer = b""
        if self._is_cut:
            return
        self.process.note_in_line(self._number, self._note_delivery, request)
        if world.random.random() < world.faults.repeat:
            self._is_doubtful = True
            later = world.now + world.random.random()
            asyncio.get_running_loop().call_at(later, self.process.send_later, self._number, "data", answer)
        elif world.random.random() < world.faults.end:
            self._is_silent = True
            self._close(False)
        elif world.random.random() < world.faults.silent:
            self._is_silent = True

    def _note_delivery(self, request: ServedRequest) -> None:
        if not self._is_closed and not self._is_doubtful and not self.process.has_ended:
            request.delivered_at = self._world.now

    def _split(self, data: bytes) -> list[bytes]:
        random_source: random.Random = self._world.random
        if len(data) < 2 or random_source.random() >= self._world.faults.split:
            return [data]
        at = random_source.randrange(1, len(data))
        return [data[:at], data[at:]]

    def _close(self, is_cut: bool) -> None:
        self.process.send_later(self._number, "reset" if is_cut else "end")

    def cut(self, is_whole: bool = False) -> None:
        """Break the connection at both ends. A provider that has told a whole answer does not notice.

        The client sees a reset, or an end as after a whole answer.
        """
        self._is_cut = True
        self._close(self._world.random.random() < 0.5)
        if not is_whole:
            self.http.lose()


def run_history(world: World, program: Callable[[World], Any]) -> None:
    """Run a program of the world, which starts processes, on the loop of the providers."""
    loop = SimulatedLoop()
    try:
        loop.run_until_complete(program(world))
    except StuckError as error:
        waiting = [each.name for each in world.processes]
        world.record("stuck", processes=waiting, moment=error.args[0])
    finally:
        for process in list(world.processes):
            process.kill()
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False
            task.get_coro().close()  # Garbage would be closed after the loop, which it uses.
        scheduling.activate(None)
        # Not during a history: what garbage does would depend on the histories before.
        gc.collect()
