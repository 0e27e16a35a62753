"""The cost of a call: exact USD from `prices.csv` and a `Usage`, or None where a price is not known.

Importing this module reads no file; `PriceTable.load` does. It only indexes the package's own file, which
takes 2 ms in place of 60 ms, and parses a model's rows at their first use. Finding the price list in effect
anew for each call would add 8 % to the instructions of a call, so it is remembered for an hour.

docs/prices.md describes the layout of the file, the sources of its figures, and its limits.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import doors
from ..runtime import clock
from ..runtime.exact_decimal import exact, plain, total
from .price_rows import (
    AT_MOST,
    CLOUDS,
    PRICE_COLUMNS,
    WINDOW_SHARES,
    PriceFile,
    PriceRow,
    bill,
    check,
    is_date,
    mapping_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date
    from decimal import Decimal

    from ..types.usage import Usage

Overrides: TypeAlias = "str | os.PathLike[str] | Iterable[Mapping[str, object]]"
"""A prices file, or rows as mappings from column name to value."""

_Variants: TypeAlias = "dict[str, list[PriceRow]]"

_SNAPSHOT_DATE = re.compile(r"(.+?)(?:-([0-9]{4})-([0-9]{2})-([0-9]{2})|[-@]([0-9]{4})([0-9]{2})([0-9]{2}))")

_PROVISIONED = re.compile(r"^provisioned/|:provisioned-model/")
"""Names of throughput that a cloud bills by the hour."""

NO_PRICE = "no price is known"

_MOST_IN_EFFECT = 256
"""Price lists in effect that are remembered, one for each model, variant and hour; also models of hosts."""

# Resource paths before a model's name, without which the table lists it.
_MODEL_PATHS = {
    "fireworks_ai": ("accounts/fireworks/models/", "accounts/fireworks/routers/"),
    "gemini": ("models/",),
}

_ROUTERS = ("openrouter", "huggingface")
"""Routers that bill what the host charges, without a markup, as their pages on prices say. `MODEL:HOST` is a
model at a host behind them."""

_OTHER_SLUGS = {
    "alibaba": "dashscope", "fireworks": "fireworks_ai", "friendli": "friendliai", "gmicloud": "gmi",
    "lambda": "lambda_ai", "together": "together_ai", "z_ai": "zai", "zai_org": "zai",
}  # fmt: skip
"""The routers' names of hosts that have another one in the table."""

_QUANTIZED = re.compile(r"(?:u?int[48]|fp(?:4|6|8|16|32)|bf16|unknown)")

# Hours (UTC, first and end) in which a provider charges its standard price, Monday to Friday; at all other
# times it charges `off_peak`. DeepSeek's apply since 2026-08-17, according to litellm's price map and
# genai-prices.
_PEAK_HOURS = {"deepseek": ((1, 4), (6, 10))}


def default_prices_path() -> str:
    """The path of the `prices.csv` of this package."""
    return find_table("prices.csv")


def find_table(name: str) -> str:
    """The path of a table: in the package where it is installed, else at the root of the repository."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = [os.path.join(package, name)]
    source = os.path.dirname(package)
    if os.path.basename(source) == "src":
        paths.append(os.path.join(os.path.dirname(source), name))
    for path in paths:
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"llm_provider's {name} is missing; looked for {' and '.join(paths)}")


@functools.cache
def index_package_file(path: str | os.PathLike[str]) -> tuple[PriceFile, dict[tuple[str, str], list[int]]]:
    """The package's own file and its index, which all clients share."""
    file = PriceFile(path)
    return file, file.by_model()


class PriceTable:
    """Prices by provider, model, service level, prompt size and date. Safe to share between threads."""

    def __init__(self, rows: Iterable[PriceRow] = ()) -> None:
        self._file: PriceFile | None = None
        # The rows of each model by variant; the numbers of its lines in the file until they are needed.
        self._models: dict[tuple[str, str], _Variants | list[int]] = {}
        # A program uses few models, and each entry for one hour.
        self._in_effect = functools.lru_cache(_MOST_IN_EFFECT)(self._rows_in_effect)
        self._host_of = functools.lru_cache(_MOST_IN_EFFECT)(self._find_host)
        self.replace_rows(rows)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str] | None = None, overrides: Overrides | None = None
    ) -> PriceTable:
        """Read a prices file, by default the package's own, whose rows are parsed when they are first needed.

        For each provider, model and variant in the overrides, a second file or mappings from column names,
        their rows replace all rows of the file. `ValueError` if the first line of a file is not a header.
        """
        if path is None:
            table = cls()
            table._file, models = index_package_file(default_prices_path())
            table._models.update(models)
        else:
            table = cls(check(PriceFile(path).lines()))
        if overrides is not None:
            files = isinstance(overrides, (str, os.PathLike))
            lines = PriceFile(overrides).lines() if files else mapping_lines(overrides)  # type: ignore[arg-type]  # `files` narrows
            table.replace_rows(check(lines))
        return table

    def replace_rows(self, rows: Iterable[PriceRow]) -> None:
        """Put rows in the place of all rows of their providers, models and variants."""
        self._host_of.cache_clear()
        for (provider, model, variant), its_rows in _group(rows).items():
            variants = self._variants(provider, model)
            variants.pop(f"{variant}{AT_MOST}", None)
            variants[variant] = its_rows

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[PriceRow]:
        """All rows, grouped by provider, model and variant."""
        for provider, model in list(self._models):
            for rows in self._variants(provider, model).values():
                yield from rows

    def find(
        self,
        provider: str,
        model: str,
        *,
        variant: str = "standard",
        input_tokens: int = 0,
        at: date | None = None,
    ) -> PriceRow | None:
        """The row at which a call is billed; None where the table has no such row.

        The last price list of the provider, model and variant that is in effect on the (UTC) day applies. Of
        its rows, the one with the greatest `min_input_tokens` that the prompt reaches applies to all tokens.
        `list_keys` has the names under which a model is looked up. A row for the model "*" applies to the
        models of its provider that have none. `MODEL:HOST` of a router is then the model in the list of that
        host.

        DeepSeek's "standard" is "off_peak" outside its peak hours. `input_tokens` has cached ones too. `at`
        is the time of the call, default now. A datetime without a zone is UTC. A plain date has no hour, and
        the peak price applies.
        """
        for row in self._in_effect(provider, model, variant, *_utc(at)):
            if row.min_input_tokens <= input_tokens:
                return row
        return None

    def _rows_in_effect(
        self, provider: str, model: str, variant: str, day: str, hour: int | None
    ) -> list[PriceRow]:
        """The rows at which a model's calls are billed: the first one that a prompt reaches applies."""
        variants, names = self._find_prices(provider, model), [variant]
        if variant == "standard" and hour is not None and provider in _PEAK_HOURS:
            from datetime import date

            is_weekend = date.fromisoformat(day).isoweekday() > 5
            if is_weekend or not any(start <= hour < end for start, end in _PEAK_HOURS[provider]):
                names.insert(0, "off_peak")
        return [row for name in names for row in in_effect(_rows_of(variants, name), day)]

    def applicable(
        self, provider: str, model: str, *, variant: str = "standard", input_tokens: int = 0
    ) -> list[PriceRow]:
        """Every row at which a call may be billed that is sent now, for budgets.

        These include the rows for smaller prompts than `input_tokens`, and the rows of the next (UTC) day, on
        which the call may end, and the rows with the higher figures of sources that disagree. "off_peak"
        does not replace "standard", as it may end before the call. Names are found as by `find`.

        >>> rows = PriceTable.load().applicable("openai", "gpt-6.1-sol", input_tokens=300_000)
        >>> [(row.min_input_tokens, str(row.input)) for row in rows]
        [(0, '2'), (272001, '4')]
        """
        variants = self._find_prices(provider, model)
        rows, bounds = _rows_of(variants, variant), _rows_of(variants, f"{variant}{AT_MOST}")
        now, applicable = clock.time(), dict[PriceRow, None]()
        for moment in (now, now + 86_400):
            billed = in_effect(rows, time.strftime("%Y-%m-%d", time.gmtime(moment)))
            starts = {row.effective_from for row in billed}
            higher = [row for row in bounds if row.effective_from in starts]
            applicable |= dict.fromkeys([*reversed(billed), *higher])
        return [row for row in applicable if row.min_input_tokens <= input_tokens]

    def tiers(self, provider: str, model: str) -> list[int]:
        """The prompt sizes, in tokens, at which the price tiers of a model begin; ascending."""
        rows = self._find_variants(provider, model).values()
        return sorted({row.min_input_tokens for variant in rows for row in variant})

    def _find_prices(self, provider: str, model: str) -> _Variants:
        """The rows of a model with the surcharge of a region that has no rows of its own."""
        variants, key = self._find_variants(provider, model), (provider, model)
        if provider != "anthropic" or not model.startswith("us/") or key in self._models:
            return variants
        # For all models of Anthropic's with `inference_geo: "us"`, says its page on data residency.
        return {name: [_multiply(row, "1.1") for row in rows] for name, rows in variants.items()}

    def _find_variants(self, provider: str, model: str) -> _Variants:
        known = self.find_key(provider, model)
        return {} if known is None else self._variants(*known)

    def find_key(self, provider: str, model: str) -> tuple[str, str] | None:
        """The provider and the name under which the table lists a model: its first name that has any row.

        >>> PriceTable.load().find_key("openrouter", "openai/gpt-oss-120b:cerebras/fp16")
        ('cerebras', 'gpt-oss-120b')
        """
        keys = chain(list_keys(provider, model), [(provider, "*")])
        known = next((key for key in keys if key in self._models), None)
        return self._host_of(model) if known is None and provider in _ROUTERS else known

    def describe_missing(self, provider: str, model: str) -> str:
        """The names of a price that is not listed, and the row whose name is the model with its prefix."""
        near = f"{provider}/{model}"
        has = f"; a row has the model {near!r}" if any(key[1] == near for key in self._models) else ""
        return f" (provider {provider!r}, model {model!r}{has})"

    def _find_host(self, model: str) -> tuple[str, str] | None:
        """`MODEL:HOST/QUANTIZATION` of a router in the host's own list.

        Hosts write the name of a model in several ways, whose last part is equal but for its case.
        """
        name, _, upstream = model.rpartition(":")
        host, _, level = upstream.lower().replace("-", "_").partition("/")
        host, name = _OTHER_SLUGS.get(host, host), name.rpartition("/")[2].lower()
        if level and not _QUANTIZED.fullmatch(level):
            return None
        same = [key for key in self._models if key[0] == host and key[1].rpartition("/")[2].lower() == name]
        return min(same, key=lambda key: len(key[1]), default=None)

    def list_rows(self, provider: str, model: str) -> list[PriceRow]:
        """All rows of a model, of every service level and date. Names are found as by `find`."""
        return [row for rows in self._find_variants(provider, model).values() for row in rows]

    def cost(self, provider: str, model: str, usage: Usage, **details: Any) -> Decimal | None:
        """The exact USD of a call; None where the cost is not known, never 0 in its place.

        The counts of a usage are inclusive, and each token is billed in one class only: input that was
        neither read from the cache nor written to it, cache reads, cache writes, cache writes kept for an
        hour, output. Reasoning, audio and image tokens are parts of these, billed apart where the row has a
        price for them.

        Several calls can be priced at once, by the sum of their usages, if their prompts reach the same tier
        (`tiers`); `prompt` is then the tokens of one prompt, and `requests` their number.

        The cost is not known for a model, variant or day without a row, and where something was used that has
        no price, or where the counts contradict each other. `explain_cost(..., **details)` says which.
        """
        cost = self.explain_cost(provider, model, usage, **details)
        return None if isinstance(cost, str) else cost

    def explain_cost(
        self,
        provider: str,
        model: str,
        usage: Usage,
        *,
        variant: str = "standard",
        at: date | None = None,
        prompt: int | None = None,
        requests: int = 1,
        iterations: Sequence[tuple[str | None, Usage]] = (),
    ) -> Decimal | str:
        """The `cost` of a call; where it is not known, the reason, as a sentence.

        `iterations`, as an answer has them, are billed in place of `usage`, each at the price of its model
        and prompt. Batches discount all models; at another service level only that of the call is known.
        """
        what = f"{provider}/{model} ({variant})"
        if iterations:
            amounts: list[Decimal] = []
            for name, counts in iterations:
                if name is not None and variant not in ("standard", "batch"):
                    return f"{what}: {NO_PRICE} of {name} at the service level of another model"
                each = self.explain_cost(provider, name_beside(model, name), counts, variant=variant, at=at)
                if isinstance(each, str):
                    return each
                amounts.append(each)
            return plain(total(amounts))
        size = usage.input_tokens if prompt is None else prompt
        row = self.find(provider, model, variant=variant, input_tokens=size, at=at)
        if row is None:
            if provider in CLOUDS and _PROVISIONED.search(model):
                return f"{what}: provisioned throughput is billed by the hour"
            return f"{what}: {NO_PRICE}"
        usd = bill(row, usage, requests)
        return f"{what}: {usd}" if isinstance(usd, str) else usd

    def _variants(self, provider: str, model: str) -> _Variants:
        """The rows of a model, parsed from the file at their first use."""
        variants = self._models.setdefault((provider, model), {})
        if isinstance(variants, list):
            assert self._file is not None
            # Two threads may both parse them, with the same result. A lock could be left locked by a fork.
            groups = _group(check(self._file.lines(variants)))
            variants = self._models[provider, model] = {key[2]: rows for key, rows in groups.items()}
        return variants


def _group(rows: Iterable[PriceRow]) -> dict[tuple[str, str, str], list[PriceRow]]:
    groups: dict[tuple[str, str, str], list[PriceRow]] = {}
    for row in rows:
        groups.setdefault((row.provider, row.model, row.variant), []).append(row)
    return groups


def _rows_of(variants: _Variants, variant: str) -> Iterable[PriceRow]:
    """The rows of a service level. A completion window without rows has a share of the standard prices."""
    rows, level = variants.get(variant, ()), variant.removesuffix(AT_MOST)
    share = WINDOW_SHARES.get(level)
    if rows or share is None:
        return rows
    standard = variants.get(f"standard{variant[len(level) :]}", ())
    return [_multiply(row, share) for row in standard if row.provider == "openai"]


def _multiply(row: PriceRow, share: str) -> PriceRow:
    """The row with a share of its prices of tokens. Fees stay as they are."""
    times = exact().create_decimal(share)
    prices: dict[str, Any] = {
        name: exact().multiply(usd, times)
        for name in PRICE_COLUMNS
        if (usd := getattr(row, name)) is not None and name not in ("web_search", "request")
    }
    return row._replace(**prices)


def in_effect(rows: Iterable[PriceRow], day: str) -> list[PriceRow]:
    """The rows of the newest price list that had begun by that day, those for the largest prompts first."""
    begun = [row for row in rows if row.effective_from <= day]
    start = max((row.effective_from for row in begun), default=None)
    reached = [row for row in begun if row.effective_from == start]
    return sorted(reached, key=lambda row: row.min_input_tokens, reverse=True)


def _utc(at: date | None) -> tuple[str, int | None]:
    """The day and the hour of a moment in UTC; the hour of a date is None."""
    if at is None:
        return _day_and_hour(int(clock.time() // 3600))
    from datetime import UTC, datetime

    if not isinstance(at, datetime):
        return at.isoformat(), None
    if at.tzinfo is not None:
        # No price began or ends within a day of the years 1 and 9999.
        with contextlib.suppress(OverflowError):
            at = at.astimezone(UTC)
    return at.date().isoformat(), at.hour


@functools.lru_cache(maxsize=2)
def _day_and_hour(hours: int) -> tuple[str, int]:
    """The day and the hour, given the hours since 1970 began. Computed once an hour."""
    then = time.gmtime(hours * 3600)
    return time.strftime("%Y-%m-%d", then), then.tm_hour


def name_beside(model: str, other: str | None) -> str:
    """The name in the table of another model that worked for an answer of `model`, in the same region.

    >>> name_beside("us/claude-haiku-5-5", "claude-opus-5-5")
    'us/claude-opus-5-5'
    """
    return model if other is None else f"us/{other}" if model.startswith("us/") else other


def list_keys(provider: str, model: str) -> Iterator[tuple[str, str]]:
    """The providers and names under which a model may be listed, the most specific first.

    A name may lose the provider's resource path (`models/`), the suffix of a fine-tuned model
    (`ft:gpt-4.1:my-org::id`), and one date at its end (`-2026-10-21`, `-20261021`, `@20261021`); never more.
    """
    same_bill = doors.cloud_price_names.SAME_BILL.get(provider) if provider in CLOUDS else None
    for listed in filter(None, (provider, same_bill)):
        spell = doors.cloud_price_names.spell_cloud_name if provider in CLOUDS else _spell_name
        names = list(spell(listed, model))
        yield from ((listed, name) for name in names)
        # The families that dated names belong to.
        for name in names:
            dated = _SNAPSHOT_DATE.fullmatch(name)
            if dated is not None and is_date("-".join(part for part in dated.groups()[1:] if part)):
                yield listed, dated[1]


def _spell_name(provider: str, model: str) -> Iterator[str]:
    """The name, and those without a resource path or the suffix of a fine-tuned model."""
    yield model
    if provider == "anthropic" and model.startswith("us/"):
        model = model.removeprefix("us/")
        yield model
    for path in _MODEL_PATHS.get(provider, ()):
        if model.startswith(path):
            model = model.removeprefix(path)
            yield model
    if provider == "openai" and model.startswith("ft:"):
        yield ":".join(model.split(":")[:2])
