"""`TokenCount`: the number of tokens of a request, and how it was found."""

from typing import Any, Literal, Self, TypeAlias

CountMethod: TypeAlias = Literal["provider", "tiktoken", "estimate"]
"""How tokens were counted: by the provider, with OpenAI's own vocabulary on this machine, or estimated."""


class TokenCount(int):
    """The input tokens of a request. It is an `int`, and knows how it was found.

    `exact` tells whether it is the number that the provider counts. `method` is "provider" if the provider
    has counted, "tiktoken" if the texts were counted with the vocabulary of the model, and "estimate"
    otherwise. The true number is between `low` and `high`, which are equal to the count if it is exact.

    >>> count = TokenCount(12, method="estimate", low=9, high=16)
    >>> count, count + 1, count.exact
    (TokenCount(12, method='estimate', low=9, high=16), 13, False)
    >>> TokenCount(12, method="provider")
    TokenCount(12, method='provider')
    """

    method: CountMethod
    low: int
    high: int

    def __new__(
        cls, tokens: int, *, method: CountMethod, low: int | None = None, high: int | None = None
    ) -> Self:
        self = super().__new__(cls, tokens)
        self.method = method
        self.low = tokens if low is None else low
        self.high = tokens if high is None else high
        return self

    @property
    def exact(self) -> bool:
        """Whether it is the number that the provider counts."""
        return self.low == self.high

    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, Any]]:
        return (int(self),), {"method": self.method, "low": self.low, "high": self.high}

    def __repr__(self) -> str:
        bounds = "" if self.exact else f", low={self.low}, high={self.high}"
        return f"TokenCount({int(self)}, method={self.method!r}{bounds})"

    def __str__(self) -> str:
        return str(int(self))
