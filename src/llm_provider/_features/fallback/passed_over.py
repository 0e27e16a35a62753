"""`PassedOver`: a model that did not answer, so that the next one of `fallback` did.

It is alone because results read from a file have it too, without the modules that send calls.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A model that did not answer a call, whose `fallback` has others.

    Attributes:
        model: Its name as the user gave it.
        error: The class of its error, such as "RateLimitError". "RefusalError" also stands for an answer that
            refuses. "CacheMissError" says that its answer is not stored, and the answer of a later model is.
        status: The HTTP status of the last request, where that failed with one.
        message: What the provider or this library says of it.

    >>> PassedOver(model="gpt-6.1-sol", error="OverloadedError", status=503)
    PassedOver(model='gpt-6.1-sol', error='OverloadedError', status=503, message='')
    """

    model: str
    error: str
    status: int | None = None
    message: str = ""
