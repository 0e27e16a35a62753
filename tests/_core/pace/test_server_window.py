"""The window of a server with places and a queue, in simulated time."""

import heapq
import random
from collections.abc import Callable

import pytest

from llm_provider._core.pace.server_window import ServerWindow
from llm_provider._core.pace.state import Ticket


class Server:
    """A server that serves so many at once and keeps the others waiting; the window is always full."""

    def __init__(self, places: int, seconds: Callable[[], float]) -> None:
        self.places, self.seconds = places, seconds
        self.window, self.now, self.sent = ServerWindow(), 0.0, 0
        self.free = [0.0] * places
        self.ends: list[tuple[float, int, Ticket]] = []

    def answer(self, count: int) -> float:
        """Let it give so many answers. Returns the answers a second."""
        begun = self.now
        for _ in range(count):
            while len(self.ends) < self.window.most:
                self.sent += 1
                ticket = Ticket(self.sent, self.now, len(self.ends) + 1, 1.0, 1.0, 1.0, 0.0)
                ticket.order = self.sent
                end = max(self.now, heapq.heappop(self.free)) + self.seconds()
                heapq.heappush(self.free, end)
                heapq.heappush(self.ends, (end, self.sent, ticket))
            self.now, _, ticket = heapq.heappop(self.ends)
            self.window.record_end(ticket, self.sent, self.now - ticket.at)
        return count / (self.now - begun)


@pytest.mark.parametrize("places", [1, 2, 6, 24, 100])
@pytest.mark.parametrize("variation", [0.3, 0.8])
def test_every_place_is_taken_and_few_requests_wait(places: int, variation: float) -> None:
    draw = random.Random(places)
    server = Server(places, lambda: 1 + variation * draw.uniform(-1, 1))
    server.answer(60 * places)
    windows, served = [], []
    for _ in range(40):
        served.append(server.answer(places))
        windows.append(server.window.most)
    assert sum(served) / len(served) > 0.93 * places
    assert sum(windows) / len(windows) < 2 * places + 12


def test_a_server_that_becomes_slower_keeps_its_places() -> None:
    slower, draw = 1.0, random.Random(1)
    server = Server(24, lambda: slower * draw.uniform(0.7, 1.3))
    server.answer(500)
    slower = 4.0
    server.answer(300)
    assert server.answer(300) > 0.9 * 24 / slower
    slower = 1.0
    server.answer(300)
    assert server.answer(300) > 0.9 * 24


def test_a_refused_number_is_a_cap_that_is_tried_again() -> None:
    server = Server(100, lambda: 1.0)
    server.answer(100)
    window, sent, most = server.window, server.sent, server.window.most
    refused = [Ticket(sent + number, server.now, most + number, 1.0, 1.0, 1.0, 0.0) for number in range(3)]
    for number, ticket in enumerate(refused):
        ticket.order = ticket.number
        # The second was sent before the first was refused, and the third afterwards: no place was free.
        assert window.explains(ticket, sent + 1, most - number) == (number < 2)
    assert window.most == most
    server.answer(100)
    low = Ticket(server.sent, server.now, most // 2, 1.0, 1.0, 1.0, 0.0)
    low.order = server.sent + 1
    assert not window.explains(low, server.sent + 1, 0)  # more were served, so it has another reason
    server.answer(20 * most)
    assert window.most > most


def test_a_request_that_hangs_or_fails_does_not_stop_the_window() -> None:
    window, sent = ServerWindow(), 0
    for round_number in range(4):
        most, failed = window.most, round_number == 2
        for place in range(most):
            ticket = Ticket(sent + place + 1, 0.0, most, 1.0, 1.0, 1.0, 0.0)
            ticket.order = sent + place + 1
            if place:  # the first hangs
                window.record_end(ticket, sent + most, None if failed else 1.0)
        sent += most
    assert window.most == 128
