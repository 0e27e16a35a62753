"""Batches of OpenAI, by the openai SDK 2.54, and of hosts with the same API, which `ROUTES` tells.

Hosts whose API is another derive their connection from this one: `_features/batch_hosts`.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from ...requests.api_keys import Credential
from ...requests.routing import Target
from ...runtime.json_pieces import loads, write_exactly
from ..openai_chat import encode as chat
from ..openai_responses import encode as responses
from ..registry import load_beside
from ..sdk_clients import SECONDS_OF_A_FILE, close_clients, openai_client
from ..shared import batches as shared
from ..shared.errors import error_fields, from_answer
from ..shared.replies import text_of
from . import embeddings

_OPERATIONS = (chat.OPERATION, responses.OPERATION, embeddings.OPERATION)
_ENDED = ("failed", "completed", "expired", "cancelled")
_PAGE = 100


def limits(target: Target, operation: str) -> shared.BatchLimits | None:
    service = target.route.batches
    if service is None or operation not in (service.operations or _OPERATIONS):
        return None
    return shared.BatchLimits(service.rows, service.bytes)


class OpenAIBatches:
    keeps_label = True

    def __init__(self, target: Target, key: Credential) -> None:
        service = target.route.batches
        assert service is not None
        self._target, self._service = target, service
        self._client = openai_client(target, key)

    def line(self, spec: shared.BatchSpec, custom_id: str, body: bytes) -> bytes:
        """One row as a line of OpenAI's file, with the bytes of a live request."""
        head = orjson.dumps({"custom_id": custom_id, "method": "POST", "url": f"/v1/{spec.operation}"})
        return b'%s,"body":%s}' % (head[:-1], body)

    async def upload(self, path: Path) -> str | None:
        with path.open("rb") as file:
            uploaded = await self._client.files.create(
                # OpenAI refuses a file of any other kind.
                file=(f"{path.stem}.jsonl", file),
                purpose=cast("Literal['batch']", self._service.purpose),
                timeout=SECONDS_OF_A_FILE,
            )
        return shared.id_of(uploaded)

    async def create(self, spec: shared.BatchSpec, path: Path, file: str | None) -> shared.RemoteBatch:
        assert file is not None
        endpoint = dict(self._service.endpoints).get(spec.operation, spec.operation)
        batch = await self._client.batches.create(
            input_file_id=file,
            endpoint=cast("Literal['/v1/chat/completions']", f"/v1/{endpoint}"),
            completion_window="24h",
            metadata={"llm_provider": spec.label, "content": spec.content, "origin": spec.origin},
            extra_headers=spec.headers,
        )
        return _remote(batch)

    async def retrieve(self, identifier: str) -> shared.RemoteBatch:
        return _remote(await self._client.batches.retrieve(identifier))

    def recent(self) -> AsyncIterator[shared.RemoteBatch]:
        return shared.batches_of(self._client.batches.list(limit=_PAGE), _remote)

    async def results(self, remote: shared.RemoteBatch, longest: int) -> AsyncIterator[shared.RowReply]:
        """The ends of all rows that have one. Rows that failed stand in a file of their own."""
        for file in remote.results:
            async with self._client.files.with_streaming_response.content(
                file, timeout=SECONDS_OF_A_FILE
            ) as response:
                async for row in shared.rows_of(response.iter_bytes(), longest, self.read_line):
                    yield row

    async def cancel(self, identifier: str) -> None:
        await self._client.batches.cancel(identifier)

    async def close(self) -> None:
        await close_clients(self._client)

    @staticmethod
    def read_line(line: bytes) -> shared.RowReply:
        """The end of a row from a line of the results."""
        return _reply(line)


def connect(target: Target, key: Credential) -> shared.BatchConnection:
    """A connection of OpenAI's shape, or of the host's own."""
    host = target.route.batches and target.route.batches.host
    module: Any = load_beside("batch_hosts", host) if host else None
    connection: shared.BatchConnection = (module.connect if module else OpenAIBatches)(target, key)
    return connection


def _remote(batch: Any) -> shared.RemoteBatch:
    metadata = batch.metadata or {}
    counts = batch.request_counts
    errors = getattr(batch.errors, "data", None) or ()
    state = str(batch.status).lower()
    wrong = ((str(getattr(error, "line", None)), str(error.message)) for error in errors)
    return shared.RemoteBatch(
        identifier=shared.id_of(batch),
        state=state,
        ended=state in _ENDED,
        created=shared.time_of(batch.created_at),
        total=getattr(counts, "total", None),
        done=getattr(counts, "completed", 0) or 0,
        failed=getattr(counts, "failed", 0) or 0,
        label=metadata.get("llm_provider"),
        content=metadata.get("content"),
        origin=metadata.get("origin"),
        input_file=batch.input_file_id,
        results=tuple(file for file in (batch.output_file_id, batch.error_file_id) if file),
        problem="; ".join(str(error.message) for error in errors) or None,
        problem_code=next((text_of(getattr(error, "code", None)) for error in errors), None),
        wrong_lines={int(line): message for line, message in wrong if line.isdecimal()},
    )


def _reply(line: bytes) -> shared.RowReply:
    try:
        row = loads(line)
        name, response, failure = str(row["custom_id"]), row.get("response"), row.get("error")
    except (ValueError, KeyError, TypeError, AttributeError):
        return shared.fail_row(line)
    answer = response if isinstance(response, dict) else {}
    status, body = answer.get("status_code"), answer.get("body")
    if str(status) == "200":
        return shared.RowReply(name, write_exactly(body), None, text_of(answer.get("request_id")))
    code = str(failure.get("code")) if isinstance(failure, dict) else ""
    error = shared.explain_unreached(code) if code.startswith("batch_") else None
    codes, message = error_fields(body or failure)
    failed = from_answer(status if isinstance(status, int) else None, codes=codes, message=message)
    return shared.RowReply(name, None, error or shared.mark_unbilled(failed))
