"""One `call()` reaches any language model: as fast as the wire, never paid twice, and with its cost.

The names below are loaded when they are first used (PEP 562), so that `import llm_provider` costs a script
next to nothing before it makes its first call.
"""

from __future__ import annotations

import os as _os
import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING

from ._types import raw_reader as _raw_reader

if TYPE_CHECKING:
    from typing import Any as _Any

    from ._batches.handle import Batch, BatchCounts
    from ._cache.response_cache import CacheWarning
    from ._cache.second_level.access import SecondLevelStatistics
    from ._cache.second_level.settings import SecondLevel, SecondLevelStore
    from ._cache.storage.maintenance import CacheStatistics, Explanation
    from ._calls.lifecycle.stream import AsyncStream, Stream
    from ._client.client import Client
    from ._client.functions import (
        acall,
        acall_many,
        aembed,
        aiter_many,
        astream,
        asubmit_many,
        batches,
        call,
        call_many,
        embed,
        iter_many,
        stream,
        submit_many,
        usage,
    )
    from ._client.model_functions import (
        acount_tokens,
        aestimate,
        ascore,
        count_tokens,
        estimate,
        models,
        price,
        recheck,
        score,
        score_many,
    )
    from ._errors import (
        APIConnectionError,
        APIResponseValidationError,
        APITimeoutError,
        AuthenticationError,
        BadRequestError,
        BatchError,
        BudgetExceededError,
        CacheMissError,
        ContextWindowExceededError,
        EvidenceError,
        FailedAttempt,
        InternalServerError,
        JSONSchemaValidationError,
        LengthFinishReasonError,
        LLMError,
        MissingAPIKeyError,
        MissingDependencyError,
        ModelDriftError,
        NotFoundError,
        OutputError,
        OverloadedError,
        PendingBatchError,
        PermissionDeniedError,
        ProviderError,
        QuotaExceededError,
        RateLimitError,
        RefusalError,
        RequestError,
        SchemaMismatchError,
        ScoreCheckError,
        ToolArgumentsError,
        ToolRoundsExceededError,
        UncertainBatchError,
        UnknownModelError,
        UnknownPriceError,
        UnsupportedParameterError,
    )
    from ._estimates.estimate import Estimate
    from ._estimates.estimates import Estimates
    from ._evidence.verification import verify
    from ._limits.scopes import ScopeStatistics
    from ._limits.shared_controller import SharedControllerWarning
    from ._limits.timeouts import Timeouts
    from ._money.budget import Budget
    from ._money.ledger import Ledger
    from ._money.ledger_file import LedgerWarning
    from ._money.model_drift import ModelDriftWarning
    from ._money.price_rows import PriceWarning
    from ._money.totals import LedgerRow
    from ._money.track import track
    from ._providers.shared.upstream import UnpinnedRouterWarning
    from ._recheck.report import Recheck
    from ._requests.api_keys import KeyWarning
    from ._requests.host import Host
    from ._requests.parameters import BatchParameters, EmbedParameters, Parameters, ScoreParameters
    from ._telemetry.observed_call import AskedCall
    from ._telemetry.telemetry import Telemetry
    from ._tokens.models import Model
    from ._tokens.range import Range
    from ._types.embeddings import Embeddings
    from ._types.evidence import Evidence
    from ._types.logprobs import TokenLogprob
    from ._types.messages import (
        Content,
        Delta,
        FinishReason,
        Message,
        Prompt,
        ToolCall,
        ToolCallDelta,
        ToolResult,
    )
    from ._types.passed_over import PassedOver
    from ._types.response import Choice, Response
    from ._types.results import Results
    from ._types.rich_content import Citation, GeneratedAudio, GeneratedImage, ServerToolCall
    from ._types.scores import Score, Scores
    from ._types.served_by import ServedBy
    from ._types.token_count import TokenCount
    from ._types.usage import Cost, Timing, Usage

__version__ = "0.1.0"

__all__ = [
    "APIConnectionError", "APIResponseValidationError", "APITimeoutError", "AskedCall", "AsyncStream",
    "AuthenticationError", "BadRequestError", "Batch", "BatchCounts", "BatchError", "BatchParameters",
    "Budget", "BudgetExceededError", "CacheMissError", "CacheStatistics", "CacheWarning", "Choice",
    "Citation", "Client", "Content", "ContextWindowExceededError", "Cost", "Delta", "EmbedParameters",
    "Embeddings", "Estimate", "Estimates", "Evidence", "EvidenceError", "Explanation", "FailedAttempt",
    "FinishReason", "GeneratedAudio", "GeneratedImage", "Host", "InternalServerError",
    "JSONSchemaValidationError", "KeyWarning", "LLMError", "Ledger", "LedgerRow", "LedgerWarning",
    "LengthFinishReasonError", "Message", "MissingAPIKeyError", "MissingDependencyError", "Model",
    "ModelDriftError", "ModelDriftWarning", "NotFoundError", "OutputError", "OverloadedError", "Parameters",
    "PassedOver", "PendingBatchError", "PermissionDeniedError", "PriceWarning", "Prompt", "ProviderError",
    "QuotaExceededError", "Range", "RateLimitError", "Recheck", "RefusalError", "RequestError", "Response",
    "Results", "SchemaMismatchError", "ScopeStatistics", "Score", "ScoreCheckError", "ScoreParameters",
    "Scores", "SecondLevel", "SecondLevelStatistics", "SecondLevelStore", "ServedBy", "ServerToolCall",
    "SharedControllerWarning", "Stream", "Telemetry", "Timeouts", "Timing", "TokenCount", "TokenLogprob",
    "ToolArgumentsError", "ToolCall", "ToolCallDelta", "ToolResult", "ToolRoundsExceededError",
    "UncertainBatchError", "UnknownModelError", "UnknownPriceError", "UnpinnedRouterWarning",
    "UnsupportedParameterError", "Usage", "acall", "acall_many", "acount_tokens", "aembed", "aestimate",
    "aiter_many", "ascore", "astream", "asubmit_many", "batches", "call", "call_many", "count_tokens",
    "embed", "estimate", "iter_many", "models", "price", "recheck", "score", "score_many", "stream",
    "submit_many", "track", "usage", "verify",
]  # fmt: skip

# The modules are searched in this order. Those that import asyncio come last.
_HOMES = (
    "_client.functions", "_client.model_functions", "_client.client",
    "_types.response", "_types.usage", "_types.messages", "_types.embeddings", "_types.rich_content",
    "_types.passed_over", "_types.logprobs", "_types.results", "_types.scores", "_types.served_by",
    "_types.token_count", "_errors",
    "_limits.timeouts", "_requests.api_keys", "_cache.response_cache",
    "_cache.second_level.settings", "_cache.second_level.access",
    "_money.price_rows", "_money.track", "_money.ledger", "_money.ledger_file",
    "_money.model_drift", "_tokens.range", "_tokens.models", "_calls.lifecycle.stream", "_limits.scopes",
    "_estimates.estimate", "_estimates.estimates", "_money.budget", "_telemetry.telemetry",
    "_telemetry.observed_call", "_requests.host", "_requests.parameters", "_limits.shared_controller",
    "_batches.handle", "_providers.shared.upstream", "_recheck.report", "_evidence.verification",
    "_cache.storage.maintenance",
)  # fmt: skip


def _warn_of_the_other_distribution() -> None:
    """Warn if `llm-provider` of the package index is installed too: its files replace those of this package.

    Its metadata lies in a folder of a fixed name. To import `importlib.metadata` takes longer than all the
    rest of this module.
    """
    for folder in _sys.path:
        if folder.endswith("-packages"):
            try:
                names = _os.listdir(folder)  # noqa: PTH208 - pathlib takes long to import
            except OSError:
                continue
            if any(name.startswith("llm_provider-") and name.endswith(".dist-info") for name in names):
                import warnings

                warnings.warn(
                    f"another project named 'llm-provider' is installed in {folder}, and has the same import "
                    "name as this one: pip uninstall llm-provider, then pip install --force-reinstall "
                    "llm-provider-call (or . in a checkout)",
                    stacklevel=3,
                )
                return


_warn_of_the_other_distribution()


def _import_when_called(module: str, name: str) -> _Any:
    """A function of another module, which its first call imports."""

    def call(*arguments: _Any) -> _Any:
        return getattr(_import_module(f"{__name__}.{module}"), name)(*arguments)

    return call


_raw_reader.export = _import_when_called("_client.evidence", "export_results")
_raw_reader.read = _import_when_called("_providers.shared.rich_content", "read")
_raw_reader.read_served_by = _import_when_called("_providers.shared.served_by", "read_served_by")

if hasattr(_os, "register_at_fork"):
    # Here, because another thread may import the rest of the package for the first time.
    _os.register_at_fork(before=_import_when_called("_runtime.forks", "wait_for_imports"))


def __getattr__(name: str) -> object:
    if name in __all__:
        from ._runtime.imports import hold_interrupts

        with hold_interrupts():
            for home in _HOMES:
                names = vars(_import_module(f"{__name__}.{home}"))
                if name in names:
                    globals()[name] = names[name]
                    return names[name]
    from ._foreign_attributes import remedy_for

    remedy = remedy_for((__name__,), name, __all__)
    caller = _sys._getframe(1)  # noqa: SLF001 - the documented way to see the caller, and quick
    if remedy and caller.f_code.co_filename == "<frozen importlib._bootstrap>":
        # `from llm_provider import name` would replace the message of an AttributeError.
        raise ImportError(
            f"cannot import name {name!r} from {__name__!r}{remedy}", name=__name__, path=__file__
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{remedy}")


class _Module(_ModuleType):
    """The class of this module. A setting that is an attribute of it, as in litellm, would have no effect."""

    def __setattr__(self, name: str, value: object) -> None:
        # The import system sets each module of the package.
        known = name.startswith("_") or name in __all__ or name in globals()
        if not known and not isinstance(value, _ModuleType):
            from ._requests.foreign_names import describe_setting
            from ._requests.parameter_table import CHECKS

            raise AttributeError(describe_setting(__name__, name, CHECKS))
        super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Module


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
