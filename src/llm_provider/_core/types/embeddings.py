"""The vectors of texts: `Embeddings`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, overload

from .. import doors
from ..errors import MissingDependencyError
from ..hints import Hinting, missing_attribute
from ..runtime.frozen import with_late_field
from .usage import PaidResult, ServedBy, cost_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings(PaidResult, Hinting):
    """The vectors of some texts, in the order of the texts.

    `len()`, iteration and indexing work on `vectors`. `cost` is the real cost of this call in USD: 0 if all
    vectors came from the cache, None if it is unknown. `cost_source` and `price` are as for `Response`.
    `usage` is the sum over all texts. `cached` is true if all vectors came from the cache. `model` is the
    name that the provider reports. `failures` are the requests that were sent for this call and failed.

    >>> from llm_provider import Usage
    >>> embeddings = Embeddings(vectors=([0.6, 0.8], [1.0, 0.0]), usage=Usage(input_tokens=2), model="m",
    ...                         provider="p", cost=0.0)
    >>> embeddings
    Embeddings(2 vectors of 2 dimensions, model='m', tokens=2, $0.00)
    >>> embeddings[1]
    [1.0, 0.0]
    """

    vectors: tuple[list[float], ...]
    """Plain lists of floats. `numpy()` returns the same numbers in an eighth of the memory."""
    served_by: ServedBy | None = field(default=None, repr=False)
    """Who answered the first text, as for `Response`."""

    @property
    def dimensions(self) -> int:
        """How many numbers each vector has; 0 without vectors."""
        return len(self.vectors[0]) if self.vectors else 0

    def numpy(self) -> Any:
        """The vectors as a NumPy array: one row per text, float32.

        Raises:
            MissingDependencyError: NumPy is not installed.
        """
        try:
            import numpy
        except ImportError:
            raise MissingDependencyError("Embeddings.numpy() needs NumPy: pip install numpy") from None
        return numpy.array(self.vectors, dtype=numpy.float32).reshape(len(self.vectors), self.dimensions)

    def __len__(self) -> int:
        return len(self.vectors)

    def __iter__(self) -> Iterator[list[float]]:
        return iter(self.vectors)

    @overload
    def __getitem__(self, index: int) -> list[float]: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[list[float], ...]: ...

    def __getitem__(self, index: int | slice | str) -> list[float] | tuple[list[float], ...]:
        if isinstance(index, str):
            raise TypeError(f"{missing_attribute(self, index)}; embeddings[0] is the first vector")
        return self.vectors[index]

    def __repr__(self) -> str:
        return (
            f"Embeddings({self._size()}, model={self.model!r}, tokens={self.usage.input_tokens}, "
            f"{cost_text(self)})"
        )

    def _repr_html_(self) -> str:
        tokens, cost = f"{self.usage.input_tokens:,} tokens", cost_text(self)
        line = doors.html.small(self.provider, self.model, tokens, cost, f"{self.timing.total:.2f} s")
        return doors.html.block(doors.html.safe(self._size()), line)

    def _size(self) -> str:
        plural = "" if len(self.vectors) == 1 else "s"
        return f"{len(self.vectors)} vector{plural} of {self.dimensions} dimensions"


with_late_field(Embeddings, "served_by")
