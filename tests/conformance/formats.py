"""The five wire formats as their SDKs describe them: the replies that an SDK knows, and its requests."""

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pydantic
from anthropic.types import Message as AnthropicMessage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from google.genai import types as google
from google.genai._gaos.types import interactions
from openai.types.chat import ChatCompletion
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

import interactions_server
from conformance.sdk_types import fields, item_of, members, problems, samples, words
from llm_provider._core.formats import registry
from llm_provider._core.formats.protocol import Answer
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """One kind of content that a reply may have, with samples of it."""

    name: str
    samples: Sequence[Any]
    text: str | None = None
    """The visible text of the first sample."""
    call: bool = False
    """Whether the user has to answer it as a call."""
    in_message: bool = True
    """Whether requests have a form for it, so that the message of the answer must hold it."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Format:
    """A wire format.

    `models` are names of models with which a request takes it; together they accept every parameter that the
    format has. `reply` puts some kinds of content and a finish word into a reply.
    """

    name: str
    models: tuple[str, ...]
    kinds: Sequence[Kind]
    finishes: Sequence[Any]
    done: Any
    """The word with which a complete answer ends."""
    reply: Callable[[Sequence[tuple[Kind, Any]], Any], Any]
    envelopes: Sequence[Any]
    check: Callable[[dict[str, Any]], list[str]]
    turns: str
    """The field of a request that holds the conversation."""
    endpoint: str | None = None
    """The endpoint of the models, where it is not theirs by default."""

    def __repr__(self) -> str:
        return self.name

    def encode(self, messages: Any, model: str = "", **parameters: Any) -> dict[str, Any]:
        """The payload of a request, as JSON that was written and read again."""
        name = model or self.models[0]
        target = resolve(name, endpoint=self.endpoint)
        encoded = registry.load(target.route.adapter).encode(
            Request.build(name, messages, parameters), target
        )  # type: ignore[arg-type]  # wrong on purpose, or any value
        payload: dict[str, Any] = json.loads(json.dumps(encoded.add_labels(encoded.payload)))
        return payload

    def decode(self, reply: Any) -> Answer:
        """The answer of a reply."""
        route = resolve(self.models[0], endpoint=self.endpoint).route
        return registry.load(route.adapter).decode(json.loads(json.dumps(reply)))


def _envelopes(model: type[pydantic.BaseModel], reply: dict[str, Any], without: set[str]) -> list[Any]:
    """A complete reply with every value of every other field of its object, absent and null too."""
    replies = [reply]
    for name, (kind, required) in fields(model).items():
        if name in without or name in reply:
            continue
        values = samples(kind, name)
        replies += [{**reply, name: value} for value in (values if required else [None, *values])]
    return replies


# --- OpenAI: Chat Completions --------------------------------------------------------------------------
_CHOICE = item_of(ChatCompletion.model_fields["choices"].annotation)


def _chat_kinds() -> Iterator[Kind]:
    for name, (kind, _) in fields(_CHOICE.model_fields["message"].annotation).items():
        if name in ("role", "parsed"):
            continue
        if name == "tool_calls":
            for call in members(item_of(kind)):
                messages = [{name: [value]} for value in samples(call, name)]
                yield Kind(name=f"{name}: {messages[0][name][0]['type']}", samples=messages, call=True)
            continue
        values = [{name: value} for value in samples(kind, name)]
        visible = values[0][name] if name in ("content", "refusal") else None
        if name == "audio":
            # A request has only the number of a recording.
            visible = values[0][name]["transcript"]
        in_message = name not in ("annotations", "audio")
        yield Kind(
            name=name, samples=values, text=visible, call=name == "function_call", in_message=in_message
        )


def _chat_reply(content: Sequence[tuple[Kind, Any]], finish: Any) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for _, sample in content:
        for name, value in sample.items():
            present = message.get(name)
            if (isinstance(present, list) and isinstance(value, list)) or (
                isinstance(present, str) and isinstance(value, str)
            ):
                message[name] = present + value
            else:
                message[name] = value
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


_chat_samples = list(_chat_kinds())
CHAT = Format(
    name="chat",
    models=("gpt-4.1", "gpt-5", "gpt-5.2"),
    kinds=_chat_samples,
    finishes=[*words(_CHOICE.model_fields["finish_reason"].annotation), None, ""],
    done="stop",
    reply=_chat_reply,
    envelopes=_envelopes(
        ChatCompletion, _chat_reply([(_chat_samples[0], _chat_samples[0].samples[0])], "stop"), set()
    ),
    check=functools.partial(problems, annotation=CompletionCreateParamsNonStreaming),
    turns="messages",
)

# --- OpenAI: Responses ---------------------------------------------------------------------------------
# The calls that the user has to answer. OpenAI's own tools run at OpenAI.
_CLIENT_CALLS = {
    "function_call", "custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call",
    "computer_call", "mcp_approval_request",
}  # fmt: skip
_DETAILS = members(Response.model_fields["incomplete_details"].annotation)[0]


def _responses_kinds() -> Iterator[Kind]:
    for item in members(item_of(Response.model_fields["output"].annotation)):
        values = samples(item)
        name = values[0]["type"]
        text = "".join(part.get("text", "") for part in values[0]["content"]) if name == "message" else None
        yield Kind(name=name, samples=values, text=text, call=name in _CLIENT_CALLS)


def _responses_reply(content: Sequence[tuple[Kind, Any]], finish: Any) -> Any:
    status, reason = finish
    return {
        "id": "r1",
        "object": "response",
        "model": "m",
        "status": status,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": [sample for _, sample in content],
        "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
    }


def _responses_check(payload: dict[str, Any]) -> list[str]:
    wrong = problems(
        {**payload, "input": list(map(_completed, payload["input"]))}, ResponseCreateParamsNonStreaming
    )
    # The oldest SDK knows neither the newest effort nor the context of reasoning.
    newer = (".effort: 'max'", ".reasoning.context: no field")
    return [entry for entry in wrong if not any(words in entry for words in newer)]


def _completed(item: dict[str, Any]) -> dict[str, Any]:
    """An item with the fields that the types want in an assistant's message, and the API does not need."""
    if item.get("role") != "assistant" or not isinstance(item.get("content"), list):
        return item
    parts = [
        {"annotations": [], **part} if part.get("type") == "output_text" else part for part in item["content"]
    ]
    return {"type": "message", "id": "m", "status": "completed", **item, "content": parts}


_responses_samples = list(_responses_kinds())
RESPONSES = Format(
    name="responses",
    models=("gpt-5.5-pro",),
    kinds=_responses_samples,
    finishes=[
        ("completed", None),
        *(("incomplete", reason) for reason in words(_DETAILS.model_fields["reason"].annotation)),
        *((word, None) for word in words(Response.model_fields["status"].annotation) if word != "completed"),
    ],
    done=("completed", None),
    reply=_responses_reply,
    envelopes=_envelopes(
        Response,
        _responses_reply([(_responses_samples[0], _responses_samples[0].samples[0])], ("completed", None)),
        {"error", "tools", "tool_choice", "prompt", "instructions", "moderation"},
    ),
    check=_responses_check,
    turns="input",
)


# --- Anthropic -----------------------------------------------------------------------------------------
def _anthropic_kinds() -> Iterator[Kind]:
    for block in members(item_of(AnthropicMessage.model_fields["content"].annotation)):
        values = samples(block)
        name = values[0]["type"]
        yield Kind(name=name, samples=values, text=values[0].get("text"), call=name == "tool_use")


def _anthropic_reply(content: Sequence[tuple[Kind, Any]], finish: Any) -> Any:
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [sample for _, sample in content],
        "stop_reason": finish,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }


# The SDK's types are those of the newest API version. An older one, which the header names, has these too.
_SAMPLING = (".temperature:", ".top_p:", ".top_k:")


def _anthropic_check(payload: dict[str, Any]) -> list[str]:
    wrong = problems(payload, MessageCreateParamsNonStreaming)
    return [entry for entry in wrong if not entry.startswith(_SAMPLING)]


_anthropic_samples = list(_anthropic_kinds())
ANTHROPIC = Format(
    name="anthropic",
    models=("claude-sonnet-5-5", "claude-haiku-4-5", "claude-opus-4-8"),
    kinds=_anthropic_samples,
    finishes=words(AnthropicMessage.model_fields["stop_reason"].annotation),
    done="end_turn",
    reply=_anthropic_reply,
    envelopes=_envelopes(
        AnthropicMessage,
        _anthropic_reply([(_anthropic_samples[0], _anthropic_samples[0].samples[0])], "end_turn"),
        set(),
    ),
    check=_anthropic_check,
    turns="messages",
)

# --- Gemini --------------------------------------------------------------------------------------------
_CANDIDATE = item_of(google.GenerateContentResponse.model_fields["candidates"].annotation)
_BESIDE = ("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata")


def _gemini_kinds() -> Iterator[Kind]:
    listed = fields(google.Part)
    beside = {name: samples(listed[name][0], name)[0] for name in _BESIDE if name in listed}
    for name, (kind, _) in listed.items():
        if name in _BESIDE:
            continue
        values = [{name: value} for value in samples(kind, name)]
        # Empty objects are the absence of everything.
        values = [value for value in values if value[name]]
        signed = {**values[-1], "thoughtSignature": beside["thoughtSignature"]}
        usable = [value for value in values if name != "functionCall" or value[name].get("name")]
        text = usable[0][name] if name == "text" else None
        if signed[name] in [value[name] for value in usable]:
            usable.append(signed)
        yield Kind(name=name, samples=usable, text=text, call=name == "functionCall")
    thought = {"text": beside["thoughtSignature"], "thought": True}
    yield Kind(name="thought", samples=[thought, {**thought, "thoughtSignature": beside["thoughtSignature"]}])


def _gemini_reply(content: Sequence[tuple[Kind, Any]], finish: Any) -> Any:
    where, word = finish
    if where == "prompt":
        return {"promptFeedback": {"blockReason": word}, "responseId": "g1", "modelVersion": "m"}
    parts = {"parts": [sample for _, sample in content]} if content else {}
    candidate = {"content": {"role": "model", **parts}, "finishReason": word, "index": 0}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 4}
    return {"candidates": [candidate], "usageMetadata": usage, "responseId": "g1", "modelVersion": "m"}


_GEMINI_FIELDS: Mapping[str, pydantic.TypeAdapter[Any]] = {
    "contents": pydantic.TypeAdapter(list[google.Content]),
    "systemInstruction": pydantic.TypeAdapter(google.Content),
    "tools": pydantic.TypeAdapter(list[google.Tool]),
    "toolConfig": pydantic.TypeAdapter(google.ToolConfig),
    "generationConfig": pydantic.TypeAdapter(google.GenerationConfig),
    "safetySettings": pydantic.TypeAdapter(list[google.SafetySetting]),
    "cachedContent": pydantic.TypeAdapter(str),
    "serviceTier": pydantic.TypeAdapter(google.ServiceTier),
}


def _gemini_check(payload: dict[str, Any]) -> list[str]:
    wrong = [f".{name}: no field of a request" for name in payload.keys() - _GEMINI_FIELDS.keys()]
    for name in payload.keys() & _GEMINI_FIELDS.keys():
        try:
            _GEMINI_FIELDS[name].validate_json(json.dumps(payload[name]))
        except pydantic.ValidationError as error:
            wrong += [
                f".{name}.{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in error.errors()
            ]
        except UserWarning as warning:
            # The SDK warns of a word that its enumeration does not have.
            wrong.append(f".{name}: {warning}")
    return wrong + [
        f".contents[{i}]: empty" for i, turn in enumerate(payload["contents"]) if not turn.get("parts")
    ]


_gemini_samples = sorted(_gemini_kinds(), key=lambda kind: kind.name != "text")
_FINISH_WORDS = [
    word for word in words(_CANDIDATE.model_fields["finish_reason"].annotation) if "UNSPECIFIED" not in word
]
_FEEDBACK = members(google.GenerateContentResponse.model_fields["prompt_feedback"].annotation)[0]
_BLOCKED = [
    word for word in words(_FEEDBACK.model_fields["block_reason"].annotation) if "UNSPECIFIED" not in word
]


def _gemini_envelopes() -> list[Any]:
    reply = _gemini_reply([(_gemini_samples[0], _gemini_samples[0].samples[0])], ("", "STOP"))
    without = {"sdkHttpResponse", "automaticFunctionCallingHistory", "parsed", "promptFeedback"}
    candidates = _envelopes(_CANDIDATE, reply["candidates"][0], set())
    return [
        *_envelopes(google.GenerateContentResponse, reply, without),
        *({**reply, "candidates": [candidate]} for candidate in candidates),
    ]


GEMINI = Format(
    name="gemini",
    models=("gemini-3.8-flash", "gemini-2.5-flash"),
    kinds=_gemini_samples,
    finishes=[*(("", word) for word in _FINISH_WORDS), *(("prompt", word) for word in _BLOCKED)],
    done=("", "STOP"),
    reply=_gemini_reply,
    envelopes=_gemini_envelopes(),
    check=_gemini_check,
    turns="contents",
)

# --- Gemini: Interactions -------------------------------------------------------------------------------
# What a model was told. Steps of types that the SDK does not know have no fields to try.
_TOLD = {"user_input", "function_result", "UNKNOWN"}


def _interaction_kinds() -> Iterator[Kind]:
    for step in members(interactions.Step):
        (name,) = words(fields(step)["type"][0])
        if name in _TOLD:
            continue
        values = [value for value in samples(step) if value["type"] == name]
        if name == "model_output":
            # One with an error is a failure, which tests of their own have.
            values = [value for value in values if not value.get("error")]
            content = [value for value in values if value.get("content")]
            text = next(value for value in content if value["content"][0]["type"] == "text")
            yield Kind(name=name, samples=[text, *values], text=text["content"][0]["text"])
            continue
        if name in ("function_call", "thought"):
            # A thought without a signature is not sent back: googleapis/js-genai#1735.
            values = [value for value in values if value.get("name") or value.get("signature")]
        yield Kind(name=name, samples=values, call=name == "function_call")


def _interaction_reply(content: Sequence[tuple[Kind, Any]], finish: Any) -> Any:
    usage = {"total_input_tokens": 3, "total_output_tokens": 4, "total_tokens": 7}
    steps = [sample for _, sample in content]
    return {
        "id": "i1",
        "object": "interaction",
        "model": "m",
        "status": finish,
        "steps": steps,
        "usage": usage,
    }


_interaction_samples = sorted(_interaction_kinds(), key=lambda kind: kind.name != "model_output")
INTERACTIONS = Format(
    name="interactions",
    models=("gemini-3.8-flash", "gemini-2.5-flash", "gemini-3.5-flash-lite"),
    kinds=_interaction_samples,
    finishes=words(interactions.Interaction.model_fields["status"].annotation),
    done="completed",
    reply=_interaction_reply,
    envelopes=_envelopes(
        interactions.Interaction,
        _interaction_reply([(_interaction_samples[0], _interaction_samples[0].samples[0])], "completed"),
        {"tools", "environment", "response_format", "generation_config", "agent_config", "input"},
    ),
    check=interactions_server.check,
    turns="input",
    endpoint="interactions",
)

FORMATS = (CHAT, RESPONSES, ANTHROPIC, GEMINI, INTERACTIONS)
BY_NAME = {form.name: form for form in FORMATS}
