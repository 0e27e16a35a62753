"""The message batches of Anthropic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

from .exchange import Call, Reply, parse_fields, write_date
from .jobs import Row

if TYPE_CHECKING:
    from .jobs import Batch, BatchStore, Outcome, StoredFile

__all__ = ["PATHS", "serve"]

PATHS = re.compile(r"/v1/messages/batches(?:/([\w-]+)(?:/(cancel|results))?)?")
MOST_ROWS = 100_000
MOST_BYTES = 256_000_000
FILES = re.compile(r"/v1/files(?:/([\w-]+))?")
MOST_FILE_BYTES = 500_000_000
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def serve(store: BatchStore, call: Call) -> Reply | None:
    """Answer a request to a message batch; None if there is nothing at its path."""
    file = FILES.fullmatch(call.path)
    if file is not None:
        return _serve_file(store, call, file[1])
    path = PATHS.fullmatch(call.path)
    if path is None:
        return None
    identifier, action = path.groups()
    if identifier is None:
        return _create(store, call) if call.method == "POST" else _list(store, call)
    batch = store.find_batch(identifier, call.provider, call.key)
    if batch is None:
        return call.refuse(404, f"Message Batch {identifier} not found.")
    if action == "results":
        return _send_results(call, batch)
    if action == "cancel":
        store.cancel(batch)
        store.advance()
    if call.method == "DELETE":
        if batch.ended is None:
            return call.refuse(400, "a batch in progress cannot be deleted")
        del store.batches[identifier]
        return Reply(200, {"id": identifier, "type": "message_batch_deleted"})
    return Reply(200, _describe_batch(store, call, batch))


def _serve_file(store: BatchStore, call: Call, identifier: str | None) -> Reply | None:
    if identifier is None:
        return _upload(store, call) if call.method == "POST" else None
    file = store.find_file(identifier)
    if file is None or (file.provider, file.key) != (call.provider, call.key):
        return call.refuse(404, f"File not found: {identifier}")
    if call.method == "DELETE":
        del store.files[identifier]
        return Reply(200, {"id": identifier, "type": "file_deleted"})
    return Reply(200, _describe_file(file))


def _upload(store: BatchStore, call: Call) -> Reply:
    upload = parse_fields(call.headers.get(b"content-type", b""), call.body).get("file")
    if upload is None:
        return call.refuse(400, "file: Field required")
    if len(upload.content) > MOST_FILE_BYTES:
        return call.refuse(413, "file: File exceeds the maximum size")
    return Reply(200, _describe_file(store.add_upload("file_", "upload", upload, call.provider, call.key)))


def _describe_file(file: StoredFile) -> dict[str, Any]:
    return {
        "id": file.identifier,
        "type": "file",
        "filename": file.name,
        "mime_type": file.media_type,
        "size_bytes": len(file.content),
        "created_at": write_date(file.created),
        "downloadable": False,
    }


def _create(store: BatchStore, call: Call) -> Reply:
    if len(call.body) > MOST_BYTES:
        return call.refuse(413, "the batch is too large")
    requests = orjson.loads(call.body)["requests"]
    names = {request["custom_id"] for request in requests}
    if not 1 <= len(requests) <= MOST_ROWS:
        return call.refuse(400, f"requests: 1 to {MOST_ROWS} are expected, not {len(requests)}")
    if len(names) != len(requests) or not all(map(_NAME.fullmatch, names)):
        return call.refuse(400, "requests: a custom_id is not valid, or occurs twice")
    if store.is_full(call.provider):
        return call.refuse(429, "too many batches are in progress")
    rows = [Row(request["custom_id"], "/v1/messages", request["params"]) for request in requests]
    batch = store.add(f"msgbatch_{store.next_identifier()}", call.provider, call.key, rows)
    return Reply(200, _describe_batch(store, call, batch))


def _list(store: BatchStore, call: Call) -> Reply:
    batches = store.list_batches(call.provider, call.key)
    selected = call.select_page_after("after_id", [batch.identifier for batch in batches])
    page = [_describe_batch(store, call, batch) for batch in batches[selected]]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return Reply(200, {"data": page, "has_more": selected.stop < len(batches), **ends})


def _describe_batch(store: BatchStore, call: Call, batch: Batch) -> dict[str, Any]:
    state = "ended" if batch.ended else "canceling" if batch.cancelled else "in_progress"
    counts = store.count_rows(batch)
    if counts is not None:
        del counts["total"]
    archived = batch.results_are_gone
    url = f"{call.root}/v1/messages/batches/{batch.identifier}/results"
    return {
        "id": batch.identifier,
        "type": "message_batch",
        "processing_status": state,
        "request_counts": counts,
        "created_at": write_date(batch.submitted),
        "expires_at": write_date(batch.expires),
        "ended_at": write_date(batch.ended) if batch.ended else None,
        "cancel_initiated_at": write_date(batch.cancelled) if batch.cancelled else None,
        "archived_at": write_date(batch.gone) if batch.gone is not None and archived else None,
        "results_url": url if batch.ended and not archived and store.shows_results(batch, "output") else None,
    }


def _send_results(call: Call, batch: Batch) -> Reply:
    if batch.outcomes is None:
        return call.refuse(400, f"{batch.identifier} has not ended yet")
    if batch.results_are_gone:
        return call.refuse(404, "the results of this batch are no longer available")
    results = [{"custom_id": outcome.custom_id, "result": _describe(outcome)} for outcome in batch.outcomes]
    return Reply(200, b"".join(orjson.dumps(result) + b"\n" for result in results), b"application/x-jsonl")


def _describe(outcome: Outcome) -> dict[str, Any]:
    if outcome.kind == "succeeded":
        message = dict(outcome.reply or {})
        message["usage"] = {**message.get("usage", {}), "service_tier": "batch"}
        return {"type": "succeeded", "message": message}
    if outcome.kind == "errored":
        return {"type": "errored", "error": outcome.reply}
    return {"type": outcome.kind}
