"""Names that other libraries and the providers' APIs use, and the parameter of this library for each.

It is imported to write the message for an unknown parameter.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection

_PARAMETERS = {
    "stream": "call stream() or astream() instead: they yield the answer as it is written",
    "stream_options": "stream() and astream() always report the usage; leave it out",
    "api_base": "write base_url='https://...'",
    "api_url": "write base_url='https://...'",
    "host": "write base_url='https://...'",
    "endpoint_url": "write base_url='https://...'",
    "key": "write api_key='...'",
    "token": "write api_key='...'",
    "openai_api_key": "write api_key='...'",
    "anthropic_api_key": "write api_key='...'",
    "google_api_key": "write api_key='...'",
    "engine": "the model is the first argument: call('gpt-6.1-sol', ...)",
    "deployment_id": "the model is the first argument: call('azure/my-deployment', ...)",
    "model_name": "the model is the first argument: call('gpt-6.1-sol', ...)",
    "prompt": "the prompt is the second argument: call(model, 'text')",
    "contents": "the prompt is the second argument: call(model, 'text') or a list of messages",
    "functions": "write tools=[{'type': 'function', 'function': {...}}, ...]",
    "function_call": "write tool_choice='auto', or {'type': 'function', 'function': {'name': ...}}",
    "max_completion_tokens": "write max_tokens=...: it is sent under the name that the model expects",
    "max_output_tokens": "write max_tokens=...: it is sent under the name that the model expects",
    "max_new_tokens": "write max_tokens=...: it is sent under the name that the model expects",
    "max_tokens_to_sample": "write max_tokens=...: it is sent under the name that the model expects",
    "num_predict": "write max_tokens=...: it is sent under the name that the model expects",
    "stop_sequences": "write stop=['...']",
    "stop_words": "write stop=['...']",
    "random_seed": "write seed=...",
    "num_samples": "write n=...",
    "candidate_count": "write n=...",
    "best_of": "write n=... and choose among response.texts",
    "instructions": "write system='...'",
    "system_prompt": "write system='...'",
    "system_instruction": "write system='...'",
    "developer": "write system='...', or a message with the role 'developer'",
    "generation_config": "write its fields as parameters: temperature=, top_k=, max_tokens=, stop=, n= ...",
    "config": "write its fields as parameters: temperature=, top_k=, max_tokens=, stop=, n= ...",
    "response_mime_type": "write response_format={'type': 'json_object'}",
    "response_schema": "write response_format= with a pydantic model or {'type': 'json_schema', ...}",
    "response_model": "write response_format= with a pydantic model",
    "output_format": "write response_format= with a pydantic model or {'type': 'json_schema', ...}",
    "text_format": "write response_format= with a pydantic model or {'type': 'json_schema', ...}",
    "output_config": "write reasoning_effort='...' for its effort, response_format= for its format",
    "thinking": "write reasoning_effort='low' to 'max' or 'none', or thinking_budget=... tokens",
    "thinking_config": "write reasoning_effort='low' to 'max', or thinking_budget=... tokens",
    "thinking_level": "write reasoning_effort='low', 'medium' or 'high'",
    "budget_tokens": "write thinking_budget=...",
    "reasoning": "write reasoning_effort='low' to 'max', and reasoning_summary='auto' for a summary",
    "effort": "write reasoning_effort='low' to 'max'",
    "speed": "write service_tier='fast' or 'priority'",
    "safety_identifier": "write user='...'",
    "user_id": "write user='...'",
    "tool_config": "write tool_choice= and allowed_tools=['name']",
    "allowed_function_names": "write allowed_tools=['name']",
    "disable_parallel_tool_use": "write parallel_tool_calls=False",
    "response_modalities": "write modalities=['text', 'image']",
    "request_timeout": "write timeout=... seconds for an attempt, or deadline=... for the whole call",
    "http_options": "write timeout=, base_url= and extra_headers=",
    "num_retries": "write max_retries=...",
    "retries": "write max_retries=...",
    "headers": "write extra_headers={'name': 'text'}",
    "default_headers": "write extra_headers={'name': 'text'}",
    "caching": "write cache='use' or cache='off'",
    "use_cache": "write cache='use' or cache='off'",
    "drop_params": "write unsupported='drop'",
    "max_budget": "write budget=... USD",
    "max_workers": "write max_concurrent=...",
    "concurrency": "write max_concurrent=...",
    "show_progress": "write progress=True",
}
"""Name → what to write instead."""

_OF_BATCHES = ("max_concurrent", "progress")
_SETTINGS = frozenset(
    {"cache_dir", "cache_finish_reasons", "max_concurrent", "keys", "prices", "max_response_bytes",
     "on_result", "rate_control", "transport", "ledger", "show_estimate_above",
     "telemetry", "log_content", "show_waits"}
)  # fmt: skip


def unexpected(function: str, name: str, known: Collection[str]) -> str:
    """The message for a parameter that a function does not have.

    Args:
        function: The name of the function that the user called.
        name: The parameter.
        known: The names of the function's parameters.

    >>> unexpected("call", "stop_sequences", ["stop"])
    "call() got an unexpected parameter 'stop_sequences': write stop=['...']"
    """
    problem = f"{function}() got an unexpected parameter {name!r}"
    remedy = _PARAMETERS.get(name.lower() if isinstance(name, str) else name)
    if remedy is not None and (function != "embed" or re.split("[ =]", remedy)[1] in known):
        return f"{problem}: {remedy}"
    if name in _OF_BATCHES and function == "call":
        return f"{problem}: call_many() and iter_many() have it"
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    if name in _SETTINGS:
        return f"{problem}: it is a setting of the client; write Client({name}=...)"
    return f"{problem}{guess} (a parameter of one provider's API goes into extra_body=)"
