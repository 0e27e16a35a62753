"""The parameters of `call_many`, `iter_many` and `embed` that choose how requests are delivered."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

DeliveryMode: TypeAlias = Literal["live", "batch", "auto"]
Resend: TypeAlias = Literal["batch", "live"]


class DeliveryParameters(TypedDict, total=False):
    """How requests get their answers; see docs/batches.md."""

    delivery: DeliveryMode | None
    """"live" sends each request now. "batch" uses the provider's batch API: half the price in most cases,
    within a day, and the job outlives the process. "auto" chooses by `deadline` and price."""
    resend: Resend | None
    """Where rows of a batch that failed or expired are sent once more: in another batch, the default, or as
    live requests. `max_retries=0` sends none again."""
