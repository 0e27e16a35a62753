"""What must hold for a reply, and for its message in another request. Each check returns what is wrong."""

import dataclasses
import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings

from conformance.formats import FORMATS, Format, Kind
from conformance.sdk_types import MARK, texts
from llm_provider import LLMError

Content = Sequence[tuple[Kind, Any]]
USER = {"role": "user", "content": "Go on"}

# An answer goes back to its own provider exactly as it came: with null where a request's type would leave a
# field out, without fields that the type of answers need not have, and with those that only that type has.
# Only the developer's `additional_tools` are in a request, and no model writes others.
_AS_ANSWERED = re.compile(
    r": None is no|: missing$|\.(created_by|file_id|status): no field|status: 'failed' is none of"
    r"|role: '\w+' is none of \('developer',\)"
)

# Which program made a call, and where its tool was found or run, are of no use to another provider.
_NAMES_OF_CALLS = (
    "id", "call_id", "caller_id", "tool_id", "namespace", "toolset_name", "created_by", "container_id",
    "server_label",
)  # fmt: skip

# With these words Gemini says that the model failed to answer. An answer that holds nothing else is an error.
FAILED = tuple(
    ("", word)
    for word in ("OTHER", "MALFORMED_FUNCTION_CALL", "NO_IMAGE", "UNEXPECTED_TOOL_CALL",
                 "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE")
)  # fmt: skip

# Fields of an answer's message that its own provider does not take back, or only in part.
_ONLY_IN_ANSWERS = {"annotations": (), "audio": ("id",)}

# Of these, no answer has come: they are errors, or the provider is still at work.
UNFINISHED = (
    *(("failed", None), ("in_progress", None), ("cancelled", None), ("queued", None)),
    *("failed", "in_progress", "cancelled", "queued"),
)


def examples(number: int) -> settings:
    """Always the same examples, so many of them; or as many as the profile "fuzz" says."""
    if settings.get_current_profile_name() == "fuzz":
        return settings()
    return settings(derandomize=True, max_examples=number)


def wrong_in_answer(form: Format, reply: Any, content: Content, finish: Any) -> list[str]:
    """Why a reply is not decoded to the answer that it holds."""
    try:
        answer = form.decode(reply)
    except LLMError as error:
        is_reported = finish in UNFINISHED or (finish in FAILED and not content and not error.retryable)
        return [] if is_reported else [f"{type(error).__name__}: {error}"]
    except Exception as error:
        return [f"raw {type(error).__name__}: {error}"]
    (choice,) = answer.choices
    problems = [
        f"the text {kind.text!r} is not shown"
        for kind, sample in content
        if kind.text and sample is kind.samples[0] and kind.text not in choice.text + _beside(choice.message)
    ]
    calls = any(kind.call for kind, _ in content)
    if calls and not choice.tool_calls and choice.finish_reason != "tool_calls":
        problems.append(f"a call looks like {choice.finish_reason!r}")
    calls_as_read = [dataclasses.asdict(call) for call in choice.tool_calls]
    read = [choice.text, choice.reasoning, calls_as_read, choice.message]
    kept = json.dumps(read, ensure_ascii=False, default=str)
    kept += json.dumps(kept, ensure_ascii=False)
    lost = {text for kind, sample in content if kind.in_message for text in texts(sample) if text not in kept}
    if lost:
        problems.append(f"lost: {sorted(lost)}")
    return problems


def _beside(message: Any) -> str:
    """The refusal and the transcript of an answer that has another text, of which they are no part."""
    said = [message["content"], message.get("refusal"), (message.get("audio") or {}).get("transcript")]
    return " ".join(said[1:]) if all(said[1:]) else str(said[1] or said[2]) if said[0] else ""


# What a provider gives in an answer, and refuses once the user goes on.
_REFUSED_IN_RETURN = ("reasoning that nothing follows", "a tool that Anthropic has not run")


def wrong_in_return(form: Format, reply: Any, target: Format, *, model: str = "") -> list[str]:
    """Why the message of a reply cannot be sent to a format, as far as `wrong_in_answer` finds nothing."""
    message = form.decode(reply).choices[0].message
    # As a conversation that was stored.
    message = json.loads(json.dumps(message))
    conversation = [USER, message, USER]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            payload = target.encode(conversation, model)
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
    warned = [str(warning.message) for warning in caught]
    problems = [
        entry for entry in target.check(payload) if target is not form or not _AS_ANSWERED.search(entry)
    ]
    problems += [f"a warning comes twice: {text}" for text in set(warned) if warned.count(text) > 1]
    problems += [f"turn {turn!r:.80} is empty" for turn in payload[target.turns] if is_empty(turn)]
    sent = json.dumps(payload, ensure_ascii=False)
    sent += json.dumps(sent, ensure_ascii=False)
    if target is form:
        for name in _ONLY_IN_ANSWERS.keys() & message.keys():
            message[name] = {part: message[name][part] for part in _ONLY_IN_ANSWERS[name]}
        # The original content stands for the text, which joins what stood apart in it.
        lost = {text for text in texts(message.get("provider_specific_fields", message)) if text not in sent}
        is_reported = any(fragment in text for text in warned for fragment in _REFUSED_IN_RETURN)
        problems += [f"lost: {sorted(lost)}"] if lost and not is_reported else []
        expected = ("is empty", *_REFUSED_IN_RETURN, *(f"holds {name}," for name in _ONLY_IN_ANSWERS))
        problems += [
            f"warned: {text}" for text in warned if not any(fragment in text for fragment in expected)
        ]
    elif not warned:
        # Without a warning, everything in the message must have gone over in one form or another.
        # Of two calls with one id, the second gets a number.
        read = {
            text: re.sub(r"_\d+$", "", text.removeprefix(MARK))
            for text in texts(form.decode(reply).choices[0].message)
        }
        lost = {text for text, plain in read.items() if plain not in sent and plain not in _NAMES_OF_CALLS}
        problems += [f"lost without a warning: {sorted(lost)}"] if lost else []
    return problems


def is_empty(turn: dict[str, Any]) -> bool:
    """Whether an assistant's turn of a payload holds nothing."""
    if turn.get("role") not in ("assistant", "model"):
        return False
    return not any(
        value for name, value in turn.items() if name not in ("role", "type", "name", "id", "status")
    )


def singles(form: Format) -> list[tuple[str, list[tuple[Any, Content, Any]]]]:
    """The cells of a format: each kind of content alone, and each finish word, with and without text."""
    cells = []
    for kind in form.kinds:
        replies = [
            (form.reply([(kind, sample)], form.done), [(kind, sample)], form.done) for sample in kind.samples
        ]
        cells.append((kind.name, replies))
    text = (form.kinds[0], form.kinds[0].samples[0])
    for finish in form.finishes:
        name = " ".join(str(word) for word in ([finish] if not isinstance(finish, tuple) else finish) if word)
        contents: list[Content] = [[text], []]
        if isinstance(finish, tuple) and finish[0] == "prompt":
            contents = [[]]
        cells.append(
            (
                f"ends with {name or repr(finish)}",
                [(form.reply(content, finish), content, finish) for content in contents],
            )
        )
    cells.append(("other fields", [(envelope, [text], form.done) for envelope in form.envelopes]))
    return cells


CELLS = [(form.name, cell, replies) for form in FORMATS for cell, replies in singles(form)]
"""(format, name of the cell, its replies), for all formats."""
ANSWERS = [cell for cell in CELLS if cell[1] != "other fields"]
"""The cells that differ in what is answered."""


def each_of(cells: Sequence[tuple[str, str, list[Any]]]) -> pytest.MarkDecorator:
    """Calls a test with each of these cells."""
    names = [f"{form}: {cell}" for form, cell, _ in cells]
    return pytest.mark.parametrize(("form", "cell", "replies"), cells, ids=names)


def contents(form: Format) -> list[tuple[Kind, Any]]:
    """The kinds of content of a format, with each of their samples."""
    return [(kind, sample) for kind in form.kinds for sample in kind.samples]
