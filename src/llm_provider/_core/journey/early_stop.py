"""What the failures of a batch mean: all calls fail for one reason, or a few inputs are the reason.

In the first case the batch is stopped before every input is sent in vain. A call counts when it has failed
for good, with the last key of its pool. In the second one, where every other call is answered or stored, the
inputs are the suspects and not the provider: the batch does not wait for the end of an outage that there is
not.
"""

import contextlib
import re

from .. import errors
from ..pace.failure_table import consequence_of
from ..runtime.warning import warn_user

ENOUGH_FAILURES = 3
"""Failures in a row with the same error, without an answer between them."""

_FEW = 4
"""So many failing inputs are few, whatever the number of the answered ones."""

_ANSWERED_PER_SUSPECT = 4
"""More failing inputs are few if at least so many were answered for each of them."""

_CHANGING = re.compile(r"\S*\d\S*")
"""Words with digits: ids of requests, times and numbers, in which equal errors may differ."""


def is_of_batch(error: errors.LLMError) -> bool:
    """Whether a call was not sent because its batch was stopped."""
    return not error.attempts and bool(consequence_of(error).stops)


class EarlyStop:
    """Counts the failures of one batch. It is used on the background loop only, apart from `warn`."""

    def __init__(self) -> None:
        self.all_read = False
        """Whether no more inputs follow."""
        self.stored = self.to_send = 0
        """Inputs that an earlier run has answered, and inputs that are to be sent."""
        self.answered_calls = self.ended_calls = 0
        """Calls that were answered, and calls that were answered or have failed for good."""
        self.failing: set[int] = set()
        """Identities of the calls whose last request failed as in an outage."""
        self.key_source = ""
        """Where the key that was not accepted comes from, in words."""
        self._answered = False
        self._count = 0
        self._kind: tuple[object, ...] = ()
        self._reason: errors.LLMError | None = None
        self._refused = self._warned = False

    @property
    def stopped(self) -> bool:
        """Whether no more calls are sent."""
        return self._reason is not None

    def refuse(self) -> errors.LLMError:
        """The error of a call that is not sent. It has the class of the failures."""
        assert self._reason is not None
        self._refused = True
        error = type(self._reason)(
            f"not sent, because {ENOUGH_FAILURES} calls of this batch failed in a row: "
            f"{self._reason.message}",
            maybe_billed=False,
        )
        vars(error)["_stops"] = vars(self._reason).get("_stops")
        return error

    @property
    def blames_inputs(self) -> bool:
        """Whether the failing inputs are few beside the answered ones, and no other input is left to try."""
        answered = self.stored + self.answered_calls
        few = max(_FEW, answered // _ANSWERED_PER_SUSPECT)
        left = self.to_send - self.ended_calls
        return self.all_read and answered > 0 and left <= len(self.failing) <= few

    def note_answer(self, call: int) -> None:
        """Note that the call of this identity was answered."""
        self.failing.discard(call)
        self._answered, self._count = True, 0

    def note_failure(self, error: errors.LLMError) -> None:
        """Note that a call failed for good."""
        stops = consequence_of(error).stops
        # Once the model has answered, the prompt is the reason.
        if not stops or self.stopped or (self._answered and stops == "before an answer"):
            return
        kind = (type(error), error.status, error.code, _CHANGING.sub("", error.message))
        self._count = self._count + 1 if kind == self._kind else 1
        self._kind = kind
        if self._count == ENOUGH_FAILURES:
            self._reason = error

    def warn(self) -> None:
        """Tell the user once that calls of the batch were not sent."""
        if self._reason is None or not self._refused or self._warned:
            return
        self._warned = True
        source = f"; {self.key_source} is not accepted" if self.key_source else ""
        # Where warnings are errors, the results of the batch must not be lost.
        with contextlib.suppress(UserWarning):
            warn_user(
                f"the batch was stopped, because {ENOUGH_FAILURES} calls failed in a row with "
                f"{type(self._reason).__name__}: {self._reason}{source}; the other calls are not sent, and a "
                "second run sends them",
                UserWarning,
                stacklevel=4,
            )
