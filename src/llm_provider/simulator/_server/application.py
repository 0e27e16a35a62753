"""The ASGI application: it turns a request into an answer, stage by stage."""

from __future__ import annotations

import math
import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, parse_qsl

import orjson

from .._batches.cached_contents import expand
from .._batches.endpoints import find_owner, name_operation, serve
from .._batches.exchange import Call, find_format
from .._batches.models import is_listed
from .._batches.references import check_files
from .._behaviour.answers import complete
from .._behaviour.faults import Fault
from .._behaviour.prompt_cache import CacheUse, count_cached
from .._behaviour.shapes import ERROR_EVENTS, shape_frames, shape_reply
from .._behaviour.upstreams import write_headers
from .._records.recorded_requests import Record
from ..formats.aws_frames import FRAMES_TYPE, frame_error, frame_events, is_framed
from ..formats.wire_format import MALFORMED, Completion, Headers, Problem, Prompt, Request, refuse_malformed
from .control import CONTROL_PREFIX, control
from .delivery import (
    JSON_TYPE,
    STREAM_TYPE,
    BrokenConnectionError,
    Exchange,
    Receive,
    Send,
    send_broken,
    send_bytes,
    send_stream,
)
from .reports import find_report
from .routing import Target, find_target

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping

    from .._batches.references import StoredContent
    from .._settings import Settings
    from ..formats.wire_format import Frame
    from .state import State

__all__ = ["Application"]

Scope = dict[str, Any]

NO_FAULT = Fault()
MOST_RECORDED_BYTES = 100_000
"""Bytes that are kept of the body of an upload or a batch."""
QUOTA_STATUS = 429
CONTEXT_LENGTH_STATUS = 400


class _PreparedAnswer(NamedTuple):
    """A request and the answer to it, before limits and latency."""

    exchange: Exchange
    target: Target
    settings: Settings
    prompt: Prompt
    completion: Completion
    fault: Fault
    cache_use: CacheUse | None


class Application:
    """The simulator as an ASGI application. It runs in one event loop, without threads and without locks."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        body = await _read_body(receive, headers)
        path: str = scope["path"]
        if path.startswith(CONTROL_PREFIX):
            await _send_plain(send, *control(self._state, path, scope["query_string"], body))
            return
        if (report := find_report(path)) is not None and scope["method"] == "GET":
            query, key = parse_qs(scope["query_string"].decode("latin-1")), _read_key(headers)
            await _send_plain(send, *report(self._state.books, self._state.settings, query, key))
            return
        owner = find_owner(path)
        if owner is not None:
            await self._serve_batches(scope, receive, send, owner, headers, body)
            return
        target = find_target(path)
        if target is None or scope["method"] != "POST":
            await _send_plain(send, 404, {"error": {"message": f"nothing is served at {path}"}})
            return
        if scope["query_string"]:
            path = f"{path}?{scope['query_string'].decode('latin-1')}"
        exchange = self._record(scope, receive, send, target.provider, path, body)
        await self._finish(exchange, self._answer(exchange, target, headers, scope["path"]))

    def _record(
        self, scope: Scope, receive: Receive, send: Send, provider: str, path: str, body: bytes
    ) -> Exchange:
        """Keep a record of a request, which is counted until it ends."""
        record = Record(provider, path, scope["headers"], time.time(), scope["http_version"], body)
        self._state.recorder.add(record)
        return Exchange(record, self._state.ledger, receive, send, tuple(scope["client"]))

    async def _finish(self, exchange: Exchange, answer: Awaitable[None]) -> None:
        try:
            await answer
        except BrokenConnectionError:
            raise
        except Exception:
            # The HTTP server answers 500 without any message, and a bug of the simulator must be visible.
            traceback.print_exc()
            raise
        finally:
            exchange.client.forget()
            exchange.end()

    async def _serve_batches(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        owner: tuple[str, str],
        headers: Mapping[bytes, bytes],
        body: bytes,
    ) -> None:
        """Answer a request to a batch or file endpoint, with the fault that is ordered for it."""
        provider, path = owner
        target = Target(provider, find_format(provider))
        call = Call(
            provider=provider,
            method=scope["method"],
            path=path,
            query=dict(parse_qsl(scope["query_string"].decode("latin-1"))),
            headers=headers,
            key=_read_key(headers),
            body=body,
            root=_find_root(scope, provider if path != scope["path"] else "", headers),
        )
        exchange = self._record(scope, receive, send, provider, scope["path"], body[:MOST_RECORDED_BYTES])
        await self._finish(exchange, self._answer_batch_call(exchange, target, call))

    async def _answer_batch_call(self, exchange: Exchange, target: Target, call: Call) -> None:
        state = self._state
        exchange.identify(f"req_{state.next_identifier()}")
        exchange.deviations = state.deviations(target.provider)
        key = call.key
        if "upload_id" in call.query:
            # The address of an upload is its own credential: Gemini's SDK sends no key there.
            key = state.settings(target.provider).require_key or key
        fault = await self._meet_fault(exchange, target, name_operation(call.method, call.path), key)
        if fault is None:
            return
        reply = serve(state.batches, call)
        raw = reply.body if isinstance(reply.body, bytes) else orjson.dumps(reply.body)
        exchange.headers += reply.headers
        content_type = (b"content-type", reply.content_type)
        if fault.stall_after is not None:
            # Half of the answer, or nothing of it with 0. The request was served all the same.
            await exchange.start(reply.status, [content_type])
            await exchange.more(raw[: len(raw) // 2] if fault.stall_after else b"")
            await exchange.client.wait_for_disconnect(fault.delay or None)
            exchange.end(disconnected=True)
        elif fault.abort_after is not None:
            await send_broken(exchange, raw)
        else:
            if fault.cut_after is not None:
                raw = b"".join(raw.splitlines(keepends=True)[: fault.cut_after])
            await send_bytes(exchange, reply.status, raw, content_type)

    async def _answer(
        self, exchange: Exchange, target: Target, headers: Mapping[bytes, bytes], path: str
    ) -> None:
        state = self._state
        settings = state.settings(target.provider)
        identifier = state.next_identifier()
        exchange.identify(f"req_{identifier}")
        exchange.deviations = state.deviations(target.provider)
        prompt = _read_prompt(target, exchange.record.body, headers, path, state.batches.contents)
        exchange.record.model = prompt.model if isinstance(prompt, Prompt) else ""
        key = _read_key(headers)
        text = prompt.text if isinstance(prompt, Prompt) else ""
        fault = await self._meet_fault(exchange, target, text, key)
        if fault is None:
            return
        if isinstance(prompt, Problem):
            await _refuse(exchange, target, prompt)
        elif (problem := self._check_files(exchange, prompt, key)) is not None:
            await _refuse(exchange, target, problem)
        elif settings.only_listed_models and not is_listed(target.provider, prompt.model):
            await _refuse(exchange, target, Problem(status=404), streamed=prompt.stream)
        else:
            try:
                rejection = target.format.reject(prompt) if settings.reject_parameters else None
                completion = complete(
                    prompt, settings, identifier, int(exchange.record.time), fault.finish, fault.text
                )
                if completion.served.refused:
                    rejection = Problem("No endpoints are available for this routing.", status=404)
            except MALFORMED as mistake:
                rejection = refuse_malformed(mistake)
            if rejection is not None:
                await _refuse(exchange, target, rejection)
                return
            exchange.headers += write_headers(prompt, completion.served, identifier)
            use = None
            if settings.prompt_cache and prompt.samples:
                use = state.prompt_caches.use(prompt, key, time.monotonic())
                count_cached(completion, use)
            if stored_tokens := prompt.request.body.get("cachedTokens"):
                completion.usage.cache_read_input_tokens = stored_tokens
            prepared = _PreparedAnswer(exchange, target, settings, prompt, completion, fault, use)
            excess = self._check_limits(prepared, key)
            if excess is not None:
                await _refuse(exchange, target, excess)
            else:
                await self._serve(prepared)

    async def _meet_fault(self, exchange: Exchange, target: Target, text: str, key: str) -> Fault | None:
        """The fault of a request; None if the fault, or an error about the key, has answered it."""
        state = self._state
        fault = state.faults.take(target.provider, text, key) or NO_FAULT
        if fault is not NO_FAULT:
            state.ledger.faults += 1
            if await _misbehaves(exchange, target, fault):
                return None
        if state.settings(target.provider).require_key not in (None, key):
            await _refuse(exchange, target, Problem(status=401))
            return None
        return fault

    def _check_files(self, exchange: Exchange, prompt: Prompt, key: str) -> Problem | None:
        """The error of a request that is too large, or refers to a file that the provider does not have."""
        find_file, raw = self._state.batches.find_file, exchange.record.body
        return check_files(find_file, prompt.provider, key, raw, prompt.request.body)

    def _check_limits(self, prepared: _PreparedAnswer, key: str) -> Problem | None:
        """The error if a limit is exceeded, else None; sets the rate-limit headers in both cases."""
        settings, usage, ledger = prepared.settings, prepared.completion.usage, self._state.ledger
        wire_format, provider = prepared.target.format, prepared.target.provider
        if settings.context_window is not None and usage.input_tokens > settings.context_window:
            return wire_format.refuse_length(usage.input_tokens, settings.context_window)
        if settings.max_concurrent is not None and ledger.by_provider[provider] > settings.max_concurrent:
            ledger.rate_limited += 1
            return wire_format.refuse_rate(None)
        limits = self._state.limits(provider, prepared.prompt.model, key, settings)
        if limits is None:
            return None
        now = time.monotonic()
        wait = limits.admit(usage.input_tokens + usage.output_tokens if prepared.prompt.billed else 0, now)
        if settings.rate_limit_headers:
            prepared.exchange.headers += wire_format.write_limit_headers(limits.state(now))
        if not wait:
            return None
        ledger.rate_limited += 1
        return wire_format.refuse_rate(wait if wait < math.inf else None)

    async def _serve(self, prepared: _PreparedAnswer) -> None:
        """Wait for a place at a server that has a number of them, and send the answer from there."""
        exchange, target, settings = prepared.exchange, prepared.target, prepared.settings
        if settings.served_at_once is None:
            await self._send_completion(prepared)
            return
        server = self._state.servers[target.provider]
        turn = server.queue(settings.served_at_once)
        try:
            if await exchange.client.wait_for(turn):
                exchange.end(disconnected=True)
            else:
                await self._send_completion(prepared)
        finally:
            server.leave(turn, settings.served_at_once)

    def _read_prompt(self, prepared: _PreparedAnswer) -> float:
        """Seconds that reading the prompt takes; counts the tokens that are kept from earlier prompts."""
        settings, usage = prepared.settings, prepared.completion.usage
        if settings.prefix_tokens:
            server = self._state.servers[prepared.target.provider]
            kept = server.read_prompt(prepared.prompt.request.body, settings.prefix_tokens)
            usage.cache_read_input_tokens = min(kept, usage.input_tokens)
        read = usage.input_tokens - usage.cache_read_input_tokens
        return 0.0 if settings.prompt_speed is None else read / settings.prompt_speed

    async def _send_completion(self, prepared: _PreparedAnswer) -> None:
        exchange, target, settings, prompt, completion, fault, cache_use = prepared
        latency = self._state.latency(settings) + self._read_prompt(prepared)
        if latency and await exchange.client.wait_for_disconnect(latency):
            exchange.end(disconnected=True)
            return
        if cache_use is not None:
            cache_use.keep(time.monotonic())

        key = _read_key(dict(exchange.record.headers))
        broken = not prompt.stream and (fault.abort_after is not None or fault.cut_after is not None)
        whole = not (fault.empty_stream if prompt.stream else broken)

        def bill(sent: int | None) -> None:
            if not prompt.billed:
                return
            usage = completion.usage
            if sent is not None:
                output = min(usage.output_tokens, usage.reasoning_output_tokens + sent)
                usage = replace(usage, output_tokens=output)
            self._state.bill(prompt, completion.model, key, usage, finished=sent is None and whole)

        if prompt.stream:
            problem = Problem(fault.message, status=fault.status or 500, code=fault.code, type=fault.type)
            error = (
                b"" if fault is NO_FAULT else target.format.write_error_frame(problem, exchange.identifier)
            )
            frames: Iterable[Frame] = () if fault.empty_stream else target.format.stream(prompt, completion)
            if fault.shape is not None:
                frames = shape_frames(fault.shape, frames)
            if exchange.deviations is not None:
                frames = exchange.deviations.change_frames(frames)
            kind, interval = STREAM_TYPE, settings.chunk_interval
            if is_framed(prompt.request.path):
                kind, frames, error = FRAMES_TYPE, frame_events(frames), frame_error(error)
            await send_stream(
                exchange, frames, content_type=kind, interval=interval, fault=fault, error=error, bill=bill
            )
            return
        reply = target.format.reply(prompt, completion)
        if fault.shape is not None:
            reply = shape_reply(fault.shape, reply)
        if exchange.deviations is not None:
            reply = exchange.deviations.change_reply(reply)
        if prompt.request.body.get("background") is True and reply.get("object") == "response":
            reply = self._state.batches.keep_response(reply)
        if prompt.request.body.get("background") and reply.get("object") == "interaction":
            self._state.batches.responses[reply["id"]] = reply
        body = orjson.dumps(reply)
        bill(None)
        if broken:
            await send_broken(exchange, body)
        else:
            await send_bytes(exchange, 200, body, JSON_TYPE)


async def _read_body(receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
    message = await receive()
    body: bytes = message["body"]
    # An empty message always ends a body. Receiving it needs the other threads of the HTTP server once more,
    # which takes some 7 % of the time of a small answer.
    if headers.get(b"content-length") == b"%d" % len(body):
        return body
    parts = [body]
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
    return b"".join(parts)


def _read_prompt(
    target: Target,
    body: bytes,
    headers: Mapping[bytes, bytes],
    path: str,
    contents: Mapping[str, StoredContent],
) -> Prompt | Problem:
    try:
        parsed = orjson.loads(body)
        if not isinstance(parsed, dict):
            return Problem("the body is not a JSON object")
        if "cachedContent" in parsed and isinstance(parsed := expand(contents, parsed), Problem):
            return parsed
        return target.format.read(Request(target.provider, parsed, headers, path))
    except orjson.JSONDecodeError:
        return Problem("the body is not valid JSON")
    except MALFORMED as mistake:
        return refuse_malformed(mistake)


async def _misbehaves(exchange: Exchange, target: Target, fault: Fault) -> bool:
    """Carry out a fault that replaces the answer; False if an answer follows."""
    if fault.hang:
        await exchange.client.wait_for_disconnect(None)
        exchange.end(disconnected=True)
        return True
    if fault.delay and fault.stall_after is None and await exchange.client.wait_for_disconnect(fault.delay):
        exchange.end(disconnected=True)
        return True
    if fault.redirect is not None:
        exchange.headers.append((b"location", fault.redirect.encode()))
        await send_bytes(exchange, fault.status or 307, b"", (b"content-type", b"text/plain"))
        return True
    if fault.body is not None:
        raw = fault.body.encode() if isinstance(fault.body, str) else fault.body
        exchange.headers += _write_retry_headers(_make_problem(fault))
        await send_bytes(exchange, fault.status or 200, raw, (b"content-type", fault.content_type.encode()))
        return True
    if fault.answers_with_error:
        problem = _make_problem(fault)
        if fault.context_length:
            limit = 128_000
            genuine = target.format.refuse_length(limit + 1, limit)
            problem = replace(problem, message=fault.message or genuine.message, context_length=True)
        if fault.shape == ERROR_EVENTS:
            status, _ = target.format.write_error(problem, exchange.identifier)
            exchange.headers += _write_retry_headers(problem)
            event = target.format.write_error_frame(problem, exchange.identifier)
            await send_bytes(exchange, status, event, STREAM_TYPE)
        else:
            await _refuse(exchange, target, problem)
        return True
    return False


def _make_problem(fault: Fault) -> Problem:
    default = CONTEXT_LENGTH_STATUS if fault.context_length else QUOTA_STATUS
    return Problem(
        status=fault.status or default,
        message=fault.message,
        code=fault.code,
        type=fault.type,
        retry_after=fault.retry_after,
        retry_after_style=fault.retry_after_style,
        quota=fault.quota,
        context_length=fault.context_length,
    )


async def _refuse(exchange: Exchange, target: Target, problem: Problem, *, streamed: bool = False) -> None:
    status, body = target.format.write_error(problem, exchange.identifier)
    exchange.headers += _write_retry_headers(problem)
    raw, kind = orjson.dumps(body), JSON_TYPE
    if exchange.deviations is not None:
        raw, other = exchange.deviations.change_error(body, streamed=streamed)
        status, kind = (status, kind) if other is None else (other, STREAM_TYPE)
    await send_bytes(exchange, status, raw, kind)


def _write_retry_headers(problem: Problem) -> Headers:
    headers = list(problem.headers)
    if problem.retry_after is not None and problem.retry_after_style != "retry_info":
        name = b"retry-after-ms" if problem.retry_after_style == "ms" else b"retry-after"
        headers.append((name, problem.retry_after.encode()))
    return headers


def _read_key(headers: Mapping[bytes, bytes]) -> str:
    names = (b"authorization", b"api-key", b"x-api-key", b"x-goog-api-key")
    value = next((headers[name] for name in names if headers.get(name)), b"")
    return value.decode("latin-1").removeprefix("Bearer ")


def _find_root(scope: Scope, prefix: str, headers: Mapping[bytes, bytes]) -> str:
    """Scheme, host and the provider's name where the path begins with it."""
    host = headers.get(b"host", b"127.0.0.1").decode("latin-1")
    return f"{scope.get('scheme', 'http')}://{host}{prefix and f'/{prefix}'}"


async def _send_plain(send: Send, status: int, body: Any) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [JSON_TYPE]})
    await send({"type": "http.response.body", "body": orjson.dumps(body)})
