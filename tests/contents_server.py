"""Gemini's `generateContent` and `cachedContents`, by the API reference and the types of google-genai 3.6.

An answer is a function of the whole prompt, stored beginning included, so that a lost or doubled part shows.
The server keeps books: what it stored, for how long, and what it bills.
"""

import datetime
import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from counting_server import CountingServer

Answer = tuple[int, Mapping[str, str], Any]
MINIMUM = 4096


def tokens_of(value: Any) -> int:
    return len(json.dumps(value)) // 4


def flat(payload: Mapping[str, Any]) -> list[Any]:
    """The prompt as a model reads it: two contents of one role are one."""
    parts = [(each["role"], part) for each in payload.get("contents", ()) for part in each["parts"]]
    return [payload.get("systemInstruction"), payload.get("tools"), payload.get("toolConfig"), parts]


def answer_to(prompt: Any) -> str:
    return hashlib.sha256(json.dumps(prompt, sort_keys=True).encode()).hexdigest()[:12]


def error(status: int, message: str) -> Answer:
    words = {
        400: "INVALID_ARGUMENT",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
    }
    return status, {}, {"error": {"code": status, "message": message, "status": words[status]}}


class ContentsServer(CountingServer):
    """Attributes may be changed while it serves."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.contents: dict[str, dict[str, Any]] = {}
        """What is stored, by name; `seconds` is the sum of all lives that were bought."""
        self.created = self.extended = self.uploaded = 0
        self.asked: list[tuple[str | None, list[Any]]] = []
        """For each answered request the content that it named, and its whole prompt."""
        self.billed_tokens = self.read_tokens = 0
        self.life = 300.0
        """The seconds until the end that is told, in place of the `ttl`."""
        self.fault: Callable[[str, Any], Answer | None] = lambda path, body: None
        self._lock = threading.Lock()

    def _reply(self, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        with self._lock:
            if (fault := self.fault(path, body)) is not None:
                return fault
            if ":generateContent" in path or ":streamGenerateContent" in path:
                return self._answer(path, body)
            if "/upload/" in path:
                return self._upload(path, body)
            return self._store(body) if path.endswith("/cachedContents") else self._extend(path, body)

    def _upload(self, path: str, body: Any) -> Answer:
        """Google's resumable upload: a request that asks for an address, then the file."""
        if "sent" not in path:
            return 200, {"x-goog-upload-url": f"{self.root}/upload/v1beta/files?sent=1"}, {}
        self.uploaded += 1
        file = {"name": f"files/{self.uploaded}", "uri": f"{self.root}/v1beta/files/{self.uploaded}"}
        return 200, {"x-goog-upload-status": "final"}, {"file": {**file, "state": "ACTIVE"}}

    def _store(self, body: Any) -> Answer:
        tokens = tokens_of([body.get(name) for name in ("systemInstruction", "tools", "contents")])
        if tokens < MINIMUM:
            text = f"Cached content is too small. total_token_count={tokens}, min_total_token_count={MINIMUM}"
            return error(400, text)
        assert set(body) <= {"model", "ttl", "systemInstruction", "tools", "toolConfig", "contents"}, body
        self.created += 1
        self.billed_tokens += tokens
        name = f"cachedContents/c{self.created}"
        self.contents[name] = {**body, "tokens": tokens, "seconds": 0.0}
        return self._describe(name)

    def _extend(self, path: str, body: Any) -> Answer:
        name = path.partition("v1beta/")[2].partition("?")[0]
        if name not in self.contents:
            return error(403, "CachedContent not found (or permission denied)")
        self.extended += 1
        return self._describe(name)

    def _describe(self, name: str) -> Answer:
        stored = self.contents[name]
        stored["seconds"] += self.life
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=self.life)
        usage = {"totalTokenCount": stored["tokens"]}
        told = {"expireTime": end.isoformat().replace("+00:00", "Z"), "usageMetadata": usage}
        return 200, {}, {"name": name, "model": stored["model"], **told}

    def _answer(self, path: str, body: Any) -> Answer:
        name, cached, prompt = body.get("cachedContent"), 0, body
        if name is not None:
            if {"systemInstruction", "tools", "toolConfig"} & set(body):
                return error(400, "CachedContent can not be used with tools")
            stored = self.contents.get(name)
            if stored is None:
                return error(403, "CachedContent not found (or permission denied)")
            cached = stored["tokens"]
            prompt = {**stored, "contents": [*stored.get("contents", ()), *body["contents"]]}
            assert body["contents"][0]["role"] == "user"
        whole = flat(prompt)
        self.asked.append((name, whole))
        count = tokens_of(whole)
        self.billed_tokens += count - cached
        self.read_tokens += cached
        part = {"text": answer_to(whole)}
        reply = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": count, "cachedContentTokenCount": cached,
                              "candidatesTokenCount": 3, "totalTokenCount": count + 3},
            "modelVersion": "gemini-3.8-flash", "responseId": f"r{len(self.asked)}",
        }  # fmt: skip
        if "stream" in path:
            data = b"data: " + json.dumps(reply).encode() + b"\r\n\r\n"
            return 200, {"content-type": "text/event-stream"}, data
        return 200, {}, reply
