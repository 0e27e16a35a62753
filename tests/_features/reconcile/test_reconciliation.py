"""Differences between a ledger and a report: made by known causes at random, and explained."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider._core.money.ledger_file import LedgerFile
from llm_provider._core.money.pricing import PriceTable
from llm_provider._core.money.totals import Key, Posting
from llm_provider._core.types.usage import Usage
from llm_provider._features.reconcile.reconciliation import Row, list_lines, reconcile
from llm_provider._features.reconcile.usage_reports import WEB_SEARCH, Entry

DAY = 1_795_132_800  # 2026-11-20, midnight in UTC
MODELS = {"openai": "gpt-6.1-sol", "anthropic": "claude-haiku-5-5", "openrouter": "openai/gpt-6.1-sol"}
OTHERS = {
    "openai": [("gpt-4", "gpt-4-0613", "gpt-4-0613")],
    "openrouter": [
        ("openai/gpt-6.1-sol:nitro", "openai/gpt-6.1-sol:nitro", "openai/gpt-6.1-sol-2026-10-21"),
        ("vendor/new-5", "vendor/5-new-20261001", "vendor/new-5"),
    ],
}
"""Names that a call asks for, that a reply has, and that the report has."""
ALIASES = {"vendor/new-5": "vendor/5-new-20261001"}
TOOLS, OWN_PRICE = "code interpreter sessions", Decimal("0.0123")
PRICES = PriceTable.load()


class World:
    """Requests as the ledger has them, and as the report sums them."""

    def __init__(self, path: Path, seed: int) -> None:
        self.file, self.path = LedgerFile(path), path
        self.random = random.Random(seed)
        self.usd: defaultdict[tuple[str, ...], Decimal] = defaultdict(Decimal)
        self.usage: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self.varied = False
        self.own_searches = Decimal("0.7") ** (seed % 2)  # of the table's price, at the client's own

    def request(self, cause: str, day: int, provider: str, batch: bool, account: str) -> Decimal:
        """One request; returns its USD. OpenRouter has no batches."""
        if provider == "openrouter" and batch:
            cause, batch = "known", False
        model, delivery = MODELS[provider], "batch" if batch else "live"
        others = OTHERS.get(provider, []) if self.varied else []
        names = self.random.choice([(model, model, f"{model}-2026-10-21"), *others])
        usage = Usage(
            input_tokens=self.random.randrange(1, 5000), output_tokens=self.random.randrange(1, 500)
        )
        usd = PRICES.cost(provider, names[1], usage, variant=delivery if batch else "standard") or OWN_PRICE
        # Of its searches and tools, which the report lists under names of their own.
        apart = {WEB_SEARCH: Decimal(0), TOOLS: Decimal(0)}
        if self.varied and provider != "openrouter" and usd != OWN_PRICE and self.random.random() < 0.5:
            usage += Usage(web_searches=1)
            price = PRICES.cost(provider, model, Usage(web_searches=1), requests=0) or OWN_PRICE
            apart[WEB_SEARCH] = price * self.own_searches
            if cause == "unpriced tools":
                usage, apart[TOOLS] = usage + Usage(unpriced_tools=1), OWN_PRICE
        whole = usd + sum(apart.values())
        second, billed = self.random.randrange(4000, 82_000), day
        if cause in ("border", "unknown near the border"):
            second, billed = (30, day - 1) if self.random.random() < 0.5 else (86_390, day + 1)
        elif cause == "late batch":
            billed = day - self.random.randrange(1, 3)
        key = Key(provider, names[0], names[1], "", delivery)
        moment, more = float(DAY + day * 86_400 + second), {"account": f"fp-{account}"}
        if cause in ("known", "border", "late batch", "unbilled", "twice"):
            self.file.append(Posting(moment, "answered", key, whole, usage), **more)
        elif cause == "unpriced tools":
            self.file.append(Posting(moment, "answered", key, None, usage), **more)
        elif cause.startswith("unknown"):
            posting = Posting(moment, "failed", key._replace(served=names[0]), None, None, whole * 3)
            self.file.append(posting, error="APIConnectionError", **more)
        for _ in range({"unbilled": 0, "twice": 2}.get(cause, 1)):
            name = (provider, f"2026-11-{20 + billed}", names[2], f"fp-{account}", delivery)
            self.usd[name] += usd
            for tool, part in apart.items():
                if part:
                    self.usd[(*name[:2], tool, *name[3:])] += part
            self.usage[name].update(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, n=1)
        return usd

    def report(self, measure: str, decimals: int = 12) -> list[Entry]:
        if measure == "cost":
            return [Entry("cost", *name, usd=round(usd, decimals)) for name, usd in self.usd.items()]
        return [
            Entry(
                "usage", *name, None,
                {word: count for word, count in counts.items() if word != "n"},
                None if name[0] == "anthropic" else counts["n"],
            )
            for name, counts in self.usage.items()
        ]  # fmt: skip

    def rows(self, *measures: str, decimals: int = 12, by_key: bool = True) -> list[Row]:
        entries = [entry for measure in measures for entry in self.report(measure, decimals)]
        for number, entry in enumerate(entries):
            delivery = None if self.varied and number % 9 == 0 else entry.delivery
            entries[number] = entry._replace(alias=ALIASES.get(entry.model, ""), delivery=delivery)
        lines, days = list_lines([self.path]), ("2026-11-20", "2026-11-30")
        return reconcile(lines, entries, PRICES, days=days, border=3600, by_key=by_key)


def add_up(rows: list[Row]) -> tuple[Decimal, Counter[str]]:
    words: Counter[str] = Counter()
    for row in rows:
        words.update({word: abs(amount) for word, amount in row.explained.items()})  # type: ignore[misc]  # typeshed
    return sum((abs(row.unexplained) for row in rows), Decimal(0)), words


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("measures", [("cost",), ("usage",), ("cost", "usage")])
@pytest.mark.sampled(7)
def test_what_the_ledger_knows_of_is_explained(tmp_path: Path, seed: int, measures: tuple[str, ...]) -> None:
    world = World(tmp_path / "calls.jsonl", seed)
    world.varied = seed % 4 > 0
    causes = ["known", "known", "unknown", "border", "late batch"]
    causes += ["unknown near the border", "unpriced tools"] if world.varied else []
    for _ in range(200):
        cause = world.random.choice(causes)
        batch = cause == "late batch" or (cause == "known" and world.random.random() < 0.2)
        world.request(cause, world.random.randrange(3, 6), world.random.choice(list(MODELS)), batch, "a")
    unexplained, words = add_up(world.rows(*measures))
    assert unexplained == 0, words
    assert words["another day"] > 0
    assert words["unknown cost"] > 0


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("cause", "word"),
    [("died", "without a line"), ("foreign", "a line"), ("unbilled", "less"), ("twice", "billed twice")],
)
@pytest.mark.sampled(7)
def test_what_it_does_not_know_of_is_not(tmp_path: Path, seed: int, cause: str, word: str) -> None:
    world, hidden = World(tmp_path / "calls.jsonl", seed), Decimal(0)
    for number in range(100):
        for provider in MODELS:
            world.request("known", number % 3, provider, False, "a")
    for provider in MODELS:
        hidden += world.request(cause, 1, provider, False, "a")
    for measure in ("cost", "usage"):
        rows = world.rows(measure)
        unexplained, words = add_up(rows)
        assert abs(unexplained - hidden) < Decimal("0.00001")
        assert set(words) <= {"rounding"}
        differing = [row for row in rows if row.unexplained]
        assert [row.name.day for row in differing] == ["2026-11-21"] * 3
        assert all(word in row.reason for row in differing), [row.reason for row in differing]
        # The lines of this amount are named, and a line without a bill is among them.
        places = {int(place.rpartition(":")[2]) for row in differing for place in row.candidates}
        assert places >= {301, 302, 303} or cause in ("died", "foreign")


def test_unknown_costs_explain_no_more_than_the_requests_that_lack(tmp_path: Path) -> None:
    world = World(tmp_path / "calls.jsonl", 1)
    world.request("known", 0, "openai", False, "a")
    posting = Posting(DAY + 40_000.0, "failed", Key("openai", MODELS["openai"], MODELS["openai"], ""), None)
    world.file.append(posting, error="APITimeoutError", account="fp-a")
    # The failed request was not billed, and another program has sent one.
    [name] = world.usd
    world.usd[name] += 1
    [row] = world.rows("cost")
    # Without requests nothing else is known.
    assert (row.unexplained, list(row.explained)) == (0, ["unknown cost"])
    row, usage = world.rows("cost", "usage")
    assert (row.unexplained, usage.unexplained, set(row.explained)) == (1, 0, set())
    assert "the tokens agree, and the price is" in row.reason


def test_rounded_costs_are_explained_by_half_of_the_last_digit(tmp_path: Path) -> None:
    world = World(tmp_path / "calls.jsonl", 2)
    for number in range(300):
        world.request("known", number % 3, "openai", False, "a")
    # No report is rounded to whole dollars.
    for decimals in (2, 0):
        unexplained, words = add_up(world.rows("cost", decimals=decimals))
        assert (unexplained > 0, set(words)) == (decimals == 0, {"rounding"})
        assert words["rounding"] <= Decimal("0.015")


@pytest.mark.parametrize("provider", MODELS)
def test_another_price_or_class_of_tokens_is_named(tmp_path: Path, provider: str) -> None:
    world = World(tmp_path / "calls.jsonl", 3)
    for _ in range(10):
        world.request("known", 0, provider, False, "a")
    [name] = world.usd
    world.usd[name] /= 2
    cost, usage = world.rows("cost", "usage")
    assert cost.reason == "the tokens agree, and the price is 0.5000 of that in the ledger"
    counted = 0 if provider == "anthropic" else 10
    assert (usage.unexplained, usage.to_dict()["requests"]) == (0, [10, counted])
    for word, reason in ("cache_read_input_tokens", "classes do not"), ("input_tokens", "tokens do not"):
        world.usage[name][word] += 500
        reasons = {row.reason.partition("their ")[2] for row in world.rows("cost", "usage")}
        assert reasons == {reason} or (provider, word) == ("anthropic", "input_tokens"), reasons


def test_keys_are_compared_one_by_one_where_the_report_tells_them(tmp_path: Path) -> None:
    world = World(tmp_path / "calls.jsonl", 4)
    for account in "ab" * 20:
        world.request("known", 0, "openai", False, account)
    world.request("foreign", 0, "openai", False, "b")
    rows = world.rows("cost")
    assert [(row.name.account, bool(row.unexplained)) for row in rows] == [("fp-a", False), ("fp-b", True)]
    assert [row.name.account for row in world.rows("cost", by_key=False)] == [""]


def test_a_model_without_a_price_is_compared_by_its_tokens(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    file, key = LedgerFile(path), Key("openai", "new", "new", "")
    file.append(Posting(DAY + 1.0, "answered", key, None, Usage(input_tokens=10), None))
    entry = Entry("usage", "openai", "2026-11-20", "new", counts={"input_tokens": 12}, requests=1)
    cost = Entry("cost", "openai", "2026-11-20", "new", usd=Decimal(1))
    # Its client had another price of searches than the table, and its tokens are not in the report yet.
    model = MODELS["anthropic"]
    usage = Usage(input_tokens=100, web_searches=1)
    file.append(Posting(DAY + 1.0, "answered", Key("anthropic", model, model, ""), Decimal("0.008"), usage))
    names = "cost", "anthropic", "2026-11-20"
    both = [Entry(*names, model, usd=Decimal("0.003")), Entry(*names, WEB_SEARCH, usd=Decimal("0.005"))]
    entries, days, requested = [entry, cost, *both], ("2026-11-20", "2026-11-20"), {("usage", "anthropic")}
    rows = reconcile(
        list_lines([path]), entries, PRICES, days=days, border=0, by_key=False, requested=requested
    )
    assert [row.unexplained for row in rows] == [0, 0, 0, -rows[3].usd[0], Decimal("0.000002")]
    words = [set(row.explained) for row in rows]
    assert words == [{"searches"}, {"searches"}, {"unknown cost"}, set(), set()]
    assert rows[3].reason.startswith("nothing in the report")
    assert list(rows[2].candidates) == [f"{path}:1"], "its line has no cost"


@pytest.mark.parametrize("delivery", ["background", "background-2h", "background-8h"])
def test_a_background_job_is_beside_live_requests_in_the_report(tmp_path: Path, delivery: str) -> None:
    model, usage = MODELS["openai"], Usage(input_tokens=1000, output_tokens=100, web_searches=1)
    variant = "standard" if delivery == "background" else delivery
    tokens = PRICES.cost("openai", model, replace(usage, web_searches=0), variant=variant)
    searches = PRICES.cost("openai", model, Usage(web_searches=1), requests=0)
    assert tokens is not None
    assert searches is not None
    key, path = Key("openai", model, model, "", delivery), tmp_path / "ledger.jsonl"
    LedgerFile(path).append(Posting(DAY + 40_000.0, "answered", key, tokens + searches, usage))
    # It ran on the day before it was collected.
    names = "cost", "openai", "2026-11-19"
    billed = {model: tokens, WEB_SEARCH: searches}
    entries = [Entry(*names, name, delivery="live", usd=usd) for name, usd in billed.items()]
    days = ("2026-11-19", "2026-11-20")
    rows = reconcile(list_lines([path]), entries, PRICES, days=days, border=0, by_key=False)
    assert [row.unexplained for row in rows] == [0] * len(rows)
