"""Attributes that answers of other libraries have, and what to write with this one.

`Hinting` is the base class of values that users read. The tables are searched if an attribute is missing.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

_TOKENS = {
    "input_tokens": "prompt_tokens input_token_count prompt_token_count prompt_eval_count",
    "output_tokens": "completion_tokens output_token_count candidates_token_count eval_count",
    "total_tokens": "total_token_count tokens",
    "cache_read_input_tokens": "cached_tokens cached_content_token_count prompt_tokens_details "
    "input_tokens_details",
    "cache_write_input_tokens": "cache_creation_input_tokens",
    "reasoning_output_tokens": "reasoning_tokens thoughts_token_count completion_tokens_details "
    "output_tokens_details",
}
_IN_USAGE = {f".usage.{name}": f"{name} {names}" for name, names in _TOKENS.items()}
_SAMPLE = {
    ".text": "content output_text output parts completion answer response",
    ".finish_reason": "stop_reason done_reason status refusal",
    ".reasoning": "reasoning_content thinking thoughts",
    ".tool_calls": "function_call function_calls tool_call",
    ".message['role']": "role",
    "stream(model, messages), which yields the text in pieces": "delta iter_content",
}
_FRAMES = {".to_pandas()": "to_df df dataframe to_frame to_dataframe as_df pandas"}

_TABLES: dict[str, dict[str, str]] = {
    "Response": _SAMPLE
    | _IN_USAGE
    | {
        ".to_dict()": "model_dump model_dump_json dict json to_json as_dict",
        ".usage": "usage_metadata token_usage",
        ".choices, or .texts": "generations candidates outputs",
        ".parsed": "output_parsed parsed_output object structured_output",
        ".cost": "response_cost total_cost",
        ".timing.total, in seconds": "latency elapsed duration response_ms",
        ".raw": "response_metadata created system_fingerprint service_tier headers",
        ".id": "request_id response_id",
        ".model": "model_name model_version",
        "embed(model, texts), whose value has .vectors": "data embedding embeddings",
        "Results([response]).to_pandas()": "to_pandas to_df",
    },
    "Choice": _SAMPLE,
    "Delta": {
        ".text": "choices content delta data output_text",
        ".reasoning": "reasoning_content thinking",
        "stream.response, after the end of the stream": "finish_reason usage cost model",
    },
    "_Running": {
        "stream.response, after the end of the stream": "text content choices usage cost finish_reason "
        "parsed message tool_calls"
    },
    "AssistantMessage": {
        "response.text": "text output_text",
        "response.parsed": "parsed",
        "response.reasoning": "reasoning reasoning_content thinking",
        "response.tool_calls": "tool_calls function_call",
        "the message itself, which is a dict": "model_dump dict to_dict",
    },
    "Usage": {f".{name}": names for name, names in _TOKENS.items()}
    | {"response.cost": "cost total_cost", "dataclasses.asdict(usage)": "model_dump dict to_dict json"},
    "ToolCall": {
        ".name and .arguments": "function",
        ".parsed_arguments": "input args parameters kwargs",
        ".name": "function_name tool_name",
        ".id": "call_id tool_call_id",
    },
    "Results": _FRAMES
    | {
        ".to_pandas().to_csv(path)": "to_csv",
        ".to_pandas().to_parquet(path)": "to_parquet",
        ".to_jsonl(path)": "to_json to_dict save write",
        ".to_html(path)": "show view html",
        ".from_jsonl(path)": "load",
        ".texts": "text content contents outputs answers",
        ".ok, which has the responses alone": "responses successful successes succeeded choices",
        "[response.parsed for response in results.ok]": "parsed",
        ".errors": "failed failures exceptions error",
        ".cost": "total_cost",
    },
    "Embeddings": _IN_USAGE
    | {
        ".vectors": "data embedding embeddings values tolist to_list",
        ".numpy()": "to_numpy array as_numpy",
        ".numpy().shape": "shape",
        ".dimensions": "dim dims dimension size",
        ".cost": "total_cost",
    },
    "Estimate": {
        ".cost": "total_cost price usd",
        ".cost.low, .cost.likely and .cost.high": "low likely high",
        ".input_tokens": "prompt_tokens",
        ".output_tokens": "completion_tokens max_tokens",
        ".seconds": "time duration minutes",
        ".requests": "calls",
    },
    "Ledger": _FRAMES
    | _IN_USAGE
    | {
        ".spent": "total_cost spend usd",
        ".rows('model')": "by_model models",
        ".requests": "calls count",
        ".hits": "cached",
        ".failed": "errors",
    },
    "LLMError": {
        ".status": "status_code http_status http_code",
        ".status, .code, .request_id and .retry_after": "response request headers",
        "type(error).__name__": "type name error_type error",
        ".message": "msg detail details reason error_message",
        ".code": "error_code",
        ".provider": "llm_provider",
        ".attempts": "num_retries retries",
        ".to_dict()": "model_dump dict json",
        "results.ok, which has the responses alone": "content output_text output",
    },
    "Client": {
        ".call(model, messages)": "chat completions responses messages generate complete completion "
        "invoke ask generate_content predict",
        ".acall(model, messages)": "acompletion agenerate ainvoke",
        ".call_many(model, inputs)": "batch map batch_completion generate_many",
        ".acall_many(model, inputs)": "abatch amap",
        ".embed(model, texts)": "embedding embeddings embed_content",
        ".usage.spent": "cost total_cost spent",
    },
    "llm_provider": {
        "call(model, messages)": "completion completion_with_retries text_completion chat_completion "
        "responses generate complete chat ask invoke llm run query prompt",
        "acall(model, messages)": "acompletion acompletion_with_retries aresponses agenerate achat",
        "call_many(model, inputs)": "batch_completion batch batch_call generate_many complete_many",
        "acall_many(model, inputs)": "abatch_completion abatch acompletion_many",
        "stream(model, messages)": "completion_stream stream_chunk_builder",
        "embed(model, texts)": "embedding embeddings embed_many OpenAIEmbeddings",
        "aembed(model, texts)": "aembedding aembedding_many",
        "Client(), or call(model, messages) without one": "OpenAI AzureOpenAI AsyncOpenAI Anthropic "
        "AsyncAnthropic Groq Together Mistral LLM LLMProvider Provider AsyncClient ChatOpenAI ChatAnthropic "
        "ChatGoogleGenerativeAI init_chat_model",
        "call(model, messages, fallback=['model', ...]), or Client(keys=...) for several keys": "Router",
        "Client(on_result=function)": "CustomLogger callbacks",
        "Client(prices='prices.csv')": "register_model",
        "Client(cache_dir='...'); every answer is stored without it, too": "Cache InMemoryCache SQLiteCache "
        "set_llm_cache enable_cache",
        "track('name')": "get_openai_callback",
        "a dict, {'role': 'user', 'content': 'text'}": "SystemMessage HumanMessage AIMessage",
        "LLMError, and the errors by their names": "exceptions",
        "call(...), which refuses by name what a model does not accept": "get_supported_openai_params",
        "models(provider, live=True), which needs a valid key": "validate_environment check_valid_key",
        "the provider's SDK for it": "image_generation transcription speech moderation rerank",
        "count_tokens(model, messages)": "token_counter get_num_tokens tokenizer",
        "response.cost, or price(model, usage)": "completion_cost cost_per_token",
        "usage().spent": "cost total_cost get_cost",
        "models()": "model_list list_models get_models get_model_info get_max_tokens model_cost "
        "supports_function_calling supports_vision supports_response_schema get_llm_provider",
        "Response": "ModelResponse ChatCompletion Completion",
        "Embeddings": "EmbeddingResponse",
        "LLMError": "APIError OpenAIError AnthropicError APIStatusError",
        "APITimeoutError": "Timeout TimeoutError",
        "OverloadedError": "ServiceUnavailableError",
        "RefusalError": "ContentPolicyViolationError ContentFilterFinishReasonError",
        "BadRequestError": "UnprocessableEntityError InvalidRequestError",
    },
}
"""Class or module → what to write → names that others have for it. Subclasses have the rows of bases."""


def remedy_for(owners: Iterable[str], name: str, known: Iterable[str]) -> str:
    """What to write in place of a name that an object or a module does not have; empty if nothing is like it.

    `owners` are the rows of the table to search, in this order, and `known` the names that there are.

    >>> remedy_for(["Response"], "content", []), remedy_for(["Usage"], "input_token", ["input_tokens"])
    (': use .text', ": did you mean 'input_tokens'?")
    """
    for owner in owners:
        for remedy, names in _TABLES.get(owner, {}).items():
            if name in names.split():
                return f": use {remedy}"
    if name.startswith("_"):
        # Protocols of other programs look for such names again and again.
        return ""
    import difflib

    public = [other for other in known if not other.startswith("_")]
    near = difflib.get_close_matches(name, public, n=1, cutoff=0.7)
    return f": did you mean {near[0]!r}?" if near else ""


def missing_attribute(value: object, name: str) -> AttributeError:
    """The error for an attribute that a value does not have."""
    # Python would add a guess of its own to an error that names its object.
    return AttributeError(
        f"{type(value).__name__} has no attribute {name!r}{_remedy(value, name)}", name=name, obj=None
    )


def _remedy(value: object, name: str) -> str:
    kind = type(value)
    return remedy_for([base.__name__ for base in kind.__mro__], name, dir(kind))


class Hinting:
    """A value that says what to write where a program uses it like a value of another library."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            attribute = getattr(type(self), name, None)
            if isinstance(attribute, property):
                # Python comes here too if a property raised an AttributeError, which is raised once more.
                return attribute.__get__(self)
            raise missing_attribute(self, name)


class NoMapping(Hinting):
    """A value with attributes: it says so where a program uses it like a dict."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getitem__(self, name: Any) -> Any:
            kind = type(self)
            if not isinstance(name, str):
                raise TypeError(f"{kind.__name__} is neither a list nor a dict: use its attributes")
            remedy = f": use .{name}" if hasattr(kind, name) else _remedy(self, name)
            raise TypeError(f"{kind.__name__} is not a dict{remedy or f', and has no {name!r}'}")
