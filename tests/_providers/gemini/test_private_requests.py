"""Requests by the private methods of google-genai, and the releases that have them."""

import google.genai
import pytest

from gemini_support import Way, both_ways, outgoing, run
from llm_provider._providers.gemini import private_requests
from llm_provider.simulator import Simulator


def test_the_installed_release_is_one_whose_private_methods_are_known() -> None:
    # Where this fails, read in the new release what `PrivateRequests` calls, and run these tests with it,
    # before KNOWN_RELEASES is changed. Until then, `TypedRequests` is used.
    assert private_requests.is_known(google.genai.__version__)


@pytest.mark.parametrize(
    ("version", "known"),
    [("3.0.0", True), ("3.4.1", True), ("2.9", False), ("3.5.0", False), ("4.0b1", False)],
)
def test_other_releases_are_used_by_public_methods(version: str, known: bool) -> None:
    assert private_requests.is_known(version) is known


@both_ways
def test_both_ways_send_the_same(simulator: Simulator, way: Way) -> None:
    request = outgoing(simulator.url("gemini"), "Hi", max_tokens=50, extra_headers={"X-Own": "1"})
    for transport in ("aiohttp", "aiohttp, public methods"):
        run(transport, way, request)
    private, public = simulator.requests()
    assert (private.path, private.body) == (public.path, public.body)
    assert private.headers == public.headers
