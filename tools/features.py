"""Writes docs/features.md: what of each wire format passes tests/conformance. `make features`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from conformance.checks import singles, wrong_in_answer, wrong_in_return
from conformance.features import MESSAGES, NO, PARAMETERS, YES, sent
from conformance.formats import ANTHROPIC, CHAT, FORMATS, GEMINI, INTERACTIONS, RESPONSES, Format
from llm_provider._core.formats import registry
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._features.prompt_caching.settings import is_stored, mark_of_call

DOCUMENT = Path(__file__).parents[1] / "docs" / "features.md"

SEPARATE, NOT_YET, IMPLICIT = "separate requests", "not yet", "nothing to send"
STORED = "a request of its own"

_ANSWERS: Mapping[str, Mapping[Format, tuple[str, ...]]] = {
    "text": {CHAT: ("content",), RESPONSES: ("message",), ANTHROPIC: ("text",), GEMINI: ("text",),
             INTERACTIONS: ("model_output",)},
    "a refusal": {CHAT: ("refusal",), RESPONSES: ("message",), ANTHROPIC: ("ends with refusal",)},
    "a call of a function": {
        CHAT: ("tool_calls: function", "function_call"),
        RESPONSES: ("function_call",),
        ANTHROPIC: ("tool_use",),
        GEMINI: ("functionCall",),
        INTERACTIONS: ("function_call",),
    },
    "a call of another tool": {
        CHAT: ("tool_calls: custom",),
        RESPONSES: ("custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call", "computer_call",
                    "mcp_approval_request"),
    },
    "the provider's own tools": {
        RESPONSES: ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call",
                    "mcp_list_tools"),
        ANTHROPIC: ("server_tool_use", "web_search_tool_result", "web_fetch_tool_result",
                    "code_execution_tool_result", "bash_code_execution_tool_result",
                    "text_editor_code_execution_tool_result", "tool_search_tool_result", "container_upload"),
        GEMINI: ("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
        INTERACTIONS: tuple(
            f"{tool}_{end}"
            for tool in ("code_execution", "google_search", "google_maps", "url_context", "file_search",
                         "mcp_server_tool", "retrieval")
            for end in ("call", "result")
        ),
    },
    "reasoning": {
        RESPONSES: ("reasoning",),
        ANTHROPIC: ("thinking", "redacted_thinking"),
        GEMINI: ("thought",),
        INTERACTIONS: ("thought",),
    },
    "images": {RESPONSES: ("image_generation_call",), GEMINI: ("inlineData", "fileData"),
               INTERACTIONS: ("model_output",)},
    "audio": {CHAT: ("audio",), GEMINI: ("inlineData",), INTERACTIONS: ("model_output",)},
    "compaction": {RESPONSES: ("compaction",)},
}  # fmt: skip
"""What a row is about → the cells of the matrix that hold it, by format."""


_APIS = {
    CHAT: "OpenAI's Chat Completions",
    RESPONSES: "OpenAI's Responses",
    ANTHROPIC: "Anthropic's Messages",
    GEMINI: "Gemini's `generateContent`",
    INTERACTIONS: 'Gemini\'s Interactions, `endpoint="interactions"`',
}


def _samples(form: Format) -> str:
    target = resolve(form.models[0], endpoint=form.endpoint)
    request = Request.build(form.models[0], "Hi", {"n": 3})
    return YES if registry.load(target.route.adapter).encode(request, target).samples_field else SEPARATE


def _prompt_caching(form: Format, value: object) -> str:
    """How a `prompt_caching` reaches the provider.

    Raises:
        AssertionError: the payload does not fit the SDK's types.
    """
    found = NO
    for model in form.models:
        target = resolve(model, endpoint=form.endpoint)
        if is_stored(target, value):
            return STORED
        cache = registry.load_prompt_cache(target)
        payload = form.encode("Why?", model, system="A long document. " * 5000)
        mark = None if cache is None else mark_of_call(cache, payload, target.model)
        if mark is None:
            continue
        marked = json.loads(json.dumps(mark.format.mark_prefix(payload, mark)))
        wrong = form.check(marked)
        assert not wrong, (model, wrong)
        if marked != payload:
            return YES
        found = IMPLICIT
    return found


def _answers(form: Format, cells: tuple[str, ...]) -> str:
    found = dict(singles(form))
    if not cells:
        return NO
    for reply, content, finish in (one for cell in cells for one in found.get(cell, [])):
        if wrong_in_answer(form, reply, content, finish) or wrong_in_return(form, reply, form):
            return NOT_YET
    return YES


def _table(rows: Mapping[str, list[str]]) -> Iterator[str]:
    yield "| | " + " | ".join(form.name for form in FORMATS) + " |"
    yield "|---|" + "---|" * len(FORMATS)
    for name, cells in rows.items():
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""


def document() -> str:
    """The whole page."""
    parameters = {name: [sent(form, "Hi", given) for form in FORMATS] for name, given in PARAMETERS.items()}
    parameters["`n`"] = [_samples(form) for form in FORMATS]
    for name, value in {"`prompt_caching`": True, '`prompt_caching="explicit"`': "explicit"}.items():
        parameters[name] = [_prompt_caching(form, value) for form in FORMATS]
    messages = {name: [sent(form, given, {}) for form in FORMATS] for name, given in MESSAGES.items()}
    answers = {
        name: [_answers(form, cells.get(form, ())) for form in FORMATS] for name, cells in _ANSWERS.items()
    }
    # tests/conformance/test_replies.py has each.
    answers["every word that ends an answer"] = [YES] * len(FORMATS)
    return "\n".join(
        [
            "# Features by wire format",
            "",
            "Written by `make features` from tests/conformance, and held current by a test. Every request",
            'behind a "yes" fits the request types of the oldest and the newest supported SDK, and every',
            "answer behind one was made from the SDK's types of answers.",
            "",
            "| format | API | tried with |",
            "|---|---|---|",
            *(f"| {form.name} | {api} | {', '.join(form.models)} |" for form, api in _APIS.items()),
            "",
            "## Parameters",
            "",
            f'"{YES}": at least one model of the format takes it. "{NO}": refused by name. "{IMPLICIT}": the',
            "provider does it by itself. [Some fields](request-fields.md) of the SDKs have no parameter.",
            "",
            *_table(parameters),
            "## Messages",
            "",
            '"left out": the format has no form for it. It is not sent, and a `UserWarning` says so.',
            "",
            *_table(messages),
            "## Answers",
            "",
            f'"{YES}": decoded without loss, and the message goes back to the same provider unchanged.',
            f'"{NO}": the format has no such content. "{NOT_YET}": a known defect.',
            "",
            *_table(answers),
        ]
    )


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
