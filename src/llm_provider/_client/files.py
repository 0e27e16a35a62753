"""The objects of a client that use files: its cache, its prices and the file of its ledger."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .._cache.response_cache import ResponseCache
from .._errors import RequestError
from .._money.ledger_file import LedgerFile
from .._money.pricing import PriceTable
from .._requests.checks import flag
from .._requests.routing import NO_HOSTS, Route
from .._runtime.files import check_path

if TYPE_CHECKING:
    from .._cache.second_level.settings import SecondLevel

Path = str | os.PathLike[str]


def prices_of(path: Path | None, hosts: Mapping[str, Route] = NO_HOSTS) -> Callable[[], PriceTable]:
    """Returns the price table, with the prices of the user's own hosts. The first use reads it.

    The user's own file is read at once: a `RequestError` comes before an answer is paid for.
    """
    own = None if path is None else check_path("prices", path)

    @functools.cache
    def table() -> PriceTable:
        try:
            loaded = PriceTable.load(overrides=own)
        except (OSError, ValueError) as error:
            raise RequestError(f"prices: {error}; docs/prices.md has the columns of such a file") from None
        loaded.replace_rows(row for route in hosts.values() if route.host for row in route.host.price_rows())
        return loaded

    if own is not None:
        table()
    return table


def ledger_of(path: Path | None) -> LedgerFile | None:
    """The file of the ledger; by default that of `LLM_PROVIDER_LEDGER`, else None."""
    if path is None:
        path = os.environ.get("LLM_PROVIDER_LEDGER", "").strip() or None
    return None if path is None else LedgerFile(check_path("ledger", path))


def cache_of(
    level: SecondLevel | None, directory: Path | None, saved: Callable[[], float], *, shared: bool | None
) -> ResponseCache:
    """The cache, with its second level if there is one."""
    if shared is not None:
        flag("cache_shared", shared)
    directory = None if directory is None else check_path("cache_dir", directory)
    if level is None:
        return ResponseCache(directory, saved=saved, shared=shared)
    from .._cache.second_level.two_level_cache import TwoLevelCache

    return TwoLevelCache(level, directory, saved=saved, shared=shared)
