"""`Evidence`: what a file of evidence holds."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ..._core.json_values import JSONObject
from ..._core.words import format_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a file of evidence holds, once it is written or checked.

    Args:
        path: The file.
        sha256: Its digest, the subject of its statement.
        rows: The number of results.
        manifest: Figures, settings, versions, the state of git, and the digests of the parts.
        has_statement: Whether a statement about it is beside it.
    """

    path: Path
    sha256: str
    rows: int
    manifest: JSONObject
    has_statement: bool

    @property
    def not_computed(self) -> dict[str, dict[str, int]]:
        """What the rows hold and their parts do not give: for each value the reasons, with their numbers."""
        reasons: dict[str, dict[str, int]] = self.manifest["figures"]["not_computed"]
        return reasons

    def __str__(self) -> str:
        total = self.manifest["figures"]["total"]
        counts = ", ".join(
            f"{total[name]:,} {name}" for name in ("responses", "scores", "errors") if name in total
        )
        unknown, at_most = total.get("cost_unknown", 0), None
        if unknown == total.get("cost_bounded", 0):
            at_most = Decimal(total.get("cost_at_most", 0))
        paid = format_usd(Decimal(total["cost"]), unknown, at_most)
        bought = format_usd(Decimal(total["price"]), total.get("price_unknown", 0))
        lines = [f"{counts or 'no results'}, {paid} paid, {bought} when bought"]
        for name, reasons in self.not_computed.items():
            lines += [f"not computed: {name} of {count:,}: {reason}" for reason, count in reasons.items()]
        return "\n".join([*lines, f"sha256 {self.sha256}"])
