"""The operation `count_tokens`: messages in, the number of their tokens by the provider's own count out.

Providers bill nothing for it, so no cost is recorded and no budget is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from .._providers import registry
from .._providers.adapter import Adapter, CountAnswer, EncodedRequest
from .._providers.facts import RequestFacts
from .._requests.routing import Target
from .._types.usage import Usage
from .call import Call, Operation, Sample
from .chat import CHAT

if TYPE_CHECKING:
    from .._cache.storage.entry import Entry


class Count(Operation[int]):
    """Counting of input tokens. It has one part."""

    name = "count_tokens"
    nests = False
    billed = False

    def encode(self, request: Any, target: Target, adapter: Adapter) -> EncodedRequest:
        """See `Operation.encode`. It refuses what a call refuses."""
        form = registry.load_token_counts(target)
        assert form is not None, "the caller has asked whether the provider counts"
        asked = CHAT.encode(request, target, adapter)
        encoded = form.encode(asked, target)
        encoded.uploads = asked.uploads
        return encoded

    def parts(self, request: Any) -> Sequence[int]:
        """See `Operation.parts`."""
        return (0,)

    def identity(self, call: Call[int], part: int) -> tuple[bytes, int]:
        """See `Operation.identity`."""
        return call.body, 0

    def groups(self, call: Call[int], parts: Sequence[int]) -> list[Sequence[int]]:
        """See `Operation.groups`."""
        return [parts]

    def body(self, call: Call[int], parts: Sequence[int]) -> bytes:
        """See `Operation.body`."""
        return call.body

    def prompt(self, call: Call[int], parts: Sequence[int]) -> bytes:
        """See `Operation.prompt`."""
        return call.body

    def facts(self, call: Call[int], parts: Sequence[int]) -> RequestFacts:
        """No facts: nothing is billed."""
        return RequestFacts(
            variant="standard",
            max_output_tokens=0,
            texts=(),
            media=(),
            turns=0,
            tools=(),
            schemas=(),
            adds_input=False,
        )

    def variant(self, call: Call[int]) -> str:
        """Counting has no service levels."""
        return "standard"

    def tokens(self, call: Call[int], parts: Sequence[int]) -> float:
        """Counted tokens do not count against a rate limit of tokens."""
        return 0.0

    def decode(self, call: Call[int], reply: Any, count: int) -> CountAnswer:
        """See `Operation.decode`."""
        form = registry.load_token_counts(call.target)
        assert form is not None, "`encode` has loaded it"
        return CountAnswer(form.decode(reply))

    def usage(self, call: Call[int], reply: Any) -> Usage | None:
        """Counting uses no tokens."""
        return None

    def split(self, call: Call[int], sample: Sample, parts: Sequence[int]) -> list[Sample]:
        """See `Operation.split`."""
        return [sample]

    def is_kept(self, answer: Any, kept: Collection[str]) -> bool:
        """A count is not stored on disk: another one costs nothing."""
        return False

    def stored(self, call: Call[int], entry: Entry, answer: Any, started: float) -> int:
        """See `Operation.stored`."""
        return int(answer.tokens)

    def result(self, call: Call[int], samples: Sequence[Sample]) -> int:
        """See `Operation.result`."""
        return int(samples[0].answer.tokens)


COUNT = Count()
