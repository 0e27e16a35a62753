"""`Operation`: one thing that can be done with a model, such as chat or embeddings.

The lifecycle of a call (`engine`), its requests (`sender`) and everything below them know operations only
through this class. A call has parts, which are numbered: the samples of a chat, the texts of an embedding.
Each part is stored under a key of its own. The parts that are not stored are requested together where the API
can.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from .._cache.storage.entry import Entry
    from .._providers.adapter import Adapter, Answer, EncodedRequest
    from .._requests.routing import Target
    from .._types import Usage
    from .call import Call, Sample

T = TypeVar("T")
"""What the user receives."""


class Operation(ABC, Generic[T]):
    """One thing that can be done with a model. It has no state, so one object serves every call."""

    @abstractmethod
    def encode(self, request: Any, target: Target, adapter: Adapter) -> EncodedRequest:
        """The request in the wire format of its provider.

        Raises:
            RequestError: the model or the provider cannot serve it.
        """

    @abstractmethod
    def parts(self, request: Any) -> Sequence[int]:
        """The numbers of the parts that a request asks for, in their order."""

    @abstractmethod
    def identity(self, call: Call[T], part: int) -> tuple[bytes, int]:
        """The payload and the sample number that are hashed into the cache key of a part."""

    @abstractmethod
    def groups(self, call: Call[T], parts: Sequence[int]) -> list[Sequence[int]]:
        """Parts in groups, each of which one request can ask for."""

    @abstractmethod
    def body(self, call: Call[T], parts: Sequence[int]) -> bytes:
        """The JSON body of the request for a group of parts."""

    @abstractmethod
    def tokens(self, call: Call[T], parts: Sequence[int]) -> float:
        """Estimated tokens that a request for a group counts against the provider's rate limit."""

    @abstractmethod
    def decode(self, call: Call[T], reply: Any, count: int) -> Answer:
        """A reply with so many parts as an answer.

        Raises:
            APIResponseValidationError: the reply is not complete and valid.
        """

    @abstractmethod
    def usage(self, call: Call[T], reply: Any) -> Usage | None:
        """The usage that a reply tells, although `decode` may not accept the reply."""

    @abstractmethod
    def split(self, call: Call[T], sample: Sample, parts: Sequence[int]) -> list[Sample]:
        """The answer to a group as one sample per part. A server that gives fewer is asked for the rest."""

    @abstractmethod
    def is_kept(self, answer: Answer, kept: Collection[str]) -> bool:
        """Whether the cache keeps an answer and serves it.

        Args:
            answer: The answer.
            kept: Finish reasons of the answers that are kept; "empty" keeps answers without content.
        """

    @abstractmethod
    def stored(self, call: Call[T], entry: Entry, answer: Answer, started: float) -> T:
        """The result of a call of one part that the cache answers.

        Args:
            call: The call, or one that differs in its prompt alone.
            entry: The cache entry.
            answer: The decoded entry.
            started: Monotonic time at which the user asked.
        """

    @abstractmethod
    def result(self, call: Call[T], samples: Sequence[Sample], cost: float | None) -> T:
        """The parts of a call, put together. `cost` is in USD, None where it is not known."""
