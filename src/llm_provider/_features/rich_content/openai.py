"""Citations, images, audio and server tools in replies of OpenAI's formats and of compatible hosts. Pure.

The sources are the types of the openai SDK 3.52, and the fields of hosts: OpenRouter's images, Perplexity's
`search_results`, xAI's `citations`, Groq's `executed_tools`, Mistral's references, and litellm's
`provider_specific_fields`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..._core.formats.openai_responses.decode import is_call
from ..._core.formats.shared.replies import dicts, part, text
from ..._core.json_values import JSONMapping, JSONObject
from .anthropic import citation_of
from .values import (
    Citation,
    GeneratedAudio,
    GeneratedImage,
    PromptCacheMiss,
    ServerToolCall,
    audio_of,
    cite,
    decode_base64,
    image_at,
    number,
)

_ENDING = "_call"

_RESULTS = ("results", "outputs", "output", "result", "error")


def citations(reply: JSONMapping) -> list[Citation]:
    """The citations of a completion, or of all texts of a response."""
    if "output" in reply:
        result, offset = [], 0
        for entry in _parts(reply):
            result += [_annotation(annotation, offset) for annotation in dicts(entry.get("annotations"))]
            field = {"output_text": "text", "output_audio": "transcript"}.get(str(entry.get("type")), "")
            offset += len(text(entry, field) or "")
        return result
    message = _message(reply)
    notes = dicts(message.get("annotations"))
    cited = [note for note in notes if str(note.get("type", "url_citation")).endswith("citation")]
    result = list(map(_annotation, cited)) or [*_references(message), *_claudes(message)]
    return result or list(_pages_of(reply))


def token_ids(reply: JSONMapping) -> tuple[int, ...] | None:
    """The ids of a completion's tokens: of vLLM and Fireworks, Together, or Groq."""
    choice = next(iter(dicts(reply.get("choices"))), {})
    of_groq = part(part(reply, "x_groq"), "debug").get("output_token_ids")
    return _ids(choice.get("token_ids"), part(choice, "logprobs").get("token_ids"), of_groq)


def prompt_token_ids(reply: JSONMapping) -> tuple[int, ...] | None:
    """The ids of the prompt's tokens, of the same servers."""
    prompt = next(iter(dicts(reply.get("prompt"))), {})
    of_groq = part(part(reply, "x_groq"), "debug").get("input_token_ids")
    return _ids(reply.get("prompt_token_ids"), part(prompt, "logprobs").get("token_ids"), of_groq)


def _ids(*candidates: Any) -> tuple[int, ...] | None:
    for value in candidates:
        if isinstance(value, list) and value and all(type(each) is int for each in value):
            return tuple(value)
    return None


def _message(reply: JSONMapping) -> JSONMapping:
    choices = dicts(reply.get("choices"))
    return part(choices[0], "message") if choices else {}


def _parts(reply: JSONMapping) -> list[JSONObject]:
    """The parts of all messages of a response."""
    return [
        entry
        for item in dicts(reply.get("output"))
        if item.get("type") == "message"
        for entry in dicts(item.get("content"))
    ]


def _annotation(entry: JSONMapping, offset: int = 0) -> Citation:
    # Chat Completions nests what Responses has in one level.
    inner = part(entry, str(entry.get("type"))) or entry
    start, end = number(inner, "start_index", offset), number(inner, "end_index", offset)
    fields = {"title": "title filename", "quote": "content quote", "file_id": "file_id"}
    return replace(cite(inner, start, end, url="url", **fields), raw=entry)


def _references(message: JSONMapping) -> Iterator[Citation]:
    """Mistral's references, which stand in the content at the end of the text that they support."""
    offset = 0
    for entry in dicts(message.get("content")):
        if entry.get("type") == "reference":
            for index in entry.get("reference_ids") or ():
                known = index if type(index) is int else None
                yield Citation(end=offset, document_index=known, raw=entry)
        elif entry.get("type") == "text":
            offset += len(text(entry, "text") or "")


def _claudes(message: JSONMapping) -> Iterator[Citation]:
    """Claude's citations as litellm returns them: a list for each text."""
    groups = part(message, "provider_specific_fields").get("citations")
    content = text(message, "content") or ""
    for group in groups if isinstance(groups, list) else ():
        for entry in dicts(group):
            said = text(entry, "supported_text")
            start = content.find(said) if said else -1
            known = (start, start + len(said)) if said and start >= 0 else (None, None)
            yield citation_of(entry, *known)


def _pages_of(reply: JSONMapping) -> Iterator[Citation]:
    """The pages that a host found for the whole answer."""
    pages = dicts(reply.get("search_results"))
    for page in pages:
        yield cite(page, url="url", title="title", quote="snippet content")
    addresses = reply.get("citations")
    for address in addresses if isinstance(addresses, list) and not pages else ():
        if isinstance(address, str):
            yield Citation(url=address)


def images(reply: JSONMapping) -> list[GeneratedImage]:
    """The images of a completion's message, or those that the tool of a response made."""
    result = []
    for item in dicts(reply.get("output")):
        data = decode_base64(item.get("result")) if item.get("type") == "image_generation_call" else b""
        if data:
            kind = f"image/{text(item, 'output_format') or 'png'}"
            result.append(GeneratedImage(data=data, media_type=kind))
    message = _message(reply)
    for entry in (*dicts(message.get("images")), *dicts(message.get("content"))):
        image = entry.get("image_url")
        made = image_at(image.get("url") if isinstance(image, dict) else image)
        if made is not None:
            result.append(made)
    return result


def audio(reply: JSONMapping) -> GeneratedAudio | None:
    """The speech of a message. The reply does not say its format, which its first bytes show."""
    spoken = _message(reply).get("audio")
    parts = [entry for entry in _parts(reply) if entry.get("type") == "output_audio"]
    if isinstance(spoken, dict):
        parts = [spoken]
    data = b"".join(decode_base64(entry.get("data")) for entry in parts)
    return audio_of(data, "".join(text(entry, "transcript") or "" for entry in parts)) if parts else None


def server_tool_calls(reply: JSONMapping) -> list[ServerToolCall]:
    """The calls of tools that OpenAI or a host ran."""
    items = dicts(reply.get("output"))
    outputs = {text(item, "call_id"): item for item in items if str(item.get("type")).endswith("_output")}
    own = (item for item in items if str(item.get("type")).endswith(_ENDING) and not is_call(item))
    calls = [_item(item, outputs) for item in own]
    for tool in dicts(_message(reply).get("executed_tools")):
        result, name = tool.get("output"), text(tool, "type", "name") or ""
        result = tool.get("search_results") or tool.get("code_results") if result is None else result
        calls.append(ServerToolCall(name=name, arguments=_value(tool.get("arguments")), result=result))
    return calls


def _item(item: JSONMapping, outputs: Mapping[str | None, JSONMapping]) -> ServerToolCall:
    """An item of a response. Its fields are named after its type, and each tool has its own."""
    kind = str(item["type"])
    arguments = item.get("arguments", item.get("action"))
    if arguments is None:
        known = {*_RESULTS, "id", "type", "status", "name", "call_id", "action"}
        arguments = {name: value for name, value in item.items() if name not in known and value is not None}
    answered = outputs.get(text(item, "call_id"), {}).get("output")
    result = next((item[name] for name in _RESULTS if item.get(name) is not None), answered)
    if kind == "image_generation_call":
        # The image, which `images` has.
        result = None
    return ServerToolCall(
        name=text(item, "name") or kind.removesuffix(_ENDING),
        arguments=_value(arguments),
        result=result,
        id=text(item, "id", "call_id"),
    )


def _value(written: Any) -> Any:
    """Arguments that are written as JSON as values; other texts stay."""
    try:
        return json.loads(written) if isinstance(written, str) else written
    except (ValueError, RecursionError):
        return written


def prompt_cache_miss(reply: JSONMapping) -> PromptCacheMiss | None:
    """The diagnostics of Responses; a miss has a reason, and the other kinds are reasons themselves."""
    diagnostics = part(reply, "prompt_cache_diagnostics")
    reason = text(diagnostics, "reason", "type")
    if reason in (None, "cache_hit"):
        return None
    return PromptCacheMiss(reason=reason, missed_tokens=number(diagnostics, "cache_missed_tokens"))
