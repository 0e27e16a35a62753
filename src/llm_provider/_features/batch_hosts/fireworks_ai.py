"""Fireworks' batch inference jobs, by fireworks-ai 1.2: datasets instead of files, below an account.

The user names jobs and datasets, so a second submission of the same batch is refused. A job has one model.
Its results are two files behind signed addresses, whose rows have the answer itself.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ..._core.errors import RequestError
from ..._core.formats.sdk_clients import SECONDS_OF_A_FILE
from ..._core.formats.shared.batches import (
    BatchSpec,
    RemoteBatch,
    RowReply,
    read_name,
    rows_of,
    time_of,
    write_name,
)
from ..._core.json_values import JSONObject
from .jobs import JobBatches, count, count_lines, identify, newest_first, require

_VARIABLE = "FIREWORKS_ACCOUNT_ID"

_NAME = re.compile(r"[\w-]+")
_PREFIX = "llm-provider-"
_ENDED = ("completed", "failed", "expired", "cancelled", "early_stopped", "deleting", "deleting_cleaning_up")
_STATES = {"early_stopped": "expired", "deleting": "cancelled", "deleting_cleaning_up": "cancelled"}
_PAGE = 200
_QUESTIONS, _PAUSE = 600, 1.0
"""How often a dataset is asked for until it is ready, and the seconds between."""


class FireworksBatches(JobBatches):
    has_models_in_rows = False
    _account = ""

    async def upload(self, path: Path) -> str | None:
        """Make a dataset of the file. One that exists already is of an upload without an answer."""
        dataset, datasets = f"{_PREFIX}{path.stem}", f"{await self._root()}/datasets"
        fields = {"userUploaded": {}, "exampleCount": str(await count_lines(path))}
        try:
            made = await self.ask(datasets, {"datasetId": dataset, "dataset": fields})
            identify(require(made, dict, "dataset"), "name")
        except Exception as error:
            if getattr(error, "status_code", None) != 409:
                raise
            made = await self.ask(f"{datasets}/{dataset}")
        if made.get("state") != "READY":
            form: Any = {"headers": {"Content-Type": "multipart/form-data"}, "timeout": SECONDS_OF_A_FILE}
            with path.open("rb") as file:
                files = {"file": (f"{path.stem}.jsonl", file)}
                await self._client.post(
                    f"{datasets}/{dataset}:upload", cast_to=object, files=files, options=form
                )
        for _ in range(_QUESTIONS):
            if (await self.ask(f"{datasets}/{dataset}")).get("state") == "READY":
                break
            await asyncio.sleep(_PAUSE)
        return dataset

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        root = await self._root()
        model = (
            spec.model if spec.model.startswith("accounts/") else f"accounts/fireworks/models/{spec.model}"
        )
        job = {
            "model": model,
            "inputDatasetId": f"{_below(root)}/datasets/{file}",
            "displayName": write_name(spec),
        }
        return await self.ask_about(
            f"{root}/batchInferenceJobs?batchInferenceJobId={_PREFIX}{spec.label}", job, spec=spec
        )

    async def retrieve(self, identifier: str) -> RemoteBatch:
        return await self.ask_about(f"{await self._root()}/batchInferenceJobs/{identifier}")

    async def recent(self) -> AsyncIterator[RemoteBatch]:
        path = f"{await self._root()}/batchInferenceJobs"
        pages = self.pages(path, "batchInferenceJobs", "nextPageToken", pageSize=_PAGE)
        for batch in newest_first([self.read_batch(each) async for page in pages for each in page]):
            yield batch

    async def results(self, remote: RemoteBatch, longest: int) -> AsyncIterator[RowReply]:
        for dataset in remote.results:
            path = f"{await self._root()}/datasets/{dataset}:getDownloadEndpoint"
            addresses = require(await self.ask(path), dict, "list").get("filenameToSignedUrls") or {}
            for address in addresses.values():
                async with self.open_address(address) as response:
                    async for row in rows_of(response.aiter_bytes(), longest, self.read_line):
                        yield row

    async def cancel(self, identifier: str) -> None:
        raise RequestError(
            "Fireworks has no way to end a batch early and keep the answers that are done: to give them up, "
            f"delete the job {identifier} at Fireworks, then run `llm-provider batches forget`",
            provider="fireworks_ai",
        )

    async def _root(self) -> str:
        """The address of the account, which the variable names or the key has alone."""
        if not self._account:
            server = str(self._target.base_url).removesuffix("/v1").removesuffix("/inference") + "/v1"
            account = os.environ.get(_VARIABLE, "").strip().removeprefix("accounts/")
            if account and not _NAME.fullmatch(account):
                problem = f"{_VARIABLE} must be the name of an account, not {account!r}"
                raise RequestError(problem, provider="fireworks_ai")
            if not account:
                accounts = [each async for page in self._accounts(server) for each in page]
                if len(accounts) != 1:
                    raise RequestError(
                        f"the key has {len(accounts)} accounts at Fireworks: set {_VARIABLE} to one of them",
                        provider="fireworks_ai",
                    )
                account = identify(accounts[0], "name").rpartition("/")[2]
            self._account = f"{server}/accounts/{account}"
        return self._account

    def _accounts(self, server: str) -> AsyncIterator[list[JSONObject]]:
        return self.pages(f"{server}/accounts", "accounts", "nextPageToken")

    @staticmethod
    def read_batch(job: JSONObject) -> RemoteBatch:
        state = str(job.get("state")).removeprefix("JOB_STATE_").lower()
        progress, status = job.get("jobProgress") or {}, job.get("status") or {}
        inputs, output = str(job.get("inputDatasetId") or ""), str(job.get("outputDatasetId") or "")
        # The first count is the dataset's, the second counts rows that have ended.
        total = max(count(progress.get(name)) for name in ("totalInputRequests", "totalProcessedRequests"))
        has_results = state in _ENDED and state != "failed"
        return RemoteBatch(
            identifier=identify(job, "name").rpartition("/")[2],
            state=_STATES.get(state, state),
            ended=state in _ENDED,
            created=time_of(job.get("createTime")),
            total=total or None,
            done=count(progress.get("successfullyProcessedRequests")),
            failed=count(progress.get("failedRequests")),
            input_file=inputs.rpartition("/")[2] or None,
            results=(output.rpartition("/")[2],) if output and has_results else (),
            problem=(status.get("message") or None) if state == "failed" else None,
            **read_name(job.get("displayName")),
        )


connect = FireworksBatches


def _below(root: str) -> str:
    """The name of an account, such as "accounts/mine"."""
    return "accounts/" + root.rpartition("/")[2]
