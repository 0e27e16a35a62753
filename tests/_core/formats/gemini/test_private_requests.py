"""Requests by the private methods of google-genai, and the releases that have them."""

from gemini_support import Way, both_ways, outgoing, run
from llm_provider.simulator import Simulator


@both_ways
def test_both_ways_send_the_same(simulator: Simulator, way: Way) -> None:
    request = outgoing(simulator.url("gemini"), "Hi", max_tokens=50, extra_headers={"X-Own": "1"})
    for transport in ("aiohttp", "aiohttp, public methods"):
        run(transport, way, request)
    private, public = simulator.requests()
    assert (private.path, private.body) == (public.path, public.body)
    assert private.headers == public.headers
