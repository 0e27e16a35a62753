"""Together's batches, by the together SDK 3.1: a file is put where an answer says, and jobs keep no metadata.

A job tells no counts, and stands within the answer to its submission. It is found again by its input file.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ..._core.errors import APIResponseValidationError
from ..._core.formats.shared.batches import BatchSpec, RemoteBatch, time_of
from ..._core.json_values import JSONObject
from .jobs import JobBatches, identify, newest_first, require

_ENDED = ("failed", "completed", "expired", "cancelled")


class TogetherBatches(JobBatches):
    async def upload(self, path: Path) -> str | None:
        """Upload the file of a batch: ask for a place, put it there without the key, and confirm."""
        form = {"purpose": self._service.purpose, "file_name": f"{path.stem}.jsonl", "file_type": "jsonl"}
        options: Any = {"headers": {"Content-Type": "multipart/form-data"}, "follow_redirects": False}
        try:
            await self._client.post("/files", cast_to=object, body=form, options=options)
            headers: Any = {}
        except Exception as error:
            if getattr(error, "status_code", None) != 302:
                raise
            headers = error.response.headers  # type: ignore[attr-defined]  # an APIStatusError
        address, file = headers.get("location"), headers.get("x-together-file-id")
        if not address or not file:
            raise APIResponseValidationError("the answer names no address for the file of the batch")
        await self.put(address, path)
        return identify(require(await self.ask(f"/files/{file}/preprocess", {}), dict, "file"))

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        job = {"input_file_id": file, "endpoint": f"/v1/{spec.operation}", "completion_window": "24h"}
        return await self.ask_about("/batches", job, spec=spec)

    async def retrieve(self, identifier: str) -> RemoteBatch:
        return await self.ask_about(f"/batches/{identifier}")

    async def recent(self) -> AsyncIterator[RemoteBatch]:
        listed = await self.ask("/batches")
        if listed is None:
            # So a server in Go writes an empty list, and so may a proxy: ask again.
            listed = await self.ask("/batches") or []
        for batch in newest_first(list(map(self.read_batch, require(listed, list, "list")))):
            yield batch

    @staticmethod
    def read_batch(job: JSONObject) -> RemoteBatch:
        job = job.get("job") or job
        state = str(job.get("status")).lower()
        files = (job.get("output_file_id"), job.get("error_file_id"))
        return RemoteBatch(
            identifier=identify(job),
            state=state,
            ended=state in _ENDED,
            created=time_of(job.get("created_at")),
            input_file=job.get("input_file_id"),
            results=tuple(file for file in files if file),
            problem=job.get("error") or None,
        )


connect = TogetherBatches
