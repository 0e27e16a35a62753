"""Failures in detail, beside `test_fault_matrix.py`: waits, retries, cancellation, hidden keys."""

import datetime
import email.utils
import itertools
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import llm_provider
from end_to_end.faults import CANARY, DIRECT, LATE, LITELLM, PROMPT, ROUTES, STREAMS, Route
from llm_provider import Client
from llm_provider._core import errors
from llm_provider._core.errors import LLMError
from llm_provider.simulator import Fault, Simulator
from support import TooSlowError, ask, patiently, wait_until
from wire_shapes import TEXT

NUMBERS = itertools.count()
LIVE = [
    pytest.param(route, id=name, marks=() if name in DIRECT else LITELLM) for name, route in ROUTES.items()
]
every_route = pytest.mark.parametrize("route", LIVE)
OPENAI = ROUTES["openai"]


def failure(client: Client, route: Route, way: str, kind: type[LLMError], **parameters: Any) -> LLMError:
    """The error of a call that has to fail with this kind of error."""
    with pytest.raises(kind) as caught:
        ask(client, way, route.model, PROMPT, **parameters)
    return caught.value


@pytest.fixture(autouse=True)
def own_key(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the test's own: each key has limits of its own, so no test is slowed down by another."""
    number = next(NUMBERS)
    for provider in ("OPENAI", "ANTHROPIC", "GEMINI", "LITELLM"):
        monkeypatch.setenv(f"{provider}_API_KEY", f"{CANARY}-{number}")


# --- keys ----------------------------------------------------------------------------------------------
METHODS: Mapping[str, Callable[[Client, str], Any]] = {
    "call_many": lambda client, url: client.call_many(
        "gpt-6.1-sol", ["hi"], api_key=CANARY, base_url=url, on_error="raise"
    ),
    "module's call": lambda _, url: llm_provider.call("gpt-6.1-sol", "hi", api_key=CANARY, base_url=url),
    "module's stream": lambda _, url: list(
        llm_provider.stream("gpt-6.1-sol", "hi", api_key=CANARY, base_url=url)
    ),
    "no route": lambda client, _: client.call("nonsense", "hi", api_key=CANARY),
    "no key": lambda client, _: client.call("gpt-6.1-sol", "hi", api_key=f"{CANARY}\n"),
}
"""Ways beside those of `test_fault_matrix.py`, which looks at every frame too."""


@pytest.mark.parametrize("method", METHODS)
def test_a_key_given_with_the_call_is_in_no_frame(
    simulator: Simulator, plain_client: Client, method: str
) -> None:
    simulator.inject(Fault(status=401), times=None)
    with pytest.raises(LLMError) as caught:
        METHODS[method](plain_client, simulator.url("openai"))
    traces = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert " = " in traces
    assert CANARY not in traces


# --- cancellation --------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["call", STREAMS[0]])
@every_route
@pytest.mark.sampled(3)
def test_a_request_that_takes_too_long_ends_at_the_server_too(
    simulator: Simulator, plain_client: Client, route: Route, way: str
) -> None:
    # The SDK loads and builds what its first call needs.
    plain_client.call(route.model, PROMPT, base_url=simulator.url(route.server))

    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(Fault(hang=True), times=None)
        where = {"base_url": simulator.url(route.server), "timeout": 0.3 * longer}
        failure(plain_client, route, way, errors.APITimeoutError, **where)
        if not wait_until(lambda: bool(simulator.requests()), LATE):
            raise TooSlowError("the request had not arrived")
        # Nobody pays for an answer that nobody waits for.
        assert wait_until(lambda: simulator.ledger().disconnects > 0)
        ledger = simulator.ledger()
        assert (ledger.disconnects, ledger.in_flight) == (1, 0)

    patiently(attempt)


# --- retries -------------------------------------------------------------------------------------------
WAITS = [
    ("0.4", "seconds", ""),
    ("400", "ms", ""),
    ("0.4s", "retry_info", "gemini"),
    ("a date", "seconds", "anthropic"),
]
"""The time to wait, how it is told, and the only provider that tells it so."""


@pytest.mark.parametrize(
    ("route", "value", "style"),
    [
        pytest.param(*entry.values, value, style, id=f"{entry.id}-{value}", marks=entry.marks)
        for entry in LIVE
        for value, style, only in WAITS
        if only in ("", entry.id)
    ],
)
@pytest.mark.sampled(5)
def test_retry_after_is_waited_for(
    simulator: Simulator, plain_client: Client, route: Route, value: str, style: str
) -> None:
    moment = datetime.datetime.now(datetime.UTC).replace(microsecond=0) + datetime.timedelta(seconds=2)
    shown = email.utils.format_datetime(moment, usegmt=True) if value == "a date" else value
    simulator.inject(Fault(status=429, retry_after=shown, retry_after_style=style))
    response = plain_client.call(route.model, PROMPT, base_url=simulator.url(route.server), max_retries=1)
    first, second = simulator.requests()
    if value == "a date":
        assert second.time >= moment.timestamp()
    else:
        assert second.time - first.time >= 0.4
        assert response.timing.queue >= 0.4


@every_route
def test_a_wait_of_hours_holds_nobody_back(simulator: Simulator, plain_client: Client, route: Route) -> None:
    simulator.inject(Fault(status=429, retry_after="3600"))
    where = {"base_url": simulator.url(route.server)}
    error = failure(plain_client, route, "call", errors.RateLimitError, **where, max_retries=3)
    assert (error.attempts, error.retry_after) == (1, 3600.0)
    # The provider may have changed its mind.
    assert plain_client.call(route.model, PROMPT, **where).text == TEXT
