"""Clients that send a random user id with every call, without observers and with all that there are.

An observer counts calls, tokens and time in its own dictionary and writes a line to a log file.
"""

from __future__ import annotations

import logging
import tempfile
import uuid
from collections import Counter
from typing import Any

from . import Offer, Target
from .litellm import Litellm
from .ours import OURS, Ours


class Observer:
    """Metrics in memory and a log on disk."""

    def __init__(self, logger: str) -> None:
        self._counts: Counter[str] = Counter()
        self._log = logging.getLogger(logger)
        handler = logging.FileHandler(tempfile.mkstemp(suffix=".log")[1])
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        self._log.addHandler(handler)
        self._log.setLevel(logging.DEBUG)
        self._log.propagate = False

    def note(self, model: str, user: str, tokens: int, seconds: float) -> None:
        """Count one call and log it."""
        self._counts["calls"] += 1
        self._counts["tokens"] += tokens
        self._counts[f"milliseconds of {model}"] += round(1000 * seconds)
        self._log.info("%s for %s: %d tokens, %.3f s", model, user, tokens, seconds)


class OursForUser(Ours):
    """`acall` with a user id."""

    async def call(self, prepared: Any) -> str:
        return (await self._ask(prepared, uuid.uuid4().hex)).text

    async def _ask(self, prepared: Any, user: str) -> Any:
        return await self._client.acall(self._model, prepared, extra_body={"user": user}, **self._fields)


class OursObserved(OursForUser):
    """The same, with the library's logger at DEBUG and the `Response` of each call read into metrics."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._observer = Observer("llm_provider")

    async def call(self, prepared: Any) -> str:
        user = uuid.uuid4().hex
        response = await self._ask(prepared, user)
        self._observer.note(response.model, user, response.usage.output_tokens, response.timing.total)
        return response.text


class LitellmForUser(Litellm):
    """`acompletion` with a user id."""

    async def call(self, prepared: Any) -> str:
        answer = await self._ask(messages=prepared, user=uuid.uuid4().hex, **self._fields)
        return answer.choices[0].message.content


class LitellmObserved(LitellmForUser):
    """The same, with one of its custom loggers."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        from litellm.integrations.custom_logger import CustomLogger

        observer = Observer("benchmark")

        class Logger(CustomLogger):
            async def async_log_success_event(self, kwargs: Any, response: Any, start: Any, end: Any) -> None:
                seconds = (end - start).total_seconds()
                observer.note(kwargs["model"], kwargs["user"], response.usage.completion_tokens, seconds)

        self._litellm.callbacks = [Logger()]


LITELLM = ("litellm", "openai", "aiohttp")

CLIENTS = [
    Offer("ours_user", "ours-openai3", OursForUser, OURS, ("openai",), "this library, observers off"),
    Offer("ours_observed", "ours-openai3", OursObserved, OURS, ("openai",), "this library, observers on"),
    Offer("litellm_user", "litellm", LitellmForUser, LITELLM, ("openai",), "litellm, observers off"),
    Offer("litellm_observed", "litellm", LitellmObserved, LITELLM, ("openai",), "litellm, observers on"),
]
