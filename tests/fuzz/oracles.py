"""What an answer says, read from its JSON by the formats' references, apart from the adapters."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llm_provider._core.runtime.json_pieces import write_exactly


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _chat(reply: Any) -> set[str]:
    message = reply["choices"][0]["message"]
    content, refusal = message.get("content"), message.get("refusal")
    others: set[str] = set()
    if content is not None and not isinstance(content, str):
        # The JSON itself, unless it is a list of parts.
        others = {write_exactly(content).decode()}
        if not isinstance(content, list):
            return others
        parts = [entry for entry in _dicts(content) if entry.get("type") != "thinking"]
        content = "".join(entry["text"] for entry in parts if isinstance(entry.get("text"), str))
    text = content or (refusal if isinstance(refusal, str) else "")
    return {text} | ({""} if not content else set()) | others


def _responses(reply: Any) -> set[str]:
    messages = [item for item in _dicts(reply["output"]) if item.get("type") == "message"]
    parts = [part for item in messages for part in _dicts(item.get("content"))]
    fields = {"output_text": "text", "refusal": "refusal", "output_audio": "transcript"}
    texts = [part.get(fields.get(str(part.get("type")), "")) for part in parts]
    return {"".join(text for text in texts if isinstance(text, str))}


def _anthropic(reply: Any) -> set[str]:
    # A block of another type is a text too, if it has one.
    text = "".join(block["text"] for block in _dicts(reply["content"]) if isinstance(block.get("text"), str))
    explained = reply.get("stop_details")
    explanation = explained.get("explanation") if isinstance(explained, dict) else None
    return {text} if text or not isinstance(explanation, str) else {"", explanation}


def _gemini(reply: Any) -> set[str]:
    candidates = reply.get("candidates")
    if not candidates:
        return {""}

    def index(candidate: Any) -> int:
        value = candidate.get("index")
        return value if type(value) is int and value > 0 else 0

    content = min(candidates, key=index).get("content")
    parts = _dicts(content.get("parts")) if isinstance(content, dict) else []
    return {
        "".join(
            part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")
        )
    }


def _interactions(reply: Any) -> set[str]:
    said = [step for step in _dicts(reply.get("steps")) if step.get("type") == "model_output"]
    # A part of another type is a text too, if it has one.
    parts = [part for step in said for part in _dicts(step.get("content"))]
    return {"".join(part["text"] for part in parts if isinstance(part.get("text"), str))}


TEXTS: Mapping[str, Callable[[Any], set[str]]] = {
    "openai": _chat, "responses": _responses, "anthropic": _anthropic, "gemini": _gemini,
    "interactions": _interactions,
}  # fmt: skip
"""By format, the texts that an answer may have."""


def _any_choice_ended(field: str, word: str) -> Callable[[Sequence[Any]], bool]:
    def ended(events: Sequence[Any]) -> bool:
        return any(choice.get(word) for event in _dicts(list(events)) for choice in _dicts(event.get(field)))

    return ended


def _has_type(*kinds: str) -> Callable[[Sequence[Any]], bool]:
    return lambda events: any(event.get("type") in kinds for event in _dicts(list(events)))


def _gemini_ended(events: Sequence[Any]) -> bool:
    blocked = any(isinstance(event, dict) and event.get("promptFeedback") for event in events)
    return blocked or _any_choice_ended("candidates", "finishReason")(events)


def _anthropic_ended(events: Sequence[Any]) -> bool:
    # Some gateways leave `message_stop` out.
    said = any(
        part.get("stop_reason") for event in _dicts(list(events)) for part in _dicts([event.get("delta")])
    )
    return said or _has_type("message_stop")(events)


def _interaction_ended(events: Sequence[Any]) -> bool:
    # A status may end it before its last event.
    ends = ("completed", "incomplete", "requires_action", "budget_exceeded", "requires_continuation")
    for event in _dicts(list(events)):
        kind, interaction = event.get("event_type"), event.get("interaction")
        told = interaction if isinstance(interaction, dict) else {}
        if kind == "interaction.completed" or event.get("status") in ends:
            return True
        if kind != "interaction.created" and told.get("status") in ends:
            return True
    return False


ENDS: Mapping[str, Callable[[Sequence[Any]], bool]] = {
    "openai": _any_choice_ended("choices", "finish_reason"),
    "responses": _has_type("response.completed", "response.incomplete"),
    "anthropic": _anthropic_ended,
    "gemini": _gemini_ended,
    "interactions": _interaction_ended,
}
"""By format, whether the events of a stream contain its end."""


def reports_error(document: Any) -> bool:
    """Whether an answer, or an event of a stream, says that the request has failed."""
    if isinstance(document, bytes):
        return b"error" in document or b"failed" in document
    if isinstance(document, list):
        return any(map(reports_error, document))
    if not isinstance(document, dict):
        return False
    here = bool(document.get("error")) or document.get("type") in ("error", "response.failed")
    here = here or document.get("object") == "error"
    # Some hosts answer with status 200 and an explanation in place of the answer.
    here = here or any(
        isinstance(document.get(name), (str, list)) for name in ("message", "detail", "errors")
    )
    return here or document.get("status") == "failed" or any(map(reports_error, document.values()))
