"""The batch and file endpoints of OpenAI and of compatible hosts."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import orjson

from .exchange import Call, Reply, parse_fields
from .jobs import Batch, Row

if TYPE_CHECKING:
    from .jobs import BatchStore, StoredFile

__all__ = ["PATHS", "describe_file", "find_status", "serve"]

PATHS = re.compile(r"(?:/v1)?/(files|batches)(?:/([\w-]+)(?:/(content|cancel))?)?")
MOST_ROWS = 50_000
MOST_BYTES = 200_000_000
MOST_FILE_BYTES = 512_000_000


def serve(store: BatchStore, call: Call) -> Reply | None:
    """Answer a request to a file or a batch; None if there is nothing at its path."""
    path = PATHS.fullmatch(call.path)
    if path is None:
        return None
    kind, identifier, action = path.groups()
    return (_serve_file if kind == "files" else _serve_batch)(store, call, identifier, action)


def _serve_file(store: BatchStore, call: Call, identifier: str | None, action: str | None) -> Reply | None:
    if identifier is None:
        return _upload(store, call) if call.method == "POST" else None
    file = store.find_file(identifier)
    if file is None:
        return call.refuse(404, f"No such File object: {identifier}")
    if action == "content":
        return Reply(200, file.content, b"application/octet-stream")
    if call.method == "DELETE":
        del store.files[identifier]
        return Reply(200, {"id": identifier, "object": "file", "deleted": True})
    return Reply(200, describe_file(file))


def _upload(store: BatchStore, call: Call) -> Reply:
    fields = parse_fields(call.headers.get(b"content-type", b""), call.body)
    upload = fields.get("file")
    purpose = fields["purpose"].content.decode() if "purpose" in fields else ""
    expected = "batch"
    if upload is None or purpose not in (expected, "user_data"):
        return call.refuse(400, f"a file with the purpose {expected!r} is expected, not {purpose!r}")
    if purpose == expected and not upload.file_name.endswith(".jsonl"):
        return call.refuse(400, "Invalid file format for Batch API. Must be .jsonl")
    if len(upload.content) > (MOST_BYTES if purpose == expected else MOST_FILE_BYTES):
        return call.refuse(400, "the file is too large")
    return Reply(200, describe_file(store.add_upload("file-", purpose, upload, call.provider, call.key)))


def describe_file(file: StoredFile) -> dict[str, Any]:
    return {
        "id": file.identifier,
        "object": "file",
        "bytes": len(file.content),
        "created_at": int(file.created),
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        **({"sample_type": "batch_request", "source": "upload"} if file.provider == "mistral" else {}),
    }


def _serve_batch(store: BatchStore, call: Call, identifier: str | None, action: str | None) -> Reply | None:
    if identifier is None:
        return _create(store, call) if call.method == "POST" else _list(store, call)
    batch = store.find_batch(identifier, call.provider, call.key)
    if batch is None:
        return call.refuse(404, f"No batch found with id '{identifier}'.")
    if action == "cancel" and call.method == "POST":
        store.cancel(batch)
        store.advance()
    return Reply(200, _describe_batch(store, batch))


def _create(store: BatchStore, call: Call) -> Reply:
    request = orjson.loads(call.body)
    file = store.find_file(request["input_file_id"])
    if file is None:
        return call.refuse(400, f"no file {request['input_file_id']}")
    if store.is_full(call.provider):
        return call.refuse(429, "too many batches are in progress")
    rows, problem = [], None
    names = set()
    try:
        for line in file.content.splitlines():
            row = orjson.loads(line)
            rows.append(Row(row["custom_id"], row["url"], row["body"]))
            names.add(row["custom_id"])
            # Azure looks at the rows alone.
            fits = call.provider == "azure" or row["url"] == request["endpoint"]
            if not fits or row["method"] != "POST":
                problem = f"the URL of {row['custom_id']} is not the endpoint of the batch"
    except (ValueError, KeyError, TypeError) as mistake:
        problem = f"invalid line: {mistake}"
    if not rows or len(rows) > MOST_ROWS:
        problem = f"a batch has 1 to {MOST_ROWS} requests, not {len(rows)}"
    elif len(names) != len(rows):
        problem = "a custom_id occurs twice"
    fields = {
        name: request.get(name) for name in ("endpoint", "completion_window", "metadata", "input_file_id")
    }
    batch = store.add(f"batch_{store.next_identifier()}", call.provider, call.key, rows, **fields)
    if problem is not None:
        batch.failure, batch.rows = problem, []
    return Reply(200, _describe_batch(store, batch))


def _list(store: BatchStore, call: Call) -> Reply:
    batches = store.list_batches(call.provider, call.key)
    page = call.select_page_after("after", [batch.identifier for batch in batches])
    data = [_describe_batch(store, batch) for batch in batches[page]]
    return Reply(200, {"object": "list", "data": data, "has_more": page.stop < len(batches)})


def _describe_batch(store: BatchStore, batch: Batch) -> dict[str, Any]:
    if batch.outcomes is not None and not batch.files and batch.failure is None:
        _write_results(store, batch)
    counts = store.count_rows(batch)
    if counts is not None:
        done = (
            counts["succeeded"] if batch.ended else int(batch.measure_progress(time.time()) * counts["total"])
        )
        failures = counts["errored"] + counts["expired"] + counts["canceled"]
        counts = {"total": counts["total"], "completed": done, "failed": failures}
    errors = None
    if batch.failure is not None:
        errors = {"object": "list", "data": [{"code": "invalid_request", "message": batch.failure}]}
    return {
        "id": batch.identifier,
        "object": "batch",
        **batch.fields,
        "status": find_status(batch),
        "errors": errors,
        "created_at": int(batch.submitted),
        "expires_at": int(batch.expires),
        "completed_at": None if batch.ended is None else int(batch.ended),
        "output_file_id": batch.files.get("output") if store.shows_results(batch, "output") else None,
        "error_file_id": batch.files.get("error") if store.shows_results(batch, "error") else None,
        "request_counts": counts,
    }


def find_status(batch: Batch) -> str:
    if batch.ended is None:
        return "cancelling" if batch.cancelled is not None else "in_progress"
    if batch.failure is not None:
        return "failed"
    if batch.cancelled is not None and batch.cancelled <= batch.ended:
        return "cancelled"
    return "expired" if batch.ended >= batch.expires else "completed"


def _write_results(store: BatchStore, batch: Batch) -> None:
    lines: dict[str, list[bytes]] = {"output": [], "error": []}
    for outcome in batch.outcomes or ():
        line: dict[str, Any] = {"id": f"batch_req_{store.next_identifier()}", "custom_id": outcome.custom_id}
        if outcome.kind in ("succeeded", "errored"):
            request = f"req_{store.next_identifier()}"
            response = {"status_code": outcome.status, "request_id": request, "body": outcome.reply}
            line |= {"response": response, "error": None}
        else:
            code = "batch_expired" if outcome.kind == "expired" else "batch_cancelled"
            message = "This request could not be executed before the completion window expired."
            line |= {"response": None, "error": {"code": code, "message": message}}
        lines["output" if outcome.kind == "succeeded" else "error"].append(orjson.dumps(line))
    for role, role_lines in lines.items():
        if role_lines:
            name, content = f"file-{store.next_identifier()}", b"\n".join(role_lines)
            store.add_file(name, f"{batch.identifier}_{role}.jsonl", "batch_output", content, gone=batch.gone)
            batch.files[role] = name
    if not batch.files:
        batch.files["none"] = ""
