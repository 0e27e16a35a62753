"""The servers, each started once."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cache

import pytest

from witnesses.all_servers import WITNESSES
from witnesses.witness import Running, Start, serve


@pytest.fixture(scope="session")
def servers(
    tmp_path_factory: pytest.TempPathFactory, users_environment: Mapping[str, str]
) -> Iterator[Start]:
    """A server by its name. It is started when it is first asked for, and runs until the last test."""
    with ExitStack() as stack:

        @cache
        def start(name: str) -> Running:
            return stack.enter_context(
                serve(WITNESSES[name], tmp_path_factory.mktemp(name), users_environment)
            )

        yield start
