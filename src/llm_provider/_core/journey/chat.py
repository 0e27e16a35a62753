"""The operation `chat`: messages in, one or several samples of an answer out."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from .. import doors
from ..errors import UnsupportedParameterError
from ..formats.protocol import Adapter, Answer, EncodedRequest
from ..formats.shared.conversations import drop_detail
from ..json_values import JSONObject
from ..pace.call_limits import DEFAULT_PATIENCE
from ..requests.attachments import Attachment
from ..requests.model_kinds import check_answers
from ..requests.parameter_table import PARAMETERS, RARE
from ..requests.request import Request, describe_prompt
from ..requests.routing import Target
from ..runtime import clock
from ..runtime.json_pieces import canonical, loads, write_exactly
from ..runtime.warning import warn_user
from ..store.entry import Entry
from ..types.response import Choice, Response, make_response
from ..types.usage import Usage, make_timing
from .call import Call, Operation, Sample, sum_stored_prices
from .sent_requests import sum_of_prices

if TYPE_CHECKING:
    from ..._features.prompt_caching.settings import PrefixMark
    from ..formats.shared.payload import RequestFacts


_TOO_MANY_TOKENS = 10**12


class Chat(Operation[Request, Response]):
    """Text generation. Its parts are samples, numbered from `draw` on."""

    name = "chat"
    patience = DEFAULT_PATIENCE
    defaults: ClassVar[Collection[str] | None] = None
    has_texts = False
    continues = True
    build = staticmethod(Request.build)

    def bare_request(self, model: str, base_url: str | None) -> Request:
        return Request(model=model, messages=(), base_url=base_url)

    def encode(self, request: Request, target: Target, adapter: Adapter) -> EncodedRequest:
        """The payload, without what `unsupported="drop"` leaves out, its files and its schema."""
        uploads: tuple[Attachment, ...] = ()
        if Attachment.exist:
            # Calls without files do not need its modules.

            request, uploads, headers = doors.uploads.refer_to_files(request, target)
            if uploads and headers:
                request = replace(request, extra_headers=_add_headers(request.extra_headers, headers))
        if request.options and request.options.get("unsupported") == "drop":
            encoded = encode_supported(request, lambda supported: _encode(supported, target, adapter))
        else:
            encoded = _encode(request, target, adapter)
        if request.response_format is not None and encoded.structure is None:
            # Calls without a format do not need its modules.
            from ..schemas.structure import structure_of

            encoded.structure = structure_of(request.response_format)
        if request.options and (prompt_caching := request.options.get("prompt_caching")):
            encoded.prefix = _find_mark(encoded, target, prompt_caching)
        # A tool may be a name.
        if request.tools and any(
            isinstance(tool, dict) and tool.get("type") == "mcp" for tool in request.tools
        ):
            encoded.secrets = doors.remote_servers.find_secrets(request.tools)
        if uploads:
            encoded.uploads = uploads
        return encoded

    def parts(self, request: Request) -> Sequence[int]:
        return range(request.draw, request.draw + request.n)

    def groups(self, call: Call[Response], parts: Sequence[int]) -> list[Sequence[int]]:
        """As many samples in one request as the API allows."""
        most = call.encoded.most_samples
        return [parts[start : start + most] for start in range(0, len(parts), most)]

    def body(self, call: Call[Response], parts: Sequence[int]) -> bytes:
        """The payload, its labels and cache breakpoints; it has a number of samples if that is above one.

        A schema keeps the order of its fields, in which models write them. The key does not depend on it.
        """
        encoded = call.encoded
        is_plain = encoded.labels is None and encoded.structure is None and encoded.prefix is None
        if is_plain and len(parts) == 1 and not encoded.secrets:
            return call.body
        write = canonical if encoded.structure is None else write_exactly
        return write(build_payload(encoded, len(parts)))

    def tokens(self, call: Call[Response], parts: Sequence[int]) -> float:
        """The likely input tokens and the longest answers: providers count both against a rate limit."""
        from ..tokens.counting import likely_input_tokens

        return likely_input_tokens(call.body, call.facts) + (call.request.max_tokens or 0) * len(parts)

    def prompt(self, call: Call[Response], parts: Sequence[int]) -> bytes:
        """The payload for one sample: the model reads the prompt of several samples once."""
        return call.body

    def facts(self, call: Call[Response], parts: Sequence[int]) -> RequestFacts:
        return call.adapter.facts(call.encoded)

    def variant(self, call: Call[Response]) -> str:
        return call.adapter.variant(call.encoded)

    def decode(self, call: Call[Response], reply: Any, count: int) -> Answer:
        """The answer. A usage of zeros counts as none, and so does one that no request can have."""
        answer = call.adapter.decode(reply)
        answer.reply = reply
        usage = answer.usage
        if usage is not None and not 0 < usage.input_tokens + usage.output_tokens < _TOO_MANY_TOKENS:
            # Hosts write zeros where they count nothing. No answer with content is made of no tokens.
            answer.usage = None
        elif usage is not None and usage.output_tokens == call.encoded.payload.get("max_output_tokens"):
            _mark_cut(call.target, answer)
        for choice in answer.choices:
            if choice.finish_reason == "tool_calls" and usage is not None:
                _mark_cut_calls(call, answer, usage.output_tokens)
                break
        return answer

    def usage(self, call: Call[Response], reply: Any) -> Usage | None:
        return call.adapter.usage(reply)

    def split(self, call: Call[Response], sample: Sample, parts: Sequence[int]) -> list[Sample]:
        """One sample per choice. The first carries the usage and the price of the request."""
        replies = call.adapter.split(loads(sample.body))[: len(parts)]
        return [
            replace(
                sample,
                answer=replace(call.adapter.decode(reply), reply=reply, origin=sample.answer.origin),
                body=write_exactly(reply),
                price=0.0 if index and sample.price is not None else sample.price,
            )
            for index, reply in enumerate(replies)
        ]

    def is_kept(self, answer: Any, kept: Collection[str]) -> bool:
        """Whether every sample ended for a reason that is kept, and holds text, tool calls, images or audio.

        By default refused, filtered, empty and truncated answers are not kept: another request may succeed.
        """
        # A generator takes longer than the loop for the one sample of nearly every answer.
        for choice in answer.choices:
            if choice.finish_reason not in kept:
                return False
            if choice.text or choice.tool_calls or answer.has_media or "empty" in kept:
                continue
            if not (choice.message.get("images") or choice.message.get("audio")):
                return False
        return True

    def restore(
        self, call: Call[Response], entry: Entry, answer: Any, started: float, prompt: Any = None
    ) -> Response:
        """The response of an entry, which costs nothing."""
        total, structure = clock.perf_counter() - started, call.encoded.structure
        return make_response(
            choices=answer.choices if call.request.tools is None else _bind_tools(call, answer.choices),
            usage=answer.usage or Usage(),
            model=answer.model or call.target.model,
            provider=call.target.provider,
            id=answer.id,
            cost=0.0,
            price=entry.price,
            cached=True,
            timing=make_timing(total=total, overhead=total),
            body=entry.body,
            response_format=call.request.response_format,
            dropped=call.encoded.dropped,
            schema_in_prompt=structure is not None and structure.in_prompt,
            prompt=describe_prompt(call.request.messages) if prompt is None else prompt,
            origins=() if entry.origin is None else (entry.origin,),
            cache_keys=(answer.key,),
        )

    def result(self, call: Call[Response], samples: Sequence[Sample]) -> Response:
        """The samples of all requests as one response."""
        sent = call.sent.including_parts()
        first, *rest = samples
        choices, slowest, cached, body = first.answer.choices, first, first.cached, first.body
        price, stored = first.price, 0.0 if not cached else first.price
        stored_usages: tuple[Usage, ...] = ()
        for sample in rest:
            choices += sample.answer.choices
            cached = cached and sample.cached
            # Samples are requested at the same time, so the call waited for the slowest of them.
            slowest = max(slowest, sample, key=lambda sample: sample.queue + sample.sending)
        if rest:
            body = b"[" + b",".join(sample.body for sample in samples) + b"]"
            price, stored = sum_of_prices([sample.price for sample in samples]), sum_stored_prices(samples)
            if not cached:
                stored_usages = tuple([sample.answer.usage or Usage() for sample in samples if sample.cached])
        total, structure = clock.perf_counter() - call.started, call.encoded.structure
        return make_response(
            choices=choices if call.request.tools is None else _bind_tools(call, choices),
            usage=sent.usage_with(samples),
            model=first.answer.model or call.target.model,
            provider=call.target.provider,
            id=first.answer.id,
            **sent.describe_cost(),
            price=price,
            stored_price=stored,
            cached=cached,
            timing=make_timing(
                queue=slowest.queue,
                first_token=slowest.first_token,
                total=total,
                attempts=sent.attempts,
                overhead=max(0.0, total - slowest.queue - slowest.sending),
            ),
            failures=sent.failures,
            body=body,
            response_format=call.request.response_format,
            dropped=call.encoded.dropped,
            schema_in_prompt=structure is not None and structure.in_prompt,
            prompt=describe_prompt(call.request.messages),
            origins=tuple(map(_origin, samples)),
            cache_keys=tuple(map(_key, samples)),
            stored_usages=stored_usages,
        )

    def good_samples(self, call: Call[Response], samples: Sequence[Sample]) -> tuple[Any, ...]:
        return tuple(self.result(call, samples).samples)


_origin, _key = map(operator.attrgetter, ("answer.origin", "answer.key"))


def _mark_cut(target: Target, answer: Answer) -> None:
    """Mark an answer of the Responses API as cut that has all the tokens that it may have.

    llama.cpp's server and Ollama give every answer the status "completed". A whole one of just this
    length cannot be told apart. OpenAI and vLLM say "incomplete", so a "completed" one is whole.
    """
    is_openai = target.maker == "openai" and (target.route.cloud is not None or not target.custom_base_url)
    if is_openai or (target.route.host is not None and target.route.host.dialect == "vllm"):
        return
    answer.choices = tuple(
        replace(choice, finish_reason="length") if choice.finish_reason in ("stop", "tool_calls") else choice
        for choice in answer.choices
    )


def _mark_cut_calls(call: Call[Response], answer: Answer, written: int) -> None:
    """Mark calls as cut whose arguments break off in an answer that has all its tokens.

    vLLM's streams say "tool_calls" of every answer with a call, and so do some gateways.
    """
    cut = [_breaks_off(choice) for choice in answer.choices]
    if any(cut) and written == call.adapter.facts(call.encoded).max_output_tokens:
        answer.choices = tuple(
            replace(choice, finish_reason="length") if is_cut else choice
            for choice, is_cut in zip(answer.choices, cut, strict=True)
        )


def _breaks_off(choice: Choice) -> bool:
    """Whether a call of a function has arguments that are no JSON."""
    try:
        for call in choice.tool_calls if choice.finish_reason == "tool_calls" else ():
            if call.type == "function":
                loads(call.arguments.encode("utf-8", "surrogatepass"))
    except ValueError:
        return True
    return False


def build_payload(encoded: EncodedRequest, count: int) -> JSONObject:
    """The payload as it is sent: with its labels, and with the number of samples if that is above one."""
    payload = dict(encoded.add_labels(encoded.payload))
    if count > 1:
        inner = payload
        for name in encoded.samples_field[:-1]:
            inner[name] = inner = dict(inner.get(name, {}))
        inner[encoded.samples_field[-1]] = count
    return payload


def _bind_tools(call: Call[Response], choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    """Samples whose tool calls know the functions that they call."""
    from ..requests.tools import bound

    return bound(choices, call.request.tools)


def _encode(request: Request, target: Target, adapter: Adapter) -> EncodedRequest:
    if target.route.host is None:
        check_answers(request.model, target.provider, target.known_model)
    return adapter.encode(request, target)


def _add_headers(headers_of_user: Mapping[str, str] | None, needed: Mapping[str, str]) -> dict[str, str]:
    """The user's headers with those that a request needs. Values of one header are a list with commas."""
    headers = dict(headers_of_user or {})
    for name, value in needed.items():
        before = headers.get(name)
        if before is None or value not in before.split(","):
            headers[name] = value if before is None else f"{before},{value}"
    return headers


def _find_mark(encoded: EncodedRequest, target: Target, prompt_caching: object) -> PrefixMark | None:
    """The mark for the provider's prompt cache. A batch that knows more replaces it."""
    from ..formats.registry import load_prompt_cache

    prompt_cache = load_prompt_cache(target)
    if prompt_cache is None:
        return None
    stored = doors.prompt_caching.is_stored(target, prompt_caching)
    return doors.prompt_caching.mark_of_call(prompt_cache, encoded.payload, target.known_model, stored=stored)


CHAT = Chat()


_MEANT_BY: Mapping[str | None, tuple[str, ...]] = {"logprobs": ("logprobs", "top_logprobs")}


def encode_supported(request: Any, encode: Callable[[Any], EncodedRequest]) -> EncodedRequest:
    """Encode a request without refused parameters, which `dropped` names, if they may be left out."""
    dropped: list[str] = []
    while True:
        try:
            encoded = encode(request)
        except UnsupportedParameterError as error:
            if error.parameter == "detail":
                request = replace(request, messages=drop_detail(request.messages))
                dropped.append("detail")
                continue
            name = _name_of(error)
            names = [meant for meant in _MEANT_BY.get(name, (name,)) if meant and _is_set(request, meant)]
            if not names:
                raise
            for meant in names:
                request = _without(request, meant, vars(error).get("_kept"))
            dropped += names
        else:
            encoded.dropped = tuple(dropped)
            return encoded


def warn(call: Call[Any], warned: set[tuple[str, str]]) -> None:
    """Warn of each parameter that a call leaves out, if `warned` has not got it for this model yet."""
    each = ((each.request.model, name) for each in call.candidates for name in each.encoded.dropped)
    for model_and_name in each:
        if model_and_name not in warned:
            warned.add(model_and_name)
            model, name = model_and_name
            problem = f"{model} does not accept {name}: unsupported='drop' leaves it out"
            warn_user(problem)


def _name_of(error: UnsupportedParameterError) -> str | None:
    """The parameter that an error is about; None if it may not be left out."""
    words = re.findall(r"[a-z]+(?:_[a-z]+)*", error.parameter)
    if words and words[0] in ("a", "the"):
        del words[0]
    row = PARAMETERS.get(words[0]) if words else None
    return words[0] if row is not None and row.remedy and not row.essential else None


def _is_set(request: Any, name: str) -> bool:
    return name in request.options if name in RARE else getattr(request, name) is not None


def _without(request: Any, name: str, kept: object = None) -> Any:
    """A request without a parameter, or with the part of its value that the model accepts."""
    if name not in RARE:
        return replace(request, **{name: kept})
    return replace(request, options={kept: request.options[kept] for kept in request.options if kept != name})
