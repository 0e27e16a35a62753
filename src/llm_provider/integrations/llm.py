"""A plugin of Simon Willison's `llm`: `llm -m llm_provider/claude-haiku-5-5 "Hello"`."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import llm
from llm.parts import AttachmentPart, ReasoningPart, StreamEvent, TextPart, ToolCallPart
from pydantic import Field, create_model

from .._core.client.model_functions import models
from .._core.errors import RequestError
from .._core.json_values import JSONObject
from .._core.requests.api_keys import find_accounts, find_written_key
from .._core.requests.routing import ROUTES, Route, find_route
from .._features.hosts.host_routes import read_hosts
from . import conversation
from .conversation import NAME, Variant, media_part

if TYPE_CHECKING:
    from .._core.types.messages import Delta, Message
    from .._core.types.response import Response

MODELS_FILE = "llm-provider-models.txt"
"""The file in llm's folder with the names of further models, one in a line."""

_OPTIONS: dict[str, tuple[Any, str]] = {
    "max_tokens": (int, "The longest answer in tokens, reasoning included"),
    "temperature": (float, "Randomness of the answer, from 0 to 2"),
    "top_p": (float, "Only the most likely tokens of this probability together are sampled, from 0 to 1"),
    "top_k": (int, "Only this many of the most likely tokens are sampled"),
    "frequency_penalty": (float, "How much tokens that occur often become less likely, from -2 to 2"),
    "presence_penalty": (float, "How much tokens that occur become less likely, from -2 to 2"),
    "stop": (str, "A text before which the answer ends"),
    "seed": (int, "A number with which providers sample more repeatably"),
    "reasoning_effort": (str, "none, minimal, low, medium, high, xhigh or max"),
    "thinking_budget": (int, "Tokens of reasoning at most, for Claude up to 4.6 and Gemini 2.5"),
    "reasoning_summary": (str, "auto, concise or detailed: shows the reasoning"),
    "verbosity": (str, "low, medium or high, for OpenAI's models"),
    "service_tier": (str, "The service level, such as flex or priority"),
    "cache": (str, "use, refresh (ask again), only (send nothing) or off"),
    "draw": (int, "The number of the sample, from 0: another number is another answer"),
    "budget": (float, "USD that the prompt may cost at most"),
    "token_budget": (int, "Tokens that the prompt may take at most, with its answer"),
    "deadline": (float, "Seconds for the prompt, with all retries"),
    "max_retries": (int, "The most requests that are sent again"),
    "base_url": (str, "Another server"),
    "unsupported": (str, "raise, or drop: leave out options that the model does not take"),
}

_ATTACHMENTS = frozenset({
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/heic", "image/heif", "application/pdf",
    "audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3", "audio/ogg", "audio/flac", "audio/aac",
    "video/mp4", "video/mpeg", "video/quicktime", "video/webm", "text/plain", "text/markdown", "text/csv",
    "application/json",
})  # fmt: skip

_fields: JSONObject = {
    name: (kind | None, Field(default=None, description=text)) for name, (kind, text) in _OPTIONS.items()
}
Options: Any = create_model("Options", __base__=llm.Options, **_fields)


class _Shared:
    """What the synchronous and the asynchronous model have in common."""

    can_stream = True
    supports_schema = True
    supports_tools = True
    attachment_types = _ATTACHMENTS
    Options = Options
    model_id: str
    key: str | None

    def __init__(self, model: str) -> None:
        self.model = model
        self.model_id = f"{NAME}/{model}"
        self.needs_key = find_route(model, _read_hosts()).provider
        self._variant = Variant({})

    def __str__(self) -> str:
        return f"llm_provider: {self.model_id}"

    def get_key(self, explicit_key: str | None = None) -> str | None:
        """The key of `--key` or `llm keys set PROVIDER`; without it, the key of the environment is used."""
        return self.key or llm.get_key(input=explicit_key, alias=self.needs_key)

    def read_prompt(self, prompt: llm.Prompt, key: str | None) -> tuple[list[Message], JSONObject]:
        """The conversation and the parameters of a prompt."""
        parameters = {name: value for name, value in prompt.options if value is not None}
        if prompt.schema:
            parameters["response_format"] = prompt.schema
        if prompt.tools:
            parameters["tools"] = [
                tool.spec
                if isinstance(tool, llm.ServerSideTool)
                else conversation.function_tool(tool.name, tool.description, tool.input_schema)
                for tool in prompt.tools
            ]
        if key:
            parameters["api_key"] = key
        return list(_messages(prompt.messages)), parameters

    @property
    def supported_server_side_tools(self) -> tuple[type[Any], ...]:
        """Tools that the provider runs, in its own form."""
        return (llm.ServerSideTool,)


class LLMProviderModel(_Shared, llm.KeyModel):  # type: ignore[misc]  # llm is no requirement: its types are not known
    """A model of this library in `llm`."""

    def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: object = None, key: str | None = None
    ) -> Iterator[StreamEvent]:
        """Ask the model, and yield the parts of the answer."""
        messages, parameters = self.read_prompt(prompt, key)
        if not stream:
            answer = self._variant.client.call(self.model, messages, **parameters)
            yield from _events(answer)
        else:
            with self._variant.client.stream(self.model, messages, **parameters) as deltas:
                for delta in deltas:
                    yield from _events(delta)
            answer = deltas.response
        yield from _end(answer, response)


class LLMProviderAsyncModel(_Shared, llm.AsyncKeyModel):  # type: ignore[misc]  # as above
    """The asynchronous version of `LLMProviderModel`."""

    async def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: object = None, key: str | None = None
    ) -> AsyncIterator[StreamEvent]:
        """Ask the model, and yield the parts of the answer."""
        messages, parameters = self.read_prompt(prompt, key)
        if not stream:
            answer = await self._variant.client.acall(self.model, messages, **parameters)
            for event in _events(answer):
                yield event
        else:
            async with self._variant.client.astream(self.model, messages, **parameters) as deltas:
                async for delta in deltas:
                    for event in _events(delta):
                        yield event
            answer = deltas.response
        for event in _end(answer, response):
            yield event


@llm.hookimpl  # type: ignore[untyped-decorator]  # as above
def register_models(register: Any) -> None:
    """Register the models of the price table whose provider has a key, and the models of the user's file."""
    for name in dict.fromkeys([*_with_keys(), *read_added_models()]):
        try:
            register(LLMProviderModel(name), LLMProviderAsyncModel(name))
        except RequestError as error:  # raised here, it would end every command of llm
            click.echo(f"{_models_file()}: {error}", err=True)


@llm.hookimpl  # type: ignore[untyped-decorator]  # as above
def register_commands(cli: Any) -> None:
    """Add the command `llm llm-provider`."""

    @cli.group(name="llm-provider")  # type: ignore[untyped-decorator]  # as above
    def group() -> None:
        """Commands of the plugin llm_provider."""

    @group.command()  # type: ignore[untyped-decorator]  # as above
    @click.argument("models", nargs=-1, required=True)
    def add(models: tuple[str, ...]) -> None:
        """Register models that are in no price list, such as local/my-model."""
        known = read_added_models()
        try:
            for name in models:
                find_route(name, _read_hosts())
        except RequestError as error:
            raise click.ClickException(str(error)) from None
        new = [name for name in models if name not in known]
        with _models_file().open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in new)
        for name in models:
            click.echo(f"llm -m {NAME}/{name}")


def read_added_models() -> list[str]:
    """The names in the user's file. Empty lines and lines that begin with # are left out."""
    path = _models_file()
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _models_file() -> Path:
    return Path(llm.user_dir()) / MODELS_FILE


def _with_keys() -> Iterator[str]:
    stored = llm.load_keys()
    for provider, route in {**ROUTES, **_read_hosts()}.items():
        is_ready = provider in stored or (route.host is not None and not route.key_required)
        try:
            is_ready = is_ready or bool(find_accounts(provider, route.key_variables, {}))
            is_ready = is_ready or find_written_key(provider, route.key_variables) is not None
        except RequestError:  # a wrong key: its error belongs to the call that would send it
            is_ready = True
        if is_ready:
            yield from (model.name for model in models(provider) if model.kind == "chat")


@functools.cache
def _read_hosts() -> Mapping[str, Route]:
    """The hosts of the user's own. Raised here, the error of their file would end every command of llm."""
    try:
        return read_hosts()
    except RequestError as error:
        click.echo(str(error), err=True)
        return {}


def _messages(messages: list[llm.Message]) -> Iterator[Message]:
    """The conversation in OpenAI's form. A system prompt that is repeated counts once."""
    system = None
    for message in messages:
        texts = [part.text for part in message.parts if isinstance(part, TextPart)]
        if message.role == "assistant":
            calls = [
                conversation.tool_call(part.tool_call_id or part.name, part.name, part.arguments)
                for part in message.parts
                if isinstance(part, ToolCallPart) and not part.server_executed
            ]
            known = [
                part.provider_metadata or {} for part in message.parts if isinstance(part, ReasoningPart)
            ]
            state = next((each[NAME] for each in known if NAME in each), None)
            yield conversation.assistant_message("".join(texts), calls, state)
        elif message.role == "tool":
            for part in message.parts:
                content = [part.output, *map(_file, part.attachments)] if part.attachments else part.output
                call_id, failed = part.tool_call_id or part.name, bool(part.exception)
                yield conversation.tool_message(call_id, content, is_error=failed)
        elif message.role == "system":
            text = "\n\n".join(texts)
            if text != system:
                yield {"role": "system", "content": text}
            system = text
        else:
            files = [_file(part.attachment) for part in message.parts if isinstance(part, AttachmentPart)]
            yield {"role": message.role, "content": [*files, *texts] if files else "\n".join(texts)}


def _file(attachment: llm.Attachment) -> object:
    """A part of a message: an address stays one, and a file is sent with its bytes."""
    if not attachment.url:
        content = attachment.content_bytes()
        kind = attachment.resolve_type() or ""
        text = kind.startswith("text/") or kind == "application/json"
        return content.decode() if text else content
    kind = (attachment.resolve_type() or "").partition("/")[0]
    return media_part(kind if kind in ("image", "video") else "document", attachment.url)


def _events(step: Delta | Response) -> Iterator[StreamEvent]:
    """The reasoning and the text of a step of a stream, or of a whole answer."""
    if step.reasoning:
        yield StreamEvent(type="reasoning", chunk=step.reasoning)
    if step.text:
        yield StreamEvent(type="text", chunk=step.text)


def _end(answer: Response, response: Any) -> Iterator[StreamEvent]:
    """Enter the tool calls, the usage and the cost of an answer, and yield the state that continues it."""
    for call in answer.tool_calls:
        # Only here: in OpenAI's Responses, the id of a call comes after its pieces.
        yield StreamEvent(type="tool_call_name", chunk=call.name, tool_call_id=call.id)
        yield StreamEvent(type="tool_call_args", chunk=call.arguments or "{}", tool_call_id=call.id)
        arguments = conversation.parse_arguments(call)
        response.add_tool_call(llm.ToolCall(name=call.name, arguments=arguments, tool_call_id=call.id))
    usage = answer.usage
    counts = {
        "cache_read": usage.cache_read_input_tokens,
        "cache_write": usage.cache_write_input_tokens,
        "reasoning": usage.reasoning_output_tokens,
    }
    details: dict[str, object] = {name: count for name, count in counts.items() if count}
    details |= {"cost": answer.cost, "cached": answer.cached}
    response.set_usage(input=usage.input_tokens, output=usage.output_tokens, details=details)
    response.set_resolved_model(answer.model)
    response.response_json = {NAME: conversation.answer_metadata(answer), "answer": answer.raw}
    if (state := conversation.extract_state(answer.message)) is not None:
        yield StreamEvent(type="reasoning", chunk="", provider_metadata={NAME: state})
