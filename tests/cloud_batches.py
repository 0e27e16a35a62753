"""Batches at Google and AWS, with the stores of files that they read and write.

They are not the simulator, which shares the library's errors. Facts are from google-genai's types, botocore's
model of both services, the guides of Google and AWS, and what litellm, bifrost and RubyLLM read of jobs.
"""

import datetime
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Answer = tuple[int, bytes]
Fault = Answer | str
"""In place of an answer; "lost" if the request is done and gets none, "half" if it gets the first half,
"hang" if it waits, also after one of these."""


class CloudServer:
    """Jobs, objects and the books of one account. Attributes may be changed while it serves.

    A job ends when it was shown `looks` times, in `state`. It answers the first `reach` rows, and fails those
    of `refused`. `late` lists of objects have no results of it, and with `half` the next file is cut.
    """

    kinds: Mapping[str, str] = MappingProxyType({})
    """Kind of request → a pattern of its method and path."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.answered: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[tuple[str, Fault]] = []
        self.met = 0
        """Faults that a request has met."""
        self.looks, self.reach, self.late, self.half = 1, 1_000_000, 0, False
        self.state, self.refused = "", Counter[str]()
        self.counts = True
        self.held = threading.Event()
        self._lock = threading.RLock()
        self._free = threading.Event()

    def handle(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        raise NotImplementedError

    def prompt_of(self, request: Any) -> str:
        """The text of a row."""
        content = (request.get("contents") or request["messages"])[0]
        content = content.get("parts") or content["content"]
        return content if isinstance(content, str) else str(content[0]["text"])

    def reply(self, request: Any) -> dict[str, Any]:
        """The answer to a row, in the form of its maker."""
        text = f"to {self.prompt_of(request)}"
        if "contents" in request:
            candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
            usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
            return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 10, "output_tokens": 5},
        }  # fmt: skip

    def end(self, job: dict[str, Any], write: Callable[[Any, Any], Any]) -> bytes:
        """The output of a job, whose rows `write` writes: a row, and its answer or None for an error."""
        lines = []
        for row in job["rows"][: self.reach]:
            request = row.get("request") or row["modelInput"]
            prompt = self.prompt_of(request)
            job["reached"] += 1
            if self.refused[prompt]:
                self.refused[prompt] -= 1
                lines.append(json.dumps(write(row, None)))
                job["failed"] += 1
                continue
            self.answered[prompt] += 1
            lines.append(json.dumps(write(row, self.reply(request))))
        # No provider promises an order.
        return "".join(f"{line}\n" for line in reversed(lines)).encode()

    @contextmanager
    def serve(self) -> Iterator[str]:
        """The address of the server while it answers."""
        cloud = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _do(self) -> None:
                if self.headers.get("transfer-encoding", "") == "chunked":
                    body = b""
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers.get("content-length", 0)))
                answer = cloud.answer(self.command, self.path, dict(self.headers.items()), body)
                if answer is None:
                    self.close_connection = True
                    return
                status, content, is_half = answer
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if is_half else content)
                if is_half:
                    cloud.hold()

            do_GET = do_POST = do_PUT = _do  # noqa: N815  # the names of the base class

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                self._free.set()
                server.shutdown()

    def hold(self) -> None:
        """Wait in the place of a client whose process is killed meanwhile."""
        self.held.set()
        self._free.wait(60)

    def answer(
        self, method: str, address: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes, bool] | None:
        """Status and content of an answer, and whether only half of it is sent; None for no answer."""
        parts = urlsplit(address)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        kind = next(kind for kind, form in self.kinds.items() if re.search(form, f"{method} {address}"))
        with self._lock:
            self.seen[kind] += 1
            self.headers.append({name.lower(): value for name, value in headers.items()})
            fault = next((each for each in self.faults if each[0] == kind), None)
            if fault is not None:
                self.faults.remove(fault)
                self.met += 1
            is_half = fault is not None and "half" in fault[1]
            if fault is None or is_half or "lost" in fault[1]:
                answer = self.handle(method, unquote(parts.path), query, body)
        if fault is None or is_half:
            return *answer, is_half
        if not isinstance(fault[1], str):
            return *fault[1], False
        if "hang" in fault[1]:
            self.hold()
        return None


def refuse(status: int, message: str, code: str) -> Answer:
    return status, json.dumps({"error": {"code": status, "message": message, "status": code}}).encode()


class GoogleServer(CloudServer):
    """Vertex AI's batch prediction jobs and Cloud Storage's objects, below /v1/projects and /storage."""

    kinds = MappingProxyType(
        {
            "upload": "POST /upload/",
            "objects": r"GET /storage/v1/b/[^/]+/o\?",
            "download": "GET /storage/",
            "cancel": "POST .*:cancel",
            "create": "POST .*/batchPredictionJobs",
            "list": r"GET .*/batchPredictionJobs(\?|$)",
            "retrieve": "GET .*/batchPredictionJobs/",
        }
    )
    says_folder = True
    """Whether a job says in which folder its output is."""
    parts: tuple[str, ...] = ("predictions.jsonl",)
    """The files over which the rows of the output are divided."""

    def handle(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if path.startswith("/upload/storage/v1/b/"):
            name = f"gs://{path.split('/')[5]}/{query['name']}"
            self.objects[name] = body
            return 200, json.dumps({"kind": "storage#object", "name": query["name"]}).encode()
        if path.startswith("/storage/v1/b/"):
            bucket, _, name = path.removeprefix("/storage/v1/b/").partition("/o")
            if name:
                return self._read(f"gs://{bucket}{name}")
            return self._list_objects(f"gs://{bucket}/", query)
        if method == "POST" and not path.endswith(":cancel"):
            return self._create(json.loads(body))
        name = path.partition("/batchPredictionJobs")[2].lstrip("/")
        if not name:
            jobs = [self._describe(each) for each in reversed(self.jobs)]
            start = int(query.get("pageToken", 0))
            page = {"batchPredictionJobs": jobs[start : start + 2]} if jobs else {}
            more = {"nextPageToken": str(start + 2)} if start + 2 < len(jobs) else {}
            return 200, json.dumps({**page, **more}).encode()
        name, _, action = name.partition(":")
        if name not in self.jobs:
            return refuse(404, "The BatchPredictionJob does not exist.", "NOT_FOUND")
        if action:
            self.jobs[name].update(left=0, state="CANCELLED")
            return 200, b"{}"
        self._look(name)
        return 200, json.dumps(self._describe(name)).encode()

    def _list_objects(self, root: str, query: dict[str, str]) -> Answer:
        names = [name.removeprefix(root) for name in sorted(self.objects) if name.startswith(root)]
        names = [name for name in names if name.startswith(query["prefix"])]
        if self.late:
            self.late -= 1
            names = []
        items = {"items": [{"kind": "storage#object", "name": name} for name in names]} if names else {}
        return 200, json.dumps({"kind": "storage#objects", **items}).encode()

    def _read(self, name: str) -> Answer:
        if name not in self.objects:
            return refuse(404, "No such object", "notFound")
        content = self.objects[name]
        if self.half:
            self.half = False
            content = content[: len(content) // 2]
        return 200, content

    def _create(self, job: Any) -> Answer:
        self.bodies.append(job)
        uri = job["inputConfig"]["gcsSource"]["uris"][0]
        if uri not in self.objects:
            return refuse(400, f"The file {uri} does not exist", "INVALID_ARGUMENT")
        name = f"{len(self.jobs) + 1}001"
        rows = [json.loads(line) for line in self.objects[uri].splitlines()]
        now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC).isoformat()
        self.jobs[name] = {
            "rows": rows, "left": self.looks, "state": "RUNNING", "created": now, "job": job, "reached": 0,
            "failed": 0, "output": "",
        }  # fmt: skip
        return 200, json.dumps(self._describe(name)).encode()

    def _look(self, name: str) -> None:
        job = self.jobs[name]
        job["left"] -= job["left"] > 0
        if job["left"] or job["output"]:
            return
        if job["state"] == "RUNNING":
            job["state"] = self.state or "SUCCEEDED"
        prefix = job["job"]["outputConfig"]["gcsDestination"]["outputUriPrefix"]
        job["output"] = f"{prefix}/prediction-model-2026-11-29T10:00:00.000000Z"
        if job["state"] == "FAILED":
            return
        lines = self.end(job, self._write).splitlines(keepends=True)
        for number, part in enumerate(self.parts):
            self.objects[f"{job['output']}/{part}"] = b"".join(lines[number :: len(self.parts)])

    def _write(self, row: Any, answer: Any) -> Any:
        error = {"error": {"code": 429, "message": "try later", "status": "RESOURCE_EXHAUSTED"}}
        status = "" if answer else f"Too Many Requests: {json.dumps(error)}"
        return {**row, "status": status, "processed_time": "2026-11-29T10:00:00", "response": answer or {}}

    def _describe(self, name: str) -> dict[str, Any]:
        job = self.jobs[name]
        described = {
            "name": f"projects/123/locations/global/batchPredictionJobs/{name}",
            "state": f"JOB_STATE_{job['state']}",
            "createTime": job["created"],
            **job["job"],
        }
        if job["output"] and self.says_folder and job["state"] != "FAILED":
            described["outputInfo"] = {"gcsOutputDirectory": job["output"]}
        if job["output"] and self.counts:
            numbers = (job["reached"] - job["failed"], job["failed"], len(job["rows"]) - job["reached"])
            names = ("successfulCount", "failedCount", "incompleteCount")
            described["completionStats"] = {
                each: str(number) for each, number in zip(names, numbers, strict=True) if number
            }
        if job["state"] == "FAILED":
            described["error"] = {"code": 3, "message": "Failed to import data."}
        return described


class AmazonServer(CloudServer):
    """Bedrock's model invocation jobs, and S3's objects with the bucket in the path."""

    kinds = MappingProxyType(
        {
            "upload": "PUT /",
            "objects": r"GET /bucket/?\?",
            "download": "GET /bucket/",
            "cancel": "POST /model-invocation-job/.*/stop",
            "create": "POST /model-invocation-job$",
            "list": "GET /model-invocation-jobs",
            "retrieve": "GET /model-invocation-job/",
        }
    )

    def handle(self, method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if path.startswith("/bucket"):
            if method == "PUT":
                self.objects[f"s3:/{path}"] = body
                return 200, b""
            return self._list_objects(query) if "list-type" in query else self._read(f"s3:/{path}")
        if method == "POST" and not path.endswith("/stop"):
            return self._create(json.loads(body))
        name = path.split("/")[2] if path.count("/") > 1 else ""
        if not name:
            jobs = [self._describe(each) for each in reversed(self.jobs)]
            start = int(query.get("nextToken", 0))
            more = {"nextToken": str(start + 2)} if start + 2 < len(jobs) else {}
            return 200, json.dumps({"invocationJobSummaries": jobs[start : start + 2], **more}).encode()
        if name not in self.jobs:
            return 404, json.dumps({"message": "no such job", "__type": "ResourceNotFoundException"}).encode()
        if path.endswith("/stop"):
            self.jobs[name].update(left=0, state="Stopped")
            return 200, b"{}"
        self._look(name)
        return 200, json.dumps(self._describe(name)).encode()

    def _list_objects(self, query: dict[str, str]) -> Answer:
        names = [name.removeprefix("s3://bucket/") for name in sorted(self.objects)]
        names = [name for name in names if name.startswith(query["prefix"])]
        if self.late:
            self.late -= 1
            names = []
        items = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in names)
        return 200, f"<ListBucketResult><Name>bucket</Name>{items}</ListBucketResult>".encode()

    def _read(self, name: str) -> Answer:
        if name not in self.objects:
            return 404, b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>"
        content = self.objects[name]
        if self.half and name.endswith(".jsonl.out"):
            self.half = False
            content = content[: len(content) // 2]
        return 200, content

    def _create(self, job: Any) -> Answer:
        self.bodies.append(job)
        for name, known in self.jobs.items():
            if known["job"]["clientRequestToken"] == job["clientRequestToken"]:
                return 200, json.dumps({"jobArn": self._describe(name)["jobArn"]}).encode()
        name = f"abcdefgh{len(self.jobs) + 1001}"
        uri = job["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]
        rows = [json.loads(line) for line in self.objects[uri].splitlines()]
        now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.jobs[name] = {
            "rows": rows, "left": self.looks, "state": "InProgress", "created": now, "job": job, "reached": 0,
            "failed": 0, "output": "",
        }  # fmt: skip
        if len(rows) < 100:
            self.jobs[name].update(left=0, state="Failed")
        return 200, json.dumps({"jobArn": self._describe(name)["jobArn"]}).encode()

    def _look(self, name: str) -> None:
        job = self.jobs[name]
        job["left"] -= job["left"] > 0
        if job["left"] or job["output"]:
            return
        if job["state"] == "InProgress":
            job["state"] = self.state or "Completed"
        uri = job["job"]["inputDataConfig"]["s3InputDataConfig"]["s3Uri"]
        job["output"] = f"{job['job']['outputDataConfig']['s3OutputDataConfig']['s3Uri']}{name}"
        if job["state"] == "Failed":
            return
        self.objects[f"{job['output']}/{uri.rpartition('/')[2]}.out"] = self.end(job, self._write)
        self.objects[f"{job['output']}/manifest.json.out"] = b'{"totalRecordCount":1}'

    def _write(self, row: Any, answer: Any) -> Any:
        error = {"errorCode": 429, "errorMessage": "too many requests"}
        return {**row, **({"modelOutput": answer} if answer else {"error": error})}

    def _describe(self, name: str) -> dict[str, Any]:
        job = self.jobs[name]
        described = {
            "jobArn": f"arn:aws:bedrock:eu-west-1:123456789012:model-invocation-job/{name}",
            "status": job["state"],
            "submitTime": job["created"],
            **job["job"],
        }
        if job["output"] and self.counts:
            described["totalRecordCount"] = len(job["rows"])
            described["processedRecordCount"] = job["reached"]
            described["successRecordCount"] = job["reached"] - job["failed"]
            described["errorRecordCount"] = job["failed"]
        if job["state"] == "Failed":
            described["message"] = "The job has too few records."
        return described
