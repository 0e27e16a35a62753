"""The table of the last update: `llm-provider prices update`, and `prices="fresh"`, which reads it.

    installed packages │ HTTPS address → check → what differs → prices.csv in the cache directory

What fails leaves the last good table as it is. The table counts until the package has a newer one. A client
reads the table when it first needs a price, and keeps it. With `prices="fresh"` a thread looks for newer
installed packages, so no call waits; only the command downloads.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import logging
import os
import re
import time
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from ..._core.errors import RequestError, cite
from ..._core.money.price_rows import COLUMNS, PriceFile, PriceRow, check_row
from ..._core.money.pricing import PriceTable, default_prices_path
from ..._core.runtime import clock, threads
from ..._core.runtime.files import make_folder, read_text, replace_file
from ..._core.store.response_cache import default_directory
from . import changes, genai_data, litellm_map

_logger = logging.getLogger("llm_provider")

_SECONDS, _MOST_BYTES = 30.0, 16_000_000
"""For a whole download. The table of today has 0.5 MB."""
_LEAST_VALID = 0.99
"""The share of rows that must be valid. A newer table may have rows that this version does not know."""

_PACKAGES = {changes.LITELLM: ("litellm", litellm_map.FILE_NAME), changes.GENAI: ("genai_prices", "data.py")}
_VERSION = re.compile(rf"({changes.LITELLM}|{changes.GENAI}) ([0-9][0-9.]*)")


class Updated(NamedTuple):
    """What an update did: where the table is, its sources, and how many models it prices otherwise."""

    path: Path
    sources: tuple[str, ...]
    models: int


def table_path() -> Path:
    """The path of the table of the last update."""
    return default_directory() / "prices.csv"


def find_table() -> Path | None:
    """The table of the last update, unless there is none that counts."""
    path = table_path()
    try:
        status, text = path.stat(), read_text(path)
    except (OSError, RequestError):
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        _logger.warning("%s is not used: other users can change it", path)
        return None
    versions, (shipped, newest) = _find_versions(text), _read_shipped()
    is_older = versions and all(version < shipped.get(name, ()) for name, version in versions.items())
    read = time.strftime("%Y-%m-%d", time.gmtime(status.st_mtime))
    return None if is_older or read < newest else path


def update(address: str | None = None) -> Updated:
    """Renew the table from an HTTPS address, else from installed packages that are newer than it.

    Raises:
        RequestError: the address is none, or what it has is no table; the last good table stays.
        OSError: the address cannot be reached, or the table cannot be written.
    """
    if address is not None:
        rows, sources = _check_rows(_download(address), address), (address.partition("#")[0],)
        return _keep(rows, sources)
    before = find_table()
    text = "" if before is None else read_text(before)
    known = {**_read_shipped()[0], **_find_versions(text)}
    today = time.strftime("%Y-%m-%d", time.gmtime(clock.time()))
    models: dict[str, Mapping[Any, Any]] = {}
    for name, (version, path) in _find_installed().items():
        if _numbers(version) > known.get(name, ()):
            is_map = name == changes.LITELLM
            read = litellm_map.read_models(path, today) if is_map else genai_data.read_models(path)
            models[f"{name} {version}"] = read
    if not models:
        return Updated(table_path(), (), 0)
    table = PriceTable.load(overrides=before)
    rows = list(changes.list_changes(table, models, today))
    changed = {row[:3] for row in rows}
    kept = [row for row in _check_rows(text, str(before)) if row[:3] not in changed] if text else []
    return _keep([*kept, *rows], tuple(models))


def keep_fresh() -> None:
    """Start a thread that renews the table from installed packages, if one is newer."""

    def renew() -> None:
        try:
            update()
        # A client goes on with the last good table, whatever a file of another package has.
        except Exception as error:
            _logger.warning("the prices were not renewed: %s", error)

    threads.start_thread(renew, "llm-provider-prices")


def _keep(rows: Iterable[PriceRow], sources: tuple[str, ...]) -> Updated:
    """Write the rows that the package's own table does not have."""
    shipped, groups = PriceTable.load(), dict[tuple[str, ...], list[PriceRow]]()
    for row in rows:
        groups.setdefault(row[:3], []).append(row)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    differing = set()
    for key, listed in sorted(groups.items()):
        own = [row for row in shipped.list_rows(*key[:2]) if row[:3] == key]
        if [row[3:-2] for row in own] != [row[3:-2] for row in listed]:
            differing.add(key[:2])
            for row in listed:
                cells = ("" if cell is None else cell for cell in row)
                writer.writerow(format(cell, "f") if isinstance(cell, Decimal) else cell for cell in cells)
    path = table_path()
    make_folder(path.parent)
    with replace_file(path, safe="the last good table stays") as file:
        file.write(text.getvalue().encode())
    return Updated(path, sources, len(differing))


def _check_rows(text: str, name: str) -> list[PriceRow]:
    """The valid rows of a table; `RequestError` if it has no header, or too few of them."""
    try:
        lines = list(PriceFile(name, text).lines())
    except ValueError as error:
        raise RequestError(f"{cite(name)} has no table of prices: {error}") from None
    rows, reason = [], "it is empty"
    for where, cells in lines:
        try:
            rows.append(check_row(cells))
        except ValueError as error:
            reason = f"{where}: {error}"
    if not rows or len(rows) < _LEAST_VALID * text.rstrip().count("\n"):
        raise RequestError(f"{cite(name)} has no table of prices that this version can read: {reason}")
    return rows


def _download(address: str) -> str:
    """The text at an address, whose digest must be that after `#sha256=`."""
    import http.client
    import urllib.error
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            """Follow none."""

    address, _, fragment = address.partition("#")
    wanted = fragment.removeprefix("sha256=").lower()
    if not re.fullmatch(r"https://[^/@\s]+/\S*", address):
        raise RequestError(f"the address of prices must begin with https:// and a host, not {cite(address)}")
    if fragment and not re.fullmatch(r"sha256=[0-9a-fA-F]{64}", fragment):
        raise RequestError(f"after # stands sha256= and 64 hexadecimal digits, not {cite(fragment)}")
    until, data = clock.monotonic() + _SECONDS, bytearray()
    opener = urllib.request.build_opener(NoRedirect)
    try:
        with opener.open(address, timeout=_SECONDS / 3) as reply:
            while part := reply.read1(65_536):
                data += part
                if len(data) > _MOST_BYTES or clock.monotonic() > until:
                    most = f"{_MOST_BYTES:,} bytes or {_SECONDS:g} s"
                    raise RequestError(f"{cite(address)} sends more than {most}: nothing was changed")
            # `read1` does not tell of a body that ends early.
            if reply.length:
                raise OSError(f"{address} broke off: {reply.length:,} bytes are missing")
    except urllib.error.HTTPError as error:
        error.close()
        raise OSError(f"{address} answers {error.code}; redirects are not followed") from None
    except http.client.HTTPException as error:
        raise OSError(f"{address} sends no answer of HTTP: {error!r}") from None
    digest = hashlib.sha256(data).hexdigest()
    if wanted and digest != wanted:
        raise RequestError(f"{cite(address)} has the SHA-256 {digest}, not {wanted}: nothing was changed")
    return data.decode("utf-8", errors="replace")


def _find_installed() -> dict[str, tuple[str, Path]]:
    """The versions and the data files of the installed packages."""
    installed = {}
    for name, (package, file) in _PACKAGES.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            version = importlib.metadata.version(name)
            installed[name] = version, Path(spec.origin).with_name(file)
    return installed


@functools.cache
def _read_shipped() -> tuple[dict[str, tuple[int, ...]], str]:
    """The newest versions of the sources of the package's own table, and the day on which it was read."""
    text = read_text(default_prices_path())
    return _find_versions(text), PriceFile(default_prices_path(), text).newest_day()


def _find_versions(text: str) -> dict[str, tuple[int, ...]]:
    versions: dict[str, tuple[int, ...]] = {}
    for name, version in set(_VERSION.findall(text)):
        versions[name] = max(versions.get(name, ()), _numbers(version))
    return versions


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
