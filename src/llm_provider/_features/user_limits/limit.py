"""`Limit`: a user's own limit of requests, of tokens and of requests at once."""

from dataclasses import asdict, dataclass

from ..._core.errors import RequestError, cite
from ..._core.json_values import plain_number

LimitKey = tuple[str, str]
"""A provider and a group of models; "*" for all."""

_MOST = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit of your own for one key of `Client(limits=)`. It comes on top of what the rate control learns.

    `rpm` are requests that start, and `tpm` tokens that are read and written, in any 60 seconds, and
    `concurrent` are requests in flight. What is None is not limited.

    Raises:
        RequestError: a value is no int above 0, or none is given.

    >>> Limit(rpm=500, concurrent=20)
    Limit(rpm=500, tpm=None, concurrent=20)
    """

    rpm: int | None = None
    tpm: int | None = None
    concurrent: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            plain = plain_number(value)
            if value is not None and (not isinstance(plain, int) or not 0 < plain <= _MOST):
                raise RequestError(f"{name} must be an int above 0, not {cite(value)}: leave it out for none")
        if self.rpm is self.tpm is self.concurrent is None:
            raise RequestError("a Limit without a number limits nothing: give rpm, tpm or concurrent")

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in asdict(self).items() if value is not None)
