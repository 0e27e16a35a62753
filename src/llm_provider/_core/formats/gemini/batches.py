"""Batches of Gemini, through the google-genai SDK: `files` and `batches`.

Facts from google-genai 3.4. Rows always go into a file, also below the 20 MB that Google takes inline: a
file has the bytes of a live request, where the SDK rewrites inline requests by its own types, it names each
row, and the name of the file identifies the batch if the answer to its submission is lost. The SDK leaves out
the counts of a batch and the reason of its failure, so they are read from the bytes of the answer.
"""

import contextlib
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson

from ...errors import APIResponseValidationError
from ...json_values import JSONObject
from ...requests.api_keys import Credential
from ...requests.routing import Target
from ...runtime.json_pieces import loads, write_exactly
from ..sdk_clients import SECONDS_OF_A_FILE, close_gemini_client, gemini_client, items_of, pages_of
from ..shared.batches import (
    RPC_STATUSES,
    BatchLimits,
    BatchSpec,
    RemoteBatch,
    RowReply,
    fail_row,
    id_of,
    mark_unbilled,
    read_name,
    rows_of,
    time_of,
    write_name,
)
from ..shared.errors import body_in_text, from_answer, headers_of
from . import embeddings
from .decode import error_of
from .encode import split_version

_LIMITS = BatchLimits(200_000, 1_000_000_000, 1)
"""Google takes files of 2 GB, and tells no number of rows. A row has one text."""

_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
"""The SDK's own list of final states lacks the last one."""

_PAGE = 100


def limits(target: Target, operation: str) -> BatchLimits | None:
    return _LIMITS


class GeminiBatches:
    keeps_label = True

    def __init__(self, target: Target, key: Credential) -> None:
        from google.genai import types

        self._client, self._http_client = gemini_client(target, key)
        base_url, version = split_version(target.base_url)
        self._address = f"{base_url}/{version or 'v1beta'}"
        self._authorization = {"x-goog-api-key": key.reveal()}
        self._http_client.event_hooks = {"response": [self._keep_operation]}
        self._operations: dict[str, JSONObject] = {}
        self._types = types
        self._long = types.HttpOptions(timeout=int(1000 * SECONDS_OF_A_FILE))

    def line(self, spec: BatchSpec, custom_id: str, body: bytes) -> bytes:
        """One row as a line of Gemini's file, without a line break. A text is a request of its own."""
        if _embeds(spec.operation):
            body = write_exactly(loads(body)["requests"][0])
        return b'{"key":%s,"request":%s}' % (orjson.dumps(custom_id), body)

    async def upload(self, path: Path) -> str | None:
        config = self._types.UploadFileConfig(
            display_name=path.name, mime_type="application/jsonl", http_options=self._long
        )
        uploaded = await self._client.aio.files.upload(file=path, config=config)
        return id_of(uploaded, "name")

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        assert file is not None
        model = spec.operation.rpartition("/models/")[2].partition(":")[0]
        name = write_name(spec)
        headers = self._types.HttpOptions(headers=dict(spec.headers)) if spec.headers else None
        batches = self._client.aio.batches
        if _embeds(spec.operation):
            source = self._types.EmbeddingsBatchJobSource(file_name=file)
            options = self._types.CreateEmbeddingsBatchJobConfig(display_name=name, http_options=headers)
            with warnings.catch_warnings():
                # The SDK calls its method experimental.
                warnings.simplefilter("ignore")
                return _remote(await batches.create_embeddings(model=model, src=source, config=options))
        config = self._types.CreateBatchJobConfig(display_name=name, http_options=headers)
        return _remote(await batches.create(model=model, src=file, config=config))

    async def retrieve(self, identifier: str) -> RemoteBatch:
        job = await self._client.aio.batches.get(name=identifier)
        return _remote(job, self._operations.pop(identifier, None))

    async def _keep_operation(self, response: Any) -> None:
        """Keep what Google says of one batch, for `retrieve`, and refuse a list that is none."""
        _, part, identifier = response.request.url.path.partition("/batches")
        if response.status_code == 200 and response.request.method == "GET" and part:
            body: Any = None
            with contextlib.suppress(ValueError):
                body = loads(await response.aread())
            if identifier and isinstance(body, dict):
                self._operations[f"batches{identifier}"] = body
            elif not identifier and body != {}:
                fields = body if isinstance(body, dict) else {}
                if not ("nextPageToken" in fields or isinstance(fields.get("operations"), list)):
                    raise APIResponseValidationError("the answer is no list of batches")

    async def recent(self) -> AsyncIterator[RemoteBatch]:
        config = self._types.ListBatchJobsConfig(page_size=_PAGE)
        listed = False
        # Google says {} where there are none, as a proxy may that knows none: it is asked once more.
        for _ in range(2):
            pager = await self._client.aio.batches.list(config=config)
            async for job in items_of(pages_of(pager), "name"):
                listed = True
                yield _remote(job)
            if listed:
                return

    async def results(self, remote: RemoteBatch, longest: int) -> AsyncIterator[RowReply]:
        for name in remote.results:
            # The SDK before 3 asks for a file at an address without version.
            address = f"{self._address}/{name}:download?alt=media"
            request = self._http_client.build_request(
                "GET", address, headers=self._authorization, timeout=SECONDS_OF_A_FILE
            )
            answer = await self._http_client.send(request, stream=True)
            try:
                if answer.is_error:
                    body = body_in_text((await answer.aread()).decode("utf-8", "replace"))
                    raise error_of(body, status=answer.status_code, headers=headers_of(answer))
                async for row in rows_of(answer.aiter_bytes(), longest, _reply):
                    yield row
            finally:
                await answer.aclose()

    async def cancel(self, identifier: str) -> None:
        await self._client.aio.batches.cancel(name=identifier)

    async def close(self) -> None:
        await close_gemini_client(self._client, self._http_client)


def _embeds(operation: str) -> bool:
    return operation.endswith(f":{embeddings.ACTION}")


connect = GeminiBatches


def _remote(job: Any, operation: JSONObject | None = None) -> RemoteBatch:
    state = str(getattr(job.state, "name", job.state) or "PENDING")
    state = state.removeprefix("JOB_STATE_").removeprefix("BATCH_STATE_")
    stats = ((operation or {}).get("metadata") or {}).get("batchStats") or {}
    failure = (operation or {}).get("error") or {}
    file = getattr(job.dest, "file_name", None)
    return RemoteBatch(
        identifier=id_of(job, "name"),
        state=state,
        ended=state in _ENDED,
        created=time_of(job.create_time),
        total=int(stats.get("requestCount") or 0) or None,
        done=int(stats.get("successfulRequestCount") or 0),
        failed=int(stats.get("failedRequestCount") or 0),
        **read_name(job.display_name),
        results=(file,) if file else (),
        problem=failure.get("message"),
        # RESOURCE_EXHAUSTED of google.rpc says that the queue is full.
        problem_code="token_limit_exceeded" if failure.get("code") == 8 else None,
    )


def _reply(line: bytes) -> RowReply:
    try:
        row = loads(line)
        name, response, failure = str(row["key"]), row.get("response"), row.get("error")
    except (ValueError, KeyError, TypeError, AttributeError):
        return fail_row(line)
    if isinstance(response, dict):
        if "embedding" in response:
            # The form of a live answer with one text.
            response["embeddings"] = [response.pop("embedding")]
        return RowReply(name, write_exactly(response), None)
    fields = failure if isinstance(failure, dict) else {}
    code, status = fields.get("code"), fields.get("status")
    number = RPC_STATUSES.get(code, code) if isinstance(code, int) else None
    codes = (status if isinstance(status, str) else None,)
    failed = from_answer(number, codes=codes, message=str(fields.get("message") or ""))
    return RowReply(name, None, mark_unbilled(failed))
