"""`Evidence`: what a file of evidence holds."""

from dataclasses import dataclass
from pathlib import Path

from .._json_values import JSONObject


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
        lines = [f"{counts or 'no results'}, ${total['cost']} paid, ${total['price']} when bought"]
        for name, reasons in self.not_computed.items():
            lines += [f"not computed: {name} of {count:,}: {reason}" for reason, count in reasons.items()]
        return "\n".join([*lines, f"sha256 {self.sha256}"])
