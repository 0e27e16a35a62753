"""A model provider of inspect_ai: `inspect eval task.py --model llm_provider/gpt-6.1-sol`.

Every model name of this library works after the prefix. The requests go through its cache, rate control,
retries, budgets and ledger. docs/integrations.md describes the use.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from inspect_ai import model as inspect
from inspect_ai.log._samples import sample_active
from inspect_ai.model._call_tools import parse_tool_call
from inspect_ai.model._model_info import _get_model_info_direct
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo

from .._core.client.functions import default_client
from .._core.errors import (
    ContextWindowExceededError,
    OutputError,
    RefusalError,
    RequestError,
    SchemaMismatchError,
)
from .._core.formats.openai_chat import encode as chat
from .._core.json_values import JSONMapping, JSONObject
from .._core.requests.api_keys import APIKey
from .._core.requests.routing import resolve
from .._core.runtime.json_pieces import canonical
from .._core.types.messages import FinishReason, Message
from .._core.types.response import Choice, Response
from .._core.types.usage import Usage
from . import conversation
from .conversation import NAME, Variant, answer_metadata, media_part

_LOGGER = logging.getLogger("llm_provider")

_CONVERTED = {"modalities", "parallel_tool_calls", "reasoning_effort"}
"""Settings that have the name of a parameter and other values."""

_OWN = {"extra_headers", "extra_body", "max_retries"}
_SAME = (chat.ACCEPTS.keys() & inspect.GenerateConfig.model_fields.keys()) - _CONVERTED | _OWN
"""Settings that are parameters here."""

_RENAMED = {"stop_seqs": "stop", "num_choices": "n", "timeout": "deadline"}

_NOT_HERE = (
    "best_of", "prompt_logprobs", "fallback_models", "reasoning_mode", "batch", "stream_idle_timeout",
)  # fmt: skip
"""Settings without a counterpart. They are left out with a warning, as inspect's own providers do."""

_STOP_REASONS: dict[FinishReason, str] = {
    "stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter",
    "refusal": "content_filter",
}  # fmt: skip
"""Inspect's words for finish reasons. It has "unknown" for all others."""

_REASONS = (
    (ContextWindowExceededError, "model_length"),
    (RefusalError, "content_filter"),
    (SchemaMismatchError, "stop"),
)
"""Errors that are outputs. Any other ends the sample."""

_EPOCHS = 100_000
"""More than an evaluation has. Each repetition of a prompt within a sample has this many numbers of draws."""

_DRAWS = 2**31 - 1

_requests: WeakKeyDictionary[Any, Counter[bytes]] = WeakKeyDictionary()
"""How often each running sample sent each of its prompts."""


@inspect.modelapi(name=NAME)
class LLMProviderAPI(inspect.ModelAPI):  # type: ignore[misc]  # inspect_ai is no requirement, so its types are not known
    """A model of this library in inspect_ai.

    Args:
        model_name: The model as `llm_provider.call` takes it.
        base_url: The server; default the environment's, else the provider's own.
        api_key: The key; default from the environment.
        config: Inspect's configuration.
        model_args: Every other parameter of `call` (`-M budget=5 -M cache=only`). The budget is one for all
            calls of the model. `unsupported` is "drop" by default: parameters that a model does not take are
            left out with a warning.

    Raises:
        RequestError: a parameter does not exist or is not valid.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: inspect.GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or inspect.GenerateConfig())
        parameters = {"unsupported": "drop", "base_url": base_url, "api_key": self.api_key, **model_args}
        self._variant = Variant(parameters)
        try:
            _ = self._variant.client  # a wrong value ends the evaluation before it begins
        except TypeError as error:
            problem = str(error).replace("with_options()", "-M")
            raise RequestError(problem) from None
        _register(model_name)

    def max_connections(self) -> int:
        """The rate control of this library decides; this is for `--adaptive-connections false`."""
        return 1000

    def connection_key(self) -> str:
        """Each model, server and key has a pool of its own."""
        key = APIKey(self.initial_api_key).identity if self.initial_api_key else None
        return f"{key}:{self.base_url}:{self.model_name}"

    def should_retry(self, ex: Exception) -> bool:
        """Retries have happened here already."""
        return False

    def tools_required(self) -> bool:
        """Claude wants the tools along with a conversation that called them."""
        return True

    def tool_result_images(self) -> bool:
        """Results of tools may have images."""
        return True

    def tool_result_documents(self) -> bool:
        """Results of tools may have documents."""
        return True

    async def count_text_tokens(self, text: str) -> int:
        """The tokens of a text. Nothing is sent or downloaded."""
        return await self._variant.client.acount_tokens(self.model_name, text or " ", exact=False)

    def served_model_usage(self, output: inspect.ModelOutput) -> list[inspect.ServedModelUsage] | None:
        """The exact cost of a call, for inspect's totals and for `--cost-limit`.

        Inspect multiplies tokens with prices per million. A million tokens at the cost of the call give it.
        """
        cost = (output.metadata or {}).get(NAME, {}).get("cost")
        if cost is None:
            return None
        price = inspect.ModelCost(input=0, output=cost, input_cache_read=0, input_cache_write=0)
        million = inspect.ModelUsage(output_tokens=1_000_000, total_tokens=1_000_000)
        return [inspect.ServedModelUsage(model=output.model, usage=million, cost=price)]

    async def generate(
        self,
        input: list[inspect.ChatMessage],  # noqa: A002 -- inspect names it so, and passes it by its name
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: inspect.GenerateConfig,
    ) -> inspect.ModelOutput | tuple[inspect.ModelOutput, inspect.ModelCall]:
        """Ask the model. The log has the parameters of the call, and the provider's answer.

        A conversation that is too long, a refusal and an answer that does not match its schema are outputs,
        which inspect scores. All other errors end the sample.
        """
        messages = list(map(_message, input))
        parameters = parameters_of(config, tools, tool_choice)
        request = {"model": self.model_name, "messages": messages, **parameters}
        call = inspect.ModelCall.create(request, None, _without_media)
        try:
            with _number_samples(request) as draw:
                if draw:
                    parameters["draw"] = draw
                response = await self._variant.client.acall(self.model_name, messages, **parameters)
        except (ContextWindowExceededError, OutputError) as error:
            reason = next((reason for kind, reason in _REASONS if isinstance(error, kind)), None)
            if reason is None:
                raise
            text = error.text if isinstance(error, SchemaMismatchError) else error.message
            output = inspect.ModelOutput.from_content(self.model_name, text, reason, error=str(error))
            if error.usage is not None:
                output.usage = _usage(error.usage, error.cost)
            output.metadata = {NAME: {"cost": error.cost, "error": type(error).__name__}}
            call.set_error(error.to_dict())
            return output, call
        raw = response.raw
        # Without the time in the queue, which inspect counts as waiting.
        seconds = max(response.timing.total - response.timing.queue, 1e-6)
        call.set_response(raw if isinstance(raw, dict) else {"responses": raw}, seconds)
        return inspect.ModelOutput(
            model=response.model,
            choices=[_choice(choice, response, tools) for choice in response.choices],
            usage=_usage(response.usage, response.cost),
            metadata={NAME: answer_metadata(response)},
            response_id=response.id,
        ), call


def _register(model: str) -> None:
    """Tell inspect the prices of a model, without which `--cost-limit` is refused, and its context window."""
    target, name = resolve(model), f"{NAME}/{model}"
    names = (target.model, f"{target.provider}/{target.model}")
    try:
        entries = default_client().models(target.provider)
    except RequestError:
        return  # a provider without a list of models
    known = _get_model_info_direct(name) or inspect.ModelInfo()
    entry = next((entry for entry in entries if entry.name in names), None)
    if entry is None or entry.input_price is None or entry.output_price is None or known.cost is not None:
        return
    read = entry.input_price if entry.cached_input_price is None else entry.cached_input_price
    prices = {"input": entry.input_price, "output": entry.output_price, "input_cache_read": read}
    cost = inspect.ModelCost(**prices, input_cache_write=entry.input_price)
    window = known.context_length or entry.context_window
    inspect.set_model_info(name, known.model_copy(update={"cost": cost, "context_length": window}))


def parameters_of(
    config: inspect.GenerateConfig, tools: list[ToolInfo], tool_choice: ToolChoice
) -> JSONObject:
    """The parameters of a call for inspect's settings and tools."""
    parameters = {name: getattr(config, name) for name in _SAME}
    parameters |= {ours: getattr(config, theirs) for theirs, ours in _RENAMED.items()}
    parameters["reasoning_effort"] = config.reasoning_effort or config.effort
    if parameters["reasoning_effort"] is None:
        parameters["thinking_budget"] = config.reasoning_tokens
    if config.reasoning_summary != "none":
        parameters["reasoning_summary"] = config.reasoning_summary
    if isinstance(config.cache_prompt, bool):
        parameters["prompt_caching"] = config.cache_prompt
    if config.modalities:
        kinds = (kind if isinstance(kind, str) else "image" for kind in config.modalities)
        parameters["modalities"] = ["text", *kinds]
    if config.response_schema is not None:
        form = config.response_schema
        schema = form.json_schema.model_dump(exclude_none=True)
        fields = {"name": form.name, "schema": schema, "description": form.description, "strict": form.strict}
        json_schema = {name: value for name, value in fields.items() if value is not None}
        parameters["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    if tools:
        dumped = [(tool, tool.parameters.model_dump(exclude_none=True)) for tool in tools]
        parameters["tools"] = [
            conversation.function_tool(tool.name, tool.description, schema) for tool, schema in dumped
        ]
        parameters["tool_choice"] = "required" if tool_choice == "any" else tool_choice
        if isinstance(tool_choice, ToolFunction):
            parameters["tool_choice"] = {"type": "function", "function": {"name": tool_choice.name}}
        parameters["parallel_tool_calls"] = config.parallel_tool_calls
    for name in _NOT_HERE:
        if getattr(config, name, None) and name not in _warned:
            _warned.add(name)
            _LOGGER.warning("llm_provider has nothing for inspect's setting %r, which is left out", name)
    return {name: value for name, value in parameters.items() if value is not None}


_warned: set[str] = set()


@contextmanager
def _number_samples(request: JSONMapping) -> Iterator[int]:
    """The number of the first sample: epochs, and repetitions of a prompt within a sample, are asked anew.

    A second run has the same numbers, so it is answered from the cache. A request that fails is not counted,
    because inspect may repeat it.
    """
    sample = sample_active()
    if sample is None:
        yield 0
        return
    counts, samples = _requests.setdefault(sample, Counter()), request.get("n", 1)
    key = hashlib.sha256(canonical(request)).digest()
    number: int = counts[key] * _EPOCHS + sample.epoch - 1
    counts[key] += 1
    try:
        yield number * samples % (_DRAWS - samples)
    except BaseException:
        counts[key] -= 1
        raise


def _message(message: inspect.ChatMessage) -> Message:
    if isinstance(message, inspect.ChatMessageAssistant):
        calls = message.tool_calls or ()
        translated = [conversation.tool_call(call.id, call.function, call.arguments) for call in calls]
        parts = () if isinstance(message.content, str) else message.content
        internals = (part.internal for part in parts if isinstance(part.internal, dict))
        states = (each[NAME] for each in internals if isinstance(each.get(NAME), dict))
        return conversation.assistant_message(message.text, translated, next(states, None))
    if isinstance(message, inspect.ChatMessageTool):
        error = message.error
        content = _content(message.content) if error is None else f"Error: {error.message}"
        return conversation.tool_message(message.tool_call_id or "", content, is_error=error is not None)
    return {"role": message.role, "content": _content(message.content)}


def _content(content: str | list[inspect.Content]) -> str | list[dict[str, object]]:
    if isinstance(content, str):
        return content
    parts = list(filter(None, map(_part, content)))
    if all(part["type"] == "text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return parts


def _part(part: inspect.Content) -> dict[str, object] | None:
    match part.type:
        case "text":
            return {"type": "text", "text": part.text}
        case "image":
            detail = None if part.detail == "auto" else part.detail
            return media_part("image", part.image, detail=detail)
        case "audio":
            return media_part("audio", part.audio, format=part.format)
        case "video":
            return media_part("video", part.video)
        case "document":
            return media_part("document", part.document, filename=part.filename)
        case _:
            return None  # reasoning is in the state of the message; other parts belong to other providers


def _choice(choice: Choice, response: Response, tools: list[ToolInfo]) -> inspect.ChatCompletionChoice:
    state = conversation.extract_state(choice.message)
    internal = None if state is None else {NAME: state}
    content: list[inspect.Content] = []
    if choice.reasoning or response.usage.reasoning_output_tokens:
        # `--reasoning-history none` drops this part, and the state of the reasoning with it.
        thought = {"reasoning": choice.reasoning, "redacted": not choice.reasoning}
        content.append(inspect.ContentReasoning(**thought, internal=internal))
        internal = None
    if choice.text or internal is not None or not content:
        content.append(inspect.ContentText(text=choice.text, internal=internal))
    plain = len(content) == 1 and isinstance(content[0], inspect.ContentText) and internal is None
    calls = [parse_tool_call(call.id, call.name, call.arguments, tools) for call in choice.tool_calls]
    logprobs = conversation.token_logprobs(choice.logprobs)
    answer = {"content": choice.text if plain else content, "tool_calls": calls or None}
    return inspect.ChatCompletionChoice(
        message=inspect.ChatMessageAssistant(**answer, model=response.model, source="generate"),
        stop_reason=_STOP_REASONS.get(choice.finish_reason, "unknown"),
        logprobs=inspect.Logprobs.model_validate({"content": logprobs}) if logprobs else None,
    )


def _usage(usage: Usage, cost: float | None) -> inspect.ModelUsage:
    """Inspect's input tokens are those that the provider's prompt cache neither gave nor took."""
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    return inspect.ModelUsage(
        input_tokens=usage.input_tokens - read - written,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_cache_read=read or None,
        input_tokens_cache_write=written or None,
        reasoning_tokens=usage.reasoning_output_tokens or None,
        total_cost=cost,
    )


def _without_media(key: object, value: object) -> object:
    """A value for the log, without the bytes of images and recordings."""
    if isinstance(value, str) and (value.startswith("data:") or key == "data") and len(value) > 200:
        return f"{value[:40]}… ({len(value)} characters)"
    return value
