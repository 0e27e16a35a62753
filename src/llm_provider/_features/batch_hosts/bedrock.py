"""Bedrock's model invocation jobs of Claude, whose files lie in a bucket of S3. Extra `bedrock`.

By botocore 1.44, which signs for both services. The name of a job has its label, and its token the rest: a
second submission with this token makes no second job. A job has 100 rows at least.
"""

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from ..._core import doors
from ..._core.errors import (
    APIResponseValidationError,
    LLMError,
    MissingAPIKeyError,
    NotFoundError,
    RequestError,
)
from ..._core.formats.sdk_clients import SECONDS_OF_A_FILE, SECONDS_OF_A_QUESTION
from ..._core.formats.shared.batches import (
    BatchLimits,
    BatchSpec,
    RemoteBatch,
    RowReply,
    fail_row,
    mark_unbilled,
    rows_of,
    time_of,
)
from ..._core.formats.shared.errors import from_answer, from_exception
from ..._core.requests.api_keys import Credential
from ..._core.requests.routing import Target
from ..._core.runtime.imports import import_optional, install_command
from ..._core.runtime.json_pieces import loads, write_exactly
from .buckets import read_folder, split_address
from .jobs import count, identify

_BUCKET, _ROLE = "BEDROCK_BATCH_BUCKET", "BEDROCK_BATCH_ROLE_ARN"
_ROLE_ARN = re.compile(r"arn:aws(-[^:]+)?:iam::(\d{12})?:role/.+")
_LEAST = 100
_PREFIX, _TOKEN = "llm-provider-", "llmprovider"
_STATES = {"stopped": "cancelled", "stopping": "cancelling", "partiallycompleted": "partially_completed"}
_ENDED = ("completed", "partially_completed", "failed", "cancelled", "expired")
_PAGE, _MOST_PAGES, _PIECE = 100, 100_000, 2**18
_LONGEST_REQUEST = 64_000_000
"""Bytes of a line of the output besides the answer: it repeats the request."""

_NAME = re.compile(rb'"recordId" ?: ?"([0-9a-f]{64})"')
_LOGIN = "run `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


def limits(target: Target, operation: str) -> BatchLimits | None:
    """How much a job may hold; a `RequestError` if the bucket or the role is no such name."""
    _read_role()
    read_folder(_BUCKET, "s3", "bedrock")
    return BatchLimits(50_000, 1_000_000_000, 1, _LEAST) if operation.endswith("/invoke") else None


class BedrockBatches:
    keeps_label = True

    def __init__(self, target: Target, key: Credential) -> None:
        cloud = target.route.cloud
        assert cloud is not None
        if key.is_static or key.identity != doors.cloud_identities.identity_of(target, None).identity:
            problem = (
                f"S3 takes no key of Bedrock's: unset AWS_BEARER_TOKEN_BEDROCK and api_key, and {_LOGIN}"
            )
            raise RequestError(problem, provider="bedrock")
        self._region = doors.cloud_addresses.find_priced_region(cloud, target.base_url)
        self._model = target.model
        self._clients: dict[str, Any] = {}
        self._opening = threading.Lock()

    def line(self, spec: BatchSpec, custom_id: str, body: bytes) -> bytes:
        return b'{"recordId":%s,"modelInput":%s}' % (orjson.dumps(custom_id), body)

    async def upload(self, path: Path) -> str | None:
        """Write the file into a folder of the batch, where the provider puts the results too."""
        file = f"{read_folder(_BUCKET, 's3', 'bedrock')}/{_PREFIX}{path.stem}/rows.jsonl"
        bucket, name = split_address(file)
        with path.open("rb") as content:
            await self._ask("s3", "put_object", Bucket=bucket, Key=name, Body=content)
        return file

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        made = await self._ask(
            "bedrock",
            "create_model_invocation_job",
            jobName=f"{_PREFIX}{spec.label}",
            clientRequestToken="-".join(filter(None, (_TOKEN, spec.label, spec.content, spec.origin))),
            roleArn=_read_role(),
            modelId=spec.model or self._model,
            inputDataConfig={"s3InputDataConfig": {"s3Uri": file, "s3InputFormat": "JSONL"}},
            outputDataConfig={"s3OutputDataConfig": {"s3Uri": f"{str(file).rpartition('/')[0]}/results/"}},
        )
        name = identify(made, "jobArn").rpartition("/")[2]
        return RemoteBatch(identifier=name, state="submitted", ended=False, created=0.0, label=spec.label)

    async def retrieve(self, identifier: str) -> RemoteBatch:
        return _read_batch(await self._ask("bedrock", "get_model_invocation_job", jobIdentifier=identifier))

    async def recent(self) -> AsyncIterator[RemoteBatch]:
        query: dict[str, Any] = {"maxResults": _PAGE, "sortBy": "CreationTime", "sortOrder": "Descending"}
        for _ in range(_MOST_PAGES):
            page = await self._ask("bedrock", "list_model_invocation_jobs", **query)
            for job in page.get("invocationJobSummaries") or ():
                yield _read_batch(job)
            following = page.get("nextToken")
            if not following or following == query.get("nextToken"):
                return
            query["nextToken"] = following

    async def results(self, remote: RemoteBatch, longest: int) -> AsyncIterator[RowReply]:
        for folder in remote.results:
            bucket, prefix = split_address(folder)
            names, query = [], {"Bucket": bucket, "Prefix": prefix}
            for _ in range(_MOST_PAGES):
                page = await self._ask("s3", "list_objects_v2", **query)
                names += [str(each["Key"]) for each in page.get("Contents") or ()]
                following = page.get("NextContinuationToken")
                if not following or following == query.get("ContinuationToken"):
                    break
                query["ContinuationToken"] = following
            # Beside them lies the manifest, which has counts alone.
            names = [name for name in names if name.endswith(".jsonl.out")]
            if not names and not remote.ended_early:
                raise NotFoundError("the bucket has no file of results yet", maybe_billed=True)
            for name in names:
                content = await self._ask("s3", "get_object", Bucket=bucket, Key=name)
                pieces = self._pieces(content["Body"])
                async for row in rows_of(pieces, longest + _LONGEST_REQUEST, read_line):
                    yield row

    async def _pieces(self, body: Any) -> AsyncIterator[bytes]:
        try:
            while piece := await self._run(partial(body.read, _PIECE)):
                yield piece
        finally:
            body.close()

    async def cancel(self, identifier: str) -> None:
        await self._ask("bedrock", "stop_model_invocation_job", jobIdentifier=identifier)

    async def close(self) -> None:
        for client in self._clients.values():
            await asyncio.to_thread(client.close)

    async def _ask(self, service: str, method: str, **arguments: Any) -> Any:
        """The answer to a request. botocore waits in a thread."""
        return await self._run(lambda: getattr(self._open(service), method)(**arguments))

    async def _run(self, work: Any) -> Any:
        try:
            return await asyncio.to_thread(work)
        except Exception as error:
            raise _read_error(error) from None

    def _open(self, service: str) -> Any:
        with self._opening:
            if service not in self._clients:
                session = import_optional("botocore.session", install_command("bedrock")).Session()
                config = import_optional("botocore.config", install_command("bedrock")).Config(
                    retries={"total_max_attempts": 1},
                    connect_timeout=SECONDS_OF_A_QUESTION,
                    read_timeout=SECONDS_OF_A_FILE if service == "s3" else SECONDS_OF_A_QUESTION,
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                )
                self._clients[service] = session.create_client(
                    service, region_name=self._region, config=config
                )
            return self._clients[service]


connect = BedrockBatches


def _read_role() -> str:
    role = os.environ.get(_ROLE, "").strip()
    if not _ROLE_ARN.fullmatch(role):
        problem = f"set {_ROLE} to a role such as 'arn:aws:iam::123456789012:role/batches', not {role!r}"
        raise RequestError(problem, provider="bedrock")
    return role


def _read_error(error: Exception) -> LLMError:
    if isinstance(error, LLMError):
        return error
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"}:
        return MissingAPIKeyError(f"no credential: {_LOGIN}")
    if names & {"ResponseParserError", "AttributeError", "KeyError", "TypeError", "ValueError"}:
        # botocore met a body of another shape, such as the page of a proxy.
        return APIResponseValidationError(f"the answer cannot be read: {type(error).__name__}: {error}")
    if "ClientError" not in names:
        return from_exception(error)
    answer: Any = error.response  # type: ignore[attr-defined]  # a ClientError of botocore
    about, facts = answer.get("ResponseMetadata") or {}, answer.get("Error") or {}
    status, code = about.get("HTTPStatusCode"), str(facts.get("Code") or "")
    headers = {str(name).lower(): str(value) for name, value in (about.get("HTTPHeaders") or {}).items()}
    return from_answer(status, codes=(code,), message=str(facts.get("Message") or ""), headers=headers)


def _read_batch(job: Any) -> RemoteBatch:
    state = str(job.get("status")).lower()
    state = _STATES.get(state, state)
    identifier = identify(job, "jobArn").rpartition("/")[2]
    source = (job.get("inputDataConfig") or {}).get("s3InputDataConfig") or {}
    folder = ((job.get("outputDataConfig") or {}).get("s3OutputDataConfig") or {}).get("s3Uri")
    mark, *words = str(job.get("clientRequestToken") or "").split("-")
    name = str(job.get("jobName") or "")
    label, content, origin = (*words, None, None, None)[:3] if mark == _TOKEN else (None, None, None)
    ended = state in _ENDED
    return RemoteBatch(
        identifier=identifier,
        state=state,
        ended=ended,
        created=time_of(job.get("submitTime")),
        total=count(job.get("totalRecordCount")) or None,
        done=count(job.get("successRecordCount")),
        failed=count(job.get("errorRecordCount")),
        label=label or (name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None),
        content=content,
        origin=origin,
        input_file=source.get("s3Uri"),
        # Each job has a folder there.
        results=(f"{folder.rstrip('/')}/{identifier}/",) if folder and ended and state != "failed" else (),
        problem=(job.get("message") or None) if state == "failed" else None,
    )


def read_line(line: bytes) -> RowReply:
    """The end of a row from a line of the output."""
    try:
        row: Any = loads(line)
        name, answer, failure = str(row["recordId"]), row.get("modelOutput"), row.get("error")
    except (ValueError, KeyError, TypeError, AttributeError):
        match = _NAME.search(line)
        return RowReply(match[1].decode(), line, None) if match and line.endswith(b"\n") else fail_row(line)
    if isinstance(answer, dict) and answer:
        return RowReply(name, write_exactly(answer), None)
    fields = failure if isinstance(failure, dict) else {}
    code, message = fields.get("errorCode"), str(fields.get("errorMessage") or "")
    error = from_answer(count(code) or None, codes=(str(code),) if code else (), message=message)
    return RowReply(name, None, mark_unbilled(error))
