"""Clients that send a random user id with every call: without observers, with a hook, and with a log too.

The hook counts calls, tokens and time in a dictionary. The log is one line per call in a file.
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
    """Metrics in memory and, with the name of a logger, a log on disk."""

    def __init__(self, logger: str | None = None) -> None:
        self._counts: Counter[str] = Counter()
        self._log: logging.Logger | None = None
        if logger is not None:
            self._log = logging.getLogger(logger)
            handler = logging.FileHandler(tempfile.mkstemp(suffix=".log")[1])
            handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
            self._log.addHandler(handler)
            self._log.setLevel(logging.DEBUG)
            self._log.propagate = False

    def note(self, model: str, identity: str, tokens: int, seconds: float) -> None:
        """Count one call, and log it."""
        self._counts["calls"] += 1
        self._counts["tokens"] += tokens
        self._counts[f"milliseconds of {model}"] += round(1000 * seconds)
        if self._log is not None:
            self._log.info("%s for %s: %d tokens, %.3f s", model, identity, tokens, seconds)


class OursForUser(Ours):
    """`acall` with a user id."""

    async def call(self, prepared: Any) -> str:
        fields = {"extra_body": {"user": uuid.uuid4().hex}, **self._fields}
        return (await self._client.acall(self._model, prepared, **fields)).text


class OursMetered(OursForUser):
    """The same, with the client's `on_result` counting each call."""

    LOGGER: str | None = None

    def __init__(self, target: Target) -> None:
        observer = Observer(self.LOGGER)

        def note(result: Any) -> None:
            observer.note(result.model, result.id, result.usage.output_tokens, result.timing.total)

        super().__init__(target, on_result=note)


class OursObserved(OursMetered):
    """The same, with a line in a file for each call, and the library's logger at DEBUG."""

    LOGGER = "llm_provider"


class LitellmForUser(Litellm):
    """`acompletion` with a user id."""

    async def call(self, prepared: Any) -> str:
        answer = await self._ask(messages=prepared, user=uuid.uuid4().hex, **self._fields)
        return answer.choices[0].message.content


class LitellmMetered(LitellmForUser):
    """The same, with a custom logger of litellm counting each call."""

    LOGGER: str | None = None

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        from litellm.integrations.custom_logger import CustomLogger

        observer = Observer(self.LOGGER)

        class Logger(CustomLogger):
            async def async_log_success_event(self, kwargs: Any, response: Any, start: Any, end: Any) -> None:
                seconds = (end - start).total_seconds()
                observer.note(kwargs["model"], kwargs["user"], response.usage.completion_tokens, seconds)

        self._litellm.callbacks = [Logger()]


class LitellmObserved(LitellmMetered):
    """The same, with a line in a file for each call."""

    LOGGER = "benchmark"


LITELLM = ("litellm", "openai", "aiohttp")

CLIENTS = [
    Offer("ours_user", "ours-openai3", OursForUser, OURS, ("openai",), "this library, observers off"),
    Offer("ours_metered", "ours-openai3", OursMetered, OURS, ("openai",), "this library, hook and metrics"),
    Offer("ours_observed", "ours-openai3", OursObserved, OURS, ("openai",), "this library, and a log"),
    Offer("litellm_user", "litellm", LitellmForUser, LITELLM, ("openai",), "litellm, observers off"),
    Offer("litellm_metered", "litellm", LitellmMetered, LITELLM, ("openai",), "litellm, hook and metrics"),
    Offer("litellm_observed", "litellm", LitellmObserved, LITELLM, ("openai",), "litellm, and a log"),
]
