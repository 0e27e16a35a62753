"""The first half of a call's life, in the user's thread: it is prepared and looked up.

A script whose answers are all stored goes no further, and this module loads neither an event loop nor an SDK
for it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from sys import modules
from typing import TYPE_CHECKING, Any, TypeVar

from .. import doors
from ..errors import CacheMissError, LLMError, RequestError, SchemaMismatchError, UnknownModelError, cite
from ..events.events import SDK, Events, is_logging, tell_lookup
from ..formats import registry
from ..formats.decoded import read_decoded
from ..money.totals import find_tracks
from ..pace.call_limits import Concurrency, Deadline, Patience
from ..requests.request import adds_headers, describe_input, with_headers
from ..requests.routing import resolve
from ..runtime import cassette, clock
from ..runtime.imports import when_imported
from ..runtime.json_pieces import LARGE, canonical, loads, read_large, read_plain
from ..settings import Settings
from ..store.entry import NOT_KEPT
from ..store.response_cache import Entry, ResponseCache
from ..types.messages import text_to_parse
from ..types.response import Response
from ..words import format_duration
from .call import MAX_REQUEST_BYTES, Call, Operation, Sample
from .recorder import CostRecorder

if TYPE_CHECKING:
    import asyncio

    from ..._features.cache_care.maintenance import Explanation
    from ..formats.protocol import AnyAnswer
    from ..pace.scopes import ScopeStatistics

T = TypeVar("T")
V = TypeVar("V")

READING = ("use", "only")
"""The cache modes that look answers up."""

_RELAYS = {"fallback": "fallback", "delivery": "background"}
"""Parameters of a call, and the doors to what makes the calls that are asked in its place."""

_READS_AT_ONCE = 16
"""Cache entries that an event loop may read before its other tasks run. A thread would take several times as
long for each read, but many reads in a row would block these tasks."""

_EXPLAINED = 20
"""Misses with cache="only" for which a client names the nearest stored entry. This takes about 10 ms each,
and a batch may have thousands of misses."""


class LookupEngine:
    """Prepares the calls of one client, and answers those that are stored."""

    def __init__(self, settings: Settings, cache: ResponseCache, recorder: CostRecorder) -> None:
        self.settings = settings
        self.cache = cache
        self.recorder = recorder
        self.closed = False
        """Whether the client is closed. A closed client makes no calls."""
        self.events = Events(settings, self.statistics)
        self.templates: dict[Any, Any] = {}
        """By what calls have alike, their template, or False; by the hash of it, how many were made."""
        self.loaded: set[tuple[str, str]] = set()
        """The SDKs that are imported, with their transports."""
        self._loading: dict[tuple[str, str], asyncio.Task[None]] = {}
        # Weak keys: if a loop ends within an iteration, its count is removed with it.
        self._reads: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()
        self._remote: bool | None = None
        self.adds_headers = adds_headers()
        self._explained = 0

    def statistics(self) -> list[ScopeStatistics]:
        """Every scope in use."""
        return []

    def prepare(self, operation: Operation[Any, T], request: Any, concurrency: Concurrency) -> Call[T]:
        """Route and encode a request; `RequestError` if it cannot be served, `RuntimeError` after `close`."""
        started = clock.perf_counter()
        if self.closed:
            self.refuse_closed()
        settings = self.settings
        named = request.model, request.base_url, settings.env_file, settings.hosts, settings.deployments
        target = resolve(*named, getattr(request, "endpoint", None))
        if self.adds_headers:
            request = with_headers(request, target)
        adapter = registry.load(target.route.adapter, target.quirks)
        parts, encoded = operation.parts(request), operation.encode(request, target, adapter)
        try:
            body = canonical(encoded.payload)
        except RequestError:
            body = b""
        if not body:
            # Outside the handler, so that an error has no other one as its context.
            if hasattr(request, "mend_answers"):
                request = request.mend_answers()
                encoded = operation.encode(request, target, adapter)
            body = canonical(encoded.payload)
        if len(body) > MAX_REQUEST_BYTES:
            size = f"{len(body) / 1e6:.1f} MB, and the limit is {MAX_REQUEST_BYTES / 1e6:.0f} MB"
            problem = f"the request has {size}: pass large files as URLs"
            raise RequestError(problem, provider=target.provider, model=request.model)
        patience = settings.outage_patience if request.outage_patience is None else request.outage_patience
        cache = request.cache or settings.cache
        call = Call(
            operation=operation,
            exchange=operation,
            request=request,
            target=target,
            adapter=adapter,
            encoded=encoded,
            body=body,
            parts=parts,
            started=started,
            concurrency=concurrency,
            cache=cassette.modes.get(cache, cache),
            tracks=find_tracks(),
            patience=Patience(
                operation.patience if patience is None else patience, clock.monotonic(), patience is None
            ),
            upstream=request.options.get("upstream")
            if request.options
            else getattr(request, "upstream", None),
            listeners=self.find_listeners(),
        )
        if request.deadline is not None:
            call.deadline = Deadline(request.deadline, started + request.deadline)
        if request.options:
            for name, door in _RELAYS.items():
                if request.options.get(name):
                    call.relay = getattr(doors, door).make_relay(self, call)
        if target.provider == "litellm" and target.base_url is None and call.cache != "only":
            self._check_provider(call)
        return call

    def find_listeners(self) -> tuple[Any, ...]:
        """Who listens to a call that is made now."""
        return self.events.find() if SDK in modules or is_logging(20) else self.events.listeners

    def _check_provider(self, call: Call[Any]) -> None:
        """Raise `UnknownModelError` if no host and no provider of litellm has the prefix of the model."""
        try:
            doors.provider_names.check_provider(call.target.model, self.settings.hosts)
        except UnknownModelError:
            # A stored answer may come from a provider which another program has registered with litellm.
            if not self.cache.has_second_level and self.lookup(call) is None:
                raise

    def refuse_closed(self) -> None:
        if self.closed:
            raise RuntimeError("this client is closed")

    def lookup(self, call: Call[T]) -> T | None:
        """The result of a call from the cache; None if a part of it is not stored, or an error if it must be.

        In a thread that runs an event loop, a second level of the cache is left to `run`.
        """
        if call.cache not in READING:
            return None
        if call.relay is not None:
            stored: T | None = call.relay.look_up(call)
            return stored
        parts = call.parts
        if len(parts) == 1:
            (part,) = parts
            key = call.key(part)
            result = self.answer_from(call, self.cache.get(key), call.started, key)
            if result is None and call.cache == "only" and not self.cache.has_second_level:
                raise self.missing(call, part)
            return result
        samples = []
        keys = [call.key(part) for part in call.parts] if self.cache.has_second_level else []
        ahead = self.cache.read_ahead(keys) if keys else {}
        for part in call.parts:
            key = call.key(part)
            sample = self.sample(call, self.cache.get_here(key, ahead.get(key)), key)
            if sample is None:
                if call.cache == "only" and not self.cache.has_second_level:
                    raise self.missing(call, part)
                return None
            samples.append(sample)
        return tell_lookup(call, call.started, self.result(call, samples))

    async def lookup_soon(self, call: Call[T]) -> T | None:
        """`lookup` for an event loop, which must not wait long for the disk."""
        if call.cache not in READING:
            return None
        import asyncio

        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            from ..runtime.event_loop import running_loop

            here = running_loop()  # says what to write
        if self._remote is None:
            self._remote = self.cache.lease_directory is None
        if self._remote:
            # On a network file system each read may take a message to another machine.
            return await asyncio.to_thread(self.lookup, call)
        while (reads := self._reads.get(here, 0)) >= _READS_AT_ONCE:  # noqa: ASYNC110  # one iteration
            await asyncio.sleep(0)
        self._reads[here] = reads = reads + len(call.parts)
        if reads >= _READS_AT_ONCE:
            here.call_soon(self._reads.pop, here, None)
        result = self.lookup(call)
        if result is not None:
            # A loop that only has hits would never let other tasks run.
            await asyncio.sleep(0)
        return result

    def answer_from(
        self, call: Call[T], entry: Entry | None, started: float, key: str, prompt: Any = None
    ) -> T | None:
        """The result of a call of one part from its cache entry; None if the entry cannot be served.

        `call` may differ in its `prompt`, and so in its `key`. `started` is the monotonic time at which the
        user made it. A strict call raises `ModelDriftError` if another model answered than before.
        """
        if entry is None or (answer := self.decode_entry(call, entry, key)) is None:
            return None
        change = self.recorder.hit(call, answer)
        if change is not None:
            self.recorder.check_model(call, Sample(answer, entry.body, cached=True, change=change))
        result = call.operation.restore(call, entry, answer, started, prompt)
        return result if not call.listeners else tell_lookup(call, started, result)

    def decode_entry(self, call: Call[Any], entry: Entry, key: str | None = None) -> AnyAnswer | None:
        """The answer in the cache entry of a key, if it can be served."""
        if call.request.max_age is not None and is_too_old(call, entry):
            return None
        answer: Any = None
        kept = self.settings.kept_reasons
        if entry.decoded is not None and call.operation.name == "chat" and "stop" in kept:
            answer = read_decoded(entry.decoded, entry.body, call.target)
        if answer is None:
            try:
                if entry.plain:
                    answer = call.operation.decode(call, read_plain(entry.body), 1)
                elif len(entry.body) < LARGE:
                    answer = call.operation.decode(call, loads(entry.body), 1)
                else:
                    answer = read_large(lambda: call.operation.decode(call, loads(entry.body), 1))
            except (LLMError, ValueError):
                # The entry was written by another version, whose decoder accepted other replies.
                return None
            if not call.operation.is_kept(answer, kept):
                return None
        answer.origin, answer.key = entry.origin, key
        # Another type of the same schema may have accepted it, or a version that did not check.
        return answer if call.encoded.structure is None or mismatch(call, answer) is None else None

    def sample(self, call: Call[Any], entry: Entry | None, key: str | None = None) -> Sample | None:
        """A part from the cache entry of its key, if it can be served."""
        if entry is None or (answer := self.decode_entry(call, entry, key)) is None:
            return None
        return Sample(answer, entry.body, cached=True, price=entry.price)

    def result(self, call: Call[T], samples: Sequence[Sample]) -> T:
        """Put the parts of a call together and record the hits; a strict call may raise `ModelDriftError`."""
        changed = None
        for sample in samples:
            if sample.cached:
                change = self.recorder.hit(call, sample.answer)
                # The sample of a shared request already has the change that the leader's record names.
                sample.change = sample.change or change
            if sample.change is not None:
                changed = sample
        if changed is not None:
            self.recorder.check_model(call, changed)
        return call.operation.result(call, samples)

    def missing(self, call: Call[Any], part: int) -> CacheMissError:
        """The error of a call with cache="only" for a part that is not stored."""
        key = call.key(part)
        message = f"no answer is stored under {key}, and cache='only' sends nothing"
        if cassette.replayed is not None:
            question = describe_input(call.request) or call.build_question(part).body.decode()
            answer = f"answer of {call.request.model} to {cite(question)} (key {key})"
            message = f"{cassette.replayed} has no {answer}, and a replay sends nothing"
        stored = self.cache.peek(key)
        if stored is not None and is_too_old(call, stored):
            age, most = clock.time() - stored.created, call.request.max_age
            message = (
                f"the answer under {key} is {format_duration(age)} old, max_age is {format_duration(most)}, "
                "and cache='only' sends nothing"
            )
        elif stored is not None:
            message = f"the answer under {key} is not used: it is cut, refused or not of response_format"
        elif self._explained < _EXPLAINED:
            self._explained += 1
            with contextlib.suppress(OSError):
                message += f"; {self.explain(call, part) or NOT_KEPT}"
        error = CacheMissError(message, key=key, provider=call.target.provider, model=call.request.model)
        return tell_lookup(call, call.started, error)

    def explain(self, call: Call[Any], part: int) -> Explanation | None:
        """Why a part of a call is not stored: the samples that are, or else the nearest stored question."""
        if getattr(call.request, "n", 1) > 1:
            stored = [self.cache.peek(call.key(each)) is not None for each in call.parts]
            if any(stored) and not all(stored):
                return doors.cache_maintenance.explain_samples(call.key(part), stored)
        return self.cache.explain_miss(call.build_question(part))

    def load(self, call: Call[Any]) -> None:
        """Import the SDK of a call in the user's thread, which waits for the call anyway.

        An import in another thread takes longer, because the C library maps memory page by page in every
        thread but the main one. But nothing ends an import, so a deadline is kept by `load_apart`.
        """
        if call.deadline is None:
            self._import_sdk(self.sdk_of(call))

    def sdk_of(self, call: Call[Any]) -> tuple[str, str]:
        """The adapter of a call and its transport."""
        route = call.target.route
        return route.adapter, self.settings.transport or route.transport

    async def load_apart(self, call: Call[Any], work: Callable[[Call[Any]], Coroutine[Any, Any, V]]) -> V:
        """Import the SDK in a thread of its own, so that the loop keeps all deadlines; then do the work."""
        import asyncio

        sdk = self.sdk_of(call)
        loading = self._loading.get(sdk)
        # A forked child has the tasks of a loop that does not run there.
        if loading is None or loading.get_loop() is not asyncio.get_running_loop():
            loading = self._loading[sdk] = asyncio.create_task(asyncio.to_thread(self._import_sdk, sdk))
        if call.deadline is not None:
            call.deadline.is_loading = True
        await asyncio.shield(loading)
        self._loading.pop(sdk, None)
        if call.deadline is not None:
            call.deadline.is_loading = False
        return await work(call)

    def _import_sdk(self, sdk: tuple[str, str]) -> None:
        """Import an SDK once. A failure is reported when the call is sent."""
        if sdk not in self.loaded:
            with contextlib.suppress(Exception):
                when_imported(lambda: registry.load_connection(sdk[0]).connect(sdk[1]))
            self.loaded.add(sdk)


def is_too_old(call: Call[Any], entry: Entry) -> bool:
    """Whether a stored answer is older than the call's `max_age`. A replay has answers of any age."""
    most = call.request.max_age
    return most is not None and cassette.replayed is None and clock.time() - entry.created > most


# --- whether an answer matches `response_format` ------------------------------------------------------------


def mismatch(call: Call[Any], answer: Any) -> str | None:
    """Where a sample that ended by itself does not match `response_format`; None if all of them do.

    A refused or truncated answer, or a call of tools, need not match. A large one was checked before.
    """
    structure = call.encoded.structure
    if structure is None:
        return None
    if answer.checked is not None and answer.checked[0] is structure:
        known: str | None = answer.checked[1]
        return known
    from ..schemas.reading import find_problem, is_small

    for choice in answer.choices:
        if choice.finish_reason == "stop" and is_small(text := text_to_parse(choice), structure):
            problem = find_problem(text, structure)
            if problem is not None:
                return problem
    return None


async def find_mismatch(call: Call[Any], answer: Any) -> str | None:
    """`mismatch` of a new answer, without stopping the loop."""
    structure, problem = call.encoded.structure, None
    if structure is None or (answer.checked is not None and answer.checked[0] is structure):
        return mismatch(call, answer)
    from ..schemas import reading

    for choice in answer.choices:
        if choice.finish_reason == "stop" and problem is None:
            problem = await reading.find_mismatch(text_to_parse(choice), structure)
    answer.checked = structure, problem
    return problem


def build_correction(call: Call[Response], part: int, sample: Sample, problem: str) -> Call[Response]:
    (choice,) = sample.answer.choices
    correction = (
        f"Your answer does not match the JSON schema:\n{problem}\nAnswer again with the corrected JSON, and "
        "nothing else."
    )
    messages = (*call.request.messages, choice.message, {"role": "user", "content": correction})
    request = replace(call.request, messages=messages)
    encoded = call.operation.encode(request, call.target, call.adapter)
    return replace(
        call, request=request, encoded=encoded, body=canonical(encoded.payload), parts=(part,), first_key=None
    )


def mismatch_error(call: Call[Any], sample: Sample, problem: str, reason: str = "") -> SchemaMismatchError:
    """The error of an answer that does not match. `reason` says why the model was not asked again."""
    return SchemaMismatchError(
        f"the answer does not match response_format: {problem}{reason}",
        text=sample.answer.choices[0].text,
        validation_error=problem,
        provider=call.target.provider,
        model=call.request.model,
    )
