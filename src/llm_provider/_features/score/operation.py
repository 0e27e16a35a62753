"""The operation `score`: a context and continuations in, the log-probability of each continuation out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._core.errors import APIResponseValidationError, LLMError
from ..._core.formats.protocol import Adapter, AnyAnswer, EncodedRequest
from ..._core.formats.registry import load_scores
from ..._core.formats.shared.request_facts import RequestFacts
from ..._core.formats.shared.served_by import read_fields
from ..._core.journey.call import Call, Operation, Sample, summarize
from ..._core.journey.sent_requests import SentRequests, sum_of_prices
from ..._core.pace.call_limits import DEFAULT_BATCH_PATIENCE
from ..._core.requests.routing import Target
from ..._core.runtime import clock
from ..._core.runtime.canonical_json import canonical, write_exactly
from ..._core.types.usage import Usage
from .arguments import DEFAULTS, ScoreRequest
from .scores import Score, Scores

if TYPE_CHECKING:
    from ..._core.journey.engine import Engine
    from .requests import ScoreRequests

PROBE = -1
"""The number of the part that is the probe of a server. It has an entry and a flight of its own."""
_PROBE_VERSION = 1
_PROBE_SECONDS = 86_400.0
"""Seconds for which a stored probe counts: the server behind an address may become another one."""


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
        encoded: EncodedRequest = load_scores(request.model, target).encode(request, target)
        return encoded

    def parts(self, request: ScoreRequest) -> Sequence[int]:
        """The first index of each distinct continuation."""
        return [request.inputs.index(text) for text in dict.fromkeys(request.inputs)]

    def identity(self, call: Call[Scores], part: int) -> tuple[bytes, int]:
        """The context and one continuation; for the probe, the server."""
        request = call.request
        if part == PROBE:
            own = {"probe": _PROBE_VERSION, "server": call.target.base_url, "order": request.check_order}
        else:
            own = {"context": request.context, "continuation": request.inputs[part]}
        return canonical({**call.encoded.payload, **own}), 0

    def groups(self, call: Call[Scores], parts: Sequence[int]) -> list[Sequence[int]]:
        """Each continuation by itself."""
        return [[part] for part in parts]

    def body(self, call: Call[Scores], parts: Sequence[int]) -> bytes:
        """The texts, which the requests of `score_requests` send."""
        return self.identity(call, parts[0])[0]

    def prompt(self, call: Call[Scores], parts: Sequence[int]) -> bytes:
        """The texts that the model reads."""
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

    async def fetch(self, call: Call[Scores], parts: Sequence[int], emit: Any, engine: Engine) -> Sample:
        """Score one continuation, after the probe of the server if it is the first one."""
        from .requests import Memory, ScoreRequests, probe

        here = engine.here()
        memory = here.remembered = here.remembered or Memory()
        form = load_scores(call.request.model, call.target).form_of(call.encoded, call.target)
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
        from ..._core.journey.several_parts import run_side_by_side

        part = replace(call, sent=SentRequests(), first_key=None)
        call.sent.parts += (part.sent,)
        if call.cache not in ("use", "only") or not await engine.find_samples(part, (PROBE,)):
            # A task can lead one flight, and this one leads that of its continuation.
            await run_side_by_side([engine.ask(part, (PROBE,))], engine.cancel)

    def result(self, call: Call[Scores], samples: Sequence[Sample]) -> Scores:
        """The scores in the order of the continuations."""
        request = call.request
        scores = {
            request.inputs[part]: sample.answer.score
            for part, sample in zip(call.parts, samples, strict=True)
        }
        return Scores(
            context=request.context,
            scores=tuple(scores[text] for text in request.inputs),
            metadata=call.metadata,
            cache_keys=tuple([sample.answer.key for sample in samples]),
            **summarize(call, samples),
        )

    def _texts(self, call: Call[Scores], parts: Sequence[int]) -> list[str]:
        from .requests import PROBES

        request = call.request
        return [
            max(PROBES, key=len) if part == PROBE else request.context + request.inputs[part]
            for part in parts
        ]


async def _score(requests: ScoreRequests, request: ScoreRequest, part: int) -> Score:
    """The score of a continuation; `ScoreCheckError` if the server's values cannot be right."""
    from .requests import cut_ids, cut_text, move_spaces

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
    body = {"score": asdict(score), "usage": asdict(usage), "model": model, **more}
    return Sample(
        ScoreAnswer(score, usage=usage, model=model, origin=origin),
        write_exactly(body),
        cached=False,
        queue=sum(sample.queue for sample in samples),
        sending=sum(sample.sending for sample in samples),
        price=sum_of_prices([sample.price for sample in samples]),
        change=next((sample.change for sample in samples if sample.change), None),
    )


_NO_SCORE = Score(text="", logprob=0.0, token_logprobs=(), tokens=(), bytes=0)
SCORE = ScoreTexts()
