"""Every fault of `faults.py` on every route and in every way to call: it ends as the table says.

`make test-long` takes a sample: it meets each row whole, streamed and over httpx on each route, in ways that
rotate, and further variants of a row in one of these. `make test` takes every fourth cell of that sample, and
`make matrix` all cells. Whatever the fault, `check_error` holds for its error.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import logging
import pickle
import socket
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from end_to_end.faults import (
    CANARY,
    GROUPS,
    LATE,
    LITELLM,
    MADE_UP,
    PROMPT,
    PROXY_PASSWORD,
    ROUTES,
    USUAL,
    Address,
    Cell,
    Environment,
    Given,
    Raw,
    Route,
    Row,
)
from llm_provider import Client, Response, Usage
from llm_provider._core.errors import LLMError
from llm_provider.simulator import Fault, Simulator
from llm_provider.simulator._records.recorded_requests import fingerprint
from raw_server import RawServer
from support import TooSlowError, patiently, wait_until

NUMBERS = itertools.count()
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")


@dataclass(slots=True)
class Meeting:
    """One call that meets a fault. Its `repr` has no key, since tracebacks are formatted with locals."""

    cell: Cell
    client: Client
    parameters: dict[str, Any] = field(repr=False)
    order: Given
    streamed: str = ""
    results: list[Any] = field(default_factory=list)

    @property
    def inputs(self) -> list[Any]:
        """What a batch asks: two prompts, where both meet the fault and can be sent."""
        if self.cell.row.times is None and self.cell.end.sent:
            return [self.order.messages, f"{self.order.messages} four"]
        return [self.order.messages]

    def ask(self) -> None:
        model = self.cell.route.model if self.order.model is USUAL else self.order.model
        try:
            getattr(self, f"_{self.cell.way}")(model, self.order.messages)
        except Exception as error:
            self.results.append(error)

    def _call(self, model: Any, messages: Any) -> None:
        self.results.append(self.client.call(model, messages, **self.parameters))

    def _acall(self, model: Any, messages: Any) -> None:
        self.results.append(asyncio.run(self.client.acall(model, messages, **self.parameters)))

    def _batch(self, model: Any, messages: Any) -> None:
        self.results += self.client.call_many(model, self.inputs, **self.parameters)

    def _stream(self, model: Any, messages: Any) -> None:
        with self.client.stream(model, messages, **self.parameters) as stream:
            for delta in stream:
                self.streamed += delta.text
        self.results.append(stream.response)

    def _astream(self, model: Any, messages: Any) -> None:
        async def read() -> Response:
            async with self.client.astream(model, messages, **self.parameters) as stream:
                async for delta in stream:
                    self.streamed += delta.text
            return stream.response

        self.results.append(asyncio.run(read()))


class Bench:
    """The servers and clients that all cells of a process share."""

    def __init__(
        self, simulator: Simulator, tls: Simulator, stack: contextlib.ExitStack, folder: Any
    ) -> None:
        self.simulator = simulator
        self.tls = tls
        self._stack = stack
        self._options: dict[str, Any] = {"cache": "off", "cache_dir": folder, "timeout": 20}
        self._clients: dict[str, Client] = {}
        self._warm: set[tuple[Route, str]] = set()

    def client(self, route: Route, transport: str) -> Client:
        """The client of a transport; its SDK has loaded and built what its first call needs."""
        client = self._clients.get(transport)
        if client is None:
            client = self._clients[transport] = self._stack.enter_context(self.new_client(transport))
        if (route, transport) not in self._warm:
            self._warm.add((route, transport))
            parameters: dict[str, Any] = {"api_key": "sk-warm", "base_url": self.simulator.url(route.server)}
            client.call(route.model, PROMPT, **parameters)
            list(client.stream(route.model, PROMPT, **parameters))
        return client

    def new_client(self, transport: str) -> Client:
        return Client(transport=transport, **self._options)

    def requests(self, key: str) -> int:
        """The requests with this key that the simulators have seen."""
        mark = fingerprint(key)
        seen = [*self.simulator.requests(), *self.tls.requests()]
        return sum(mark in map(request.headers.get, KEY_HEADERS) for request in seen)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with contextlib.ExitStack() as stack:
        simulator, tls = stack.enter_context(Simulator()), stack.enter_context(Simulator(tls=True))
        yield Bench(simulator, tls, stack, tmp_path_factory.mktemp("unused"))


def meet(bench: Bench, cell: Cell, client: Client) -> None:
    def attempt(longer: float) -> None:
        key = f"{CANARY}-{next(NUMBERS)}"
        with served(bench, cell, key) as (url, order, requests):
            parameters = {
                "base_url": url,
                "api_key": key,
                "max_retries": cell.end.retries,
                **order.parameters,
            }
            if cell.row.timeout is not None:
                parameters["timeout"] = cell.row.timeout * longer
            meeting = Meeting(cell, client, parameters, order)
            meeting.ask()
            check(meeting, requests)

    patiently(attempt)


@contextlib.contextmanager
def served(bench: Bench, cell: Cell, key: str) -> Iterator[tuple[str, Given, Callable[[], int] | None]]:
    """A server with the fault: its URL, the arguments of the call, and how many requests it has seen."""
    made, server = cell.made(key), cell.route.server
    url, order = bench.simulator.url(server), Given()

    def requests() -> int:
        return bench.requests(key)

    if isinstance(made, Raw):
        with RawServer(made.behaviour) as raw:
            root = f"{raw.root}/v1" if server == "openai" else raw.root
            yield root, order, lambda: raw.requests
    elif isinstance(made, Address) and made.kind == "refused":
        # A port that nobody listens on, and nobody else gets while the socket lives.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            yield f"http://127.0.0.1:{free.getsockname()[1]}", order, None
    elif isinstance(made, Address) and made.kind == "no name":
        yield "https://nonexistent.invalid", order, None
    elif isinstance(made, Address):
        yield bench.tls.url(server), order, None
    elif isinstance(made, Given):
        yield url, made, requests
    elif isinstance(made, Environment):
        # This machine would be reached without the proxy.
        yield "https://nonexistent.invalid", order, None
    else:
        bench.simulator.inject(made, times=cell.row.times, key=key)
        yield url, order, requests


def check(meeting: Meeting, requests: Callable[[], int] | None) -> None:
    cell, end = meeting.cell, meeting.cell.end
    assert len(meeting.results) == (len(meeting.inputs) if cell.way == "batch" else 1)
    attempted = sum(map(attempts, meeting.results))
    if requests is not None:
        if cell.row.timeout is not None and not wait_until(lambda: requests() >= attempted, LATE):
            raise TooSlowError("a request had not arrived")
        seen = requests()
        # litellm sends once more by itself when a connection breaks before its answer.
        twice = cell.route.name == "litellm" and isinstance(cell.row.variants[cell.variant], Raw)
        assert seen == attempted or (twice and attempted < seen <= 2 * attempted), (
            f"{attempted} attempts told, {seen} requests seen"
        )
    for result in meeting.results:
        if isinstance(result, Response) and (end.error is None or end.readable):
            check_answer(meeting, result)
        else:
            check_error(meeting, result)
            check_end(meeting, result)


def attempts(result: Any) -> int:
    return result.timing.attempts if isinstance(result, Response) else getattr(result, "attempts", 0)


def check_answer(meeting: Meeting, response: Response) -> None:
    cell, end = meeting.cell, meeting.cell.end
    assert response.text in (end.text, f"{end.text} four")
    assert cell.way not in ("stream", "astream") or meeting.streamed == response.text
    assert response.timing.attempts == (1 if end.readable else end.sent)
    for name, value in end.fields.items():
        assert getattr(response, name) == value
    # It can be read, shown and sent on.
    assert repr(response)
    assert isinstance(response.raw, (dict, list))
    assert pickle.loads(pickle.dumps(response)).text == response.text


def check_end(meeting: Meeting, error: LLMError) -> None:
    """The error is the one of the table."""
    cell, end = meeting.cell, meeting.cell.end
    assert end.error is not None, repr(error)
    if cell.row.timeout is not None and end.text and not meeting.streamed:
        raise TooSlowError("the stream had not begun")
    assert error.attempts == end.sent, repr(error)
    assert end.billed is None or error.maybe_billed == end.billed
    assert end.says in str(error)
    if end.says == MADE_UP and isinstance(cell.row.variants[cell.variant], Fault):
        assert str(error.request_id).startswith("req_")
    assert len(str(error)) < 1000
    assert not cell.streamed or end.text_before_failure is None or meeting.streamed == end.text_before_failure
    for name, value in end.fields.items():
        assert getattr(error, name) == value
    if end.sent:
        assert (error.provider, error.model) == (cell.route.provider, cell.route.model)
        assert len(error.failures) == error.attempts


def check_error(meeting: Meeting, error: Any) -> None:
    """What holds for every error: it is ours, it pickles, and it shows neither key nor SDK."""
    kind = meeting.cell.end.error
    assert kind is not None, f"answered: {error!r}" if isinstance(error, Response) else repr(error)
    leaf = not kind.__subclasses__()
    assert type(error) is kind if leaf else isinstance(error, kind), repr(error)
    assert (error.__cause__, error.__context__) == (None, None)
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), twin.args, twin.__dict__) == (type(error), error.args, error.__dict__)
    fields = dict(vars(error))
    fields_of_attempts = [dataclasses.astuple(failure) for failure in fields.pop("failures", ())]
    assert isinstance(fields.pop("usage", None), Usage | None)
    # The provider's reply, as plain JSON.
    fields.pop("raw", None)
    fields_of_attempts.append(fields.pop("cost_bounds", None) or ())
    for value in itertools.chain(fields.values(), *fields_of_attempts):
        assert isinstance(value, (str, int, float, bool, type(None)))
    traces = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    for text in (str(error), repr(error), traces, repr(pickle.dumps(error))):
        assert CANARY not in text
        assert PROXY_PASSWORD not in text


# --- the product ---------------------------------------------------------------------------------------
def sampled(cells: Sequence[Cell], number: int) -> list[Cell]:
    """One whole and one streamed cell over aiohttp, and one over httpx, in ways that rotate.

    Of a row's variants after the first, only one of these three, on every second route.
    """
    kinds = (
        [cell for cell in cells if cell.transport == "aiohttp" and not cell.streamed],
        [cell for cell in cells if cell.transport == "aiohttp" and cell.streamed],
        [cell for cell in cells if cell.transport != "aiohttp"],
    )
    some = [kind[number % len(kind)] for kind in kinds if kind]
    first = not cells or cells[0].variant == next(iter(cells[0].row.variants))
    if first:
        return some
    return [some[number // 2 % len(some)]] if some and number % 2 == 0 else []


def product() -> Iterator[Any]:
    """The cells that run at the same time: those of a variant on a route."""
    numbers = itertools.count()
    for row in itertools.chain(*GROUPS.values()):
        for variant, route in itertools.product(row.variants, ROUTES.values()):
            cells = row.cells(variant, route)
            some = sampled(cells, next(numbers))
            rest = [cell for cell in cells if cell not in some]
            for group, marks in ((some, ()), (rest, (pytest.mark.matrix,))):
                if group:
                    yield parameter(row, variant, route, group, marks)


def parameter(row: Row, variant: str, route: Route, cells: list[Cell], marks: Any) -> Any:
    ways = "+".join(cell.way if cell.transport == "aiohttp" else cell.transport for cell in cells)
    name = f"{row.name}-{variant}-{route.name}-{ways}".encode("ascii", "replace").decode()
    through = LITELLM if route.name == "litellm" else ()
    return pytest.param(cells, id=name, marks=(*marks, *through))


@pytest.mark.parametrize("cells", list(product()))
@pytest.mark.sampled(8)
def test_a_fault(
    bench: Bench, cells: list[Cell], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    bench.simulator.clear()
    row, route = cells[0].row, cells[0].route
    made = row.variants[cells[0].variant]
    with contextlib.ExitStack() as stack:
        if isinstance(made, Environment):
            for name, value in made.variables.items():
                monkeypatch.setenv(name, value)
            fresh = {cell.transport: stack.enter_context(bench.new_client(cell.transport)) for cell in cells}
            clients = [fresh[cell.transport] for cell in cells]
        else:
            clients = [bench.client(route, cell.transport) for cell in cells]
        if len(cells) == 1:
            meet(bench, cells[0], clients[0])
        else:
            with ThreadPoolExecutor(len(cells)) as pool:
                list(pool.map(meet, itertools.repeat(bench), cells, clients))
    assert not row.logged or CANARY not in caplog.text
