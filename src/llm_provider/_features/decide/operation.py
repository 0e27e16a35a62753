"""The operation `decide`: an input and questions in, a distribution for each question out.

Each question has a cache entry of its own, without its neighbours. Those that are missing are asked together,
in as few requests as the endpoint allows, because every request pays for the input again.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, Iterable, Sequence, Sized
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ..._core.client.batch_methods import BatchOptions, OnError, check_on_error, take_common
from ..._core.errors import APIResponseValidationError, ContextWindowExceededError, LLMError, RequestError
from ..._core.formats.protocol import Adapter, AnyAnswer, EncodedRequest
from ..._core.formats.registry import load_beside
from ..._core.formats.shared.embeddings import apportion
from ..._core.formats.shared.payload import RequestFacts, merge, read_fields
from ..._core.journey.call import Call, Exchange, Operation, Sample, summarize
from ..._core.journey.embed import split_price
from ..._core.journey.engine import Engine
from ..._core.journey.sent_requests import sum_of_prices
from ..._core.json_values import JSONObject, json_value
from ..._core.pace.call_limits import DEFAULT_BATCH_PATIENCE
from ..._core.requests.checks import DeliveryOptions
from ..._core.requests.inputs import BatchInputs, batch_inputs
from ..._core.requests.request import describe_prompt
from ..._core.requests.routing import Target, price_names
from ..._core.runtime.json_pieces import canonical, write_exactly
from ..._core.types.usage import Usage
from . import chats, litellm
from .conversation import flatten
from .decisions import DEFAULTS, DecideRequest, Decision, Decisions
from .native import DecisionFormat, Judgement
from .questions import Question, predicate, read_questions

if TYPE_CHECKING:
    from ..._core.requests.parameters import DecideManyParameters

OPERATION = "decisions"
"""The operation in the keys of native decisions, by which their price is found too."""

_BYTES_PER_TOKEN = 4
_OWN_FIELDS = ("model", "input", "questions")


@dataclass(slots=True)
class PackAnswer(AnyAnswer):
    """A decoded reply to some questions."""

    judgements: list[Judgement]


@dataclass(slots=True)
class DecisionAnswer(AnyAnswer):
    """The answer to one question, as it is stored."""

    fields: JSONObject
    """Fields of `Decision`."""


@dataclass(frozen=True)
class AskQuestions(Exchange):
    """Asks an endpoint for decisions some questions."""

    form: DecisionFormat
    questions: Sequence[Question]

    name = "decide"
    billed = True

    def body(self, call: Call[Any], parts: Sequence[int]) -> bytes:
        return call.body

    def tokens(self, call: Call[Any], parts: Sequence[int]) -> float:
        return len(call.body) / _BYTES_PER_TOKEN

    def decode(self, call: Call[Any], reply: Any, count: int) -> AnyAnswer:
        judgements = self.form.read(reply, self.questions)
        # A reply without its answers says who gave them.
        said = {name: value for name, value in reply.items() if type(value) is str}
        return PackAnswer(judgements, usage=self.form.usage(reply), model=said.get("model"), reply=said)

    def usage(self, call: Call[Any], reply: Any) -> Usage | None:
        return self.form.usage(reply)


class Decide(Operation[DecideRequest, Decisions]):
    """Typed questions about an input. Its parts are the distinct questions, numbered by their first index."""

    name = "decide"
    patience = DEFAULT_BATCH_PATIENCE
    defaults = DEFAULTS
    has_texts = True
    build = staticmethod(DecideRequest.build)

    def bare_request(self, model: str, base_url: str | None) -> DecideRequest:
        return DecideRequest(model=model, messages=(), inputs=(), base_url=base_url)

    def encode(self, request: DecideRequest, target: Target, adapter: Adapter) -> EncodedRequest:
        """The payload without the questions; what cannot be asked is refused here."""
        payload: JSONObject = {"model": target.model, "method": request.method}
        if request.method == "native":
            form, extra = load_format(request, target), dict(request.extra_body or {})
            labels = {name: extra.pop(name) for name in form.LABELS if name in extra}
            if wrong := [name for name in _OWN_FIELDS if name in extra]:
                raise RequestError(f"extra_body cannot set {wrong[0]!r}: it is an argument of decide()")
            self._check_count(request, target, form.MOST_QUESTIONS)
            given = form.encode_input(request.make_chat(request.messages), target)
            payload |= {"input": given, "extra": extra}
            return EncodedRequest(OPERATION, payload, request.extra_headers or {}, labels=labels or None)
        chats.check_method(request)
        # Each question is encoded when it is asked. The first one shows what the model does not take.
        _, first = chats.encode(request, request.inputs[0] if request.inputs else _ANY, target, adapter)
        parameters = {name: value for name, value in first.payload.items() if name not in _HOLDS_PROMPT}
        payload |= {"input": flatten(request.messages), "prompt": chats.PROMPT_VERSION}
        payload |= {"parameters": parameters} | ({"draws": request.draws} if request.draws else {})
        return EncodedRequest(f"{OPERATION} by {request.method}", payload, first.headers)

    def _check_count(self, request: DecideRequest, target: Target, most: int) -> None:
        pack, takes = request.pack, f"{target.provider} takes {most} in one request"
        if pack > most:
            raise RequestError(f"pack={pack}: {takes}")
        if pack is True and len(request.inputs) > most:
            raise RequestError(
                f"questions has {len(request.inputs)}, and {takes}: write pack={most} to ask them in several",
                provider=target.provider,
                model=request.model,
            )

    def parts(self, request: DecideRequest) -> Sequence[int]:
        first: dict[bytes, int] = {}
        for index, question in enumerate(request.inputs):
            first.setdefault(canonical(question.to_key()), index)
        return list(first.values())

    def identity(self, call: Call[Decisions], part: int) -> tuple[bytes, int]:
        """The input and one question alone."""
        return canonical({**call.encoded.payload, "question": call.request.inputs[part].to_key()}), 0

    def groups(self, call: Call[Decisions], parts: Sequence[int]) -> list[Sequence[int]]:
        """As many questions in one request as the endpoint accepts, or `pack` says."""
        request = call.request
        most = max(1, int(request.pack))
        if request.pack is True and request.method == "native":
            most = load_format(request, call.target).MOST_QUESTIONS
        return [parts[start : start + most] for start in range(0, len(parts), most)]

    def count_requests(self, call: Call[Decisions], parts: Sequence[int]) -> int:
        """As many as the draws of a question need. Some models give several answers in one request."""
        if call.request.draws is None:
            return 1
        _, encoded = chats.encode(call.request, call.request.inputs[parts[0]], call.target, call.adapter)
        return -(-int(call.request.draws) // encoded.most_samples)

    def smaller_groups(
        self, call: Call[Decisions], parts: Sequence[int], error: LLMError
    ) -> list[Sequence[int]]:
        """Two halves of a group that was too long together with the input."""
        if not isinstance(error, ContextWindowExceededError) or len(parts) == 1:
            return []
        middle = len(parts) // 2
        return [parts[:middle], parts[middle:]]

    def body(self, call: Call[Decisions], parts: Sequence[int]) -> bytes:
        """The input and the questions, which `fetch` sends in the ways of the endpoints."""
        questions = [question.to_key() for question in self._questions(call, parts)]
        return canonical({**call.encoded.payload, "questions": questions})

    def prompt(self, call: Call[Decisions], parts: Sequence[int]) -> bytes:
        return self.body(call, parts)

    def tokens(self, call: Call[Decisions], parts: Sequence[int]) -> float:
        return len(self.body(call, parts)) / _BYTES_PER_TOKEN

    def facts(self, call: Call[Decisions], parts: Sequence[int]) -> RequestFacts:
        """The input and the questions of a group. Output of the endpoints for decisions costs nothing."""
        request, adapter = call.request, call.adapter
        if request.method != "native":
            _, encoded = chats.encode(request, request.inputs[parts[0]], call.target, adapter)
            return adapter.facts(encoded)
        facts = adapter.facts(adapter.encode(request.make_chat(request.messages), call.target))
        asks = self._questions(call, parts)
        texts = [text for each in asks for text in (each.instructions, *each.options, *each.descriptions)]
        return facts._replace(variant="standard", max_output_tokens=0, texts=[*facts.texts, *texts])

    def is_kept(self, answer: Any, kept: Any) -> bool:
        """As in chats, a refusal is not kept by default: another request may succeed."""
        refusal = answer.fields.get("refusal")
        return refusal is None or refusal in kept or "content_filter" in kept

    def decode(self, call: Call[Decisions], reply: Any, count: int) -> DecisionAnswer:
        """A stored decision; `APIResponseValidationError` for anything else."""
        try:
            fields = dict(reply["decision"])
            Decision.from_dict({"name": "", "instructions": "", **fields})
            usage = Usage(**reply["usage"])
        except (KeyError, TypeError, ValueError, AttributeError, LLMError) as error:
            raise APIResponseValidationError(f"this is no stored decision: {error}") from None
        return DecisionAnswer(fields, usage=usage, model=reply["model"])

    def usage(self, call: Call[Decisions], reply: Any) -> Usage | None:
        return self.decode(call, reply, 1).usage

    async def fetch(self, call: Call[Decisions], parts: Sequence[int], engine: Engine) -> Sample:
        """Ask a group of questions in one request, or one question by chats."""
        request = call.request
        if request.method != "native":
            judgement, samples = await chats.judge_by_chat(call, request.inputs[parts[0]], engine)
            return _join(call, samples, request.inputs[parts[0]], judgement)
        form, encoded = load_format(request, call.target), call.encoded
        payload = form.write(call.target, encoded.payload["input"], self._questions(call, parts))
        sent = EncodedRequest(form.operation(call.target), payload, encoded.headers, labels=encoded.labels)
        payload = sent.payload = merge(payload, cast("JSONObject", encoded.payload["extra"]))
        asks, body = AskQuestions(form, self._questions(call, parts)), canonical(sent.add_labels(payload))
        group = replace(call, exchange=asks, encoded=sent, body=body)
        sample = await engine.loop_state().sender.send(group, parts, None)
        sample.answer.id = hashlib.sha256(body).hexdigest()[:16]
        return self.split(call, sample, parts)[0] if len(parts) == 1 else sample

    def split(self, call: Call[Decisions], sample: Sample, parts: Sequence[int]) -> list[Sample]:
        """One sample for each question, with its share of the usage and of the price."""
        answer = sample.answer
        questions = self._questions(call, parts)
        given = len(canonical(call.encoded.payload["input"])) // len(parts)
        shares = [(len(canonical(each.to_key())) + given) // _BYTES_PER_TOKEN + 1 for each in questions]
        usages = apportion(asdict(answer.usage or Usage()), shares)
        pack = {"request": answer.id, "asked_with": len(parts) - 1}
        return [
            _store(call, replace(sample, price=price), question, judgement, Usage(**usage), pack)
            for question, judgement, usage, price in zip(
                questions, answer.judgements, usages, split_price(sample.price, shares), strict=True
            )
        ]

    def result(self, call: Call[Decisions], samples: Sequence[Sample]) -> Decisions:
        """The decisions in the order of the questions. A repeated question gets its answer each time."""
        request = call.request
        by_question = {
            canonical(request.inputs[part].to_key()): sample
            for part, sample in zip(call.parts, samples, strict=True)
        }
        decisions = tuple(
            _decide(question, by_question[canonical(question.to_key())]) for question in request.inputs
        )
        return Decisions(
            input=cast("Any", describe_prompt(request.messages)),
            decisions=decisions,
            parsed=_parse(request.structure, decisions),
            metadata=call.metadata,
            cache_keys=tuple([sample.answer.key for sample in samples]),
            **summarize(call, samples),
        )

    def _questions(self, call: Call[Decisions], parts: Sequence[int]) -> list[Question]:
        return [call.request.inputs[part] for part in parts]


DECIDE = Decide()

_ANY = predicate("A question that is never sent.")
_HOLDS_PROMPT = ("model", "messages", "input", "contents", "system", "systemInstruction", "instructions")


def load_format(request: DecideRequest, target: Target) -> DecisionFormat:
    """The module that speaks a server's endpoint for decisions; a `RequestError` if it has none."""
    form = cast("DecisionFormat | None", load_beside(target.route.adapter, "decisions"))
    if form is None or not form.serves(target):
        provider = price_names(target)[0]
        through = f"litellm/{request.model}, " if target.provider in litellm.HOSTS else ""
        raise RequestError(
            f"{provider} has no endpoint for decisions: use {through}gpt-6-luna or gemini-decision-1, or "
            "write method='logprobs' or method='sampled', which ask the model for text",
            provider=target.provider,
            model=request.model,
        )
    return form


def _store(
    call: Call[Any], sample: Sample, question: Question, judgement: Judgement, usage: Usage, more: JSONObject
) -> Sample:
    """The sample of one question, whose body is what the cache stores."""
    model, first = sample.answer.model, sample.answer
    origin = read_fields(call.target.provider, first.reply, first.origin)
    fields = {name: value for name, value in asdict(judgement).items() if value not in (None, {})}
    fields |= {"kind": question.kind, **more}
    body = write_exactly({"decision": fields, "usage": json_value(usage), "model": model})
    return replace(sample, answer=DecisionAnswer(fields, usage=usage, model=model, origin=origin), body=body)


def _join(call: Call[Any], samples: Sequence[Sample], question: Question, judgement: Judgement) -> Sample:
    """The judgement by several chats as one sample."""
    joined = replace(
        samples[0],
        cached=False,
        queue=max(sample.queue for sample in samples),
        sending=max(sample.sending for sample in samples),
        price=sum_of_prices([sample.price for sample in samples]),
        change=next((sample.change for sample in samples if sample.change), None),
    )
    usage = sum((sample.answer.usage for sample in samples if sample.answer.usage), Usage())
    return _store(call, joined, question, judgement, usage, {"method": call.request.method})


def _decide(question: Question, sample: Sample) -> Decision:
    """The answer to a question, with the Python value of its option."""
    fields = sample.answer.fields
    value: Any = fields.get("score")
    if question.kind == "choice" and fields.get("choice") is not None:
        value = dict(zip(question.options, question.values, strict=True)).get(fields["choice"])
    elif fields.get("probability") is not None:
        value = fields["probability"] >= 0.5
    known = {"name": question.name, "instructions": question.instructions, **fields}
    return replace(Decision.from_dict(known), value=value, cached=sample.cached)


def _parse(structure: Any, decisions: Sequence[Decision]) -> Any:
    """An instance of the pydantic model that asked; None without one, or where a question was refused."""
    if structure is None or any(decision.refusal is not None for decision in decisions):
        return None
    return structure(**{decision.name: decision.value for decision in decisions})


def parse_decisions(
    function: str,
    model: str,
    inputs: Any,
    questions: Any,
    parameters: DecideManyParameters,
    on_error: OnError,
) -> BatchOptions:
    """Check the arguments of `decide_many`; `TypeError` if the inputs are no list of inputs."""
    check_on_error("on_error", on_error)
    calls = cast("JSONObject", dict(parameters))
    most, progress, max_errors = take_common(calls)
    awaited = function.startswith("a")
    # An iterator is read once, and every input has the same questions.
    questions = questions if isinstance(questions, type) else read_questions(questions)
    metadata, rows = calls.pop("metadata", None), calls.pop("rows", None)
    parsed = batch_inputs(inputs, rows, metadata, awaited=awaited, single="decide")
    prompts = parsed.prompts
    pairs = ((each, questions) for each in prompts) if isinstance(prompts, Iterable) else ()
    paired: Any = list(pairs) if isinstance(prompts, Sized) else pairs
    if isinstance(prompts, AsyncIterable):
        paired = ((each, questions) async for each in prompts)
    describe = parsed.metadata
    described = None if describe is None else lambda pair: describe(pair[0])
    return BatchOptions(
        function=function,
        awaited=awaited,
        models=(model,),
        inputs=(BatchInputs(paired, described, parsed.labels),),
        parameters=calls,
        delivery=DeliveryOptions("live", "batch"),
        concurrency=most,
        progress=progress,
        on_error=on_error,
        max_errors=max_errors,
        example=("an input that is never sent", questions),
        operation=DECIDE,
    )
