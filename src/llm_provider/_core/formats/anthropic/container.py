"""The container in which Anthropic runs the code of a turn."""

from collections.abc import Sequence
from datetime import datetime

from ...json_values import JSONMapping
from ...runtime import clock
from ...types.messages import Message
from ..shared.replies import dicts, part, text
from .decode import PROVIDER


def find_container(messages: Sequence[Message], *, has_containers: bool) -> str | None:
    """The id of the container that the next request of a turn names; None in a new turn of the user.

    While code waits for the result of a tool, Anthropic answers 400 without the id, says
    UKGovernmentBEIS/inspect_ai#4603. The id is then sent also after `expires_at`, which a later use of the
    container moves (ResearchHub/researchhub-backend#3897). Where no code waits, the id keeps the files of the
    turn, and a container that has expired is not named, as a stored answer may be old. A new turn works
    without the id, and may begin days later: `extra_body` names a container there.

    `has_containers` is False for Vertex AI and classic Bedrock: no answer with a container is known from
    them. The answer probably came from elsewhere, and another platform does not have its container.
    """
    container: JSONMapping = {}
    called, answered = set[str | None](), set[str | None]()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message["role"] == "user" and _begins_turn(messages, index):
            break
        kept = part(message, "provider_specific_fields")
        if kept.get("provider") != PROVIDER:
            continue
        container = container or part(kept, "container")
        for block in dicts(kept.get("content")):
            if block.get("type") == "server_tool_use":
                called.add(text(block, "id"))
            elif str(block.get("type")).endswith("_tool_result"):
                answered.add(text(block, "tool_use_id"))
    identifier = text(container, "id")
    return identifier if called - answered or (has_containers and _is_alive(container)) else None


def _begins_turn(messages: Sequence[Message], index: int) -> bool:
    """Whether a user's message comes neither with results of tools nor after them."""
    if index > 0 and messages[index - 1]["role"] == "tool":
        return False
    content = messages[index].get("content")
    return not any(
        entry.get("type") == "tool_result"
        for entry in (content if isinstance(content, (list, tuple)) else ())
    )


def _is_alive(container: JSONMapping) -> bool:
    try:
        return datetime.fromisoformat(str(container.get("expires_at"))).timestamp() > clock.time()
    except ValueError:
        return bool(container)
