"""`RequestFacts`: what money, token and limit code needs to know of a request, which each adapter reads."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...json_values import JSONObject

_VARIANTS = frozenset({"fast", "flex", "priority", "ultrafast"})
"""The service levels that providers call by the same names as `prices.csv`."""


class Medium(NamedTuple):
    """An image, a recording, a film or a document in a request.

    `kind` is "image", "audio", "video" or "application". `data` is the base64 text of an image, None if the
    request holds only its address. `detail` is the resolution at which a model looks at an image: "low",
    "medium", "high", "ultra_high" (Gemini) or "original" (OpenAI). Any other value leaves it to the provider.
    """

    kind: str
    data: str | None
    detail: str = "auto"


MediumOf: TypeAlias = Callable[[JSONObject], Medium | None]
"""Returns the medium in one part of a message, None if the part holds text."""


class SpecialPrices(NamedTuple):
    """Which special prices may apply to a request, beside the prices of its media."""

    caches_for_an_hour: bool = False
    """Whether the provider may keep a part of the prompt in its cache for an hour."""
    speaks: bool = False
    """Whether the answer may hold speech."""
    continues_speech: bool = False
    """Whether an earlier answer in the conversation may hold speech, which the provider bills as input."""


class RequestFacts(NamedTuple):
    """Facts about one request. The sequences may be the payload's own, so nobody may change them."""

    variant: str
    """The service level that the request asks for, by its name in `prices.csv`."""
    max_output_tokens: int | None
    """The longest answer that the request allows, in tokens; None if it sets no limit."""
    texts: Sequence[str]
    media: Sequence[Medium]
    turns: int
    """Messages of the conversation, a system prompt included."""
    tools: Sequence[Any]
    schemas: Sequence[Any]
    """Formats that the answer must have."""
    adds_input: bool
    """Whether the provider adds input of unknown length: search results, stored conversations, files."""
    prediction: Any = None
    """A predicted answer. The provider bills the wrong part of it as output."""
    continued: int = 0
    """Tokens of the answer so far, which a request that continues it reads too."""
    special_prices: Callable[[], SpecialPrices] = SpecialPrices
    """Finds the special prices that may apply. Only budgets need them, and finding them takes a while."""

    @property
    def structures(self) -> Sequence[Any]:
        """All tools as one value, and each schema: JSON that a model reads as some kind of code."""
        return (self.tools, *self.schemas) if self.tools else self.schemas


class Conversation:
    """Collects texts and media of messages, or lists of them. `labels` are fields that no model is shown."""

    __slots__ = ("_labels", "_medium_of", "media", "texts", "turns")

    def __init__(self, labels: frozenset[str], medium_of: MediumOf, groups: Iterable[Any]) -> None:
        self._labels = labels
        self._medium_of = medium_of
        self.texts: list[str] = []
        self.media: list[Medium] = []
        self.turns = 0
        for turns in groups:
            if turns is not None:
                self.turns += len(turns) if isinstance(turns, (list, tuple)) else 1
                self._collect(turns)

    def _collect(self, value: Any) -> None:
        if isinstance(value, str):
            # A data URL too, if it stands in place of a text: the model reads it as text.
            self.texts.append(value)
        elif isinstance(value, dict):
            medium = self._medium_of(value)
            if medium is None:
                for name, inner in value.items():
                    if name not in self._labels:
                        self._collect(inner)
            else:
                self.media.append(medium)
        elif isinstance(value, (list, tuple)):
            for inner in value:
                self._collect(inner)


def variant_of(tier: object) -> str | None:
    """The name in `prices.csv` of a provider's service level; None if there is none to name.

    The price table has no rows for other names than these: their requests pay the standard price.
    """
    if not isinstance(tier, str) or not tier:
        return None
    return tier if tier in _VARIANTS else "standard"


def largest_limit(*limits: object) -> int | None:
    """The largest of the limits that a payload sets; None if it sets none."""
    return max((limit for limit in limits if isinstance(limit, int)), default=None)


def find_words(payload: JSONObject, *words: str) -> set[str]:
    """The words that are a text or a field's name anywhere in a payload."""
    result: set[str] = set()
    remaining: list[Any] = [payload]
    while remaining:
        value = remaining.pop()
        if isinstance(value, str):
            # Looking a text up in a set would hash it, and images are long texts.
            if value in words:
                result.add(value)
        elif isinstance(value, dict):
            remaining += value
            remaining += value.values()
        elif isinstance(value, (list, tuple)):
            remaining += value
    return result
