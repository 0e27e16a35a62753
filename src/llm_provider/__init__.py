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

from ._core import doors as _doors

if TYPE_CHECKING:
    from typing import Any as _Any

    from ._core.batches.handle import Batch, BatchCounts
    from ._core.client.client import Client
    from ._core.client.functions import (
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
    from ._core.client.model_functions import (
        acount_tokens,
        adecide,
        adecide_many,
        aestimate,
        ascore,
        count_tokens,
        decide,
        decide_many,
        estimate,
        models,
        price,
        recheck,
        score,
        score_many,
    )
    from ._core.errors import (
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
        TooManyErrorsError,
        UncertainBatchError,
        UnknownModelError,
        UnknownPriceError,
        UnsupportedParameterError,
    )
    from ._core.events.events import AskedCall
    from ._core.journey.stream import AsyncStream, Stream
    from ._core.money.budget import Budget
    from ._core.money.ledger import Ledger, track
    from ._core.money.ledger_file import LedgerWarning
    from ._core.money.model_drift import ModelDriftWarning
    from ._core.money.price_rows import PriceWarning
    from ._core.money.totals import LedgerRow
    from ._core.pace.call_limits import Timeouts
    from ._core.pace.scopes import ScopeStatistics
    from ._core.requests.api_keys import KeyWarning
    from ._core.requests.parameters import (
        BatchParameters,
        DecideParameters,
        EmbedParameters,
        Parameters,
        ScoreParameters,
    )
    from ._core.store.response_cache import CacheStatistics, CacheWarning
    from ._core.tokens.counting import Range
    from ._core.types.embeddings import Embeddings
    from ._core.types.messages import (
        Content,
        Delta,
        FinishReason,
        Message,
        Prompt,
        ToolCall,
        ToolCallDelta,
        ToolResult,
    )
    from ._core.types.response import Choice, Response
    from ._core.types.results import Results
    from ._core.types.usage import Cost, ServedBy, Timing, TokenLogprob, Usage
    from ._features.cache_care.maintenance import Explanation
    from ._features.decide.calibration import (
        Agreement,
        Reliability,
        brier_score,
        cohen_kappa,
        reliability,
    )
    from ._features.decide.decisions import Decision, Decisions
    from ._features.decide.questions import Question, choice, predicate, score_levels
    from ._features.estimates.estimate import Estimate
    from ._features.estimates.estimates import Estimates
    from ._features.evaluation.summary import Comparison, compare
    from ._features.evaluation.tables import ScoreTable
    from ._features.evidence.container import Evidence
    from ._features.evidence.verification import verify
    from ._features.fallback.passed_over import PassedOver
    from ._features.hosts.host import Host
    from ._features.mcp.server import mcp
    from ._features.models.known_models import Model
    from ._features.models.token_count import TokenCount
    from ._features.pictures.request_timeline import RequestTimeline
    from ._features.quirks.routers import UnpinnedRouterWarning
    from ._features.recheck.report import Recheck
    from ._features.rich_content.values import (
        Citation,
        GeneratedAudio,
        GeneratedImage,
        PromptCacheMiss,
        ServerToolCall,
    )
    from ._features.score.scores import Score, Scores
    from ._features.second_level.access import SecondLevelStatistics
    from ._features.second_level.settings import SecondLevel, SecondLevelStore
    from ._features.shared_pace.shared_controller import SharedControllerWarning
    from ._features.telemetry.observer import Telemetry
    from ._features.user_limits.limit import Limit

__version__ = "0.1.0"

__all__ = [
    "APIConnectionError", "APIResponseValidationError", "APITimeoutError", "Agreement", "AskedCall",
    "AsyncStream", "AuthenticationError", "BadRequestError", "Batch", "BatchCounts", "BatchError",
    "BatchParameters", "Budget", "BudgetExceededError", "CacheMissError", "CacheStatistics", "CacheWarning",
    "Choice", "Citation", "Client", "Comparison", "Content", "ContextWindowExceededError", "Cost",
    "DecideParameters",
    "Decision", "Decisions", "Delta", "EmbedParameters", "Embeddings", "Estimate", "Estimates", "Evidence",
    "EvidenceError", "Explanation", "FailedAttempt", "FinishReason", "GeneratedAudio", "GeneratedImage",
    "Host", "InternalServerError", "JSONSchemaValidationError", "KeyWarning", "LLMError", "Ledger",
    "LedgerRow", "LedgerWarning", "LengthFinishReasonError", "Limit", "Message", "MissingAPIKeyError",
    "MissingDependencyError", "Model", "ModelDriftError", "ModelDriftWarning", "NotFoundError", "OutputError",
    "OverloadedError", "Parameters", "PassedOver", "PendingBatchError", "PermissionDeniedError",
    "PriceWarning", "Prompt", "PromptCacheMiss",
    "ProviderError", "Question", "QuotaExceededError", "Range", "RateLimitError",
    "Recheck", "RefusalError", "Reliability", "RequestError",
    "RequestTimeline", "Response", "Results", "SchemaMismatchError",
    "ScopeStatistics", "Score", "ScoreCheckError", "ScoreParameters", "ScoreTable", "Scores",
    "SecondLevel",
    "SecondLevelStatistics", "SecondLevelStore", "ServedBy", "ServerToolCall", "SharedControllerWarning",
    "Stream", "Telemetry", "Timeouts", "Timing", "TokenCount", "TokenLogprob", "TooManyErrorsError",
    "ToolArgumentsError",
    "ToolCall", "ToolCallDelta", "ToolResult", "ToolRoundsExceededError", "UncertainBatchError",
    "UnknownModelError", "UnknownPriceError", "UnpinnedRouterWarning", "UnsupportedParameterError", "Usage",
    "acall", "acall_many", "acount_tokens", "adecide", "adecide_many", "aembed", "aestimate", "aiter_many",
    "ascore", "astream", "asubmit_many", "batches", "brier_score", "call", "call_many", "choice",
    "cohen_kappa", "compare", "count_tokens", "decide", "decide_many", "embed", "estimate", "iter_many",
    "mcp", "models", "predicate", "price", "recheck", "reliability", "score", "score_levels", "score_many",
    "stream", "submit_many", "track", "usage", "verify",
]  # fmt: skip

# The modules are searched in this order. Those that import asyncio come last.
_HOMES = (
    "_core.client.functions", "_core.client.model_functions", "_core.client.client", "_core.types.response",
    "_core.types.usage", "_core.types.messages", "_core.types.embeddings", "_features.rich_content.values",
    "_features.fallback.passed_over", "_core.types.results",
    "_features.score.scores", "_features.decide.decisions", "_features.decide.questions",
    "_features.decide.calibration", "_features.models.token_count", "_core.errors",
    "_core.pace.call_limits", "_core.requests.api_keys", "_core.store.response_cache",
    "_features.second_level.settings",
    "_features.second_level.access", "_core.money.price_rows", "_core.money.ledger",
    "_core.money.ledger_file", "_core.money.model_drift", "_core.tokens.counting",
    "_features.mcp.server", "_features.models.known_models", "_core.journey.stream", "_core.pace.scopes",
    "_features.estimates.estimate", "_features.estimates.estimates", "_core.money.budget",
    "_features.telemetry.observer", "_core.events.events", "_features.hosts.host",
    "_features.user_limits.limit", "_core.requests.parameters",
    "_features.shared_pace.shared_controller", "_core.batches.handle",
    "_features.quirks.routers", "_features.recheck.report", "_features.evidence.verification",
    "_features.evaluation.summary", "_features.evaluation.tables", "_features.cache_care.maintenance",
    "_features.pictures.request_timeline",
)  # fmt: skip


def _warn_of_the_other_distribution() -> None:
    """Warn if `llm-provider` of the package index is installed too: its files replace this package's.

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

if type(globals().get("__loader__")).__name__ == "zipimporter":
    raise ImportError(
        "llm_provider reads files beside its modules, and cannot run from a zip file: unpack it"
    )


def _import_when_called(module: str, name: str) -> _Any:
    """A function of another module, which its first call imports."""

    def call(*arguments: _Any) -> _Any:
        return getattr(_import_module(f"{__name__}.{module}"), name)(*arguments)

    return call


_doors.read_served_by = _import_when_called("_core.formats.shared.payload", "read_served_by")

if hasattr(_os, "register_at_fork"):
    # Here, because another thread may import the rest of the package for the first time.
    _os.register_at_fork(before=_import_when_called("_core.runtime.forks", "wait_for_holders"))


class _OldNames:
    """The finder of modules that pickles name as they were called in earlier versions."""

    @staticmethod
    def find_spec(name: str, *_: object) -> _Any:
        return _find_moved(name) if name.startswith(f"{__name__}.") else None


_find_moved = _import_when_called("_core.runtime.moved", "find_spec")
_sys.meta_path.append(_OldNames)


def __getattr__(name: str) -> object:
    if name in __all__:
        from ._core.runtime.imports import hold_interrupts

        with hold_interrupts():
            for home in _HOMES:
                names = vars(_import_module(f"{__name__}.{home}"))
                if name in names:
                    globals()[name] = names[name]
                    return names[name]
    from ._core.hints import remedy_for

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
            from ._core.requests.parameter_table import CHECKS
            from ._features.foreign.remedies import describe_setting

            raise AttributeError(describe_setting(__name__, name, CHECKS))
        super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Module


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
