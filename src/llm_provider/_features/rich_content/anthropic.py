"""Citations and server tools in a message of Anthropic's format, which has no images and no audio. Pure."""

from ..._core.formats.shared.replies import dicts, text
from ..._core.json_values import JSONMapping
from .values import Citation, GeneratedAudio, GeneratedImage, ServerToolCall, number

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
    return Citation(
        start=start,
        end=end,
        url=text(entry, "url", "source"),
        title=text(entry, "title", "document_title"),
        quote=text(entry, "cited_text"),
        document_index=number(entry, "document_index"),
        file_id=text(entry, "file_id"),
        raw=entry,
    )


def images(reply: JSONMapping) -> list[GeneratedImage]:
    return []


def audio(reply: JSONMapping) -> GeneratedAudio | None:
    return None


def server_tool_calls(reply: JSONMapping) -> list[ServerToolCall]:
    """The calls of Anthropic's tools and of MCP servers, with their results."""
    blocks = dicts(reply.get("content"))
    results = {
        text(block, "tool_use_id"): block.get("content")
        for block in blocks
        if str(block.get("type")).endswith("_tool_result")
    }
    return [
        ServerToolCall(
            name=text(block, "name") or "",
            arguments=block.get("input"),
            result=results.get(text(block, "id")),
            id=text(block, "id"),
        )
        for block in blocks
        if block.get("type") in _CALLS
    ]
