"""Citations and server tools in a message of Anthropic's format, which has no images and no audio. Pure."""

from dataclasses import replace

from ..._core.formats.shared.replies import dicts, part, text
from ..._core.json_values import JSONMapping
from .values import Citation, GeneratedAudio, GeneratedImage, PromptCacheMiss, ServerToolCall, cite, number

_CALLS = ("server_tool_use", "mcp_tool_use")


def citations(reply: JSONMapping) -> list[Citation]:
    """The citations of all text blocks. Each block is the text that its citations support."""
    result, offset = [], 0
    for block in dicts(reply.get("content")):
        said = text(block, "text") if block.get("type", "text") == "text" else None
        end = offset + len(said or "")
        result += [citation_of(entry, offset, end) for entry in dicts(block.get("citations"))]
        offset = end
    return result


def citation_of(entry: JSONMapping, start: int | None = None, end: int | None = None) -> Citation:
    """One citation of the text between two places."""
    fields = {"url": "url source", "title": "title document_title", "quote": "cited_text"}
    known = cite(entry, start, end, **fields, file_id="file_id")
    return replace(known, document_index=number(entry, "document_index"))


def images(reply: JSONMapping) -> list[GeneratedImage]:
    return []


def audio(reply: JSONMapping) -> GeneratedAudio | None:
    return None


def server_tool_calls(reply: JSONMapping) -> list[ServerToolCall]:
    """The calls of Anthropic's tools and of MCP servers, with their results."""
    blocks = dicts(reply.get("content"))
    answers = [block for block in blocks if str(block.get("type")).endswith("_tool_result")]
    results = {text(block, "tool_use_id"): block.get("content") for block in answers}
    calls = []
    for block in blocks:
        if block.get("type") in _CALLS:
            name, key, arguments = text(block, "name") or "", text(block, "id"), block.get("input")
            calls.append(ServerToolCall(name=name, arguments=arguments, result=results.get(key), id=key))
    return calls


def prompt_cache_miss(reply: JSONMapping) -> PromptCacheMiss | None:
    """The reason in the diagnostics. None is also a comparison that had not ended with the answer."""
    cause = part(part(reply, "diagnostics"), "cache_miss_reason")
    reason = text(cause, "type")
    return (
        PromptCacheMiss(reason=reason, missed_tokens=number(cause, "cache_missed_input_tokens"))
        if reason
        else None
    )
