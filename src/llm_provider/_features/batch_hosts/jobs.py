"""What the connections to these hosts share. Their batches are JSON, as the openai SDK has no types of them.

The SDK carries the requests, so keys, errors and limits of size are as for every other request.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin

import orjson

from ..._core.errors import APIResponseValidationError
from ..._core.formats.openai.batches import OpenAIBatches
from ..._core.formats.sdk_clients import SECONDS_OF_A_FILE
from ..._core.formats.shared.batches import BatchSpec, RemoteBatch, RowReply, fail_row, pieces_of
from ..._core.formats.shared.errors import from_answer
from ..._core.json_values import JSONObject
from ..._core.runtime.json_pieces import loads, read_exactly, write_exactly

T = TypeVar("T")

_MOST_PAGES, _MOST_REDIRECTS = 100_000, 5

_ANSWERS = frozenset({"choices", "data", "output"})
"""Each answer has one of these fields."""


class JobBatches(OpenAIBatches):
    """The batches of an account at one of these hosts. A host gives `read_batch` and the paths."""

    has_models_in_rows = True
    """Whether a row names its model. Else the batch has one for all rows."""

    def line(self, spec: BatchSpec, custom_id: str, body: bytes) -> bytes:
        """One row as a line of the file, which has the endpoint in no line."""
        if not self.has_models_in_rows:
            payload = read_exactly(body.decode())
            payload.pop("model", None)
            body = write_exactly(payload)
        return b'{"custom_id":%s,"body":%s}' % (orjson.dumps(custom_id), body)

    @staticmethod
    def read_batch(job: JSONObject) -> RemoteBatch:
        raise NotImplementedError

    @staticmethod
    def read_line(line: bytes) -> RowReply:
        """The end of a row, whose answer may stand without the status that OpenAI writes around it."""
        try:
            row: Any = loads(line)
            name, response = str(row["custom_id"]), row.get("response")
            whole = response if isinstance(response, dict) else {}
            answer = whole["body"] if isinstance(whole.get("body"), dict) else whole
        except (ValueError, KeyError, TypeError, AttributeError):
            return fail_row(line)
        if "status_code" not in whole and not _ANSWERS.isdisjoint(answer):
            return RowReply(name, write_exactly(answer), None, answer.get("id"))
        return OpenAIBatches.read_line(line)

    async def ask(
        self, path: str, body: object = None, *, spec: BatchSpec | None = None, **query: Any
    ) -> Any:
        """The JSON in the answer to a request, which is a POST if it has a body."""
        options: Any = {"params": query, "headers": {} if spec is None else spec.headers}
        if body is None:
            return await self._client.get(path, cast_to=object, options=options)
        return await self._client.post(path, cast_to=object, body=body, options=options)

    async def ask_about(
        self, path: str, body: object = None, *, spec: BatchSpec | None = None
    ) -> RemoteBatch:
        """The batch in the answer to a request."""
        return self.read_batch(require(await self.ask(path, body, spec=spec), dict, "batch"))

    async def pages(self, path: str, name: str, token: str, **query: Any) -> AsyncIterator[list[JSONObject]]:
        """The pages of a list. `name` is the field of its items, and `token` leads to the next page."""
        parameter = {"nextPageToken": "pageToken"}.get(token, token)
        for _ in range(_MOST_PAGES):
            page = require(await self.ask(path, **query), dict, "list")
            if name not in page:
                # Google's servers leave out an empty list, and the page of a proxy says nothing: ask again.
                page = {name: [], **require(await self.ask(path, **query), dict, "list")}
            yield require(page[name], list, "list")
            following = page.get(token)
            if not following or following == query.get(parameter):
                return
            query[parameter] = following

    async def put(self, address: str, path: Path) -> None:
        """Put a file where an answer says. The address is signed, so the key does not go along."""
        headers = {"content-length": str((await asyncio.to_thread(path.stat)).st_size)}
        async with self.open_address(
            address, "PUT", lambda: {"content": pieces_of(path), "headers": headers}
        ) as response:
            if (await response.aread()).lstrip().lower().startswith((b"<html", b"<!doctype html")):
                raise APIResponseValidationError("a web page answers in the place of the store of files")

    @asynccontextmanager
    async def open_address(
        self, address: str, method: str = "GET", make: Callable[[], dict[str, Any]] = dict
    ) -> AsyncIterator[Any]:
        """The response of a store of files, without the key. `make` makes what is sent, for each address."""
        # The SDK adds the key to its requests, and its HTTP client only by `auth`.
        client, secure = self._client._client, str(self._target.base_url).startswith("https:")  # noqa: SLF001
        for _ in range(_MOST_REDIRECTS):
            if not address.startswith("https://" if secure else ("http://", "https://")):
                raise APIResponseValidationError("the answer names a place for a file without https")
            sent = client.stream(method, address, auth=None, timeout=SECONDS_OF_A_FILE, **make())
            async with sent as response:
                if response.status_code // 100 == 2:
                    yield response
                    return
                following = response.headers.get("location", "")
                if response.status_code // 100 != 3 or not following:
                    text = (await response.aread()).decode("utf-8", "replace")
                    error = from_answer(response.status_code, message=text)
                    # An address lasts some minutes, and the next one may be served.
                    error.retryable = True
                    raise error
                address = urljoin(address, following)
        raise APIResponseValidationError("the place for a file leads to another one again and again")


def newest_first(batches: Sequence[RemoteBatch]) -> list[RemoteBatch]:
    """The batches of a host that promises no order of its list."""
    return sorted(batches, key=lambda batch: batch.created, reverse=True)


def require(value: object, kind: type[T], what: str) -> T:
    """A part of an answer; `APIResponseValidationError` if it is another one, as in the page of a proxy."""
    if not isinstance(value, kind):
        raise APIResponseValidationError(f"the answer is no {what} of batches")
    return value


def identify(job: JSONObject, name: str = "id") -> str:
    """The id of a batch or a file; `APIResponseValidationError` without one."""
    identifier = job.get(name)
    if not isinstance(identifier, str) or not identifier:
        raise APIResponseValidationError("the answer has no id of a batch or a file")
    return identifier


def count(value: object) -> int:
    """A number of rows, which some hosts write as text; 0 where there is none."""
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()) else 0


async def count_lines(path: Path) -> int:
    """The number of rows in the file of a batch."""

    def count_here() -> int:
        with path.open("rb") as file:
            return sum(1 for _ in file)

    return await asyncio.to_thread(count_here)
