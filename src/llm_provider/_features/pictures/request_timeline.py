"""`RequestTimeline`: the requests of a client over time, and what its rate control allowed."""

from typing import Any, NamedTuple, Self

from ..._core import doors
from ..._core.client.client import Client
from ..._core.client.functions import default_client
from ..._core.events.events import Listener
from ..._core.runtime import clock


class TimedRequest(NamedTuple):
    """A request that ended `time` seconds after the block began.

    `outcome` is "answered", "refused" (429, 503 or 529) or "failed". `in_flight`, `window` and `rate` are
    the fields of `ScopeStatistics` at that time.
    """

    model: str
    outcome: str
    time: float
    in_flight: int
    window: int | None
    rate: float | None


class _Recorder(Listener):
    def __init__(self) -> None:
        self.rows: list[TimedRequest] = []
        self._start = clock.monotonic()

    def note_attempt(self, call: Any, attempt: Any) -> None:
        outcome, scope = "answered", attempt.selection.scope.statistics("", None, "", "")
        if attempt.failure is not None:
            outcome = "refused" if attempt.failure.status in (429, 503, 529) else "failed"
        state = clock.monotonic() - self._start, scope.in_flight + 1, scope.window, scope.rate
        self.rows.append(TimedRequest(call.target.model, outcome, *state))


class RequestTimeline:
    """The requests of a client in a `with` block: a `TimedRequest` in `rows` for each that was not cancelled.

    Args:
        client: The client, whose other calls cost no more; default the client of the module's functions.

    >>> from llm_provider import call
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, RequestTimeline() as timeline:
    ...     answer = call("gpt-6.1-sol", "What is 2+2?", base_url=simulator.url("openai"))
    >>> [(row.model, row.outcome) for row in timeline.rows]
    [('gpt-6.1-sol', 'answered')]
    """

    def __init__(self, client: Client | None = None) -> None:
        self._events = (client or default_client())._runner.engine.events  # noqa: SLF001 - of the same layer
        self._recorder = _Recorder()
        self.rows = self._recorder.rows

    def __enter__(self) -> Self:
        self._events.listeners += (self._recorder,)
        return self

    def __exit__(self, *_: object) -> None:
        listeners = self._events.listeners
        self._events.listeners = tuple(each for each in listeners if each is not self._recorder)

    def plot(self) -> Any:
        """A figure of matplotlib: requests per second by outcome, and below them requests in flight.

        Raises:
            MissingDependencyError: matplotlib is not installed; the extra `plot` installs it.
        """
        return doors.pictures.plot_requests(self.rows.copy())
