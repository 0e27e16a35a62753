"""Names of parameters and prefixes of models that other tools use, for messages about unknown ones."""

import difflib
import re
from collections.abc import Collection, Mapping

from .attributes import remedies_of

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
    of_embed = remedies_of("embed") if embeds else {}
    advice = of_embed.get(name) or remedies_of("call").get(name.lower())
    if advice is not None and (not embeds or name in of_embed or re.split("[ =]", advice)[1] in known):
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
    remedy = remedies_of("call").get(name.lower(), f"write Client({name}=...)" if name in _SETTINGS else own)
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
