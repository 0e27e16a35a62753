"""xAI's batches, by the types of xai-sdk 1.21 and its REST API: files as at OpenAI, and results in pages.

A batch has counts and no word for its state. Dates have no time. The rows of a file are read some time after
the submission, so the name of a batch has their number. The batch has not ended until all are counted.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ..._core.formats.openai.batches import OpenAIBatches
from ..._core.formats.shared.batches import (
    DAY,
    RPC_STATUSES,
    BatchSpec,
    RemoteBatch,
    RowReply,
    explain_unreached,
    mark_unbilled,
    read_name,
    time_of,
    write_name,
)
from ..._core.formats.shared.errors import error_fields, from_answer
from ..._core.json_values import JSONObject
from ..._core.runtime import clock
from ..._core.runtime.json_pieces import write_exactly
from .jobs import JobBatches, count, count_lines, identify, newest_first

_PAGE = 100
"""Rows of a page of results, which is in memory as a whole, and batches of a page of their list."""


class XAIBatches(JobBatches):
    line = OpenAIBatches.line

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        name = f"{write_name(spec)} {await count_lines(path)}"
        return await self.ask_about("/batches", {"name": name, "input_file_id": file}, spec=spec)

    async def retrieve(self, identifier: str) -> RemoteBatch:
        return await self.ask_about(f"/batches/{identifier}")

    async def recent(self) -> AsyncIterator[RemoteBatch]:
        pages = self.pages("/batches", "batches", "pagination_token", limit=_PAGE)
        for batch in newest_first([self.read_batch(each) async for page in pages for each in page]):
            yield batch

    async def results(self, remote: RemoteBatch, longest: int) -> AsyncIterator[RowReply]:
        for identifier in remote.results:
            path = f"/batches/{identifier}/results"
            async for page in self.pages(path, "results", "pagination_token", limit=_PAGE):
                for row in page:
                    yield _read_row(row, longest)

    async def cancel(self, identifier: str) -> None:
        await self.ask(f"/batches/{identifier}:cancel", {})

    @staticmethod
    def read_batch(job: JSONObject) -> RemoteBatch:
        counts: JSONObject = job.get("state") or {}
        numbers = {name: count(counts.get(f"num_{name}")) for name in _COUNTS}
        identifier, name = identify(job, "batch_id"), job.get("name")
        wanted = count(str(name).split(" ")[-1]) if read_name(name) else 1
        state = _find_state(job, numbers, wanted)
        # Nothing was counted in a batch whose file was refused.
        has_results = state not in _RUNNING and numbers["requests"] > 0
        return RemoteBatch(
            identifier=identifier,
            state=state,
            ended=state not in _RUNNING,
            created=_end_of(job.get("create_time")),
            total=numbers["requests"] or None,
            done=numbers["success"],
            failed=numbers["error"] + numbers["cancelled"],
            input_file=job.get("input_file_id"),
            results=(identifier,) if has_results else (),
            problem=job.get("cancel_by_xai_message") or None,
            **read_name(name),
        )


connect = XAIBatches

_COUNTS = ("requests", "pending", "success", "error", "cancelled")
_RUNNING = ("validating", "in_progress", "cancelling")


def _find_state(job: JSONObject, numbers: dict[str, int], wanted: int) -> str:
    if job.get("cancel_by_xai_message"):
        return "failed"
    expires = _end_of(job.get("expire_time"))
    if numbers["pending"] and 0 < expires < clock.time():
        return "expired"
    if job.get("cancel_time"):
        return "cancelling" if numbers["pending"] else "cancelled"
    if numbers["requests"] < wanted:
        return "validating"
    return "in_progress" if numbers["pending"] else "completed"


def _end_of(date: object) -> float:
    """The last moment that a date can mean, as Unix time; 0.0 if it is none."""
    moment = time_of(date)
    return moment + DAY - 1 if moment and len(str(date)) == len("2026-11-29") else moment


def _read_row(row: Any, longest: int) -> RowReply:
    name, result = str(row["batch_request_id"]), row.get("batch_result") or {}
    answer = next(iter((result.get("response") or {}).values()), None)
    if isinstance(answer, dict):
        # One that is too long is cut, so it fails as a live one does.
        return RowReply(name, write_exactly(answer)[:longest], None, answer.get("id"))
    failure = result.get("error") or row.get("error_message") or {}
    code = failure.get("code") if isinstance(failure, dict) else None
    codes, message = error_fields(failure)
    status = RPC_STATUSES.get(count(code), count(code) or None)
    if status == RPC_STATUSES[1] and (unreached := explain_unreached("cancelled")):
        return RowReply(name, None, unreached)
    return RowReply(name, None, mark_unbilled(from_answer(status, codes=codes, message=message)))
