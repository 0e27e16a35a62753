"""The providers' own tools, and messages in the words of Anthropic or of OpenAI's Responses API. Pure.

Each tool and message becomes one of Chat Completions. Every format but the owner's reads it in this form.
Anthropic's results of tools are parts of a user's message, and its calls parts of an assistant's: both become
messages and fields of their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._core.errors import APIResponseValidationError, RequestError
from ..._core.formats.shared import conversations
from ..._core.formats.shared.conversations import calls_of, name_calls, read_id
from ..._core.formats.shared.payload import refuse
from ..._core.formats.shared.replies import call_entry
from ..._core.json_values import JSONMapping
from ..._core.requests.request import Request
from ..._core.runtime.json_pieces import read_exactly, write_exactly
from ..._core.types.messages import Message

Part = JSONMapping

ANTHROPIC, OPENAI = "anthropic", "openai"

# Blocks of Anthropic's answers and of its beta features, from the types of the anthropic SDK 2.11.
_BLOCKS = frozenset(
    {"search_result", "redacted_thinking", "tool_use", "tool_result", "tool_reference",
     "tool_addition", "tool_removal", "container_upload", "compaction", "fallback", "browser_state",
     "mcp_tool_listing"}
)  # fmt: skip
_ENDINGS = ("_tool_use", "_tool_result")

_OF_RESPONSES = frozenset({"input_text", "output_text", "input_image", "input_file"})

_ONLY_IN_ANSWERS = ("annotations", "logprobs")


def is_anthropics(part: Part) -> bool:
    """Whether a content part is a block of Anthropic's, for which OpenAI has other words."""
    kind = str(part.get("type"))
    if kind == "thinking":
        # Mistral's thinking is a list.
        return isinstance(part.get("thinking"), str)
    return kind in _BLOCKS or kind.endswith(_ENDINGS) or (kind in ("image", "document") and "source" in part)


def in_chat_form(
    messages: Sequence[Message], provider: str, *, own: str = "", start: int = 0
) -> Iterator[tuple[int, Message]]:
    """The messages from `start` on, in the words of Chat Completions, each with its place in `messages`.

    The words of the provider `own`, "anthropic" or "openai" (Responses), stay. `RequestError` for the rest.
    """
    entries: list[tuple[int, Message]] = []
    for index in range(start, len(messages)):
        message = messages[index]
        if type(message.get("content")) is str and "provider_specific_fields" not in message:
            entries.append((index, message))
        else:
            translated = _translate(message, f"messages[{index}]", provider, own)
            entries += ((index, each) for each in translated)
    results = [message for _, message in entries if message["role"] == "tool"]
    if own == OPENAI and all(message["tool_call_id"] for message in results):
        # Responses takes them anywhere, if each call has one.
        calls = sum(len(calls_of(message)) for _, message in entries if message["role"] == "assistant")
        results = results if len(results) < calls else []
    return _behind_calls(entries) if results else iter(entries)


def _behind_calls(entries: Sequence[tuple[int, Message]]) -> Iterator[tuple[int, Message]]:
    """The messages with the results of an answer's calls directly behind it.

    A call that an answer holds twice is one call if it has one result.
    """
    moved: set[int] = set()
    for position, (index, message) in enumerate(entries):
        if position in moved:
            continue
        calls = calls_of(message) if message["role"] == "assistant" else ()
        results = _find_results(calls, entries, position + 1) if calls else []
        once = [call for number, call in enumerate(calls) if call not in calls[:number]]
        is_twice = len(results) == len(once) < len(calls)
        yield index, {**message, "tool_calls": once} if is_twice else message
        yield from (entries[result] for result in results)
        moved.update(results)


def _find_results(calls: Sequence[Any], entries: Sequence[tuple[int, Message]], start: int) -> list[int]:
    """The positions of the results of an answer's calls. A later answer takes the ids that it has as well.

    Results without ids come last where they are for calls that have some, so that they find what is left.
    """
    written = _ids(calls)
    known, positions, is_last = {*written, *name_calls(written)} - {""}, list[int](), True
    for position in range(start, len(entries)):
        message = entries[position][1]
        if len(positions) == len(calls):
            break
        if message["role"] == "assistant" and (later := calls_of(message)):
            known, is_last = known.difference(_ids(later)), False
        elif message["role"] == "tool":
            identifier = message["tool_call_id"]
            if identifier in known or (is_last and not identifier):
                positions.append(position)
    nameless = [position for position in positions if not entries[position][1]["tool_call_id"]]
    return sorted(positions, key=nameless.__contains__) if len(nameless) > written.count("") else positions


def _ids(calls: Sequence[Any]) -> list[str]:
    return [read_id(call.get("id")) if isinstance(call, Mapping) else "" for call in calls]


def _translate(message: Message, where: str, provider: str, own: str) -> Sequence[Message]:
    if "content" not in message:
        message = _with_content(message)
    if own != OPENAI:
        message = with_every_call(message)
    content = message.get("content")
    if not isinstance(content, (list, tuple)):
        return (message,)
    role = message["role"]
    if own != ANTHROPIC and role == "assistant" and any(map(is_anthropics, content)):
        return (_assistant(message, where, provider),)
    has_results = any(part.get("type") == "tool_result" for part in content)
    if has_results and (own != ANTHROPIC or role == "tool"):
        return list(_divide(message, where, provider, own))
    parts = _parts(content, where, provider, own)
    return (message,) if parts is content else ({**message, "content": parts},)


def _items_of(message: Message) -> list[Any]:
    items = conversations.own_content(message, OPENAI)
    return items if isinstance(items, list) and all(isinstance(item, dict) for item in items) else []


def _with_content(message: Message) -> Message:
    """An answer from its output items alone, with its text and its calls."""
    items = _items_of(message)
    if not items:
        return message
    # Imported here because most conversations have no such answer.
    from ..._core.formats.openai_responses.decode import message_of

    try:
        return {**message, **message_of(items)}
    except APIResponseValidationError as error:
        raise RequestError(f"messages has an item of OpenAI's that is not valid: {error.message}") from None


def with_every_call(message: Message) -> Message:
    """An answer of the Responses API whose calls are all functions, as others have no shell or patch."""
    items = _items_of(message)
    if not items:
        return message
    from ..._core.formats.openai_responses.decode import entry_of, open_calls, read_calls

    known = {call.get("id") for call in message.get("tool_calls") or () if isinstance(call, Mapping)}
    try:
        every = list(zip(open_calls(items), read_calls(items), strict=True))
    except APIResponseValidationError:
        return message
    # A call without an entry has no form in `tool_calls`. One whose entry is gone was edited out.
    calls = [(item, call) for item, call in every if entry_of(call) is None and call.id not in known]
    if not calls:
        return message
    entries = [call_entry(replace(call, arguments=_object(call.arguments))) for _, call in calls]
    # A call of the computer holds more than its actions, such as checks of its safety.
    sent = [item for item, call in calls if call.type != "computer_call"]
    rest = [item for item in items if not any(item is other for other in sent)]
    return {
        **message,
        "tool_calls": [*(message.get("tool_calls") or ()), *entries],
        "provider_specific_fields": {"provider": OPENAI, "content": rest},
    }


def _object(arguments: str) -> str:
    """The arguments of a call as the JSON of an object. Only the arguments of a function must be one."""
    try:
        value = read_exactly(arguments)
    except (ValueError, RecursionError):
        value = arguments
    return arguments if isinstance(value, dict) else write_exactly({"input": value}).decode()


def _assistant(message: Message, where: str, provider: str) -> Message:
    """An assistant's message as an answer of Anthropic's has it."""
    from ..._core.formats.anthropic.decode import kind_of, read_blocks

    blocks = [conversations.with_object(dict(part), provider) for part in message["content"]]
    try:
        text, _, calls = read_blocks(blocks)
    except APIResponseValidationError as error:
        raise RequestError(f"{where}.content: {error.message}") from None
    others = {name: value for name, value in message.items() if name not in ("content", "tool_calls")}
    entries = list(message.get("tool_calls") or ())
    known = [entry.get("id") for entry in entries if isinstance(entry, Mapping)]
    written = [block.get("id") for block in blocks if (block.get("type") or kind_of(block)) == "tool_use"]
    pairs = zip(calls, written, strict=True)
    entries += [{**call_entry(call), "id": name} for call, name in pairs if name not in known]
    return {
        "provider_specific_fields": {"provider": ANTHROPIC, "content": blocks},
        **others,
        "content": text or None,
        **({"tool_calls": entries} if entries else {}),
    }


def _divide(message: Message, where: str, provider: str, own: str) -> Iterator[Message]:
    """The results of tools in a user's message as messages of their own, and then the rest."""
    rest = []
    for position, part in enumerate(message["content"]):
        if part.get("type") != "tool_result":
            rest.append(part)
            continue
        path, content = f"{where}.content[{position}]", part.get("content") or ""
        result = {"role": "tool", "tool_call_id": read_id(part.get("tool_use_id")), "content": content}
        if not isinstance(content, str):
            result["content"] = _parts(content, path, provider, own)
        yield {**result, "is_error": True} if part.get("is_error") else result
    if rest:
        yield {**message, "content": _parts(rest, where, provider, own)}


def _parts(parts: Sequence[Part], where: str, provider: str, own: str) -> Sequence[Part]:
    """The parts in OpenAI's form; the same object if none had to be changed."""
    changed = {
        position: _part(part, f"{where}.content[{position}]", provider)
        for position, part in enumerate(parts)
        if _is_foreign(part, own)
    }
    return [changed.get(position, part) for position, part in enumerate(parts)] if changed else parts


def _is_foreign(part: Part, own: str) -> bool:
    if part.get("type") == "text":
        return "citations" in part and own != ANTHROPIC
    return (part.get("type") in _OF_RESPONSES and own != OPENAI) or (own != ANTHROPIC and is_anthropics(part))


def _part(part: Part, where: str, provider: str) -> Part:
    kind = part["type"]
    if kind == "text":
        if part["citations"]:
            conversations.warn_of("citations", provider)
        return {name: value for name, value in part.items() if name != "citations"}
    if kind in ("input_text", "output_text"):
        others = {name: value for name, value in part.items() if name not in _ONLY_IN_ANSWERS}
        return {**others, "type": "text"}
    if kind in _OF_RESPONSES:
        return _of_responses(part, where, provider)
    if kind in ("image", "document") and isinstance(part["source"], Mapping):
        return _of_source(part, part["source"], where, provider)
    # content_block_param.py of anthropic 2.11: blocks whose meaning is Anthropic's alone.
    raise _refuse(f"{where} has type {kind!r}", "send its text", provider)


def _of_responses(part: Part, where: str, provider: str) -> Part:
    """A file or an image of the Responses API."""
    if part["type"] == "input_image":
        if not isinstance(part.get("image_url"), str):
            # response_input_image_param.py of openai 2.54: the file is in an account of OpenAI's.
            raise _refuse(f"{where} has a 'file_id' of OpenAI's", "send the image itself", provider)
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if isinstance(part.get("file_data"), str):
        names = ("file_data", "filename")
        return {"type": "file", "file": {name: part[name] for name in names if part.get(name)}}
    if isinstance(part.get("file_url"), str):
        return {"type": "document_url", "document_url": part["file_url"]}
    # response_input_file_param.py of openai 2.54, as above.
    raise _refuse(f"{where} has a 'file_id' of OpenAI's", "send the file itself", provider)


def _of_source(part: Part, source: JSONMapping, where: str, provider: str) -> Part:
    """An image or a document of Anthropic's, whose content is in its source."""
    citations = part.get("citations")
    if isinstance(citations, Mapping) and citations.get("enabled"):
        conversations.warn_of("citations", provider)
    control = {"cache_control": part["cache_control"]} if part.get("cache_control") else {}
    kind, is_image, url = source.get("type"), part["type"] == "image", source.get("url")
    title = part.get("title") or "document.pdf"
    if kind == "base64":
        url = f"data:{source.get('media_type')};base64,{source.get('data')}"
        if not is_image:
            return {"type": "file", "file": {"filename": title, "file_data": url}, **control}
    if is_image and isinstance(url, str):
        return {"type": "image_url", "image_url": {"url": url}, **control}
    if kind == "url" and isinstance(url, str):
        return {"type": "document_url", "document_url": url, **control}
    text = source.get("data") if kind == "text" else source.get("content")
    entries: Any = text if isinstance(text, (list, tuple)) else [None]
    if all(isinstance(entry, Mapping) and "text" in entry for entry in entries):
        text = "\n".join(str(entry["text"]) for entry in entries)
    if not isinstance(text, str):
        # file_document_source_param.py of anthropic 2.11: the file is in an account of Anthropic's.
        raise _refuse(f"{where}.source has type {kind!r}", "send the content itself", provider)
    named = [str(part[name]) for name in ("title", "context") if part.get(name)]
    return {"type": "text", "text": "\n\n".join([*named, text]), **control}


def _refuse(problem: str, remedy: str, provider: str) -> RequestError:
    return RequestError(f"{problem}, which {provider} has no form for: {remedy}", provider=provider)


# Anthropic's types end with the date of a version, in the anthropic SDK 2.11 all but these three.
_ANTHROPIC = re.compile(r"[a-z][a-z0-9_]*_20\d{6}|mcp_toolset|tool_search_tool_(bm25|regex)")

# The forms of the tools that a provider runs, by the name that `tools` takes. Where a provider has several
# versions of a tool, this is the one that the most models take.
_WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search"}
_WEB_FETCH = {"type": "web_fetch_20250910", "name": "web_fetch"}
_CODE_EXECUTION = {"type": "code_execution_20250825", "name": "code_execution"}
_CODE_INTERPRETER = {"type": "code_interpreter", "container": {"type": "auto"}}
_NAMED: Mapping[str, Mapping[str, JSONMapping]] = {
    "web_search": {
        "openai": {"type": "web_search"},
        "anthropic": _WEB_SEARCH,
        "gemini": {"google_search": {}},
    },
    "code_execution": {
        "openai": _CODE_INTERPRETER,
        "anthropic": _CODE_EXECUTION,
        "gemini": {"code_execution": {}},
    },
    "url_context": {"anthropic": _WEB_FETCH, "gemini": {"url_context": {}}},
    "web_fetch": {"anthropic": _WEB_FETCH, "gemini": {"url_context": {}}},
    "code_interpreter": {"openai": _CODE_INTERPRETER},
    "image_generation": {"openai": {"type": "image_generation"}},
    "google_search": {"gemini": {"google_search": {}}},
    "google_maps": {"gemini": {"google_maps": {}}},
}

# function_definition.py of openai 2.54, vybestack/llxprt-code#482, and google-genai 3.4.
_FUNCTION_NAMES = {
    "openai": re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII),
    "anthropic": re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII),
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", re.ASCII),
}


def with_named_tools(request: Request, provider: str) -> Request:
    """The request with the provider's forms of the tools that are given by name, or in Anthropic's form."""
    tools: tuple[Any, ...] = request.tools or ()
    if not any(isinstance(tool, str) or "input_schema" in tool for tool in tools):
        return request
    adapted: list[Any] = []
    for index, tool in enumerate(tools):
        if isinstance(tool, str):
            tool = _name(tool, f"tools[{index}]={tool!r}", request, provider)  # noqa: PLW2901  # its form
        elif (
            provider != "anthropic"
            and "input_schema" in tool
            and tool.get("type") in (None, "custom")
            and isinstance(tool.get("name"), str)
        ):
            # A function in the form that all formats but Anthropic's read.
            left = ("type", "input_schema", *_INNER)
            others = {name: value for name, value in tool.items() if name not in left}
            inner = {name: tool[name] for name in _INNER if tool.get(name) is not None}
            function = {**inner, "parameters": tool["input_schema"]}
            tool = {**others, "type": "function", "function": function}  # noqa: PLW2901  # as above
        adapted.append(tool)
    return replace(request, tools=tuple(adapted))


_INNER = ("name", "description", "strict")


def _name(name: str, where: str, request: Request, provider: str) -> JSONMapping:
    forms = _NAMED[name]
    if provider not in forms or (provider == "openai" and request.endpoint == "chat"):
        # The tools of openai 2.54, anthropic 2.11 and google-genai 3.4.
        having = f"{', '.join(forms)} have it" if len(forms) > 1 else f"only {next(iter(forms))} has it"
        remedy = f"{having}; leave it out, or give a function"
        remedy = "use endpoint='responses'" if provider in forms else remedy
        raise refuse(where, request, remedy, provider=provider)
    return forms[provider]


def owner_of(tool: JSONMapping) -> str | None:
    """The provider whose words a tool uses: "anthropic", "gemini", or None for a function and all others."""
    if "function" in tool:
        return None
    kind = tool.get("type")
    if "input_schema" in tool or (isinstance(kind, str) and _ANTHROPIC.fullmatch(kind)):
        return "anthropic"
    # Google's tools have no type: their only field is their name.
    named = kind is None and all(isinstance(value, (Mapping, list, tuple)) for value in tool.values())
    return "gemini" if named else None


def adapt_tools(request: Request, provider: str) -> Request:
    """The request with its tools in the forms of the provider, if it runs them and takes their names."""
    request = with_named_tools(request, provider)
    names = _FUNCTION_NAMES.get(provider)
    for index, tool in enumerate(request.tools or ()):
        owner = owner_of(tool)
        if owner is not None and owner != provider:
            # tool_union_param.py of anthropic 2.11, `Tool` of google-genai 3.4.
            where = f"tools[{index}], which is one of the provider {owner!r}"
            remedy = "leave it out, or use a tool of this provider"
            raise refuse(where, request, remedy, provider=provider)
        function = tool.get("function")
        if names is not None and isinstance(function, Mapping) and not names.fullmatch(function["name"]):
            # `_FUNCTION_NAMES`: vybestack/llxprt-code#482
            raise RequestError(
                f"tools[{index}] is named {function['name']!r}, which {provider} does not accept: use up to "
                "64 ASCII letters, digits, underscores and hyphens",
                provider=provider,
                model=request.model,
            )
    return request
