"""Fixtures of the tests of litellm."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from llm_provider._features.litellm.connection import connect


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """One loop for all: litellm is imported once, and its background worker stays with the loop."""
    with asyncio.Runner() as running:
        yield running


@pytest.fixture
def connection(runner: asyncio.Runner) -> Iterator[Any]:
    opened = connect("aiohttp")
    yield opened
    runner.run(opened.close())
