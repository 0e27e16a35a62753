"""The providers that litellm knows, read from its files, as its import takes seconds."""

import functools
import importlib.util
import os
import re
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from ..._core.errors import UnknownModelError
from ..._core.requests.routing import ROUTES

_FILES = {
    # The values of an `Enum`, then the providers that a file describes, then the prefixes of listed models.
    "types/utils.py": r'^    [A-Z0-9_]+ = "([\w.-]+)"',
    "llms/openai_like/providers.json": r'^  "([\w.-]+)": \{',
    "model_prices_and_context_window_backup.json": r'(?:^    "|"litellm_provider": ")([\w.-]+)[/"]',
}

_PLAIN = re.compile(r"petals-team/.*|.*:[0-9a-f]{64}")
"""Models of petals and of replicate, which litellm takes without their prefix."""


@functools.cache
def _read_providers() -> frozenset[str] | None:
    """The names in the files of the installed litellm; None without it, or if it has other files."""
    names = set[str]()
    with suppress(OSError, ValueError):
        spec = importlib.util.find_spec("litellm")
        if spec is not None and spec.origin is not None:
            for name, pattern in _FILES.items():
                text = (Path(spec.origin).parent / name).read_text("utf-8")
                if not (matches := re.findall(pattern, text, re.MULTILINE)):
                    return None
                names.update(matches)
    return frozenset(names) or None


def _knows(model: str) -> bool:
    """Whether litellm, which the program has imported, knows a model, perhaps by what was registered."""
    from .connection import load

    try:
        return model in (litellm := load()).model_alias_map or bool(litellm.get_llm_provider(model=model))
    except Exception as error:
        return type(error).__name__ != "BadRequestError"


def check_provider(model: str, hosts: Collection[str]) -> None:
    """Raise `UnknownModelError` for a model whose prefix neither a host of the user's nor litellm has."""
    import difflib

    prefix, known = model.partition("/")[0], _read_providers()
    if prefix in (known or ()) or _PLAIN.fullmatch(model):
        return
    if os.environ.get("USE_LITELLM_PROXY") or ("litellm" in sys.modules and _knows(model)):
        return
    near = difflib.get_close_matches(prefix.lower(), hosts, n=1)
    if known is None and not near:
        return
    near = near or difflib.get_close_matches(prefix.lower(), [*ROUTES, *(known or ())], n=1)
    guess = f"; did you mean {near[0]}/?" if near else ""
    is_set = os.environ.get("LLM_PROVIDER_HOSTS", "").strip()
    own = f"hosts of your own: {', '.join(sorted(hosts)) or 'none'}"
    own = own if hosts or is_set else "LLM_PROVIDER_HOSTS is not set, so there are no hosts of your own"
    raise UnknownModelError(f"no host or provider {prefix!r} is known{guess} ({own})", model=model)
