"""The batch endpoints of hosts with shapes of their own, by the types of their SDKs.

Files are OpenAI's, but for Together, which takes them at another address, and Fireworks, which has datasets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

from . import openai
from .exchange import Call, Reply, parse_fields, write_date
from .jobs import Batch, Outcome, Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jobs import BatchStore

__all__ = ["HOSTS", "PATHS"]

_ACCOUNT = "accounts/simulator"

PATHS = re.compile(
    r"/v1/batch/jobs(/.+)?|/v1/batches/[\w-]+(/results|:cancel)|/v1/files/[\w-]+/(preprocess|storage)"
    r"|/v1/accounts(/.+)?"
)
"""The paths that OpenAI's batches do not have."""


def _submit(
    store: BatchStore, call: Call, file: str, kept: dict[str, Any], model: str = "", identifier: str = ""
) -> Batch | Reply:
    """Accept a batch, whose fields are `kept`. Either it names the `model`, or each of its rows does."""
    content = store.find_file(file)
    if content is None:
        return call.refuse(404, f"no file {file}")
    if store.is_full(call.provider):
        return call.refuse(429, "too many batches are in progress")
    rows, problem = [], None
    try:
        for number, line in enumerate(content.content.splitlines(), 1):
            row = orjson.loads(line)
            if ("model" in row["body"]) is bool(model):
                problem = f"line {number} names a model" if model else f"line {number} names no model"
            body = {**row["body"], "model": model} if model else row["body"]
            rows.append(
                Row(row["custom_id"], row.get("url", kept.get("endpoint", "/v1/chat/completions")), body)
            )
    except (ValueError, KeyError, TypeError) as mistake:
        problem = f"invalid line: {mistake}"
    if not rows or len({row.custom_id for row in rows}) != len(rows):
        problem = problem or "a custom_id occurs twice, or the file is empty"
    name = identifier or f"batch_{store.next_identifier()}"
    batch = store.add(name, call.provider, call.key, rows, **kept)
    if problem is not None:
        batch.failure, batch.rows = problem, []
    return batch


def _find_state(batch: Batch) -> str:
    return openai.find_status(batch)


def _ends(batch: Batch) -> list[Outcome]:
    """The rows that were reached; those that ran into the end of the batch have no line."""
    state = _find_state(batch)
    unreached = {"cancelled": ("canceled",), "expired": ("expired",)}.get(state, ())
    return [outcome for outcome in batch.outcomes or () if outcome.kind not in unreached]


def _error_of(outcome: Outcome) -> dict[str, Any]:
    body = outcome.reply or {"error": {"message": "the row expired", "code": "batch_expired"}}
    return body["error"] if isinstance(body.get("error"), dict) else body


def _write_files(store: BatchStore, batch: Batch, write: Callable[[Outcome], dict[str, Any]]) -> None:
    """Write the files of an ended batch once, one for answers and one for errors."""
    if batch.outcomes is None or batch.files or batch.failure is not None:
        return
    for role, succeeded in (("output", True), ("error", False)):
        lines = [write(end) for end in _ends(batch) if (end.kind == "succeeded") is succeeded]
        if lines:
            name = f"file-{store.next_identifier()}"
            content = b"\n".join(map(orjson.dumps, lines)) + b"\n"
            store.add_file(name, f"{role}.jsonl", "batch_output", content, gone=batch.gone)
            batch.files[role] = name
    batch.files.setdefault("none", "")


def _counts(store: BatchStore, batch: Batch) -> dict[str, int]:
    return store.count_rows(batch) or {"total": 0, "succeeded": 0, "errored": 0, "expired": 0, "canceled": 0}


def _show_file(store: BatchStore, batch: Batch, role: str) -> str | None:
    return (batch.files.get(role) or None) if store.shows_results(batch, role) else None


_MISTRAL_STATES = {
    "in_progress": "RUNNING", "completed": "SUCCESS", "failed": "FAILED", "expired": "TIMEOUT_EXCEEDED",
    "cancelling": "CANCELLATION_REQUESTED", "cancelled": "CANCELLED",
}  # fmt: skip


def _serve_mistral(store: BatchStore, call: Call) -> Reply | None:
    if openai.PATHS.fullmatch(call.path) and "/files" in call.path:
        return openai.serve(store, call)
    path = re.fullmatch(r"/v1/batch/jobs(?:/([\w-]+)(/cancel)?)?", call.path)
    if path is None:
        return None
    identifier, cancels = path.groups()
    if identifier is None and call.method == "POST":
        job = orjson.loads(call.body)
        kept = {name: job.get(name) for name in ("endpoint", "model", "metadata", "input_files")}
        batch = _submit(store, call, job["input_files"][0], kept, job["model"])
        return batch if isinstance(batch, Reply) else Reply(200, _describe_mistral(store, batch))
    if identifier is None:
        batches = store.list_batches(call.provider, call.key)
        size = int(call.query.get("page_size") or 100)
        start = int(call.query.get("page") or 0) * size
        data = [_describe_mistral(store, batch) for batch in batches[start : start + size]]
        return Reply(200, {"object": "list", "total": len(batches), "data": data})
    return _serve_one(store, call, identifier, _describe_mistral, cancels=bool(cancels))


def _serve_one(
    store: BatchStore,
    call: Call,
    identifier: str,
    describe: Callable[[BatchStore, Batch], dict[str, Any]],
    *,
    cancels: bool,
) -> Reply:
    batch = store.find_batch(identifier, call.provider, call.key)
    if batch is None:
        return call.refuse(404, f"no batch {identifier}")
    if cancels:
        store.cancel(batch)
        store.advance()
    return Reply(200, describe(store, batch))


def _describe_mistral(store: BatchStore, batch: Batch) -> dict[str, Any]:
    def write(outcome: Outcome) -> dict[str, Any]:
        status = 504 if outcome.reply is None else outcome.status
        answer = {"status_code": status, "body": outcome.reply or {"error": _error_of(outcome)}}
        return {
            "id": store.next_identifier(),
            "custom_id": outcome.custom_id,
            "response": answer,
            "error": None,
        }

    _write_files(store, batch, write)
    counts = _counts(store, batch)
    failed = counts["errored"] + counts["expired"] + counts["canceled"]
    problems = [batch.failure] if batch.failure else ["a row failed"] if counts["errored"] else []
    return {
        "id": batch.identifier,
        "object": "batch",
        **batch.fields,
        "status": _MISTRAL_STATES[_find_state(batch)],
        "errors": [{"message": problem, "count": 1} for problem in problems],
        "created_at": int(batch.submitted),
        "completed_at": None if batch.ended is None else int(batch.ended),
        "total_requests": counts["total"],
        "completed_requests": counts["succeeded"] + failed,
        "succeeded_requests": counts["succeeded"],
        "failed_requests": failed,
        "output_file": _show_file(store, batch, "output"),
        "error_file": _show_file(store, batch, "error"),
    }


def _serve_together(store: BatchStore, call: Call) -> Reply | None:
    upload = re.fullmatch(r"/v1/files(?:/([\w-]+)/(storage|preprocess))?", call.path)
    if upload is not None and call.method in ("POST", "PUT"):
        return _upload_together(store, call, *upload.groups())
    if "/files" in call.path:
        return openai.serve(store, call)
    path = re.fullmatch(r"/v1/batches(?:/([\w-]+)(/cancel)?)?", call.path)
    if path is None:
        return None
    identifier, cancels = path.groups()
    if identifier is None and call.method == "POST":
        job = orjson.loads(call.body)
        kept = {name: job.get(name) for name in ("endpoint", "input_file_id")}
        batch = _submit(store, call, job["input_file_id"], kept)
        return batch if isinstance(batch, Reply) else Reply(201, {"job": _describe_together(store, batch)})
    if identifier is None:
        batches = reversed(store.list_batches(call.provider, call.key))
        return Reply(200, orjson.dumps([_describe_together(store, batch) for batch in batches]))
    return _serve_one(store, call, identifier, _describe_together, cancels=bool(cancels))


def _upload_together(store: BatchStore, call: Call, identifier: str | None, step: str | None) -> Reply:
    if identifier is None:
        fields = parse_fields(call.headers.get(b"content-type", b""), call.body)
        form = {name: field.content.decode() for name, field in fields.items()}
        if form.get("purpose") != "batch-api" or "file" in form or not form.get("file_name"):
            return call.refuse(400, "the purpose 'batch-api' and a file_name are expected, and no file")
        name = f"file-{store.next_identifier()}"
        store.add_file(name, form["file_name"], "batch-api", b"", provider=call.provider, key=call.key)
        address = f"{call.root}/v1/files/{name}/storage?signature=x"
        return Reply(
            302, b"", headers=[(b"location", address.encode()), (b"x-together-file-id", name.encode())]
        )
    file = store.find_file(identifier)
    if file is None:
        return call.refuse(404, f"no file {identifier}")
    if step == "storage":
        if b"authorization" in call.headers:
            return call.refuse(400, "only one auth mechanism is allowed")
        file.content = call.body
        return Reply(200, b"")
    return Reply(200, {**openai.describe_file(file), "FileType": "jsonl"})


def _describe_together(store: BatchStore, batch: Batch) -> dict[str, Any]:
    def write(outcome: Outcome) -> dict[str, Any]:
        if outcome.kind != "succeeded":
            return {"custom_id": outcome.custom_id, "error": _error_of(outcome)}
        answer = {"status_code": 200, "request_id": f"req_{store.next_identifier()}", "body": outcome.reply}
        return {"custom_id": outcome.custom_id, "response": answer}

    _write_files(store, batch, write)
    return {
        "id": batch.identifier,
        "user_id": "simulator",
        **batch.fields,
        "status": _find_state(batch).upper().replace("CANCELLING", "IN_PROGRESS"),
        "progress": 100.0 if batch.ended else 0.0,
        "error": batch.failure,
        "created_at": write_date(batch.submitted),
        "completed_at": None if batch.ended is None else write_date(batch.ended),
        "output_file_id": _show_file(store, batch, "output"),
        "error_file_id": _show_file(store, batch, "error"),
    }


def _serve_xai(store: BatchStore, call: Call) -> Reply | None:
    if "/files" in call.path:
        return openai.serve(store, call)
    path = re.fullmatch(r"/v1/batches(?:/([\w-]+)(/results|:cancel)?)?", call.path)
    if path is None:
        return None
    identifier, action = path.groups()
    if identifier is None and call.method == "POST":
        job = orjson.loads(call.body)
        batch = _submit(store, call, job["input_file_id"], job)
        if isinstance(batch, Reply):
            return batch
        # The file is read after the submission.
        return Reply(200, {**_describe_xai(store, batch), "state": {}})
    if identifier is None:
        batches = store.list_batches(call.provider, call.key)
        page, token = _page(call, len(batches))
        return Reply(200, {"batches": [_describe_xai(store, batch) for batch in batches[page]], **token})
    if action != "/results":
        return _serve_one(store, call, identifier, _describe_xai, cancels=action == ":cancel")
    ended = store.find_batch(identifier, call.provider, call.key)
    if ended is None or ended.results_are_gone:
        return call.refuse(404, f"no results of {identifier}")
    ends = _ends(ended) if store.shows_results(ended, "output") else []
    page, token = _page(call, len(ends))
    return Reply(200, {"results": [_describe_row(outcome) for outcome in ends[page]], **token})


def _page(call: Call, length: int) -> tuple[slice, dict[str, str | None]]:
    start = int(call.query.get("pagination_token") or 0)
    end = start + int(call.query.get("limit") or 100)
    return slice(start, end), {"pagination_token": str(end) if end < length else None}


def _describe_row(outcome: Outcome) -> dict[str, Any]:
    result: dict[str, Any]
    if outcome.kind == "succeeded":
        answer = outcome.reply or {}
        wrapper = "responses" if answer.get("object") == "response" else "chat_get_completion"
        result = {"response": {wrapper: answer}}
    else:
        codes = {"errored": {500: 13, 429: 8}.get(outcome.status, 3), "canceled": 1}
        message = str(_error_of(outcome).get("message"))
        result = {"error": {"code": codes.get(outcome.kind, 4), "message": message}}
    return {"batch_request_id": outcome.custom_id, "batch_result": result}


def _describe_xai(store: BatchStore, batch: Batch) -> dict[str, Any]:
    counts = _counts(store, batch)
    cancelled = batch.failure is not None or batch.cancelled is not None
    pending = counts["total"] - sum(counts[kind] for kind in ("succeeded", "errored", "expired", "canceled"))
    state = {
        "num_requests": counts["total"],
        "num_pending": counts["expired"] if _find_state(batch) == "expired" else pending,
        "num_success": counts["succeeded"],
        "num_error": counts["errored"] + (0 if _find_state(batch) == "expired" else counts["expired"]),
        "num_cancelled": counts["canceled"],
    }
    expires = batch.expires if _find_state(batch) != "expired" else batch.submitted - 86_400
    return {
        "batch_id": batch.identifier,
        **batch.fields,
        "create_time": write_date(batch.submitted)[:10],
        "expire_time": write_date(expires)[: 10 if _find_state(batch) == "expired" else None],
        "cancel_time": write_date(batch.cancelled or batch.submitted)[:10] if cancelled else None,
        "cancel_by_xai_message": batch.failure and f"JSONL file validation failed: {batch.failure}",
        "state": state,
    }


def _serve_fireworks(store: BatchStore, call: Call) -> Reply | None:
    if "/files" in call.path:
        # The addresses of results are signed, and storage refuses a second credential.
        signed = b"authorization" not in call.headers
        return openai.serve(store, call) if signed else call.refuse(400, "only one auth mechanism is allowed")
    if call.path == "/v1/accounts":
        return Reply(200, {"accounts": [{"name": _ACCOUNT}], "totalSize": 1})
    path = re.fullmatch(rf"/v1/{_ACCOUNT}/(datasets|batchInferenceJobs)(?:/([\w-]+)(?::(\w+))?)?", call.path)
    if path is None:
        return None
    kind, identifier, action = path.groups()
    if kind == "datasets":
        return _serve_dataset(store, call, identifier, action)
    if identifier is None and call.method == "POST":
        job, name = orjson.loads(call.body), call.query["batchInferenceJobId"]
        if store.find_batch(name, call.provider, call.key) is not None:
            return call.refuse(409, f"{name} exists already")
        dataset = job["inputDatasetId"].rpartition("/")[2]
        batch = _submit(store, call, dataset, job, job["model"], name)
        return batch if isinstance(batch, Reply) else Reply(200, _describe_fireworks(store, batch))
    if identifier is None:
        batches = store.list_batches(call.provider, call.key)
        page, token = call.select_page(len(batches))
        jobs = [_describe_fireworks(store, batch) for batch in batches[page]]
        return Reply(200, {**({"batchInferenceJobs": jobs} if jobs else {}), **token})
    return _serve_one(store, call, identifier, _describe_fireworks, cancels=False)


def _serve_dataset(store: BatchStore, call: Call, identifier: str | None, action: str | None) -> Reply:
    if identifier is None:
        request = orjson.loads(call.body)
        name = request["datasetId"]
        if store.find_file(name) is not None:
            return call.refuse(409, f"{name} exists already")
        if not request["dataset"].get("exampleCount"):
            return call.refuse(400, "example_count is required for uploaded datasets")
        store.add_file(name, name, "dataset", b"", provider=call.provider, key=call.key)
        return Reply(200, {"name": f"{_ACCOUNT}/datasets/{name}", "state": "UPLOADING"})
    if action == "getDownloadEndpoint":
        job = store.find_batch(identifier.removesuffix("-results"), call.provider, call.key)
        if job is None or job.results_are_gone:
            return call.refuse(404, "resource not found")
        _describe_fireworks(store, job)
        visible = {role: _show_file(store, job, role) for role in ("output", "error")}
        names = {"output": "BIJOutputSet.jsonl", "error": "error-data"}
        urls = {
            f"dataset/{identifier}/{names[role]}": f"{call.root}/v1/files/{file}/content?signature=x"
            for role, file in visible.items()
            if file
        }
        return Reply(200, {"filenameToSignedUrls": urls})
    file = store.find_file(identifier)
    if file is None:
        return call.refuse(404, "resource not found")
    if action == "upload":
        file.content = parse_fields(call.headers.get(b"content-type", b""), call.body)["file"].content
    state = "READY" if file.content else "UPLOADING"
    return Reply(200, {"name": f"{_ACCOUNT}/datasets/{identifier}", "state": state})


def _describe_fireworks(store: BatchStore, batch: Batch) -> dict[str, Any]:
    def write(outcome: Outcome) -> dict[str, Any]:
        if outcome.kind != "succeeded":
            return {"custom_id": outcome.custom_id, "error": _error_of(outcome)}
        return {"custom_id": outcome.custom_id, "response": outcome.reply}

    _write_files(store, batch, write)
    counts = _counts(store, batch)
    failed = counts["errored"] + counts["expired"] + counts["canceled"]
    state = _find_state(batch).upper().replace("IN_PROGRESS", "RUNNING")
    progress = {
        "totalInputRequests": counts["total"],
        "totalProcessedRequests": counts["succeeded"] + failed,
        "successfullyProcessedRequests": counts["succeeded"],
        "failedRequests": failed,
    }
    return {
        **batch.fields,
        "name": f"{_ACCOUNT}/batchInferenceJobs/{batch.identifier}",
        "createTime": write_date(batch.submitted),
        "state": f"JOB_STATE_{state}",
        "status": {"code": "INVALID_ARGUMENT" if batch.failure else "OK", "message": batch.failure or ""},
        "outputDatasetId": f"{_ACCOUNT}/datasets/{batch.identifier}-results",
        "jobProgress": progress,
    }


HOSTS: dict[str, Callable[[BatchStore, Call], Reply | None]] = {
    "fireworks_ai": _serve_fireworks,
    "mistral": _serve_mistral,
    "together_ai": _serve_together,
    "xai": _serve_xai,
}
"""Provider → the function that answers a request to its batches and files."""
