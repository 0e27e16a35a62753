"""The conversation of `ask`: its next message, the messages before it, and its line in the log."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import RequestError
from .._runtime.files import full_disk
from .log_file import VARIABLE, LogFile, LoggedAsk, log_path
from .output import say

if TYPE_CHECKING:
    from .._types.messages import Prompt
    from .._types.response import Response


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages before a question."""

    id: str
    model: str | None = None
    system: str | None = None
    messages: tuple[Any, ...] = ()


def new_conversation() -> Conversation:
    """A conversation without messages."""
    return Conversation(os.urandom(6).hex())


def last_conversation() -> Conversation:
    """The conversation that the log has last.

    Raises:
        RequestError: there is none, or the log cannot be read.
    """
    path = log_path()
    if path is None:
        raise RequestError(f"there is no conversation to continue: {VARIABLE} turns the log off")
    try:
        asked = LogFile(path).last_conversation()
    except sqlite3.Error as error:
        raise RequestError(f"the log {path} cannot be read: {error}") from None
    if not asked:
        raise RequestError("there is no conversation to continue: the log is empty; ask without --continue")
    messages = [message for ask in asked for message in ask.messages]
    return Conversation(asked[-1].conversation, asked[-1].model, asked[-1].system, tuple(messages))


def prompt_of(conversation: Conversation, text: str, files: Sequence[str]) -> Prompt:
    """What a call sends: the text alone where there is nothing else, else the messages.

    Raises:
        RequestError: a file cannot be sent.
    """
    if not files and not conversation.messages:
        return text
    return [*conversation.messages, _message(text, files)]


def _message(text: str, files: Sequence[str]) -> dict[str, Any]:
    if not files:
        return {"role": "user", "content": text}
    from .._requests.media import part_of

    # As parts, so that the log holds the contents: the file may change before the next question.
    parts = [part_of(Path(file).expanduser(), "--attach") for file in files]
    return {"role": "user", "content": [*([{"type": "text", "text": text}] if text else ()), *parts]}


def log(
    conversation: Conversation, model: str, system: str | None, text: str, prompt: Prompt, response: Response
) -> None:
    """Append a question and its answer to the log. A log that cannot be written is a warning."""
    path = log_path()
    if path is None:
        return
    question = {"role": "user", "content": prompt} if isinstance(prompt, str) else prompt[-1]
    ask = LoggedAsk(
        conversation=conversation.id,
        time=time.time(),
        model=model,
        served=response.model,
        provider=response.provider,
        system=system,
        prompt=text,
        answer=response.text,
        messages=[question, response.message],
        usage=asdict(response.usage),
        cost=response.cost,
        cached=response.cached,
        finish_reason=response.finish_reason,
    )
    try:
        LogFile(path).add(ask)
    except (OSError, sqlite3.Error, RequestError, TypeError, ValueError) as error:
        found = full_disk(error, path, "earlier answers are safe") or error
        say("warning", f"the answer is not in the log {path}: {found} ({VARIABLE}=off keeps none)")
