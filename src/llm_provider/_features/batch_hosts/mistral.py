"""Mistral's batch jobs, by mistralai 3.7: files as at OpenAI, and a job with one model and metadata.

Words of its jobs are other ones, and `errors` counts the rows' errors, also in a job that succeeds.
"""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

from ..._core.formats.shared.batches import BatchSpec, RemoteBatch, time_of
from ..._core.json_values import JSONObject
from .jobs import JobBatches, count, identify, newest_first, require

_JOBS = "/batch/jobs"
_PAGE = 100
_RUNNING = ("queued", "running", "cancellation_requested")
_STATES = {"timeout_exceeded": "expired", "success": "completed"}


class MistralBatches(JobBatches):
    has_models_in_rows = False

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        job = {
            "input_files": [file],
            "endpoint": f"/v1/{spec.operation}",
            "model": spec.model,
            "metadata": {"llm_provider": spec.label, "content": spec.content, "origin": spec.origin},
            "timeout_hours": 24,
        }
        return await self.ask_about(_JOBS, job, spec=spec)

    async def retrieve(self, identifier: str) -> RemoteBatch:
        return await self.ask_about(f"{_JOBS}/{identifier}")

    async def recent(self) -> AsyncIterator[RemoteBatch]:
        seen: set[str] = set()
        for page in itertools.count():
            answer = await self.ask(_JOBS, page=page, page_size=_PAGE, order_by="-created")
            reply = require(answer, dict, "list")
            total = require(reply.get("total"), int, "list")
            jobs = list(map(self.read_batch, require(reply.get("data") if total else [], list, "list")))
            new = [job for job in jobs if job.identifier not in seen]
            for job in newest_first(new):
                yield job
            seen |= {job.identifier for job in new}
            if not new or len(seen) >= total:
                return

    async def cancel(self, identifier: str) -> None:
        await self.ask(f"{_JOBS}/{identifier}/cancel", {})

    @staticmethod
    def read_batch(job: JSONObject) -> RemoteBatch:
        state = str(job.get("status")).lower()
        metadata, files = job.get("metadata") or {}, job.get("input_files") or ()
        errors = [error for error in job.get("errors") or () if isinstance(error, dict)]
        return RemoteBatch(
            identifier=identify(job),
            state=_STATES.get(state, state),
            ended=state not in _RUNNING,
            created=time_of(job.get("created_at")),
            total=count(job.get("total_requests")) or None,
            done=count(job.get("succeeded_requests")),
            failed=count(job.get("failed_requests")),
            label=metadata.get("llm_provider"),
            content=metadata.get("content"),
            origin=metadata.get("origin"),
            input_file=files[0] if files else None,
            results=tuple(file for file in (job.get("output_file"), job.get("error_file")) if file),
            problem="; ".join(str(error.get("message")) for error in errors) or None,
        )


connect = MistralBatches
