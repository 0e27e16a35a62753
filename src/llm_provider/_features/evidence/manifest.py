"""The manifest of the evidence, and the statement beside the file."""

import importlib.metadata
import platform
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from ..._core.json_values import JSONObject
from ..._core.runtime.exact_decimal import exact, total
from ..._core.types.usage import Cost
from .container import Part

FORMAT, VERSION = "llm_provider evidence", 1
PREDICATE = "https://github.com/llm-provider/llm-provider/evidence/v1"
_PACKAGES = (
    "llm-provider-call", "openai", "anthropic", "google-genai", "litellm", "aiohttp", "orjson",
    "jsonschema-rs", "pydantic",
)  # fmt: skip
_COUNTS = ("input_tokens", "output_tokens")


class Figures:
    """The sums of rows, in all and by model: they name what is known, and count what is not."""

    def __init__(self) -> None:
        self._sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._usd: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, row: JSONObject) -> None:
        result = row["result"]
        provider, name = result["provider"], result["model"]
        model = name if str(name).startswith(f"{provider}/") else f"{provider}/{name}"
        sums = self._sums[model]
        sums["errors" if result.get("error") else "scores" if "scores" in result else "responses"] += 1
        sums["cached"] += bool(result["cached"])
        for name in _COUNTS:
            sums[name] += (result["usage"] or {}).get(name, 0)
        if "score" in row:
            sums["scored"] += 1
            self._usd[model, "score_sum"] += Decimal(repr(float(row["score"])))
        for name, bounds in (("cost", result.get("cost_bounds")), ("price", None)):
            if name == "cost" or not result.get("error"):
                usd = Cost.between(result.get(name), bounds)
                sums[f"{name}_unknown"] += usd.unknown
                sums["cost_bounded"] += usd.unknown > 0 and usd.at_most is not None
                if usd or not usd.unknown:
                    self._add_usd(model, name, usd)
                self._add_usd(model, "cost_at_most", usd.at_most or 0)
        for name, reason in row["not_computed"].items():
            self._reasons[str(name)][str(reason)] += 1
        for request in row["requests"]:
            if "why" in request:
                self._reasons["key of a sample"][str(request["why"])] += 1

    def _add_usd(self, model: str, name: str, usd: float) -> None:
        self._usd[model, name] = exact().add(self._usd[model, name], Decimal(repr(float(usd))))

    def to_dict(self) -> JSONObject:
        """The sums, with USD as exact text."""
        models = {model: self._describe([model]) for model in sorted(self._sums)}
        reasons = {name: dict(counts) for name, counts in self._reasons.items()}
        return {"total": self._describe(list(self._sums)), "models": models, "not_computed": reasons}

    def _describe(self, models: list[str]) -> JSONObject:
        counts: Counter[str] = sum((self._sums[model] for model in models), Counter())
        optional = {"score_sum": counts["scored"], "cost_at_most": counts["cost_bounded"]}
        names = ("cost", "price", *(name for name, count in optional.items() if count))
        usd = {name: total(self._usd[model, name] for model in models) for name in names}
        return dict(counts) | {name: format(amount, "f") for name, amount in usd.items()}


def describe_parts(parts: Iterable[Part]) -> JSONObject:
    return {part.name: {"bytes": part.size, "sha256": part.sha256} for part in parts}


def make_manifest(parts: list[Part], figures: Figures, about: JSONObject) -> JSONObject:
    made = {"format": FORMAT, "version": VERSION, "parts": describe_parts(parts)}
    return {**made, "figures": figures.to_dict(), **about}


def make_statement(name: str, sha256: str, manifest: JSONObject) -> JSONObject:
    """An in-toto statement about the file, whose predicate is the manifest without the digests of parts."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": sha256}}],
        "predicateType": PREDICATE,
        "predicate": {key: value for key, value in manifest.items() if key != "parts"},
    }


def describe_versions() -> JSONObject:
    """The versions of Python and of the packages that have to do with an answer."""
    versions: dict[str, Any] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def describe_git() -> JSONObject | None:
    """The commit of the working folder and whether it has changes; None where there is none."""
    try:
        commit = _run_git("rev-parse", "HEAD").strip()
        return {"commit": commit, "dirty": bool(_run_git("status", "--porcelain").strip())}
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None


def _run_git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=10).stdout  # noqa: S603 - constant
