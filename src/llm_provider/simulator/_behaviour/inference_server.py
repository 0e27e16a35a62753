"""A server of one's own, such as vLLM's: places with a queue, and a cache of the beginnings of prompts."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import orjson

from ..formats.content import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BLOCK", "InferenceServer"]

BLOCK = 16
"""Tokens of a block, the unit in which vLLM keeps prompts."""


class InferenceServer:
    """The places and the prefix cache of one server.

    >>> server, body = InferenceServer(), {"messages": [{"role": "user", "content": "word " * 100}]}
    >>> server.read_prompt(body, 1000), server.read_prompt(body, 1000), server.read_prompt(body, 16)
    (0, 128, 128)
    >>> server.read_prompt(body, 1000)
    16
    """

    def __init__(self) -> None:
        self._serving = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._blocks: OrderedDict[bytes, None] = OrderedDict()

    def queue(self, slots: int) -> asyncio.Future[None]:
        """A future that is done as soon as one of the places is free, first come, first served."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._fill(slots)
        return turn

    def leave(self, turn: asyncio.Future[None], slots: int) -> None:
        """Free a place, or stop waiting for it."""
        if turn.done():
            self._serving -= 1
        else:
            self._waiting.remove(turn)
        self._fill(slots)

    def _fill(self, slots: int) -> None:
        while self._waiting and self._serving < slots:
            self._serving += 1
            self._waiting.popleft().set_result(None)

    def read_prompt(self, body: Mapping[str, Any], most: int) -> int:
        """Tokens at the beginning of a prompt that are kept. Then all of its whole blocks are kept.

        Args:
            body: the request.
            most: tokens that the cache holds; those used least recently leave it.
        """
        text, size = orjson.dumps([body.get("tools"), body.get("messages")]), BLOCK * CHARACTERS_PER_TOKEN
        chain, blocks = blake2b(digest_size=16), list[bytes]()
        for start in range(0, len(text) - size + 1, size):
            chain.update(text[start : start + size])
            blocks.append(chain.digest())
        kept = next((n for n, block in enumerate(blocks) if block not in self._blocks), len(blocks))
        # The last block is used first, so that the cache loses the ends of prompts before their beginnings.
        for block in reversed(blocks):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) * BLOCK > most:
            self._blocks.popitem(last=False)
        return kept * BLOCK
