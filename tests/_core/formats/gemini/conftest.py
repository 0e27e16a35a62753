"""Fixtures of the tests of Gemini."""

import pytest


@pytest.fixture(params=["aiohttp", "http1", "aiohttp, public methods", "http1, public methods"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)
