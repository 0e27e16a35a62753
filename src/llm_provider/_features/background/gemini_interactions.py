"""Background jobs of Gemini's Interactions, by google-genai 3.6: interactions with `background: true`.

Each job is a batch of one row. Google has neither a list of interactions nor a key that makes a submission
unique, so a submission whose answer was lost cannot be found again. Its name in the journal is sent along as
a label.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._core.errors import APIResponseValidationError, LLMError, NotFoundError
from ..._core.formats.gemini.encode import choose_version
from ..._core.formats.gemini_interactions.connection import connect as connect_live
from ..._core.formats.gemini_interactions.decode import decode, goes_on, usage
from ..._core.formats.protocol import EncodedRequest, Outgoing
from ..._core.formats.sdk_clients import SECONDS_OF_A_QUESTION, close_gemini_client, gemini_client
from ..._core.formats.shared import batches as shared
from ..._core.formats.shared.replies import parse_reply, part, text_of
from ..._core.json_values import JSONObject
from ..._core.pace.call_limits import Timeouts
from ..._core.requests.api_keys import Credential
from ..._core.requests.routing import Target
from ..._core.runtime.json_pieces import loads, write_exactly

_LIMITS = shared.BatchLimits(rows=1, bytes=2**30, parts=1)

_LABEL = "llm_provider"


def limits(target: Target, operation: str) -> shared.BatchLimits | None:
    """The same for models and agents: the route has one endpoint."""
    return _LIMITS


class BackgroundJobs:
    keeps_label = False

    def __init__(self, target: Target, key: Credential) -> None:
        self._target, self._key = target, key
        self._version = choose_version(target.base_url) or "v1beta"
        self._live = connect_live("http1")
        self._clients = gemini_client(target, key)

    def line(self, spec: shared.BatchSpec, custom_id: str, body: bytes) -> bytes:
        """The body of a live request with the fields of a job, whose answer Google keeps."""
        payload: JSONObject = loads(body)
        labels = {_LABEL: spec.label, **part(payload, "labels")}
        return write_exactly(payload | {"background": True, "store": True, "labels": labels})

    async def upload(self, path: Path) -> str | None:
        """Nothing: the row is the submission."""
        return None

    async def create(self, spec: shared.BatchSpec, path: Path, file: str | None) -> shared.RemoteBatch:
        """Submit a job, at most once, with the bytes of its line."""
        body = (await asyncio.to_thread(path.read_bytes)).rstrip(b"\n")
        encoded = EncodedRequest(spec.operation, {}, spec.headers)
        timeouts = Timeouts(total=SECONDS_OF_A_QUESTION)
        async with asyncio.timeout(SECONDS_OF_A_QUESTION):
            reply = await self._live.send(Outgoing(encoded, body, self._target, self._key, timeouts))
        return _remote(parse_reply(reply))

    async def retrieve(self, identifier: str) -> shared.RemoteBatch:
        # An interaction that has ended may have another id: LionSR/TeXRA#9570.
        return replace(_remote((await self._read(identifier))[0]), identifier=identifier)

    def recent(self) -> AsyncIterator[shared.RemoteBatch]:
        """A `NotFoundError`: there is no such list."""
        raise NotFoundError("Google has no list of interactions")

    async def results(self, remote: shared.RemoteBatch, longest: int) -> AsyncIterator[shared.RowReply]:
        """The interaction, or the error in its place."""
        if not remote.results:
            return
        reply, body = await self._read(remote.identifier)
        yield shared.only_row(body, _error_of(reply), longest)

    async def cancel(self, identifier: str) -> None:
        interactions = self._clients[0].aio.interactions
        await interactions.with_raw_response.cancel(identifier, api_version=self._version)

    async def close(self) -> None:
        await close_gemini_client(*self._clients)
        await self._live.close()

    async def _read(self, identifier: str) -> tuple[Any, bytes]:
        interactions = self._clients[0].aio.interactions
        answer = await interactions.with_raw_response.get(identifier, api_version=self._version)
        body: bytes = await answer.read()
        return parse_reply(body), body


connect = BackgroundJobs


def _remote(reply: Any) -> shared.RemoteBatch:
    identifier = text_of(reply.get("id")) if isinstance(reply, dict) else None
    if not identifier:
        # What it was asked to make may exist.
        raise APIResponseValidationError("the answer is no interaction with an id")
    state = text_of(reply.get("status")) or "completed"
    ended, failed = not goes_on(reply), state in ("failed", "cancelled")
    return shared.RemoteBatch(
        identifier=identifier,
        state=state,
        ended=ended,
        created=shared.time_of(reply.get("created")),
        total=1,
        done=int(ended and not failed),
        failed=int(failed),
        results=("interaction",) if ended else (),
    )


def _error_of(reply: Any) -> LLMError | None:
    """The error of a job that failed without any usage, and so was not billed; None for all others.

    The others are read like the answers of live calls: one that was cancelled may have been billed.
    """
    if isinstance(reply, dict) and reply.get("status") == "failed" and usage(reply) is None:
        try:
            decode(reply)
        except LLMError as error:
            return shared.mark_unbilled(error)
    return None
