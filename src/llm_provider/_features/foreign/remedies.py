"""The end of the message for a wrong value: what to write instead, where the value suggests it."""

import difflib
import inspect
from collections.abc import Mapping, Sequence

from ..._core.json_values import cite, plain_number


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
        return (
            ": several keys go into Client(keys={'openai': ['sk-...', 'sk-...']})" if _is_list(value) else ""
        )
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
    if kind == "Response":
        return ": write response.text, or [{'role': 'assistant', 'content': response.text}, ...]"
    if inspect.isawaitable(prompt):
        return f": the {kind} was not awaited; write await before it"
    if isinstance(prompt, (set, frozenset)):
        return ", which has no order: write a list"
    if hasattr(prompt, "columns") or hasattr(prompt, "iloc") or hasattr(prompt, "to_list"):
        return ": a column of prompts goes to call_many(model, df['question'])"
    if isinstance(prompt, type):
        return ": give an instance of it as text, such as str(value)"
    if callable(prompt):
        return ": call it, and give the text that it returns"
    if hasattr(prompt, "__iter__"):
        return ": write list(value) for one conversation, or call_many(model, value) for several prompts"
    if prompt is None:
        return ": write the prompt, such as 'What is 2+2?'"
    return ": write str(value) to send it as text"


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
        other = next(
            (name for name in message if name in ("parts", "text", "message", "contents", "value")), None
        )
        return f", instead of {other!r}" if other else ""
    if isinstance(content, Mapping):
        return ": write [part], a list with this part" if "type" in content else ": write json.dumps(value)"
    if isinstance(content, (set, frozenset)):
        return ", which has no order: write a list"
    if hasattr(content, "tolist") or hasattr(content, "to_list"):
        return ": write PIL.Image.fromarray(array) for an image, or str(array.tolist()) as text"
    return ": write str(value) to send it as text"


def part_remedy(content: object) -> str:
    """For a value in a list of contents that is no content."""
    if isinstance(content, tuple) and len(content) == 2 and isinstance(content[0], str):
        return f": write {{'role': {content[0]!r}, 'content': ...}}"
    if _is_list(content):
        return ": several conversations go to call_many(model, [...])"
    if content is None:
        return ": leave it out"
    if inspect.isawaitable(content):
        return ": it was not awaited; write await before it"
    return ": write str(value) to send it as text" if plain_number(content) is not None else ""


def model_remedy(model: object) -> str:
    """For a value that is not the name of a model."""
    if not isinstance(model, str):
        return (
            "; several models go to call_many(models, inputs)"
            if isinstance(model, (list, tuple, set))
            else ""
        )
    plain = model.strip()
    if plain and plain != model and " " not in plain:
        return f"; write {plain!r}, without white space at its ends"
    if model.startswith(("http:", "https:")):
        return "; a server goes into base_url="
    if " " in model:
        return "; the model is the first argument, and the prompt is the second"
    return ""


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))
