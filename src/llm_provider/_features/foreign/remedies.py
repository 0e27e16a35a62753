"""What to write instead of what other libraries take: parameters, attributes, models, and wrong values."""

import difflib
import functools
import inspect
import re
from collections.abc import Collection, Mapping, Sequence

from ..._core.json_values import cite, plain_number


@functools.cache
def _read_table() -> Mapping[str, Mapping[str, str]]:
    """Class, module or function → name that others have for what it has → what to write."""
    # Only a program that is written for another library needs it.
    import csv
    from pathlib import Path

    tables: dict[str, dict[str, str]] = {}
    text = Path(__file__).with_name("foreign_names.csv").read_text(encoding="utf-8")
    for owners, remedy, names in list(csv.reader(text.splitlines()))[1:]:
        for owner in owners.split():
            tables[owner] = dict.fromkeys(names.split(), remedy) | tables.get(owner, {})
    return tables


def remedies_of(owner: str) -> Mapping[str, str]:
    """What to write, by the names that others have; empty in a process that may open no more files."""
    try:
        return _read_table().get(owner, {})
    except OSError:
        return {}


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

_OF_BATCHES = (
    "max_concurrent", "max_errors", "progress", "delivery", "resend", "batch_size", "rows", "on_error",
)  # fmt: skip
_SETTINGS = frozenset(
    {"cache_dir", "cache_finish_reasons", "max_concurrent", "keys", "prices", "max_response_bytes",
     "on_result", "rate_control", "transport", "ledger", "show_estimate_above", "env_file", "cache_shared",
     "deployments", "telemetry", "log_content", "show_waits", "hosts", "limits"}
)  # fmt: skip


def describe_unexpected(function: str, name: str, known: Collection[str]) -> str:
    """The message for a parameter that a function does not have. `known` are the names of its parameters."""
    problem = f"{function}() got an unexpected parameter {name!r}"
    if name.lower() in _INPUTS:
        remedies = (text for ends, text in _INPUTS_OF.items() if function.endswith(tuple(ends.split()) or ""))
        return f"{problem}: {next(remedies).format(function)}"
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
    if re.match(r"(\w+\.)?(anthropic|openai|amazon|meta|mistral|cohere|qwen)\.", model):
        return f"model: write 'bedrock/{model}'"
    if not mark:
        return None
    for provider, others in routes.items():
        if name == provider or name in others:
            return f"{'model:' if has_colon else f'{problem};'} write '{provider}/{rest}'"
    if name in _PORTS:
        return f"{problem}; write 'local/{rest}' and base_url='http://localhost:{_PORTS[name]}/v1'"
    return None


def number_remedy(name: str, value: object, low: float, high: float, *, whole: bool) -> str:
    """For a value that should be a number between two bounds."""
    try:
        number = float(value) if isinstance(value, str) else plain_number(value)
    except ValueError:
        return ""
    if number is None or not low <= number <= high or (whole and number != int(number)):
        return ""
    quotes = ", without quotes" if isinstance(value, str) else ""
    return f": write {name}={int(number) if whole else value}{quotes}"


def text_remedy(name: str, value: object) -> str:
    """For a value that should be a text with some characters in it.

    >>> text_remedy("user", "")
    ': leave user out, or give some text'
    """
    if isinstance(value, str):
        return f": leave {name} out, or give some text"
    if name == "api_key":
        remedy = ": several keys go into Client(keys={'openai': ['sk-...', 'sk-...']})"
        return remedy if _is_list(value) else ""
    if isinstance(value, (bytes, bytearray)):
        return f": write {name}=value.decode()"
    if name == "base_url" and _is_list(value):
        return ": several equal servers are a host, Client(hosts=[Host('lab', ['http://...', ...])])"
    if name == "system":
        content = value.get("content") if hasattr(value, "get") else None
        if isinstance(content, str):
            return f": write system={cite(content)}"
        return ": join the texts to one" if _is_list(value) else ""
    return f": write {name}={str(value)!r}" if plain_number(value) is not None else ""


def word_remedy(name: str, value: object, known: Sequence[str]) -> str:
    """For a value that should be one of some words."""
    if not isinstance(value, str):
        return f": write one of these words in quotes, as in {name}={known[0]!r}"
    plain = value.strip().lower().replace(" ", "_").replace("-", "_")
    near = difflib.get_close_matches(plain, known, n=1, cutoff=0.6)
    return f": write {name}={near[0]!r}" if near else ""


def prompt_remedy(prompt: object) -> str:
    """For a prompt that is neither text nor a list."""
    kind = type(prompt).__name__
    if isinstance(prompt, Mapping):
        return ": write [message]" if "role" in prompt else ": write json.dumps(value) to send it as text"
    conversation = "[{'role': 'assistant', 'content': response.text}, ...]"
    is_column = any(hasattr(prompt, name) for name in ("columns", "iloc", "to_list"))
    several = "list(value) for one conversation, or call_many(model, value) for several prompts"
    return _first(
        (kind == "Response", f": write response.text, or {conversation}"),
        (inspect.isawaitable(prompt), f": the {kind} was not awaited; write await before it"),
        (isinstance(prompt, (set, frozenset)), ", which has no order: write a list"),
        (is_column, ": a column of prompts goes to call_many(model, df['question'])"),
        (isinstance(prompt, type), ": give an instance of it as text, such as str(value)"),
        (callable(prompt), ": call it, and give the text that it returns"),
        (hasattr(prompt, "model_dump"), ": write [value]"),
        (hasattr(prompt, "__iter__"), f": write {several}"),
        (prompt is None, ": write the prompt, such as 'What is 2+2?'"),
        (True, ": write str(value) to send it as text"),
    )


_ROLES = {
    "human": "user", "customer": "user", "ai": "assistant", "bot": "assistant", "model": "assistant",
    "chatbot": "assistant", "function": "tool", "ipython": "tool", "instruction": "system",
}  # fmt: skip
"""Roles of other libraries, and the role to write."""


def role_remedy(role: object, known: Sequence[str]) -> str:
    """For a message with a role that is none."""
    if not isinstance(role, str):
        return ": write 'role': 'user'"
    plain = role.strip().lower()
    near = [_ROLES[plain]] if plain in _ROLES else difflib.get_close_matches(plain, known, n=1)
    return f": write 'role': {near[0]!r}" if near else ""


def content_remedy(message: Mapping[str, object]) -> str:
    """For a message whose content is missing, or is neither text nor a list of parts."""
    content = message.get("content")
    if content is None:
        others = [name for name in message if name in ("parts", "text", "message", "contents", "value")]
        return f", instead of {others[0]!r}" if others else ""
    is_part, array = isinstance(content, Mapping) and "type" in content, "PIL.Image.fromarray(array)"
    return _first(
        (is_part, ": write [part], a list with this part"),
        (isinstance(content, Mapping), ": write json.dumps(value)"),
        (isinstance(content, (set, frozenset)), ", which has no order: write a list"),
        (
            hasattr(content, "tolist") or hasattr(content, "to_list"),
            f": write {array} for an image, or str(array.tolist()) as text",
        ),
        (True, ": write str(value) to send it as text"),
    )


def part_remedy(content: object) -> str:
    """For a value in a list of contents that is no content."""
    if isinstance(content, tuple) and len(content) == 2 and isinstance(content[0], str):
        return f": write {{'role': {content[0]!r}, 'content': ...}}"
    return _first(
        (_is_list(content), ": several conversations go to call_many(model, [...])"),
        (content is None, ": leave it out"),
        (inspect.isawaitable(content), ": it was not awaited; write await before it"),
        (plain_number(content) is not None, ": write str(value) to send it as text"),
    )


def model_remedy(model: object) -> str:
    """For a value that is not the name of a model."""
    if not isinstance(model, str):
        is_several = isinstance(model, (list, tuple, set))
        return "; several models go to call_many(models, inputs)" if is_several else ""
    plain = model.strip()
    has_ends = bool(plain) and plain != model and " " not in plain
    return _first(
        (has_ends, f"; write {plain!r}, without white space at its ends"),
        (model.startswith(("http:", "https:")), "; a server goes into base_url="),
        (" " in model, "; the model is the first argument, and the prompt is the second"),
    )


def _first(*remedies: tuple[bool, str]) -> str:
    """The text of the first remedy that applies; empty if none does."""
    return next((text for applies, text in remedies if applies), "")


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))
