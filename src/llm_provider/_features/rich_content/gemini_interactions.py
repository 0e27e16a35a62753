"""Citations, images, audio and server tools in an interaction of Gemini's. Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace

from ..._core.formats.gemini_interactions.decode import contents, output_steps
from ..._core.formats.shared.replies import dicts, part, text
from ..._core.json_values import JSONMapping, JSONObject
from .gemini import join_recordings
from .values import Citation, GeneratedAudio, GeneratedImage, ServerToolCall, cite, decode_base64, number


def citations(reply: JSONMapping) -> list[Citation]:
    """The sources of the text, by the annotations of its pieces."""
    sources, said = list[Citation](), 0
    for content in _contents(reply):
        words = text(content, "text") or ""
        for note in dicts(content.get("annotations")):
            if not str(note.get("type")).endswith("_citation"):
                continue
            source = cite(
                note, url="url document_uri", file_id="file_name media_id", title="title name file_name"
            )
            if (end := number(note, "end_index")) is not None:
                encoded, begin = words.encode("utf-8", "surrogatepass"), number(note, "start_index") or 0
                # Google counts bytes.
                first, last = (len(encoded[:index].decode("utf-8", "ignore")) for index in (begin, end))
                source = replace(source, start=said + first, end=said + last)
            sources.append(source)
        said += len(words)
    return sources


def _contents(reply: JSONMapping) -> list[JSONObject]:
    return contents(output_steps(reply))


def images(reply: JSONMapping) -> list[GeneratedImage]:
    """The images in the answer: their bytes, or the addresses of files that Google keeps."""
    result = []
    for content in _contents(reply):
        data, url = decode_base64(content.get("data")), text(content, "uri")
        if content.get("type") == "image" and (data or url):
            kind = (text(content, "mime_type") or "").lower()
            result.append(GeneratedImage(data=data, media_type=kind, url=url))
    return result


def audio(reply: JSONMapping) -> GeneratedAudio | None:
    """The speech, which a stream has in several pieces."""
    pieces = [content for content in _contents(reply) if content.get("type") == "audio"]
    files = [((text(piece, "mime_type") or "").lower(), decode_base64(piece.get("data"))) for piece in pieces]
    spoken = join_recordings([(kind or "audio/", data) for kind, data in files if data])
    rates = [rate for piece in pieces for name in ("sample_rate", "rate") if (rate := number(piece, name))]
    if spoken is None or spoken.sample_rate is None or not rates:
        return spoken
    return replace(spoken, sample_rate=rates[0])


def server_tool_calls(reply: JSONMapping) -> list[ServerToolCall]:
    """The steps that are calls of Google's own tools and of MCP servers, with their results."""
    return list(_tool_calls(output_steps(reply)))


def _tool_calls(steps: list[JSONObject]) -> Iterator[ServerToolCall]:
    results = [step for step in steps if str(step.get("type")).endswith("_result")]
    for step in steps:
        kind, identifier = str(step.get("type")), text(step, "id")
        if not kind.endswith("_call") or kind == "function_call":
            continue
        name = re.sub("(_tool)?_call$", "", kind)
        answers = [each.get("result") for each in results if each.get("call_id") == identifier]
        yield ServerToolCall(
            name=text(step, "name") or name,
            arguments=part(step, "arguments") or None,
            result=answers[0] if answers and identifier else None,
            id=identifier,
        )
