"""The batch and file endpoints of Gemini."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from .exchange import Call, Reply, refuse
from .jobs import Row

if TYPE_CHECKING:
    from .jobs import Batch, BatchStore, Outcome, StoredFile

__all__ = ["PATHS", "serve"]

_CREATE = re.compile(r"/(v1|v1beta)/models/([^:/]+):(batchGenerateContent|asyncBatchEmbedContent)")
_BATCH = re.compile(r"/(?:v1|v1beta)/batches(?:/([\w-]+)(:cancel)?)?")
_UPLOAD = re.compile(r"/upload/(?:v1|v1beta)/files")
_FILE = re.compile(r"/(?:(?:v1|v1beta)|download/(?:v1|v1beta))/files/([\w-]+)(:download)?")
PATHS = re.compile("|".join(f"(?:{one.pattern})" for one in (_CREATE, _BATCH, _UPLOAD, _FILE)))
MOST_INLINE_BYTES = 20_000_000
PAGE = 50
KEPT_SECONDS = 48 * 3600.0


def serve(store: BatchStore, call: Call) -> Reply | None:
    """Answer a request to a file or a batch; None if there is nothing at its path."""
    if _UPLOAD.fullmatch(call.path):
        return _upload(store, call)
    created = _CREATE.fullmatch(call.path)
    if created is not None:
        return _create(store, call, *created.groups())
    file = _FILE.fullmatch(call.path)
    if file is not None:
        return _file(store, call, *file.groups())
    found = _BATCH.fullmatch(call.path)
    return None if found is None else _batch(store, call, *found.groups())


def _upload(store: BatchStore, call: Call) -> Reply:
    """Both steps of a resumable upload: the start, and the content in one or several pieces."""
    command = call.headers.get(b"x-goog-upload-command", b"")
    if b"start" in command:
        identifier = store.next_identifier()
        told = orjson.loads(call.body or b"{}").get("file", {})
        name = told.get("displayName") or told.get("display_name") or ""
        begun = store.add_file(identifier, name, "upload", b"")
        begun.provider, begun.key, begun.gone = call.provider, call.key, begun.created + KEPT_SECONDS
        begun.media_type = told.get("mimeType") or told.get("mime_type") or "application/octet-stream"
        if begun.media_type.startswith("video/"):
            begun.ready = begun.created + store.processing_seconds(call.provider)
        version = call.path.split("/")[2]
        url = f"{call.root}/upload/{version}/files?upload_id={identifier}"
        headers = [(b"x-goog-upload-url", url.encode()), (b"x-goog-upload-status", b"active")]
        return Reply(200, {}, headers=headers)
    file = store.files.get(call.query.get("upload_id", ""))
    if file is None:
        return refuse(call, 404, "no such upload")
    file.content += call.body
    if b"finalize" not in command:
        return Reply(200, {}, headers=[(b"x-goog-upload-status", b"active")])
    return Reply(200, {"file": _describe_file(call, file)}, headers=[(b"x-goog-upload-status", b"final")])


def _describe_file(call: Call, file: StoredFile) -> dict[str, Any]:
    return {
        "name": f"files/{file.identifier}",
        "displayName": file.name,
        "mimeType": file.media_type or "application/jsonl",
        "sizeBytes": str(len(file.content)),
        "createTime": _date(file.created),
        "uri": f"{call.root}/v1beta/files/{file.identifier}",
        "state": "ACTIVE" if time.time() >= file.ready else "PROCESSING",
        **({} if file.gone is None else {"expirationTime": _date(file.gone)}),
        "source": "UPLOADED" if file.purpose == "upload" else "GENERATED",
    }


def _file(store: BatchStore, call: Call, identifier: str, download: str | None) -> Reply:
    file = store.readable(identifier)
    if file is None:
        return refuse(call, 404, f"File {identifier} not found.")
    if download is not None or call.path.startswith("/download/"):
        return Reply(200, file.content, b"application/octet-stream")
    if call.method == "DELETE":
        del store.files[identifier]
        return Reply(200, {})
    return Reply(200, _describe_file(call, file))


def _create(store: BatchStore, call: Call, version: str, model: str, method: str) -> Reply:
    asked = orjson.loads(call.body)["batch"]
    config = asked.get("inputConfig") or asked["input_config"]
    single = "embedContent" if method == "asyncBatchEmbedContent" else "generateContent"
    path, name = f"/{version}/models/{model}:{single}", config.get("fileName") or config.get("file_name")
    if store.is_full(call.provider):
        return refuse(call, 429, "Too many batches are in progress.")
    if name is not None:
        file = store.readable(name.removeprefix("files/"))
        if file is None:
            return refuse(call, 404, f"File {name} not found.")
        lines = [orjson.loads(line) for line in file.content.splitlines()]
        rows = [Row(str(line["key"]), path, line["request"]) for line in lines]
    else:
        if len(call.body) > MOST_INLINE_BYTES:
            return refuse(call, 413, "Request payload size exceeds the limit.")
        inline = config["requests"]["requests"]
        rows = [
            Row(str((one.get("metadata") or {}).get("key", place)), path, one["request"])
            for place, one in enumerate(inline)
        ]
    facts = {
        "displayName": asked.get("displayName", ""),
        "model": f"models/{model}",
        "inline": name is None,
        "embeds": single == "embedContent",
        "order": [row.custom_id for row in rows] if name is None else [],
    }
    batch = store.add(store.next_identifier(), call.provider, call.key, rows, **facts)
    return Reply(200, _describe_batch(store, batch))


def _batch(store: BatchStore, call: Call, identifier: str | None, cancel: str | None) -> Reply:
    if identifier is None:
        found = store.of(call.provider, call.key)
        start = int(call.query.get("pageToken") or 0)
        most = int(call.query.get("pageSize") or PAGE)
        page = [_describe_batch(store, batch) for batch in found[start : start + most]]
        more = {"nextPageToken": str(start + most)} if len(found) > start + most else {}
        return Reply(200, {"operations": page, **more})
    batch = store.batches.get(identifier)
    if batch is None or batch.provider != call.provider or batch.key != call.key:
        return refuse(call, 404, f"Batch {identifier} not found.")
    if cancel is not None:
        store.cancel(batch)
        store.advance()
        return Reply(200, {})
    if call.method == "DELETE":
        del store.batches[identifier]
        return Reply(200, {})
    return Reply(200, _describe_batch(store, batch))


def _describe_batch(store: BatchStore, batch: Batch) -> dict[str, Any]:
    count = batch.count
    metadata: dict[str, Any] = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "name": f"batches/{batch.identifier}",
        "displayName": batch.facts["displayName"],
        "model": batch.facts["model"],
        "state": _state(batch),
        "createTime": _date(batch.dated),
        "updateTime": _date(batch.ended or batch.created),
    }
    counts = store.counts(batch)
    if counts is not None:
        metadata["batchStats"] = _stats(counts)
    if batch.ended is not None:
        metadata["endTime"] = _date(batch.ended)
    if batch.outcomes is not None and count["succeeded"] + count["errored"] and store.shows(batch, "output"):
        metadata["output"] = _output(store, batch)
    return {
        "name": f"batches/{batch.identifier}",
        "metadata": metadata,
        **({"done": True} if batch.ended else {}),
    }


def _stats(counts: dict[str, int]) -> dict[str, str]:
    """Counts as Google writes them: whole numbers of 64 bits are text, and a zero is left out."""
    stats = {
        "requestCount": counts["total"],
        "pendingRequestCount": counts["processing"],
        "successfulRequestCount": counts["succeeded"],
        "failedRequestCount": counts["errored"] + counts["expired"] + counts["canceled"],
    }
    return {name: str(count) for name, count in stats.items() if count}


def _state(batch: Batch) -> str:
    if batch.ended is None:
        return "BATCH_STATE_RUNNING"
    if batch.cancelled is not None and batch.cancelled <= batch.ended:
        return "BATCH_STATE_CANCELLED"
    count = batch.count
    if count["succeeded"] and count["succeeded"] < len(batch.outcomes or ()):
        return "JOB_STATE_PARTIALLY_SUCCEEDED"
    if not count["succeeded"]:
        return "BATCH_STATE_EXPIRED" if count["expired"] else "BATCH_STATE_FAILED"
    return "BATCH_STATE_SUCCEEDED"


def _output(store: BatchStore, batch: Batch) -> dict[str, Any]:
    outcomes = [one for one in batch.outcomes or () if one.kind in ("succeeded", "errored")]
    if batch.facts["inline"]:
        by_name = {one.custom_id: one for one in outcomes}
        rows = [{**_answer(by_name.get(name)), "metadata": {"key": name}} for name in batch.facts["order"]]
        kind = "inlinedEmbedContentResponses" if batch.facts["embeds"] else "inlinedResponses"
        return {kind: {"inlinedResponses": rows}}
    if "output" not in batch.files:
        name = f"batch-{batch.identifier}"
        lines = [orjson.dumps({"key": one.custom_id, **_answer(one)}) for one in outcomes]
        store.add_file(name, "responses", "batch_output", b"\n".join(lines)).gone = batch.gone
        batch.files["output"] = name
    return {"responsesFile": f"files/{batch.files['output']}"}


def _answer(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {"error": {"code": 4, "message": "The request expired.", "status": "DEADLINE_EXCEEDED"}}
    if outcome.kind == "succeeded":
        return {"response": outcome.reply}
    return {"error": (outcome.reply or {}).get("error", {})}


def _date(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
