"""Background jobs of OpenAI's Responses API, by the openai SDK 3.57: `responses` with `background: true`.

Each job is a batch of one row. The API has no list of responses, and takes no idempotency key: a submission
whose answer was lost, or whose process was killed before the answer came, cannot be found again. Its name in
the journal is sent along as metadata, by which its user finds it in OpenAI's own logs.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from ..._core.errors import APIResponseValidationError, LLMError, NotFoundError
from ..._core.formats.openai_responses.decode import end_before_completion, usage
from ..._core.formats.openai_responses.encode import OPERATION
from ..._core.formats.sdk_clients import close_clients, openai_client
from ..._core.formats.shared import batches as shared
from ..._core.formats.shared.replies import dicts, parse_reply, part, text_of
from ..._core.formats.transport.http_client import library_of
from ..._core.json_values import JSONObject
from ..._core.requests.api_keys import Credential
from ..._core.requests.routing import Target
from ..._core.runtime.json_pieces import loads, write_exactly

_LIMITS = shared.BatchLimits(rows=1, bytes=2**30, parts=1)
_UNFINISHED = ("queued", "in_progress")
_ANSWERED = ("completed", "incomplete")
_ENDED = (*_ANSWERED, "failed", "cancelled", "expired")

_LABEL, _INCLUDE = "llm_provider", "llm_provider_include"
"""The metadata of a job: its name in the journal, and what its answer has to include when it is read."""

_MOST_METADATA = 16
"""OpenAI's limit of pairs."""


def limits(target: Target, operation: str) -> shared.BatchLimits | None:
    route = target.route
    return _LIMITS if operation == OPERATION and route.stores_answers and route.like_openai else None


class BackgroundJobs:
    keeps_label = False

    def __init__(self, target: Target, key: Credential) -> None:
        import openai

        self._client = openai_client(target, key)
        self._raw_class = library_of(openai.DefaultAsyncHttpxClient).Response

    def line(self, spec: shared.BatchSpec, custom_id: str, body: bytes) -> bytes:
        """The body of a live request with the fields of a job, whose answer OpenAI keeps."""
        payload: JSONObject = loads(body)
        metadata = {_LABEL: spec.label, _INCLUDE: " ".join(payload.get("include") or ())}
        metadata |= payload.get("metadata") or {}
        fields: JSONObject = {"background": True, "store": True}
        if len(metadata) <= _MOST_METADATA:
            fields["metadata"] = metadata
        if spec.background not in (None, {"completion_window": "soonest"}):
            fields["background_options"] = spec.background
        return write_exactly(payload | fields)

    async def upload(self, path: Path) -> str | None:
        """Nothing: the row is the submission."""
        return None

    async def create(self, spec: shared.BatchSpec, path: Path, file: str | None) -> shared.RemoteBatch:
        """Submit a job, at most once, with the bytes of its line."""
        body = (await asyncio.to_thread(path.read_bytes)).rstrip(b"\n")
        options: Any = {"headers": {**spec.headers, "content-type": "application/json"}}
        reply = await self._client.post(
            f"/{spec.operation}", content=body, cast_to=self._raw_class, options=options
        )
        return _remote(parse_reply(reply.content))

    async def retrieve(self, identifier: str) -> shared.RemoteBatch:
        reply, _, _ = await self._read(identifier, ())
        return _remote(reply)

    def recent(self) -> AsyncIterator[shared.RemoteBatch]:
        """A `NotFoundError`: there is no such list."""
        raise NotFoundError("OpenAI has no list of responses")

    async def results(self, remote: shared.RemoteBatch, longest: int) -> AsyncIterator[shared.RowReply]:
        """The answer, with all that was asked to be included, or the error in its place."""
        if not remote.results:
            return
        reply, body, request_id = await self._read(remote.identifier, remote.results[1:])
        yield shared.only_row(body, _error_of(reply), longest, request_id)

    async def cancel(self, identifier: str) -> None:
        await self._client.responses.with_raw_response.cancel(identifier)

    async def close(self) -> None:
        await close_clients(self._client)

    async def _read(self, identifier: str, include: Sequence[str]) -> tuple[Any, bytes, str | None]:
        """A response object, its bytes, and the id of the request."""
        more = {"include": list(include)} if include else {}
        raw = await self._client.responses.with_raw_response.retrieve(identifier, **more)
        body: bytes = raw.content
        return parse_reply(body), body, raw.headers.get("x-request-id")


connect = BackgroundJobs


def _remote(reply: Any) -> shared.RemoteBatch:
    identifier = text_of(reply.get("id")) if isinstance(reply, dict) else None
    if not identifier:
        # What it was asked to make may exist.
        raise APIResponseValidationError("the answer is no response object with an id")
    # Not every server has a status.
    state = text_of(reply.get("status")) or "completed"
    include = text_of(part(reply, "metadata").get(_INCLUDE)) or ""
    # Servers have words of their own, such as "pending", for a job that goes on.
    ended = state in _ENDED or (
        state not in _UNFINISHED and any(map(reply.get, ("output", "error", "usage")))
    )
    return shared.RemoteBatch(
        identifier=identifier,
        state=state,
        ended=ended,
        created=shared.time_of(reply.get("created_at")),
        total=1,
        done=int(state in _ANSWERED),
        failed=int(ended and state not in _ANSWERED),
        results=("response", *include.split()) if ended else (),
    )


def _error_of(reply: Any) -> LLMError | None:
    """The error of a job that failed without any usage, and so was not billed; None for all others.

    The others are read like the answers of live calls: one that was cancelled may have been billed.
    """
    state = reply.get("status") if isinstance(reply, dict) else None
    if state in ("failed", "expired") and not usage(reply) and not dicts(reply.get("output")):
        try:
            end_before_completion(reply)
        except LLMError as error:
            return shared.mark_unbilled(shared.explain_unreached(str(state)) or error)
    return None
