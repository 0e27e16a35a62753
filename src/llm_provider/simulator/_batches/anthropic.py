"""The message batches of Anthropic."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from .exchange import Call, Reply, refuse
from .jobs import Row
from .multipart import fields_of

if TYPE_CHECKING:
    from .jobs import Batch, BatchStore, Outcome, StoredFile

__all__ = ["PATHS", "serve"]

PATHS = re.compile(r"/v1/messages/batches(?:/([\w-]+)(?:/(cancel|results))?)?")
MOST_ROWS = 100_000
MOST_BYTES = 256_000_000
PAGE = 20
FILES = re.compile(r"/v1/files(?:/([\w-]+))?")
MOST_FILE_BYTES = 500_000_000
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def serve(store: BatchStore, call: Call) -> Reply | None:
    """Answer a request to a message batch; None if there is nothing at its path."""
    file = FILES.fullmatch(call.path)
    if file is not None:
        return _file(store, call, file[1])
    found = PATHS.fullmatch(call.path)
    if found is None:
        return None
    identifier, action = found.groups()
    if identifier is None:
        return _create(store, call) if call.method == "POST" else _list(store, call)
    batch = store.batches.get(identifier)
    if batch is None or batch.provider != call.provider or batch.key != call.key:
        return refuse(call, 404, f"Message Batch {identifier} not found.")
    if action == "results":
        return _results(call, batch)
    if action == "cancel":
        store.cancel(batch)
        store.advance()
    if call.method == "DELETE":
        if batch.ended is None:
            return refuse(call, 400, "a batch in progress cannot be deleted")
        del store.batches[identifier]
        return Reply(200, {"id": identifier, "type": "message_batch_deleted"})
    return Reply(200, _describe_batch(store, call, batch))


def _file(store: BatchStore, call: Call, identifier: str | None) -> Reply | None:
    if identifier is None:
        return _upload(store, call) if call.method == "POST" else None
    file = store.readable(identifier)
    if file is None or (file.provider, file.key) != (call.provider, call.key):
        return refuse(call, 404, f"File not found: {identifier}")
    if call.method == "DELETE":
        del store.files[identifier]
        return Reply(200, {"id": identifier, "type": "file_deleted"})
    return Reply(200, _describe_file(file))


def _upload(store: BatchStore, call: Call) -> Reply:
    sent = fields_of(call.headers.get(b"content-type", b""), call.body).get("file")
    if sent is None:
        return refuse(call, 400, "file: Field required")
    if len(sent.content) > MOST_FILE_BYTES:
        return refuse(call, 413, "file: File exceeds the maximum size")
    file = store.add_file(f"file_{store.next_identifier()}", sent.file_name, "upload", sent.content)
    file.provider, file.key, file.media_type = call.provider, call.key, sent.content_type
    return Reply(200, _describe_file(file))


def _describe_file(file: StoredFile) -> dict[str, Any]:
    return {
        "id": file.identifier,
        "type": "file",
        "filename": file.name,
        "mime_type": file.media_type,
        "size_bytes": len(file.content),
        "created_at": _date(file.created),
        "downloadable": False,
    }


def _create(store: BatchStore, call: Call) -> Reply:
    if len(call.body) > MOST_BYTES:
        return refuse(call, 413, "the batch is too large")
    asked = orjson.loads(call.body)["requests"]
    names = {one["custom_id"] for one in asked}
    if not 1 <= len(asked) <= MOST_ROWS:
        return refuse(call, 400, f"requests: 1 to {MOST_ROWS} are expected, not {len(asked)}")
    if len(names) != len(asked) or not all(map(_NAME.fullmatch, names)):
        return refuse(call, 400, "requests: a custom_id is not valid, or occurs twice")
    if store.is_full(call.provider):
        return refuse(call, 429, "too many batches are in progress")
    rows = [Row(one["custom_id"], "/v1/messages", one["params"]) for one in asked]
    batch = store.add(f"msgbatch_{store.next_identifier()}", call.provider, call.key, rows)
    return Reply(200, _describe_batch(store, call, batch))


def _list(store: BatchStore, call: Call) -> Reply:
    found = store.of(call.provider, call.key)
    after = call.query.get("after_id")
    if after is not None:
        names = [batch.identifier for batch in found]
        found = found[names.index(after) + 1 :] if after in names else []
    most = int(call.query.get("limit", PAGE))
    page = found[:most]
    return Reply(
        200,
        {
            "data": [_describe_batch(store, call, batch) for batch in page],
            "has_more": len(found) > most,
            "first_id": page[0].identifier if page else None,
            "last_id": page[-1].identifier if page else None,
        },
    )


def _describe_batch(store: BatchStore, call: Call, batch: Batch) -> dict[str, Any]:
    state = "ended" if batch.ended else "canceling" if batch.cancelled else "in_progress"
    counts = store.counts(batch)
    if counts is not None:
        del counts["total"]
    archived = batch.gone is not None and time.time() >= batch.gone
    url = f"{call.root}/v1/messages/batches/{batch.identifier}/results"
    return {
        "id": batch.identifier,
        "type": "message_batch",
        "processing_status": state,
        "request_counts": counts,
        "created_at": _date(batch.dated),
        "expires_at": _date(batch.expires),
        "ended_at": _date(batch.ended),
        "cancel_initiated_at": _date(batch.cancelled),
        "archived_at": _date(batch.gone) if archived else None,
        "results_url": url if batch.ended and not archived and store.shows(batch, "output") else None,
    }


def _results(call: Call, batch: Batch) -> Reply:
    if batch.outcomes is None:
        return refuse(call, 400, f"{batch.identifier} has not ended yet")
    if batch.gone is not None and time.time() >= batch.gone:
        return refuse(call, 404, "the results of this batch are no longer available")
    lines = [orjson.dumps({"custom_id": one.custom_id, "result": _result(one)}) for one in batch.outcomes]
    return Reply(200, b"".join(line + b"\n" for line in lines), b"application/x-jsonl")


def _result(outcome: Outcome) -> dict[str, Any]:
    if outcome.kind == "succeeded":
        message = dict(outcome.reply or {})
        message["usage"] = {**message.get("usage", {}), "service_tier": "batch"}
        return {"type": "succeeded", "message": message}
    if outcome.kind == "errored":
        return {"type": "errored", "error": outcome.reply}
    return {"type": outcome.kind}


def _date(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
