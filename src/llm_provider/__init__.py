"""One `call()` reaches any language model: as fast as the wire, never paid twice, and with its cost.

The names below are loaded when they are first used (PEP 562), so that `import llm_provider` costs a script
next to nothing before it makes its first call.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._api import (
        acall,
        acall_many,
        aiter_many,
        astream,
        call,
        call_many,
        estimate,
        iter_many,
        price,
        stream,
        usage,
    )
    from ._budget import Budget
    from ._cache import CacheStatistics, CacheWarning
    from ._client import Client
    from ._drift import ModelDriftWarning
    from ._errors import (
        Authentication,
        BadRequest,
        BadResponse,
        BatchError,
        BudgetExceeded,
        CacheMiss,
        Connection,
        ContextLengthExceeded,
        FailedAttempt,
        LLMError,
        MissingAPIKey,
        MissingDependency,
        ModelDrift,
        NotFound,
        OutputError,
        Overloaded,
        PermissionDenied,
        ProviderError,
        QuotaExhausted,
        RateLimited,
        Refused,
        RequestError,
        SchemaMismatch,
        ServerError,
        Timeout,
        Truncated,
        UnknownModel,
        UnknownPrice,
        UnsupportedParameter,
    )
    from ._estimate import Estimate
    from ._keys import KeyWarning
    from ._ledger import Ledger
    from ._ledger_file import LedgerWarning
    from ._ledger_rows import LedgerRow
    from ._limits import ScopeStatistics
    from ._pricing import PriceWarning
    from ._range import Range
    from ._request import BatchParameters, Parameters
    from ._shared_control import SharedControlWarning
    from ._stream import AsyncStream, Stream
    from ._timeouts import Timeouts
    from ._track import track
    from ._types import (
        Choice,
        Delta,
        FinishReason,
        Message,
        Prompt,
        Response,
        Timing,
        ToolCall,
        ToolCallDelta,
        Usage,
    )
    from .storage._miss import Explanation

__version__ = "0.1.0"

__all__ = [
    "AsyncStream",
    "Authentication",
    "BadRequest",
    "BadResponse",
    "BatchError",
    "BatchParameters",
    "Budget",
    "BudgetExceeded",
    "CacheMiss",
    "CacheStatistics",
    "CacheWarning",
    "Choice",
    "Client",
    "Connection",
    "ContextLengthExceeded",
    "Delta",
    "Estimate",
    "Explanation",
    "FailedAttempt",
    "FinishReason",
    "KeyWarning",
    "LLMError",
    "Ledger",
    "LedgerRow",
    "LedgerWarning",
    "Message",
    "MissingAPIKey",
    "MissingDependency",
    "ModelDrift",
    "ModelDriftWarning",
    "NotFound",
    "OutputError",
    "Overloaded",
    "Parameters",
    "PermissionDenied",
    "PriceWarning",
    "Prompt",
    "ProviderError",
    "QuotaExhausted",
    "Range",
    "RateLimited",
    "Refused",
    "RequestError",
    "Response",
    "SchemaMismatch",
    "ScopeStatistics",
    "ServerError",
    "SharedControlWarning",
    "Stream",
    "Timeout",
    "Timeouts",
    "Timing",
    "ToolCall",
    "ToolCallDelta",
    "Truncated",
    "UnknownModel",
    "UnknownPrice",
    "UnsupportedParameter",
    "Usage",
    "acall",
    "acall_many",
    "aiter_many",
    "astream",
    "call",
    "call_many",
    "estimate",
    "iter_many",
    "price",
    "stream",
    "track",
    "usage",
]

# Those last that load asyncio.
_HOMES = (
    "_api", "_client", "_types", "_errors", "_timeouts", "_request", "_cache", "_keys", "_pricing",
    "storage._miss",
    "_range", "_track", "_ledger", "_ledger_rows", "_ledger_file", "_drift", "_stream", "_limits",
    "_estimate", "_budget",
    "_shared_control",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in __all__:
        for home in _HOMES:
            names = vars(_import_module(f"{__name__}.{home}"))
            if name in names:
                globals()[name] = names[name]
                return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
