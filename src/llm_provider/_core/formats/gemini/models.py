"""What each family of Gemini's models accepts, and the version of the API that the user chooses."""

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import RequestError

LEVELS = {"low": "low", "medium": "medium", "high": "high"}
_FROM_MINIMAL = {"minimal": "minimal", **LEVELS}

# In tokens; the budgets that Google's own OpenAI-compatible endpoint uses for `reasoning_effort` on 2.5.
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}


@dataclass(frozen=True, slots=True)
class Family:
    """What a family of models accepts.

    `efforts` maps each level of `reasoning_effort` to the model's thinking level (a word) or thinking budget
    (tokens); it is empty where the model does not think. `sampling` says whether temperature and top_p exist,
    `signed` whether function calls in the history need a signature, `version` which API serves the model,
    `budget` whether a model with levels takes a thinking budget too, and one without thinking a budget of 0.
    """

    pattern: str
    efforts: Mapping[str, str | int] = field(default_factory=dict)
    sampling: bool = True
    signed: bool = True
    version: str = "v1"
    budget: bool = False


# The first match counts. Levels and sampling come from Google's guides and litellm 1.106's model table,
# November 2026. Only v1beta serves the aliases that move on to newer models.
_FAMILIES = (
    # Takes a budget of 0, and answers 400 to others: googleapis/js-genai#681.
    Family(r"gemini-2\.0.*", signed=False, budget=True),
    Family(r"gemini-1.*|gemini-2\.5-.*(image|tts).*|gemma-[1-3].*|learnlm-.*|lyria-.*", signed=False),
    Family(r"gemini-2\.5-pro.*", efforts=_BUDGETS, signed=False),
    Family(r"gemini-2\.5-.*", efforts={"none": 0, **_BUDGETS}, signed=False),
    Family(r"gemini-.*-latest", efforts=LEVELS, version="v1beta"),
    Family(r"gemini-3-pro.*", efforts={"low": "low", "high": "high"}, budget=True),
    Family(r"gemini-3\.1-pro.*", efforts=LEVELS, budget=True),
    Family(r"gemini-3\.5-flash-lite.*|gemini-3\.6-flash.*", efforts=_FROM_MINIMAL, sampling=False),
    Family(r"gemini-3\.[78]-flash.*", efforts=LEVELS, sampling=False),
    Family(r"gemini-3.*", efforts=_FROM_MINIMAL, budget=True),
    Family(r"gemini-4.*", efforts={**LEVELS, "xhigh": "xhigh"}),
    Family(r"gemma-.*", efforts=_FROM_MINIMAL, signed=False),
    # For a model newer than this table, the provider decides which levels it accepts.
    Family(r".*", efforts={**_FROM_MINIMAL, "xhigh": "xhigh"}, budget=True),
)


@functools.lru_cache(maxsize=1024)
def family_of(model: str) -> Family:
    return next(family for family in _FAMILIES if re.fullmatch(family.pattern, model))


_VERSION = re.compile(r"v\d[a-z0-9]*")
_VARIABLE = "GOOGLE_GENAI_API_VERSION"


@functools.lru_cache(maxsize=256)
def split_version(base_url: str | None) -> tuple[str | None, str | None]:
    """A server's base URL without the version of the API at its end, and that version."""
    server, _, last = (base_url or "").rpartition("/")
    return (server, last) if _VERSION.fullmatch(last) and not server.endswith("/") else (base_url, None)


def choose_version(base_url: str | None) -> str | None:
    """The version at the end of the base URL, else the version in the SDK's `GOOGLE_GENAI_API_VERSION`."""
    version = split_version(base_url)[1] or os.environ.get(_VARIABLE, "").strip()
    if version == "beta":
        return "v1beta"
    if version and not _VERSION.fullmatch(version):
        raise RequestError(
            f"{_VARIABLE} must be a version such as 'v1beta', not {version!r}", provider="gemini"
        )
    return version or None
