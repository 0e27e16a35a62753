"""Which accounts or servers got a prompt, so that calls that continue it find its prompt cache there.

A conversation is recognised by the digest of all messages before its last answer. For an account a common
beginning is not enough: prompts may share examples that contain answers, and these were never a call of their
own. A server keeps any beginning of a prompt that it has read.
"""

import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from ..errors import LLMError
from ..runtime.canonical_json import canonical

T = TypeVar("T")

_MOST_DIGESTS = 65_536
"""Digests that a pool remembers. Each takes about 200 bytes."""

_SHORTEST_BEGINNING = 512
"""Bytes of the shortest beginning of a prompt. Each further one is twice as long."""


class PromptMemory(Generic[T]):
    """Who got the prompts with some digests, as far as they were used last."""

    def __init__(self) -> None:
        self._holders: OrderedDict[bytes, T] = OrderedDict()

    def find(self, digest: bytes | None) -> T | None:
        """Who got a prompt; None if it has no digest."""
        return None if digest is None else self._holders.get(digest)

    def replace(self, digest: bytes, holder: T) -> None:
        """Remember who got a prompt, in the place of the one before."""
        self._holders[digest] = holder
        self._holders.move_to_end(digest)
        if len(self._holders) > _MOST_DIGESTS:
            self._holders.popitem(last=False)


def digest_conversation(messages: Sequence[Mapping[str, object]]) -> tuple[bytes | None, bytes | None]:
    """Digests of the messages before the last answer, None if there is no answer, and of all messages."""
    digest, before = hashlib.blake2b(digest_size=16), None
    try:
        for message in messages:
            if message["role"] == "assistant":
                before = digest.digest()
            digest.update(canonical(message))
    except LLMError:
        # A message holds a value that JSON cannot express.
        return None, None
    return before, digest.digest()


def digest_beginnings(messages: Sequence[Mapping[str, object]]) -> list[bytes]:
    """Digests of the first 512, 1,024, 2,048 … bytes of a prompt, the shortest first."""
    digests: list[bytes] = []
    with contextlib.suppress(LLMError):  # as above
        text, digest = b"".join(map(canonical, messages)), hashlib.blake2b(digest_size=16)
        begin, end = 0, _SHORTEST_BEGINNING
        while end <= len(text):
            digest.update(text[begin:end])
            digests.append(digest.digest())
            begin, end = end, 2 * end
    return digests
