"""Old names of modules, which pickles of earlier versions have: responses, results, errors and other values.

A pickle names the module of each class and function in it. The finder of `llm_provider`, the last one of all,
is asked for names that no other finder has, and loads this module for names of this package alone.
"""

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = f"{__name__.partition('.')[0]}."

MOVED: dict[str, str] = {
    "_batches.handle": "_core.batches.handle",
    "_cache.response_cache": "_core.store.response_cache",
    "_cache.second_level.access": "_features.second_level.access",
    "_cache.second_level.settings": "_features.second_level.settings",
    "_cache.second_level.valkey_store": "_features.second_level.valkey_store",
    "_cache.statistics": "_core.store.response_cache",
    "_cache.storage.diff": "_features.cache_care.maintenance",
    "_cache.storage.maintenance": "_features.cache_care.maintenance",
    "_cli.main": "_features.cli.main",
    "_client.client": "_core.client.client",
    "_client.pickling": "_core.client.pickling",
    "_errors": "_core.errors",
    "_estimates.estimate": "_features.estimates.estimate",
    "_estimates.estimates": "_features.estimates.estimates",
    "_limits.scopes": "_core.pace.scopes",
    "_limits.timeouts": "_core.pace.call_limits",
    "_money.budget": "_core.money.budget",
    "_money.ledger": "_core.money.ledger",
    "_money.ledger_rows": "_core.money.totals",
    "_recheck.report": "_features.recheck.report",
    "_requests.host": "_features.hosts.host",
    "_requests.parameters": "_core.requests.parameters",
    "_telemetry.observed_call": "_core.events.events",
    "_telemetry.telemetry": "_features.telemetry.observer",
    "_tokens.models": "_features.models.known_models",
    "_tokens.range": "_core.tokens.counting",
    "_types.embeddings": "_core.types.embeddings",
    "_types.evidence": "_features.evidence.container",
    "_types.logprobs": "_core.types.usage",
    "_types.messages": "_core.types.messages",
    "_types.passed_over": "_features.fallback.passed_over",
    "_types.response": "_core.types.response",
    "_types.results": "_core.types.results",
    "_types.rich_content": "_features.rich_content.values",
    "_types.scores": "_features.score.scores",
    "_types.served_by": "_core.types.usage",
    "_types.token_count": "_features.models.token_count",
    "_types.usage": "_core.types.usage",
}
"""Old name → present name, both without `llm_provider`. It has the modules of all public classes, and of the
functions that make their values, and the program: an editable install has the script of its first day."""


def find_spec(name: str) -> ModuleSpec | None:
    """The module of an old name, or the folder that had one; None for every other name."""
    old = name.removeprefix(PACKAGE)
    if old in MOVED:
        return ModuleSpec(name, _Alias())
    # It is an empty package. With the path of a present one, its modules would be loaded a second time.
    is_folder = any(each.startswith(f"{old}.") for each in MOVED)
    return ModuleSpec(name, None, is_package=True) if is_folder else None


class _Alias(Loader):
    """Loads the present module, and gives it the old name too."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Take a new module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(PACKAGE + MOVED[module.__name__.removeprefix(PACKAGE)])
