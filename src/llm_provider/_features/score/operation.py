"""The operation `score`: a context and continuations in, the log-probability of each continuation out.

A score takes several requests: for the tokens of the text, its log-probabilities, and a probe of the server.
The probe asks a server for something that is known: the token that the model itself writes next must get the
log-probability with which it was written. Servers have failed in many ways that no other check can see.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

from ..._core.client.batch_methods import BatchOptions, OnError, check_on_error, take_common
from ..._core.errors import APIResponseValidationError, LLMError, RequestError, ScoreCheckError
from ..._core.formats.protocol import Adapter, AnyAnswer, EncodedRequest
from ..._core.formats.shared.payload import RequestFacts, read_fields
from ..._core.journey.call import Call, Exchange, Operation, Sample, summarize
from ..._core.journey.engine import Engine
from ..._core.journey.sent_requests import sum_of_prices
from ..._core.json_values import JSONObject, json_value
from ..._core.pace.call_limits import DEFAULT_BATCH_PATIENCE
from ..._core.requests.checks import DeliveryOptions
from ..._core.requests.inputs import BatchInputs, batch_inputs, is_table, put_in_order
from ..._core.requests.routing import Target
from ..._core.runtime import clock
from ..._core.runtime.json_pieces import canonical, write_exactly
from ..._core.types.usage import Usage
from .openai import (
    TOLERANCE,
    Position,
    Prompt,
    PromptAnswer,
    ScoreForm,
    encode,
    fail,
    form_of,
    read_counts,
    read_ids,
    same_text,
    write_request,
)
from .scores import DEFAULTS, Score, ScoreRequest, Scores

if TYPE_CHECKING:
    from ..._core.requests.parameters import ScoreManyParameters

PROBE = -1
"""The number of the part that is the probe of a server. It has an entry and a flight of its own."""
_PROBE_VERSION = 1
_PROBE_SECONDS = 86_400.0
"""Seconds for which a stored probe counts: the server behind an address may become another one."""

_MOST_REMEMBERED = 10_000
"""Encoded texts, and servers that passed the probe, that a client remembers."""
_FAILURE_SECONDS = 30.0
"""Seconds for which a failed probe is remembered, so that not every call of a batch repeats it."""

PROBES = ("The capital of France is", "Once upon a time there was a", "One, two, three, four, five,")
"""Texts that the probe begins with. The next one is taken where the model's token cannot be sent again."""
_UNLIKELY = " xylophone"


@dataclass(slots=True)
class ScoreAnswer(AnyAnswer):
    """A stored score."""

    score: Score


class ScoreTexts(Operation[ScoreRequest, Scores]):
    """Scoring of given texts. Its parts are the distinct continuations, numbered by their first index."""

    name = "score"
    patience = DEFAULT_BATCH_PATIENCE
    defaults = DEFAULTS
    has_texts = True
    build = staticmethod(ScoreRequest.build)

    def bare_request(self, model: str, base_url: str | None) -> ScoreRequest:
        return ScoreRequest(model=model, context="", inputs=(), base_url=base_url)

    def encode(self, request: ScoreRequest, target: Target, adapter: Adapter) -> EncodedRequest:
        return encode(request, target)

    def parts(self, request: ScoreRequest) -> Sequence[int]:
        return [request.inputs.index(text) for text in dict.fromkeys(request.inputs)]

    def identity(self, call: Call[Scores], part: int) -> tuple[bytes, int]:
        """The context and one continuation; for the probe, the server."""
        request = call.request
        own = {"probe": _PROBE_VERSION, "server": call.target.base_url, "order": request.check_order}
        if part != PROBE:
            own = {"context": request.context, "continuation": request.inputs[part]}
        return canonical({**call.encoded.payload, **own}), 0

    def groups(self, call: Call[Scores], parts: Sequence[int]) -> list[Sequence[int]]:
        return [[part] for part in parts]

    def body(self, call: Call[Scores], parts: Sequence[int]) -> bytes:
        """The texts, which `ScoreRequests` sends in its own ways."""
        return self.identity(call, parts[0])[0]

    def prompt(self, call: Call[Scores], parts: Sequence[int]) -> bytes:
        return canonical(self._texts(call, parts))

    def tokens(self, call: Call[Scores], parts: Sequence[int]) -> float:
        return len(self.prompt(call, parts)) / 4

    def facts(self, call: Call[Scores], parts: Sequence[int]) -> RequestFacts:
        """The texts. The model writes one token, as few as every server can."""
        texts = self._texts(call, parts)
        return RequestFacts("standard", 1, texts, (), 0, (), (), adds_input=False)

    def decode(self, call: Call[Scores], reply: Any, count: int) -> ScoreAnswer:
        """A stored score, or a stored probe as long as it counts; else `APIResponseValidationError`."""
        try:
            if clock.time() - reply.get("at", math.inf) > _PROBE_SECONDS:
                raise APIResponseValidationError("the probe of this server is too old")
            score, usage = Score.from_dict(reply["score"]), Usage(**reply["usage"])
        except (KeyError, TypeError, AttributeError) as error:
            raise APIResponseValidationError(f"this is no stored score: {error}") from None
        return ScoreAnswer(score, usage=usage, model=reply["model"])

    def usage(self, call: Call[Scores], reply: Any) -> Usage | None:
        return self.decode(call, reply, 1).usage

    async def fetch(self, call: Call[Scores], parts: Sequence[int], engine: Engine) -> Sample:
        """Score one continuation, after the probe of the server if it is the first one."""
        loop = engine.loop_state()
        memory = loop.remembered = loop.remembered or Memory()
        form = form_of(call.encoded, call.target)
        requests = ScoreRequests(call, parts, engine, form, memory)
        try:
            if parts[0] == PROBE:
                await probe(requests, check_order=call.request.check_order)
                return _make_sample(requests, _NO_SCORE, at=clock.time())
            await memory.get(call.key(PROBE), lambda: self._probe(call, engine))
            return _make_sample(requests, await _score(requests, call.request, parts[0]))
        except LLMError as error:
            error.provider, error.model = call.target.provider, call.request.model
            raise

    async def _probe(self, call: Call[Scores], engine: Engine) -> None:
        """Get the probe of a server, which counts as a part of the call that needs it first."""
        part = call.make_part()
        part.first_key = None
        if call.cache not in ("use", "only") or not await engine.find_samples(part, (PROBE,)):
            # A task can lead one flight, and this one leads the flight of its continuation.
            await engine.run_side_by_side([engine.ask(part, (PROBE,))])

    def result(self, call: Call[Scores], samples: Sequence[Sample]) -> Scores:
        request, pairs = call.request, zip(call.parts, samples, strict=True)
        scores = {request.inputs[part]: sample.answer.score for part, sample in pairs}
        own = {"scores": tuple(scores[text] for text in request.inputs), "metadata": call.metadata}
        keys = tuple([sample.answer.key for sample in samples])
        return Scores(context=request.context, cache_keys=keys, **own, **summarize(call, samples))

    def _texts(self, call: Call[Scores], parts: Sequence[int]) -> list[str]:
        request = call.request
        return [
            max(PROBES, key=len) if part == PROBE else request.context + request.inputs[part]
            for part in parts
        ]


async def _score(requests: ScoreRequests, request: ScoreRequest, part: int) -> Score:
    """The score of a continuation; `ScoreCheckError` if the server's values cannot be right."""
    text, start, same = request.inputs[part], 0, None
    context, continuation = move_spaces(request.context, text)
    try:
        prompt = await requests.read_prompt(context + continuation)
        if prompt.ids is not None:
            begin = (await requests.read_prompt("")).ids if requests.form.by_token else None
            start, same = cut_ids(prompt.ids, (await requests.read_prompt(context)).ids or (), begin)
        positions = await requests.find_values(prompt, start)
        if prompt.ids is None:
            positions = positions[cut_text([position.token for position in positions], context) :]
    except LLMError as error:
        error.message = f"continuations[{part}]: {error.message}"
        error.args = (error.message,)
        raise
    greedy = [position.is_greedy for position in positions]
    # The server may tell only the texts of the tokens that were sent by their ids.
    ids = prompt.ids[start:] if prompt.ids else tuple(each.id for each in positions if each.id is not None)
    logprobs = tuple(float(position.logprob or 0.0) for position in positions)
    return Score(
        text=text,
        logprob=sum(logprobs),
        token_logprobs=logprobs,
        tokens=tuple(position.token for position in positions),
        bytes=len(text.encode("utf-8", "surrogatepass")),
        token_ids=ids if len(ids) == len(positions) else None,
        is_greedy=None if None in greedy else all(greedy),
        same_boundary=same,
    )


def _make_sample(requests: ScoreRequests, score: Score, **more: Any) -> Sample:
    """A score as the answer of all its requests."""
    samples, first = requests.samples, requests.samples[0].answer
    # The answers of the requests are not stored, and the entry knows what its first one told.
    origin = read_fields(requests.call.target.provider, first.reply, first.origin)
    usage = sum((sample.answer.usage for sample in samples if sample.answer.usage), Usage())
    model = next((sample.answer.model for sample in samples if sample.answer.model), None)
    body = {"score": asdict(score), "usage": json_value(usage), "model": model, **more}
    price = sum_of_prices([sample.price for sample in samples])
    queue, sending = (sum(getattr(sample, name) for sample in samples) for name in ("queue", "sending"))
    return Sample(
        ScoreAnswer(score, usage=usage, model=model, origin=origin), write_exactly(body), cached=False,
        queue=queue, sending=sending, price=price,
        change=next((sample.change for sample in samples if sample.change), None),
    )  # fmt: skip


class Memory:
    """Values that many calls need: the first call gets one, and the others wait for it.

    If the first one fails, the next one tries. A failed check is not tried again at once.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[object, Any] = OrderedDict()
        self._failures: dict[object, tuple[float, ScoreCheckError]] = {}
        self._locks: dict[object, asyncio.Lock] = {}

    async def get(self, key: object, work: Callable[[], Awaitable[Any]]) -> Any:
        if key in self._values:
            return self._values[key]
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._values:
                when, error = self._failures.get(key, (0.0, None))
                if error is not None and clock.monotonic() - when < _FAILURE_SECONDS:
                    raise ScoreCheckError(error.message, check=error.check, maybe_billed=False)
                try:
                    self._values[key] = await work()
                except ScoreCheckError as failure:
                    self._failures[key] = clock.monotonic(), failure
                    raise
            value = self._values[key]
        self._locks.pop(key, None)
        if len(self._values) > _MOST_REMEMBERED:
            self._values.popitem(last=False)
        return value


@dataclass(frozen=True)
class PromptScores(Exchange):
    """Asks for the log-probabilities of a prompt, or for the one of the token `following` it."""

    form: ScoreForm
    prompt: Prompt
    following: int | None = None

    name = "score"
    billed = True

    def tokens(self, call: Call[Any], parts: Sequence[int]) -> float:
        """About one token for four bytes, where they are not known."""
        return float(len(self.prompt.ids or self.prompt.text.encode()[::4]) + 1)

    def decode(self, call: Call[Any], reply: Any, count: int) -> AnyAnswer:
        """The values in a reply, which have passed the checks."""
        answer = self.form.decode(reply, self.prompt, self.following)
        answer.reply = reply
        return answer

    def usage(self, call: Call[Any], reply: Any) -> Usage | None:
        return read_counts(reply)


@dataclass(slots=True)
class TokenAnswer(AnyAnswer):
    """A decoded reply of a tokenizer."""

    ids: tuple[int, ...]


class Tokenize(PromptScores):
    """Asks a server for the tokens of a text, for nothing."""

    name = "tokenize"
    billed = False

    def decode(self, call: Call[Any], reply: Any, count: int) -> AnyAnswer:
        return TokenAnswer(read_ids(reply), usage=None)


@dataclass(slots=True)
class ScoreRequests:
    """Sends the requests for one part of a call, one after the other."""

    call: Call[Any]
    parts: Sequence[int]
    engine: Engine
    form: ScoreForm
    memory: Memory
    samples: list[Sample] = field(default_factory=list)
    """The answered requests that were billed."""

    async def read_prompt(self, text: str) -> Prompt:
        """A text as it is sent, and its tokens where the server has a tokenizer."""
        target, prompt = self.call.target, Prompt(text, None)
        if not self.form.text_field:
            return prompt

        async def ask() -> tuple[int, ...]:
            payload = self.form.write_text(target.model, text)
            encoded = EncodedRequest("/tokenize", payload, self.call.encoded.headers)
            return cast("TokenAnswer", (await self._send(Tokenize(self.form, prompt), encoded)).answer).ids

        return Prompt(text, await self.memory.get((target.base_url, target.model, text), ask))

    async def find_values(self, prompt: Prompt, start: int) -> Sequence[Position]:
        """The values of a prompt from a token on; `ScoreCheckError` if they cannot be right."""
        if not self.form.by_token:
            return (await self.ask(prompt)).positions[start:]
        positions: list[Position] = []
        ids = prompt.ids or ()
        for index in range(start, len(ids)):
            positions += (await self.ask(prompt._replace(ids=ids[:index]), ids[index])).positions
        return positions

    async def ask(self, prompt: Prompt, following: int | None = None) -> PromptAnswer:
        encoded = write_request(self.form, self.call.encoded, prompt)
        self.samples.append(await self._send(PromptScores(self.form, prompt, following), encoded))
        return cast("PromptAnswer", self.samples[-1].answer)

    async def _send(self, exchange: Exchange, encoded: EncodedRequest) -> Sample:
        call = replace(self.call, exchange=exchange, encoded=encoded, body=canonical(encoded.payload))
        return await self.engine.loop_state().sender.send(call, self.parts, None)


async def probe(requests: ScoreRequests, *, check_order: bool) -> None:
    """Ask for what is known; `ScoreCheckError` if the server tells something else."""
    for text in PROBES:
        prompt = await requests.read_prompt(text)
        first = await requests.ask(prompt)
        size, written = len(prompt.ids or first.positions), first.generated
        known = await _extend(requests, prompt, written.token, written.id)
        values = () if known is None else await requests.find_values(known, size)
        has_token = written.id is not None or (values and values[0].token == written.token)
        if known is not None and values and has_token and written.logprob != 0:
            break
    else:
        if written.logprob == 0:
            fail("sum", "the model is certain of each token that it writes")
        fail("probe", "what the model writes cannot be sent as a prompt")
    value, said = values[0].logprob or 0.0, f"the model wrote {written.token!r} at {written.logprob:.4f}"
    if abs(value - (written.logprob or 0.0)) > TOLERANCE or values[0].is_greedy is False:
        greedy = "" if values[0].is_greedy is not False else " and is not the most likely one"
        fail("known answer", f"{said}, and as a part of the prompt the token has {value:.4f}{greedy}")
    # A token of the prompt is as good as any other one.
    unlikely = next((id_ for id_ in reversed(prompt.ids or ()) if id_ != written.id), None)
    other = await _extend(requests, prompt, _UNLIKELY, unlikely)
    both = await _extend(requests, known, _UNLIKELY, unlikely)
    if other is None or both is None:
        fail("probe", "the server's tokenizer does not keep the tokens in front of a word")
    longer = {each: (await requests.find_values(each, size))[0].logprob or 0.0 for each in (other, both)}
    if longer[other] >= value:
        fail("known answer", f"{said}, and a word at random has {longer[other]:.4f} in its place")
    if abs(longer[both] - value) > TOLERANCE:
        fail("chain", f"{said}, and with a token behind it, it has {longer[both]:.4f}")
    for each, before in reversed([(known, value), *longer.items()]) if check_order else ():
        again = (await requests.find_values(each, size))[0].logprob or 0.0
        if abs(again - before) > TOLERANCE:
            fail("order", f"a token had {before:.4f}, and {again:.4f} when it was asked for again")


async def _extend(requests: ScoreRequests, prompt: Prompt, token: str, token_id: int | None) -> Prompt | None:
    """A prompt with one more token, or word; None if the tokenizer joins it with those before."""
    if prompt.ids is not None and token_id is not None and requests.form.takes_ids:
        return Prompt("", (*prompt.ids, token_id))
    if "\ufffd" in token:
        return None
    longer, ids = await requests.read_prompt(prompt.text + token), prompt.ids or ()
    return longer if longer.ids is None or longer.ids[: len(ids)] == ids != longer.ids else None


def move_spaces(context: str, continuation: str) -> tuple[str, str]:
    """The context without the white space at its end, which the continuation begins with.

    Tokenizers join a space with the word behind it. This is the rule of lm-evaluation-harness.

    >>> move_spaces("The sky is ", "blue")
    ('The sky is', ' blue')
    """
    end = len(context.rstrip())
    return context[:end], context[end:] + continuation


def cut_ids(whole: Sequence[int], context: Sequence[int], begin: Sequence[int] | None) -> tuple[int, bool]:
    """The index of the first token of a continuation, and whether the context has the same tokens alone.

    `begin` are the tokens that the tokenizer puts in front of a text, where the replies do not show them.
    """
    if len(whole) <= len(context):
        fail("slice", f"the context alone has {len(context)} tokens, and with the continuation {len(whole)}")
    if not context:
        fail("first token", "the context is empty, and the tokenizer puts no token in front of a text")
    if begin and tuple(whole[: 2 * len(begin)]) == (*begin, *begin):
        fail("begin token", f"the prompt begins twice with the tokens {list(begin)}")
    return len(context), tuple(whole[: len(context)]) == tuple(context)


def cut_text(tokens: Sequence[str], context: str) -> int:
    """The index of the first token of a continuation, by texts; `ScoreCheckError` if none ends before it.

    >>> cut_text(["<s>", " Hello", " world"], "Hello")
    2
    """
    for begin in (0, 1):
        # Without its first token, and with it: servers put a token in front of a text.
        for index, text in enumerate(accumulate(tokens[begin:-1], initial=""), start=begin):
            if index and same_text(text, context):
                return index
    return fail("slice", f"no token ends where the context ends, among {tokens[:80]!r:.200}")


_NO_SCORE = Score(text="", logprob=0.0, token_logprobs=(), tokens=(), bytes=0)
SCORE = ScoreTexts()


def parse_scores(
    model: str, contexts: Any, continuations: Any, parameters: ScoreManyParameters, on_error: OnError
) -> BatchOptions:
    """Check the arguments of `score_many`; `TypeError` if the contexts are no texts."""
    check_on_error("on_error", on_error)
    calls = cast("JSONObject", dict(parameters))
    most, progress, max_errors = take_common(calls)
    parsed = batch_inputs(contexts, metadata=calls.pop("metadata", None))
    pairs = pair_texts(list(cast("list[Any]", parsed.prompts)), continuations, contexts)
    inputs = (BatchInputs(cast("Any", pairs), parsed.metadata, parsed.labels),)
    return BatchOptions(
        function="score_many", awaited=False, models=(model,), inputs=inputs, parameters=calls,
        delivery=DeliveryOptions("live", "batch"), concurrency=most, progress=progress, on_error=on_error,
        max_errors=max_errors, example=("a context that is never sent", ["a continuation"]), operation=SCORE,
    )  # fmt: skip


def pair_texts(contexts: list[Any], continuations: Any, indexed: object = None) -> list[tuple[Any, Any]]:
    """Each context with its continuations, which are texts for every context, or as many lists.

    >>> pair_texts(["a", "b"], [" x", " y"])
    [('a', [' x', ' y']), ('b', [' x', ' y'])]
    """
    if isinstance(continuations, (str, Mapping)) or is_table(continuations):
        kind = type(continuations).__name__
        raise RequestError(f"continuations is a {kind}: give a list of texts, or a list of such lists")
    listed = list(continuations)
    if all(isinstance(text, str) for text in listed):
        return [(context, listed) for context in contexts]
    if len(listed) != len(contexts):
        raise RequestError(
            f"continuations has {len(listed):,} lists for {len(contexts):,} contexts: give one for each"
        )
    return list(zip(contexts, put_in_order(continuations, indexed, "texts and contexts"), strict=True))
