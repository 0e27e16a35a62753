"""Vertex AI's batch prediction jobs of Gemini and Claude, whose files lie in a bucket of Cloud Storage.

By the REST API: google-genai 3.6 has the jobs of Gemini alone, and both makers' jobs are alike. The output
repeats the request of each row. Claude's rows have a `custom_id`. Gemini's rows have no name of their own, so
the labels of the request hold it, as in litellm 1.110.
"""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from ..._core.errors import NotFoundError, RequestError
from ..._core.formats.sdk_clients import (
    SECONDS_OF_A_FILE,
    SECONDS_OF_A_QUESTION,
    close_clients,
    plain_client,
)
from ..._core.formats.shared.batches import (
    RPC_STATUSES,
    BatchLimits,
    BatchSpec,
    RemoteBatch,
    RowReply,
    fail_row,
    mark_unbilled,
    pieces_of,
    read_name,
    rows_of,
    time_of,
    write_name,
)
from ..._core.formats.shared.errors import body_in_text, error_fields, from_answer, headers_of
from ..._core.json_values import JSONObject
from ..._core.requests.api_keys import Credential
from ..._core.requests.routing import Target
from ..._core.runtime.json_pieces import loads, read_exactly, write_exactly
from .buckets import read_folder, split_address
from .jobs import count, identify, newest_first, require

_BUCKET = "VERTEX_BATCH_BUCKET"
_STORAGE, _STORAGE_VARIABLE = "https://storage.googleapis.com", "STORAGE_EMULATOR_HOST"
"""The server of Cloud Storage, and the variable of Google's own libraries for another one."""

_ENDED = ("SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
_PAGE, _MOST_PAGES = 100, 100_000
_LONGEST_REQUEST = 64_000_000
"""Bytes of a line of the output besides the answer: it repeats the request."""

_NAMES = ("llm_provider_row", "llm_provider_row_end")
"""The labels with the halves of a row's name. The value of a label has 63 characters at most."""
_RESULTS = re.compile(r"\.jsonl$|/prediction\.results-\d+-of-\d+$")
"""The names of files of results, which some jobs divide."""

_NAME = re.compile(rb'"(%s|%s)" ?: ?"([0-9a-f]{32})"' % tuple(name.encode() for name in _NAMES))


def limits(target: Target, operation: str) -> BatchLimits | None:
    """Google takes files of 1 GB with 200,000 rows of Gemini; embeddings have other rows.

    `RequestError` if the bucket is no address.
    """
    read_folder(_BUCKET, "gs", "vertex_ai")
    if not operation.endswith((":generateContent", ":rawPredict")):
        return None
    return BatchLimits(200_000 if target.route.adapter == "gemini" else 100_000, 1_000_000_000, 1)


class VertexBatches:
    keeps_label = True

    def __init__(self, target: Target, key: Credential) -> None:
        self._jobs = f"{target.base_url}/batchPredictionJobs"
        if "/projects/" not in self._jobs:
            problem = "a key of the express mode has no batches: unset VERTEX_API_KEY and log in with gcloud"
            raise RequestError(problem, provider="vertex_ai")
        self._names_rows = target.route.adapter == "anthropic"
        storage = os.environ.get(_STORAGE_VARIABLE, "").strip().rstrip("/") or _STORAGE
        self._storage = storage if "://" in storage else f"http://{storage}"
        self._client = plain_client(target, key)

    def line(self, spec: BatchSpec, custom_id: str, body: bytes) -> bytes:
        if self._names_rows:
            if "anthropic-beta" in map(str.lower, spec.headers):
                problem = "Vertex's batches have no anthropic-beta header: use delivery='live'"
                raise RequestError(problem, provider="vertex_ai")
            return b'{"custom_id":%s,"request":%s}' % (orjson.dumps(custom_id), body)
        request = read_exactly(body.decode())
        halves = zip(_NAMES, (custom_id[:32], custom_id[32:]), strict=True)
        request["labels"] = {**(request.get("labels") or {}), **dict(halves)}
        return b'{"request":%s}' % write_exactly(request)

    async def upload(self, path: Path) -> str | None:
        """Write the file into a folder of the batch, where the provider puts the results too."""
        file = f"{read_folder(_BUCKET, 'gs', 'vertex_ai')}/llm-provider-{path.stem}/rows.jsonl"
        bucket, name = split_address(file)
        stored = await self._ask(
            f"{self._storage}/upload/storage/v1/b/{bucket}/o",
            "POST",
            params={"uploadType": "media", "name": name},
            headers={"content-type": "application/jsonl"},
            content=_Pieces(path),
            timeout=SECONDS_OF_A_FILE,
        )
        identify(require(stored, dict, "object"), "name")
        return file

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        job = {
            "displayName": write_name(spec),
            "model": spec.operation.rpartition(":")[0],
            "inputConfig": {"instancesFormat": "jsonl", "gcsSource": {"uris": [file]}},
            "outputConfig": {
                "predictionsFormat": "jsonl",
                "gcsDestination": {"outputUriPrefix": f"{str(file).rpartition('/')[0]}/results"},
            },
        }
        return _read_batch(await self._ask(self._jobs, "POST", json=job, headers=spec.headers))

    async def retrieve(self, identifier: str) -> RemoteBatch:
        return _read_batch(await self._ask(f"{self._jobs}/{identifier}"))

    async def recent(self) -> AsyncIterator[RemoteBatch]:
        jobs = self._pages(self._jobs, "batchPredictionJobs", pageSize=_PAGE)
        for batch in newest_first([_read_batch(job) async for job in jobs]):
            yield batch

    async def results(self, remote: RemoteBatch, longest: int) -> AsyncIterator[RowReply]:
        for folder in remote.results:
            bucket, prefix = split_address(folder)
            objects = f"{self._storage}/storage/v1/b/{bucket}/o"
            names = [str(each["name"]) async for each in self._pages(objects, "items", prefix=f"{prefix}/")]
            names = [name for name in names if _RESULTS.search(name)]
            if not names and not remote.ended_early:
                raise NotFoundError("the bucket has no file of results yet", maybe_billed=True)
            for name in names:
                async for row in self._download(f"{objects}/{quote(name, safe='')}", longest):
                    yield row

    async def _download(self, address: str, longest: int) -> AsyncIterator[RowReply]:
        sent = self._client.stream("GET", address, params={"alt": "media"}, timeout=SECONDS_OF_A_FILE)
        async with sent as response:
            if response.status_code != 200:
                await response.aread()
                raise _read_error(response)
            async for row in rows_of(response.aiter_bytes(), longest + _LONGEST_REQUEST, read_line):
                yield row

    async def cancel(self, identifier: str) -> None:
        await self._ask(f"{self._jobs}/{identifier}:cancel", "POST", json={})

    async def close(self) -> None:
        await close_clients(self._client, names=("aclose",))

    async def _ask(self, address: str, method: str = "GET", **sent: Any) -> Any:
        response = await self._client.request(method, address, **{"timeout": SECONDS_OF_A_QUESTION, **sent})
        if response.status_code // 100 != 2:
            raise _read_error(response)
        return loads(response.content)

    async def _pages(self, address: str, name: str, **query: Any) -> AsyncIterator[JSONObject]:
        """The items of a list in pages, from the field `name`."""
        for _ in range(_MOST_PAGES):
            page = require(await self._ask(address, params=query), dict, "list")
            if not page.keys() & {name, "kind", "nextPageToken"}:
                # Google leaves out an empty list, and the page of a proxy says nothing: ask again.
                page = require(await self._ask(address, params=query), dict, "list")
            for item in require(page.get(name, []), list, "list"):
                yield require(item, dict, "list")
            following = page.get("nextPageToken")
            if not following or following == query.get("pageToken"):
                return
            query["pageToken"] = following


connect = VertexBatches


class _Pieces:
    """The bytes of a file, which can be sent a second time with a new token."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __aiter__(self) -> AsyncIterator[bytes]:
        return pieces_of(self._path)


def _read_error(response: Any) -> Exception:
    codes, message = error_fields(body_in_text(response.text))
    return from_answer(response.status_code, codes=codes, message=message, headers=headers_of(response))


def _read_batch(job: Any) -> RemoteBatch:
    job = require(job, dict, "batch")
    state = str(job.get("state") or "PENDING").removeprefix("JOB_STATE_")
    ended, stats, failure = state in _ENDED, job.get("completionStats") or {}, job.get("error") or {}
    counts = [count(stats.get(f"{name}Count")) for name in ("successful", "failed", "incomplete")]
    destination = (job.get("outputConfig") or {}).get("gcsDestination") or {}
    folder = (job.get("outputInfo") or {}).get("gcsOutputDirectory")
    if not folder and state != "FAILED":
        # The folder has this job's results alone.
        folder = destination.get("outputUriPrefix")
    files = ((job.get("inputConfig") or {}).get("gcsSource") or {}).get("uris") or ()
    return RemoteBatch(
        identifier=identify(job, "name").rpartition("/")[2],
        state=state,
        ended=ended,
        created=time_of(job.get("createTime")),
        total=sum(counts) or None,
        done=counts[0],
        failed=counts[1],
        input_file=files[0] if files else None,
        results=(str(folder).rstrip("/"),) if folder and ended else (),
        problem=failure.get("message"),
        problem_code="token_limit_exceeded" if failure.get("code") == 8 else None,
        **read_name(job.get("displayName")),
    )


def read_line(line: bytes) -> RowReply:
    """The end of a row from a line of the output."""
    try:
        row: Any = loads(line)
        labels = (row.get("request") or {}).get("labels") or {}
        name = row.get("custom_id") or "".join(labels[half] for half in _NAMES)
        answer = row.get("response")
        # Some rows that failed have their error in the place of the answer, too.
        failure = answer.get("error") if isinstance(answer, dict) else None
        status = row.get("status") or row.get("error") or failure
    except (ValueError, KeyError, TypeError, AttributeError):
        halves = dict(_NAME.findall(line))
        if len(halves) == len(_NAMES) and line.endswith(b"\n"):
            return RowReply(b"".join(halves[half.encode()] for half in _NAMES).decode(), line, None)
        return fail_row(line)
    if isinstance(answer, dict) and answer and failure is None:
        return RowReply(str(name), write_exactly(answer), None)
    # The status is a text, such as `Bad Request: {"error": {"code": 400, …}}`.
    text = status if isinstance(status, str) else ""
    codes, message = error_fields(body_in_text(text[text.find("{") :]) if "{" in text else status or "")
    numbers = [int(code) for code in codes if code.isdecimal()]
    number = next((RPC_STATUSES.get(each, each) for each in numbers), None)
    return RowReply(str(name), None, mark_unbilled(from_answer(number, codes=codes, message=message)))
