"""The wire format of OpenAI's chat completions, also spoken by every compatible host."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import orjson

from .content import count_tokens, read_text, split_fragments
from .wire_format import (
    REGION,
    Completion,
    Frame,
    Headers,
    LimitState,
    Problem,
    Prompt,
    Request,
    Sample,
    Tool,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

NO_TOKENS = dict.fromkeys(("audio_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens"), 0)
DONE = Frame(b"data: [DONE]\n\n")
BARE_FIELDS = 2
USAGE_UNASKED = frozenset({"mistral"})
SERVICE_TIERS = {"openai": "default", "groq": "on_demand"}
WITHOUT_FINGERPRINT = frozenset({"mistral", "perplexity", "together_ai"})
REASONING_FIELDS = {"openrouter": "reasoning", "local": "reasoning"}

_REASONING_MODEL = re.compile(r"o\d|gpt-(?:[5-9]|\d\d)")
_ERRORS: dict[int, tuple[str, str | None, str]] = {
    400: ("invalid_request_error", None, "The request is not valid."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    402: ("insufficient_funds", "insufficient_funds", "The account has no funds left."),
    403: ("invalid_request_error", "permission_denied", "The project has no access to this model."),
    404: (
        "invalid_request_error",
        "model_not_found",
        "The model does not exist or you have no access to it.",
    ),
    408: ("invalid_request_error", "request_timeout", "The request took too long to arrive."),
    409: ("invalid_request_error", "conflict", "The request conflicts with another one."),
    413: ("invalid_request_error", "request_too_large", "The request is larger than the server accepts."),
    422: ("invalid_request_error", None, "The request could not be processed."),
    429: ("rate_limit_exceeded", "rate_limit_exceeded", "Rate limit reached. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request."),
    502: ("server_error", None, "Bad gateway."),
    503: ("service_unavailable_error", None, "The engine is currently overloaded, please try again later."),
    504: ("server_error", None, "The upstream server did not answer in time."),
    529: ("service_unavailable_error", "overloaded", "The model is overloaded."),
}
_FINISH = {"stop_sequence": "stop", "refusal": "stop"}


def read(request: Request) -> Prompt | Problem:
    """Read a chat completions request."""
    body = request.body
    messages, model = body.get("messages"), body.get("model")
    if not isinstance(model, str) or not model:
        return Problem("you must provide a model parameter", parameter="model")
    if not isinstance(messages, list) or not messages:
        return Problem("'messages' must be a list with at least one message", parameter="messages")
    text, characters = "", 0
    for message in messages:
        if not isinstance(message, dict) or "role" not in message:
            return Problem("each message is an object with a role", parameter="messages")
        content, length = read_text(message.get("content"))
        characters += length
        for call in message.get("tool_calls") or ():
            characters += len(str(call.get("function", {}).get("arguments", "")))
        if message["role"] in ("user", "tool"):
            text = content
    prompt = Prompt(model=model, text=text, characters=characters, request=request)
    if len(body) > BARE_FIELDS:
        problem = _read_options(prompt, body)
        if problem is not None:
            return problem
    return prompt


def _read_options(prompt: Prompt, body: Mapping[str, Any]) -> Problem | None:
    for name in ("max_completion_tokens", "max_tokens", "n"):
        value = body.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            return Problem(f"Invalid '{name}': integer above 0 expected.", parameter=name)
    prompt.stream = bool(body.get("stream"))
    prompt.max_tokens = body.get("max_completion_tokens") or body.get("max_tokens")
    prompt.samples = body.get("n") or 1
    stop = body.get("stop")
    prompt.stop = (stop,) if isinstance(stop, str) else tuple(stop or ())
    prompt.seed = body.get("seed") or body.get("random_seed") or 0
    prompt.logprobs = _read_alternatives(body)
    prompt.reasoning = body.get("reasoning_effort") not in (None, "none")
    read_tools(
        prompt, [tool.get("function", {}) for tool in body.get("tools") or ()], body.get("tool_choice")
    )
    answer = body.get("response_format") or {}
    if answer.get("type") == "json_schema":
        prompt.schema = answer.get("json_schema", {}).get("schema", {})
    elif answer.get("type") == "json_object":
        prompt.schema = {}
    return None


def _read_alternatives(body: Mapping[str, Any]) -> int | None:
    logprobs = body.get("logprobs")
    if isinstance(logprobs, int) and not isinstance(logprobs, bool):
        return logprobs  # Together takes the number of alternatives in this field.
    return (body.get("top_logprobs") or 0) if logprobs else None


def read_tools(prompt: Prompt, functions: list[Mapping[str, Any]], choice: Any) -> None:
    """Set the tools of a prompt, and whether one of them must be called."""
    if not functions:
        return
    prompt.characters += len(orjson.dumps(functions))
    if choice == "none":
        return
    prompt.tools = tuple(
        Tool(function.get("name", ""), function.get("parameters") or {}) for function in functions
    )
    if isinstance(choice, dict):
        prompt.force_tool = choice.get("function", choice).get("name") or True
    else:
        prompt.force_tool = choice == "required"


def reject(prompt: Prompt) -> Problem | None:
    """Reject the parameters that OpenAI rejects; compatible hosts accept all of them."""
    if prompt.provider != "openai" or not model_refuses_temperature(prompt.model):
        return None
    body = prompt.request.body
    if body.get("max_tokens") is not None:
        return refuse_parameter("max_tokens", "Use 'max_completion_tokens' instead.")
    temperature = body.get("temperature")
    if temperature not in (None, 1) and body.get("reasoning_effort") != "none":
        return Problem(
            code="unsupported_value",
            parameter="temperature",
            message=f"Unsupported value: 'temperature' does not support {temperature} with this model. "
            "Only the default (1) value is supported.",
        )
    return None


def model_refuses_temperature(model: str) -> bool:
    """Whether a model of OpenAI is a reasoning model, which accepts neither ``max_tokens`` nor a temperature.

    >>> model_refuses_temperature("gpt-6.1-sol"), model_refuses_temperature("gpt-4.1")
    (True, False)
    """
    return _REASONING_MODEL.match(model) is not None


def refuse_parameter(parameter: str, remedy: str) -> Problem:
    """OpenAI's error for a parameter that the model does not support."""
    return Problem(
        code="unsupported_parameter",
        parameter=parameter,
        message=f"Unsupported parameter: '{parameter}' is not supported with this model. {remedy}",
    )


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``chat.completion`` object."""
    return {
        **_make_envelope(prompt, completion, "chat.completion"),
        "choices": [
            {
                "index": index,
                "message": _make_message(prompt, completion, index, sample),
                "logprobs": _make_logprobs(prompt, sample.text or ""),
                "finish_reason": _FINISH.get(sample.finish, sample.finish),
                **_make_ids(prompt, sample.text or ""),
            }
            for index, sample in enumerate(completion.samples)
        ],
        "usage": _write_usage(completion),
        **_make_extras(prompt, completion),
    }


def stream(prompt: Prompt, completion: Completion) -> Iterator[Frame]:
    """``chat.completion.chunk`` events, a last one for the usage if requested, and ``[DONE]``."""
    envelope = _make_envelope(prompt, completion, "chat.completion.chunk")
    include_usage = bool((prompt.request.body.get("stream_options") or {}).get("include_usage"))
    if include_usage:
        envelope["usage"] = None

    def chunk(index: int, delta: Mapping[str, Any], finish: str | None = None, piece: str = "") -> Frame:
        choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": finish}
        if prompt.logprobs is not None:
            choice["logprobs"] = _make_logprobs(prompt, piece) if piece else None
        if piece:
            choice |= _make_ids(prompt, piece)
        return Frame(
            b"data: " + orjson.dumps({**envelope, "choices": [choice]}) + b"\n\n", count_tokens(piece)
        )

    for index, sample in enumerate(completion.samples):
        yield chunk(index, {"role": "assistant", "content": None if sample.text is None else ""})
        if sample.reasoning and prompt.provider != "openai":
            yield chunk(index, {REASONING_FIELDS.get(prompt.provider, "reasoning_content"): sample.reasoning})
        for piece in sample.pieces:
            yield chunk(index, {"refusal" if sample.finish == "refusal" else "content": piece}, piece=piece)
        for delta in _stream_calls(completion, index, sample):
            arguments = count_tokens(delta["function"]["arguments"])
            yield chunk(index, {"tool_calls": [delta]})._replace(tokens=arguments)
        if prompt.provider in USAGE_UNASKED and index == len(completion.samples) - 1:
            envelope["usage"] = _write_usage(completion)
        yield chunk(index, {}, _FINISH.get(sample.finish, sample.finish))
    extras = _make_extras(prompt, completion)
    if include_usage or extras:
        last = {**envelope, **extras, "choices": []}
        if include_usage:
            last["usage"] = _write_usage(completion)
        yield Frame(b"data: " + orjson.dumps(last) + b"\n\n")
    yield DONE


def write_error(problem: Problem, _request_identifier: str) -> tuple[int, dict[str, Any]]:
    """``{"error": {message, type, param, code}}``."""
    kind, code, message = _ERRORS.get(problem.status, _ERRORS[500 if problem.status >= 500 else 400])
    if problem.quota:
        kind = code = "insufficient_quota"
        message = "You exceeded your current quota, please check your plan and billing details."
    elif problem.context_length:
        kind, code = "invalid_request_error", "context_length_exceeded"
    body = {
        "message": problem.message or message,
        "type": problem.type or kind,
        "param": problem.parameter or ("messages" if problem.context_length else None),
        "code": problem.code or code,
    }
    return problem.status, {"error": body}


def write_error_frame(problem: Problem, _request_identifier: str) -> bytes:
    """An event that holds an error object."""
    return b"data: " + orjson.dumps(write_error(problem, _request_identifier)[1]) + b"\n\n"


def refuse_rate(seconds: float | None) -> Problem:
    """A 429 with the wait in milliseconds and in whole seconds, both rounded up."""
    if seconds is None:
        return Problem(status=429)
    milliseconds = (b"retry-after-ms", b"%d" % math.ceil(seconds * 1000))
    return Problem(status=429, retry_after=str(math.ceil(seconds)), headers=[milliseconds])


def refuse_length(tokens: int, limit: int) -> Problem:
    """``context_length_exceeded``."""
    message = f"This model's maximum context length is {limit} tokens. However, your messages resulted in "
    message += f"{tokens} tokens. Please reduce the length of the messages."
    return Problem(context_length=True, message=message)


def write_limit_headers(state: LimitState) -> Headers:
    """``x-ratelimit-{limit,remaining,reset}-{requests,tokens}``."""
    headers: Headers = []
    for name, values in ((b"requests", state.requests), (b"tokens", state.tokens)):
        if values is not None:
            limit, remaining, reset = values
            headers.append((b"x-ratelimit-limit-" + name, b"%d" % limit))
            headers.append((b"x-ratelimit-remaining-" + name, b"%d" % remaining))
            headers.append((b"x-ratelimit-reset-" + name, _write_duration(reset)))
    return headers


def _write_duration(seconds: float) -> bytes:
    if seconds < 1:
        return b"%dms" % math.ceil(seconds * 1000)
    minutes, rest = divmod(seconds, 60)
    return (b"%dm" % minutes if minutes else b"") + f"{rest:.3f}".rstrip("0").rstrip(".").encode() + b"s"


def _make_envelope(prompt: Prompt, completion: Completion, kind: str) -> dict[str, Any]:
    envelope: dict[str, Any] = {
        "id": f"chatcmpl-{completion.identifier}",
        "object": kind,
        "created": completion.created,
        "model": completion.model,
    }
    if prompt.provider not in WITHOUT_FINGERPRINT:
        envelope["system_fingerprint"] = completion.served.fingerprint
    if completion.served.endpoint is not None and prompt.provider == "openrouter":
        envelope["provider"] = completion.served.endpoint.host
    if prompt.provider in SERVICE_TIERS:
        envelope["service_tier"] = SERVICE_TIERS[prompt.provider]
    return envelope


def _make_extras(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """Fields of single hosts, at the end of a stream: groq 1.7, openrouter 1.3, fireworks-ai 1.2 and vLLM."""
    body, endpoint = prompt.request.body, completion.served.endpoint
    extras: dict[str, Any] = {}
    ids = make_token_ids("prompt" * (prompt.characters // 6 + 1))
    if prompt.provider == "groq":
        extras["x_groq"] = {"id": f"req_{completion.identifier}", "seed": prompt.seed}
        if body.get("debug"):
            output = [
                identifier
                for sample in completion.samples
                for identifier in make_token_ids(sample.text or "")
            ]
            extras["x_groq"]["debug"] = {"input_token_ids": ids, "output_token_ids": output}
    elif body.get("return_token_ids"):
        extras["prompt_token_ids"] = ids
    if body.get("perf_metrics_in_response"):
        extras["perf_metrics"] = {"prompt-tokens": completion.usage.input_tokens}
    if endpoint is not None and prompt.request.headers.get(b"x-openrouter-metadata") == b"enabled":
        own = {"model": prompt.model, "provider": endpoint.host}
        extras["openrouter_metadata"] = {
            "requested": prompt.model, "strategy": "direct", "region": REGION, "summary": "",
            "is_byok": False,
            "attempt": 1, "attempts": [{**own, "status": 200}],
            "endpoints": {"total": 1, "available": [{**own, "selected": True}]},
        }  # fmt: skip
    return extras


def _make_ids(prompt: Prompt, text: str) -> dict[str, Any]:
    """The ids of a choice's tokens, as vLLM and Fireworks give them on request."""
    return {"token_ids": make_token_ids(text)} if prompt.request.body.get("return_token_ids") else {}


def make_token_ids(text: str) -> list[int]:
    """The ids of a text's tokens of four characters."""
    tokens = (text[start : start + 4].encode("utf-8", "surrogatepass") for start in range(0, len(text), 4))
    return [int.from_bytes(token, "big") % 100_000 for token in tokens]


def _make_message(prompt: Prompt, completion: Completion, index: int, sample: Sample) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": sample.text, "refusal": None}
    if sample.finish == "refusal":
        message["content"], message["refusal"] = None, sample.text
    if sample.reasoning and prompt.provider != "openai":
        message[REASONING_FIELDS.get(prompt.provider, "reasoning_content")] = sample.reasoning
    if sample.tool_calls:
        message["tool_calls"] = [call for call, _ in _make_calls(completion, index, sample)]
    return message


def _make_calls(completion: Completion, index: int, sample: Sample) -> Iterator[tuple[dict[str, Any], str]]:
    """The calls of tools, and the arguments of each as JSON."""
    for number, (name, arguments) in enumerate(sample.tool_calls):
        text = orjson.dumps(arguments).decode()
        identifier = f"call_{completion.identifier}_{index}_{number}"
        yield {"id": identifier, "type": "function", "function": {"name": name, "arguments": text}}, text


def _stream_calls(completion: Completion, index: int, sample: Sample) -> Iterator[dict[str, Any]]:
    for number, (call, arguments) in enumerate(_make_calls(completion, index, sample)):
        yield {"index": number, **call, "function": {**call["function"], "arguments": ""}}
        for fragment in split_fragments(arguments):
            yield {"index": number, "function": {"arguments": fragment}}


def _make_logprobs(prompt: Prompt, text: str) -> dict[str, Any] | None:
    if prompt.logprobs is None:
        return None
    if prompt.provider == "together_ai":
        tokens = make_logprobs(text, 0)
        return {
            "tokens": [token["token"] for token in tokens],
            "token_logprobs": [token["logprob"] for token in tokens],
            "token_ids": make_token_ids(text),
        }
    return {"content": make_logprobs(text, prompt.logprobs), "refusal": None}


def make_logprobs(text: str, alternatives: int) -> list[dict[str, Any]]:
    """Log probabilities of a text's tokens of four characters: all equal, with invented alternatives."""
    content = []
    for start in range(0, len(text), 4):
        token = text[start : start + 4]
        entry = {"token": token, "logprob": -0.1, "bytes": list(token.encode("utf-8", "surrogatepass"))}
        top = [{**entry, "token": token if not rank else f"{token}{rank}", "logprob": -0.1 - rank}
               for rank in range(alternatives)]  # fmt: skip
        content.append({**entry, "top_logprobs": top})
    return content


def _write_usage(completion: Completion) -> dict[str, Any]:
    usage = completion.reported
    bill: dict[str, Any] = {}
    if usage.cost is not None:
        bill = {"cost": usage.cost, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
        bill["server_tool_use"] = {"web_search_requests": usage.web_searches}
    return {
        **bill,
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_write_input_tokens,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_output_tokens, **NO_TOKENS},
    }
