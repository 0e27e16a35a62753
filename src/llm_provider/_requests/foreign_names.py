"""Names of parameters and prefixes of models that other tools use, for messages about unknown ones."""

import difflib
import re
from collections.abc import Collection, Mapping

_REMEDIES = {
    "stream streaming": "call stream() or astream() instead: they yield the answer as it is written",
    "stream_options": "stream() and astream() always report the usage; leave it out",
    "api_base api_url host endpoint_url": "write base_url='https://...'",
    "key token openai_api_key anthropic_api_key google_api_key": "write api_key='...'",
    "engine model_name": "the model is the first argument: call('gpt-6.1-sol', ...)",
    "deployment_id azure_deployment": "the model is the first argument: call('azure/my-deployment', ...)",
    "functions": "write tools=[{'type': 'function', 'function': {...}}, ...]",
    "function_call": "write tool_choice='auto', or {'type': 'function', 'function': {'name': ...}}",
    "max_completion_tokens max_output_tokens max_new_tokens max_tokens_to_sample num_predict": "write "
    "max_tokens=...: it is sent under the name that the model expects",
    "stop_sequences stop_words": "write stop=['...']",
    "random_seed": "write seed=...",
    "num_samples candidate_count": "write n=...",
    "best_of": "write n=... and choose among response.texts",
    "instructions system_prompt system_instruction system_message": "write system='...'",
    "developer": "write system='...', or a message with the role 'developer'",
    "generation_config config": "write its fields as parameters: temperature=, top_k=, max_tokens=, n= ...",
    "response_mime_type": "write response_format={'type': 'json_object'}",
    "response_schema output_format text_format": "write response_format= with a pydantic model or "
    "{'type': 'json_schema', ...}",
    "response_model": "write response_format= with a pydantic model",
    "output_config": "write reasoning_effort='...' for its effort, response_format= for its format",
    "thinking": "write reasoning_effort='low' to 'max' or 'none', or thinking_budget=... or 'adaptive'",
    "thinking_config": "write reasoning_effort='low' to 'max', or thinking_budget=... tokens",
    "thinking_level": "write reasoning_effort='low', 'medium' or 'high'",
    "budget_tokens": "write thinking_budget=...",
    "reasoning": "write reasoning_effort='low' to 'max', and reasoning_summary='auto' for a summary",
    "effort": "write reasoning_effort='low' to 'max'",
    "speed": "write service_tier='fast' or 'priority'",
    "safety_identifier user_id": "write user='...'",
    "tool_config": "write tool_choice= and allowed_tools=['name']",
    "allowed_function_names": "write allowed_tools=['name']",
    "disable_parallel_tool_use": "write parallel_tool_calls=False",
    "response_modalities": "write modalities=['text', 'image']",
    "request_timeout force_timeout": "write timeout=... seconds for an attempt, or deadline=... "
    "for the whole call",
    "http_options": "write timeout=, base_url= and extra_headers=",
    "num_retries retries retry": "write max_retries=...",
    "headers default_headers": "write extra_headers={'name': 'text'}",
    "caching use_cache": "write cache='use' or cache='off'",
    "drop_params": "write unsupported='drop'",
    "max_budget": "write budget=... USD",
    "max_workers concurrency n_jobs num_workers max_concurrency max_parallel": "write max_concurrent=...",
    "show_progress": "write progress=True",
    "history chat_history conversation": "the list of messages is the second argument: call(model, messages)",
    "image": "give it in the prompt: call(model, ['What is this?', Path('cat.png')])",
    "images": "give them in the prompt: call(model, ['What is this?', Path('cat.png')])",
    "file": "give it in the prompt: call(model, ['What is this?', Path('a.pdf')])",
    "files attachments": "give them in the prompt: call(model, ['What is this?', Path('a.pdf')])",
    "json json_mode": "write response_format={'type': 'json_object'}, or a pydantic model",
    "json_schema guided_json": "write response_format= with the schema",
    "schema": "write response_format= with the schema or a pydantic model",
    "output_type": "write response_format= with the type",
    "web_search web_search_options": "write tools=['web_search']",
    "grounding": "write tools=['google_search']",
    "cache_control": "write prompt_caching=True",
    "repetition_penalty": "write frequency_penalty=..., or extra_body={'repetition_penalty': ...}",
    "repeat_penalty": "write frequency_penalty=..., or extra_body={'repeat_penalty': ...}",
    "max_attempts": "write max_retries=...: it does not count the first attempt",
    "backoff": "waits between attempts need no setting; write max_retries=... or deadline=...",
    "verbose set_verbose log_level": "set the environment variable LLM_PROVIDER_LOG=debug",
    "logger": "set the environment variable LLM_PROVIDER_LOG=debug, or use logging.getLogger('llm_provider')",
    "callbacks callback input_callback success_callback failure_callback logger_fn": "write "
    "Client(on_result=function)",
    "proxy proxies": "set the environment variable HTTPS_PROXY",
    "verify verify_ssl ssl_verify": "set the environment variable SSL_CERT_FILE to your certificates",
    "http_client": "write Client(transport='http1'), and set HTTPS_PROXY or SSL_CERT_FILE if you need them",
    "ttl cache_ttl": "stored answers do not expire; write cache='refresh' to ask again",
    "cache_path": "write Client(cache_dir='...')",
    "fallbacks fallback_models context_window_fallbacks context_window_fallback_dict "
    "content_policy_fallbacks": "write fallback=['model', ...]",
    "model_list": "write call(model, ..., fallback=['model', ...]); several keys: Client(keys={...})",
    "allowed_fails cooldown_time retry_policy retry_after routing_strategy": "a provider that is down or "
    "refuses is noticed for you; write max_retries=... or fallback=['model', ...]",
    "input_cost_per_token output_cost_per_token": "write Client(prices='prices.csv')",
    "mock_response": "run llm_provider.simulator.Simulator, and give base_url=simulator.url('openai')",
    "organization organisation": "write extra_headers={'OpenAI-Organization': '...'}",
    "project": "write extra_headers={'OpenAI-Project': '...'}",
    "azure_endpoint": "write base_url='https://...' and the model 'azure/my-deployment'",
    "azure_ad_token azure_ad_token_provider": "write Client(keys={'azure': function}): it returns a token",
    "api_version": "leave it out: Azure's v1 API has none",
    "aws_region aws_region_name": "set the environment variable AWS_REGION",
    "vertex_project vertex_location": "set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION",
    "custom_llm_provider provider": "put the provider before the model: call('provider/model', ...)",
    "model_kwargs": "write its entries as parameters: temperature=..., max_tokens=...",
    "do_sample": "write temperature=0 for the most likely answer",
    "wait": "write submit_many(model, inputs), which returns a Batch",
    "dry_run": "write estimate(model, inputs), which sends nothing",
    "return_exceptions": "write on_error='return' or on_error='raise' in call_many()",
    "rpm tpm": "the limit is found for you; write max_concurrent=... for the number of requests in flight",
    "requests_per_minute tokens_per_minute rate_limit": "the limit is found for you; write "
    "max_concurrent=... for the number in flight",
    "dotenv dotenv_path": "write Client(env_file='.env')",
}
"""Names → what to write instead. Each name belongs to some other library."""

_REMEDIES_OF_EMBED = {
    "dry_run": "write estimate(model, texts), which sends nothing",
    "encoding_format": "leave it out: vectors are lists of float, and .numpy() gives an array",
    "input_type": "write extra_body={'input_type': ...}",
    "task_type": "write extra_body={'taskType': ...}",
    "task": "write extra_body={'taskType': ...} for Gemini, {'task': ...} for others",
    "dim output_dimensionality": "write dimensions=...",
    "fallback fallbacks": "leave it out: vectors of different models cannot be compared",
}
"""The same in a call of `embed`."""

_INPUTS = frozenset(
    {"completion", "contents", "context", "continuation", "continuations", "documents", "input", "inputs",
     "message", "messages", "prompt", "prompts", "queries", "query", "text", "texts"}
)  # fmt: skip
_INPUTS_OF = {
    "embed": "the texts are the second argument: {}(model, ['a text'])",
    "score": "the context and the continuations follow the model: {}(model, 'text', [' more text'])",
    "many estimate recheck": "the inputs are the second argument: {}(model, ['text', ...])",
    "Client with_options": "a call has it, behind the model: call(model, 'text')",
    "": "the prompt is the second argument: {}(model, 'text') or a list of messages",
}
"""Function, or the end of its name → where the inputs go, however they are named elsewhere."""

_PARAMETERS = {name: remedy for names, remedy in _REMEDIES.items() for name in names.split()}
_OF_EMBED = {name: remedy for names, remedy in _REMEDIES_OF_EMBED.items() for name in names.split()}

_OF_BATCHES = ("max_concurrent", "progress", "delivery", "resend", "batch_size", "rows", "on_error")
_SETTINGS = frozenset(
    {"cache_dir", "cache_finish_reasons", "max_concurrent", "keys", "prices", "max_response_bytes",
     "on_result", "rate_control", "transport", "ledger", "show_estimate_above", "env_file", "cache_shared",
     "deployments", "telemetry", "log_content", "show_waits", "hosts"}
)  # fmt: skip


def describe_unexpected(function: str, name: str, known: Collection[str]) -> str:
    """The message for a parameter that a function does not have. `known` are the names of its parameters."""
    problem = f"{function}() got an unexpected parameter {name!r}"
    if name.lower() in _INPUTS:
        remedy = next(
            text for ends, text in _INPUTS_OF.items() if function.endswith(tuple(ends.split()) or "")
        )
        return f"{problem}: {remedy.format(function)}"
    embeds = function in ("embed", "aembed")
    advice = (_OF_EMBED if embeds else {}).get(name) or _PARAMETERS.get(name.lower())
    if advice is not None and (not embeds or name in _OF_EMBED or re.split("[ =]", advice)[1] in known):
        return f"{problem}: {advice}"
    if name in _OF_BATCHES and not function.endswith("_many") and not embeds:
        return f"{problem}: call_many() and iter_many() have it"
    if name == "fallback":
        return f"{problem}: call(), stream() and call_many() have it"
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    if name in _SETTINGS:
        return f"{problem}: it is a setting of the client; write Client({name}=...)"
    return f"{problem}{guess} (a parameter of one provider's API goes into extra_body=)"


def describe_setting(module: str, name: str, known: Collection[str]) -> str:
    """The message for a setting that a program gives a module, as it does with other libraries."""
    own = f"write Client({name}=...), or {name}=... in a call" if name in known else "it has no such setting"
    remedy = _PARAMETERS.get(name.lower(), f"write Client({name}=...)" if name in _SETTINGS else own)
    return f"nothing reads an attribute {name!r} of the module {module!r}: {remedy}"


_PORTS = {
    "lmstudio": 1234, "lm-studio": 1234, "llamacpp": 8080, "llama.cpp": 8080, "llama_cpp": 8080,
    "llama-cpp": 8080, "localai": 8080, "tgi": 8080, "sglang": 30000, "localhost": 8000,
}  # fmt: skip
"""Servers on the user's machine that litellm does not know, each with its usual port."""

CLOUDS_OF_MAKERS = {
    ("openai", "azure"): "azure", ("openai", "bedrock"): "bedrock_mantle", ("anthropic", "azure"): "azure_ai",
    ("anthropic", "bedrock"): "bedrock", ("anthropic", "vertex"): "vertex_ai",
    ("google", "vertex"): "vertex_ai", ("mistral", "azure"): "azure_ai",
}  # fmt: skip
"""Maker and cloud, as inspect_ai writes them, and the provider here."""


def problem_with(model: str, routes: Mapping[str, tuple[str, ...]]) -> str | None:
    """The message for a model whose prefix is another tool's; None where litellm may know the prefix.

    `routes` are the other names of each provider. pydantic-ai writes a colon behind the prefix.
    """
    has_colon = ":" in model.partition("/")[0]
    prefix, mark, rest = model.partition(":" if has_colon else "/")
    name, problem = prefix.lower(), f"model: there is no provider {prefix!r}"
    if not mark:
        return None
    for provider, others in routes.items():
        if name == provider or name in others:
            return f"{'model:' if has_colon else f'{problem};'} write '{provider}/{rest}'"
    if name in _PORTS:
        return f"{problem}; write 'local/{rest}' and base_url='http://localhost:{_PORTS[name]}/v1'"
    return None
