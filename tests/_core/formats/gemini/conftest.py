"""Fixtures of the tests of Gemini."""

import pytest


@pytest.fixture(params=["aiohttp", "http1"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)
