"""Message batches of Anthropic, through the anthropic SDK: `messages.batches`.

Facts from anthropic 2.11. Anthropic keeps no label of a batch, so a submission without an answer is found
again by its time and its number of rows, and recognised by the names of its results.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson

from ...requests.api_keys import Credential
from ...requests.routing import Target
from ...runtime.json_pieces import loads, write_exactly
from ..sdk_clients import SECONDS_OF_A_FILE, anthropic_client, close_clients
from ..shared import batches as shared
from ..shared.errors import error_fields, from_answer
from .decode import OPERATION

_LIMITS = shared.BatchLimits(rows=100_000, bytes=64_000_000)
"""Anthropic takes 256 MB. A batch is one request, which is in memory while it is sent: ours are smaller."""

_PATH = "/v1/messages/batches"
_PAGE = 100
_RAW_RESPONSE = "X-Stainless-Raw-Response"
"""Asks the SDK for a response that is not read yet; before 1.0 it has no method that gives one of results."""

_STATUSES = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip


def limits(target: Target, operation: str) -> shared.BatchLimits | None:
    return _LIMITS if operation == OPERATION else None


class AnthropicBatches:
    keeps_label = False

    def __init__(self, target: Target, key: Credential) -> None:
        from anthropic.types.messages import MessageBatch

        self._client = anthropic_client(target, key)
        self._batches = self._client.messages.batches
        self._batch_class = MessageBatch

    def line(self, spec: shared.BatchSpec, custom_id: str, body: bytes) -> bytes:
        return b'{"custom_id":%s,"params":%s}' % (orjson.dumps(custom_id), body)

    async def upload(self, path: Path) -> str | None:
        """Nothing: the rows are part of the submission."""
        return None

    async def create(self, spec: shared.BatchSpec, path: Path, file: str | None) -> shared.RemoteBatch:
        """Submit a batch, at most once, with the rows as they are: the typed method would copy them."""
        rows = await asyncio.to_thread(path.read_bytes)
        body = b'{"requests":[' + rows.rstrip(b"\n").replace(b"\n", b",") + b"]}"
        headers = {**spec.headers, "content-type": "application/json"}
        options: Any = {"headers": headers, "timeout": SECONDS_OF_A_FILE}
        cast_to = self._batch_class
        return _remote(await self._client.post(_PATH, content=body, cast_to=cast_to, options=options))

    async def retrieve(self, identifier: str) -> shared.RemoteBatch:
        return _remote(await self._batches.retrieve(identifier))

    def recent(self) -> AsyncIterator[shared.RemoteBatch]:
        return shared.batches_of(self._batches.list(limit=_PAGE), _remote)

    async def results(self, remote: shared.RemoteBatch, longest: int) -> AsyncIterator[shared.RowReply]:
        if not remote.results:
            return
        headers = {"accept": "application/binary", _RAW_RESPONSE: "stream"}
        options: Any = {"headers": headers, "timeout": SECONDS_OF_A_FILE}
        address = f"{_PATH}/{remote.identifier}/results"
        response: Any = await self._client.get(address, cast_to=self._batch_class, options=options)
        try:
            async for row in shared.rows_of(response.iter_bytes(), longest, _reply):
                yield row
        finally:
            await response.close()

    async def cancel(self, identifier: str) -> None:
        await self._batches.cancel(identifier)

    async def close(self) -> None:
        await close_clients(self._client)


connect = AnthropicBatches


def _remote(batch: Any) -> shared.RemoteBatch:
    counts = getattr(batch, "request_counts", None)
    named = ("processing", "succeeded", "errored", "canceled", "expired")
    numbers = {name: getattr(counts, name, 0) or 0 for name in named}
    return shared.RemoteBatch(
        identifier=shared.id_of(batch),
        state=str(batch.processing_status),
        ended=batch.processing_status == "ended",
        created=shared.time_of(batch.created_at),
        total=sum(numbers.values()) or None,
        done=numbers["succeeded"],
        failed=numbers["errored"] + numbers["canceled"] + numbers["expired"],
        results=(batch.results_url,) if batch.results_url else (),
        archived=getattr(batch, "archived_at", None) is not None,
    )


def _reply(line: bytes) -> shared.RowReply:
    try:
        row = loads(line)
        name, result = str(row["custom_id"]), row["result"]
        kind = result["type"]
    except (ValueError, KeyError, TypeError):
        return shared.fail_row(line)
    if kind == "succeeded":
        return shared.RowReply(name, write_exactly(result.get("message")), None)
    # The type of an error stands for the status that a live request would have had.
    codes, message = error_fields(result.get("error"))
    status = next((_STATUSES[code] for code in codes if code in _STATUSES), None)
    failed = shared.mark_unbilled(from_answer(status, codes=codes, message=message))
    return shared.RowReply(name, None, shared.explain_unreached(str(kind)) or failed)
