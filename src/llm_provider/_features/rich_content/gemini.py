"""Citations, images, audio and server tools in a `GenerateContentResponse`. Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace

from ..._core.formats.gemini.decode import is_result, open_calls
from ..._core.formats.shared.replies import dicts, part, text
from ..._core.json_values import JSONMapping, JSONObject
from .values import (
    Citation,
    GeneratedAudio,
    GeneratedImage,
    ServerToolCall,
    audio_of,
    cite,
    decode_base64,
    number,
)

_RATE = re.compile(r"rate=(\d+)")


def _candidate(reply: JSONMapping) -> JSONMapping:
    candidates = dicts(reply.get("candidates"))
    return min(candidates, key=lambda candidate: number(candidate, "index") or 0) if candidates else {}


def _parts(reply: JSONMapping) -> list[JSONObject]:
    """The parts of the answer, without its thoughts."""
    entries = dicts(part(_candidate(reply), "content").get("parts"))
    return [entry for entry in entries if not entry.get("thought")]


def citations(reply: JSONMapping) -> list[Citation]:
    """The sources that support segments of the text, sources of the whole answer, and recited sources."""
    candidate = _candidate(reply)
    said = "".join(text(entry, "text") or "" for entry in _parts(reply))
    return [*_read_grounding(part(candidate, "groundingMetadata"), said), *_read_recitations(candidate, said)]


def _read_grounding(metadata: JSONMapping, said: str) -> Iterator[Citation]:
    chunks = metadata.get("groundingChunks")
    sources = chunks if isinstance(chunks, list) else []
    supports = dicts(metadata.get("groundingSupports"))
    for support in supports:
        start, end = _span(part(support, "segment"), said)
        numbers = support.get("groundingChunkIndices")
        for index in numbers if isinstance(numbers, list) else ():
            if type(index) is int and 0 <= index < len(sources) and isinstance(sources[index], dict):
                yield _source(sources[index], start, end)
    for source in dicts(sources) if not supports else ():
        yield _source(source, None, None)


def _span(segment: JSONMapping, said: str) -> tuple[int | None, int | None]:
    """The place of a segment in characters. Gemini counts bytes, within one part of the answer."""
    encoded = said.encode("utf-8", "surrogatepass")
    start, end = number(segment, "startIndex") or 0, number(segment, "endIndex")
    words = text(segment, "text")
    if end is not None:
        segment_text = encoded[start:end].decode("utf-8", "ignore")
        if words is None or segment_text == words:
            first = len(encoded[:start].decode("utf-8", "ignore"))
            return first, first + len(segment_text)
    index = said.find(words) if words else -1
    return (index, index + len(words)) if words and index >= 0 else (None, None)


def _source(chunk: JSONMapping, start: int | None, end: int | None) -> Citation:
    """A chunk, whose one field tells the kind of its source, such as `web` or `retrievedContext`."""
    inner = next((value for value in chunk.values() if isinstance(value, dict)), {})
    fields = {"url": "uri sourceUri imageUri", "file_id": "documentName fileSearchStore"}
    return replace(cite(inner, start, end, **fields, title="title", quote="text"), raw=chunk)


def _read_recitations(candidate: JSONMapping, said: str) -> Iterator[Citation]:
    metadata = part(candidate, "citationMetadata")
    for entry in dicts(metadata.get("citations") or metadata.get("citationSources")):
        yield cite(entry, *_span(entry, said), url="uri", title="title")


def images(reply: JSONMapping) -> list[GeneratedImage]:
    """The images among the parts: their bytes, or the addresses of files that Google keeps."""
    result = []
    for entry in _parts(reply):
        blob = part(entry, "inlineData") or part(entry, "fileData")
        kind = (text(blob, "mimeType") or "").lower()
        data, url = decode_base64(blob.get("data")), text(blob, "fileUri")
        if kind.startswith("image/") and (data or url):
            result.append(GeneratedImage(data=data, media_type=kind, url=url))
    return result


def audio(reply: JSONMapping) -> GeneratedAudio | None:
    """The speech, which a stream has in several parts."""
    blobs = [part(entry, "inlineData") for entry in _parts(reply)]
    files = [((text(blob, "mimeType") or "").lower(), decode_base64(blob.get("data"))) for blob in blobs]
    return join_recordings(files)


def join_recordings(files: list[tuple[str, bytes]]) -> GeneratedAudio | None:
    """The recordings among files with their types, as one; None if there is none."""
    recordings = [(kind, data) for kind, data in files if data and kind.startswith("audio/")]
    if not recordings:
        return None
    kind, data = recordings[0][0], b"".join(data for _, data in recordings)
    if kind.startswith(("audio/l16", "audio/pcm")):
        rate = _RATE.search(kind)
        return GeneratedAudio(data=data, format="pcm16", sample_rate=int(rate[1]) if rate else 24_000)
    return audio_of(data)


def server_tool_calls(reply: JSONMapping) -> list[ServerToolCall]:
    """Code that Google ran, functions of MCP servers, its searches, and the pages that it read."""
    calls, entries = [], _parts(reply)
    for_user = list(map(id, open_calls(entries)))
    for entry in entries:
        function, answer = entry.get("functionCall"), entry.get("functionResponse")
        if isinstance(function, dict) and id(entry) not in for_user:
            name, arguments = text(function, "name") or "function", function.get("args")
            calls.append(ServerToolCall(name=name, arguments=arguments, id=text(function, "id")))
        if isinstance(answer, dict):
            _answer_function(calls, answer)
        code, outcome = entry.get("executableCode"), entry.get("codeExecutionResult")
        call, response = entry.get("toolCall"), entry.get("toolResponse")
        if isinstance(code, dict):
            arguments = {name: value for name, value in code.items() if name != "id"}
            calls.append(ServerToolCall(name="code_execution", arguments=arguments, id=text(code, "id")))
        if isinstance(call, dict):
            name = (text(call, "toolType") or "tool").lower()
            calls.append(ServerToolCall(name=name, arguments=call.get("args"), id=text(call, "id")))
        for result in (outcome, part(response, "response") if isinstance(response, dict) else None):
            if isinstance(result, dict):
                _answer(calls, part(entry, "codeExecutionResult") or part(entry, "toolResponse"), result)
    candidate = _candidate(reply)
    metadata = part(candidate, "groundingMetadata")
    queries = metadata.get("webSearchQueries")
    if queries and not any("search" in call.name for call in calls):
        sources = metadata.get("groundingChunks")
        calls.append(ServerToolCall(name="google_search", arguments={"queries": queries}, result=sources))
    pages = dicts(part(candidate, "urlContextMetadata").get("urlMetadata"))
    if pages:
        urls = [page.get("retrievedUrl") for page in pages]
        calls.append(ServerToolCall(name="url_context", arguments={"urls": urls}, result=pages))
    return calls


def _answer_function(calls: list[ServerToolCall], response: JSONMapping) -> None:
    for index, call in enumerate(calls):
        if call.result is None and is_result(response, {"id": call.id, "name": call.name}):
            calls[index] = replace(call, result=response.get("response"))
            return


def _answer(calls: list[ServerToolCall], entry: JSONMapping, result: JSONMapping) -> None:
    """Add a result to its call: the one with its id, or the last one without a result."""
    identifier = text(entry, "id")
    for index in range(len(calls) - 1, -1, -1):
        call = calls[index]
        if call.result is None and (identifier is None or call.id in (None, identifier)):
            calls[index] = replace(call, result={name: each for name, each in result.items() if name != "id"})
            return
