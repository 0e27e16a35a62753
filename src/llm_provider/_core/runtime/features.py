"""The features that the core uses: name → the module that has it, imported by the first call that needs it.

Nothing else in the core names a module of a feature. What the core expects of each is said in this table.
It is a file of its own, as the test of the layers knows it as the only door.
"""

import functools
import importlib
from typing import Any

_MODULES = {
    # `SCORE`: the operation.
    "score": "llm_provider._features.score.operation",
    # `parse_scores`: the arguments of `score_many`.
    "score_many": "llm_provider._features.score.score_many",
    # `Score`, `Scores`, a result that makes its own rows, and `read_entry`, which reads a cache entry.
    "scores": "llm_provider._features.score.scores",
    # `make_relay`: the `Relay` of a call.
    "fallback": "llm_provider._features.fallback.fallback",
    # `read`: the models before the one that answered, from JSON.
    "passed_over": "llm_provider._features.fallback.passed_over",
    # `find_models`: the models of the tables, or of a provider's own list.
    "models": "llm_provider._features.models.list_models",
    # `LISTS`: adapter → what asks for the models that a key reaches.
    "model_lists": "llm_provider._features.models.model_lists",
    # `count_and_wait`, `count_soon`: the tokens of a request.
    "token_counts": "llm_provider._features.models.client_methods",
}

RELAYS = ("fallback",)
"""Parameters of a call whose feature makes the calls that are asked in its place."""


@functools.cache
def load(name: str) -> Any:
    """The module of a feature."""
    return importlib.import_module(_MODULES[name])
