"""The endpoints of Gemini for batches, files, and what it stores."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import orjson

from . import cached_contents
from .exchange import Call, Reply, write_date
from .jobs import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jobs import Batch, BatchStore, Outcome, StoredFile

__all__ = ["PATHS", "serve"]

_CREATE = re.compile(r"/(v1|v1beta)/models/([^:/]+):(batchGenerateContent|asyncBatchEmbedContent)")
_BATCH = re.compile(r"/(?:v1|v1beta)/batches(?:/([\w-]+)(:cancel)?)?")
_UPLOAD = re.compile(r"/upload/(?:v1|v1beta)/files")
_FILE = re.compile(r"/(?:(?:v1|v1beta)|download/(?:v1|v1beta))/files/([\w-]+)(:download)?")
_INTERACTION = re.compile(r"/(?:v1|v1beta)/interactions/([\w-]+)(?:/cancel)?")
_ALL = (_CREATE, _BATCH, _UPLOAD, _FILE, _INTERACTION, cached_contents.PATH)
PATHS = re.compile("|".join(f"(?:{path.pattern})" for path in _ALL))
MOST_INLINE_BYTES = 20_000_000
KEPT_SECONDS = 48 * 3600.0


def serve(store: BatchStore, call: Call) -> Reply | None:
    """Answer a request to a file or a batch; None if there is nothing at its path."""
    if _UPLOAD.fullmatch(call.path):
        return _upload(store, call)
    serving: dict[re.Pattern[str], Callable[..., Reply]]
    serving = {
        _CREATE: _create, _FILE: _serve_file, _BATCH: _serve_batch, _INTERACTION: _serve_interaction,
        cached_contents.PATH: cached_contents.serve,
    }  # fmt: skip
    for pattern, function in serving.items():
        path = pattern.fullmatch(call.path)
        if path is not None:
            return function(store, call, *path.groups())
    return None


def _serve_interaction(store: BatchStore, call: Call, identifier: str) -> Reply:
    """A stored interaction, which has ended before it can be cancelled."""
    if identifier not in store.responses:
        return call.refuse(404, f"Interaction {identifier} not found.")
    return Reply(200, store.responses[identifier])


def _upload(store: BatchStore, call: Call) -> Reply:
    """Both steps of a resumable upload: the start, and the content in one or several pieces."""
    command = call.headers.get(b"x-goog-upload-command", b"")
    if b"start" in command:
        identifier = store.next_identifier()
        fields = orjson.loads(call.body or b"{}").get("file", {})
        name = fields.get("displayName") or fields.get("display_name") or ""
        file = store.add_file(identifier, name, "upload", b"", provider=call.provider, key=call.key)
        file.gone = file.created + KEPT_SECONDS
        file.media_type = fields.get("mimeType") or fields.get("mime_type") or "application/octet-stream"
        if file.media_type.startswith("video/"):
            file.ready = file.created + store.settings(call.provider).file_seconds
        version = call.path.split("/")[2]
        url = f"{call.root}/upload/{version}/files?upload_id={identifier}"
        headers = [(b"x-goog-upload-url", url.encode()), (b"x-goog-upload-status", b"active")]
        return Reply(200, {}, headers=headers)
    upload = store.files.get(call.query.get("upload_id", ""))
    if upload is None:
        return call.refuse(404, "no such upload")
    upload.content += call.body
    if b"finalize" not in command:
        return Reply(200, {}, headers=[(b"x-goog-upload-status", b"active")])
    return Reply(200, {"file": _describe_file(call, upload)}, headers=[(b"x-goog-upload-status", b"final")])


def _describe_file(call: Call, file: StoredFile) -> dict[str, Any]:
    return {
        "name": f"files/{file.identifier}",
        "displayName": file.name,
        "mimeType": file.media_type or "application/jsonl",
        "sizeBytes": str(len(file.content)),
        "createTime": write_date(file.created),
        "uri": f"{call.root}/v1beta/files/{file.identifier}",
        "state": "ACTIVE" if time.time() >= file.ready else "PROCESSING",
        **({} if file.gone is None else {"expirationTime": write_date(file.gone)}),
        "source": "UPLOADED" if file.purpose == "upload" else "GENERATED",
    }


def _serve_file(store: BatchStore, call: Call, identifier: str, download: str | None) -> Reply:
    file = store.find_file(identifier)
    if file is None:
        return call.refuse(404, f"File {identifier} not found.")
    if download is not None or call.path.startswith("/download/"):
        return Reply(200, file.content, b"application/octet-stream")
    if call.method == "DELETE":
        del store.files[identifier]
        return Reply(200, {})
    return Reply(200, _describe_file(call, file))


def _create(store: BatchStore, call: Call, version: str, model: str, method: str) -> Reply:
    request = orjson.loads(call.body)["batch"]
    config = request.get("inputConfig") or request["input_config"]
    single = "embedContent" if method == "asyncBatchEmbedContent" else "generateContent"
    path, name = f"/{version}/models/{model}:{single}", config.get("fileName") or config.get("file_name")
    if store.is_full(call.provider):
        return call.refuse(429, "Too many batches are in progress.")
    if name is not None:
        file = store.find_file(name.removeprefix("files/"))
        if file is None:
            return call.refuse(404, f"File {name} not found.")
        lines = [orjson.loads(line) for line in file.content.splitlines()]
        rows = [Row(str(line["key"]), path, line["request"]) for line in lines]
    else:
        if len(call.body) > MOST_INLINE_BYTES:
            return call.refuse(413, "Request payload size exceeds the limit.")
        rows = [
            Row(str((entry.get("metadata") or {}).get("key", index)), path, entry["request"])
            for index, entry in enumerate(config["requests"]["requests"])
        ]
    batch = store.add(
        store.next_identifier(),
        call.provider,
        call.key,
        rows,
        displayName=request.get("displayName", ""),
        model=f"models/{model}",
        embeds=single == "embedContent",
        order=[row.custom_id for row in rows] if name is None else None,
    )
    return Reply(200, _describe_batch(store, batch))


def _serve_batch(store: BatchStore, call: Call, identifier: str | None, cancel: str | None) -> Reply:
    if identifier is None:
        batches = store.list_batches(call.provider, call.key)
        page, more = call.select_page(len(batches))
        return Reply(200, {"operations": [_describe_batch(store, batch) for batch in batches[page]], **more})
    batch = store.find_batch(identifier, call.provider, call.key)
    if batch is None:
        return call.refuse(404, f"Batch {identifier} not found.")
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
        "displayName": batch.fields["displayName"],
        "model": batch.fields["model"],
        "state": _find_state(batch),
        "createTime": write_date(batch.submitted),
        "updateTime": write_date(batch.ended or batch.created),
    }
    counts = store.count_rows(batch)
    if counts is not None:
        metadata["batchStats"] = _write_counts(counts)
    if batch.ended is not None:
        metadata["endTime"] = write_date(batch.ended)
    if (
        batch.outcomes is not None
        and count["succeeded"] + count["errored"]
        and store.shows_results(batch, "output")
    ):
        metadata["output"] = _write_output(store, batch)
    done = {"done": True} if batch.ended else {}
    return {"name": f"batches/{batch.identifier}", "metadata": metadata, **done}


def _write_counts(counts: dict[str, int]) -> dict[str, str]:
    """Counts as Google writes them: whole numbers of 64 bits are text, and a zero is left out."""
    stats = {
        "requestCount": counts["total"],
        "pendingRequestCount": counts["processing"],
        "successfulRequestCount": counts["succeeded"],
        "failedRequestCount": counts["errored"] + counts["expired"] + counts["canceled"],
    }
    return {name: str(count) for name, count in stats.items() if count}


def _find_state(batch: Batch) -> str:
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


def _write_output(store: BatchStore, batch: Batch) -> dict[str, Any]:
    outcomes = [outcome for outcome in batch.outcomes or () if outcome.kind in ("succeeded", "errored")]
    if batch.fields["order"] is not None:
        by_name = {outcome.custom_id: outcome for outcome in outcomes}
        rows = [{**_describe(by_name.get(name)), "metadata": {"key": name}} for name in batch.fields["order"]]
        kind = "inlinedEmbedContentResponses" if batch.fields["embeds"] else "inlinedResponses"
        return {kind: {"inlinedResponses": rows}}
    if "output" not in batch.files:
        name = f"batch-{batch.identifier}"
        lines = [orjson.dumps({"key": outcome.custom_id, **_describe(outcome)}) for outcome in outcomes]
        store.add_file(name, "responses", "batch_output", b"\n".join(lines), gone=batch.gone)
        batch.files["output"] = name
    return {"responsesFile": f"files/{batch.files['output']}"}


def _describe(outcome: Outcome | None) -> dict[str, Any]:
    if outcome is None:
        return {"error": {"code": 4, "message": "The request expired.", "status": "DEADLINE_EXCEEDED"}}
    if outcome.kind == "succeeded":
        return {"response": outcome.reply}
    return {"error": (outcome.reply or {}).get("error", {})}
