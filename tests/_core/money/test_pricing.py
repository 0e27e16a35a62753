"""prices.csv, its reader, and the arithmetic of `PriceTable.cost`."""

import textwrap
from datetime import UTC, date, datetime
from decimal import ROUND_UP, Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.money.price_rows import (
    AT_MOST,
    CLOUDS,
    COLUMNS,
    PRICE_COLUMNS,
    VARIANTS,
    WINDOW_SHARES,
    PriceWarning,
    check,
    mapping_lines,
)
from llm_provider._core.money.pricing import PriceTable, default_prices_path
from llm_provider._core.money.unknown_prices import warn_of_unknown_cost
from llm_provider._core.requests.routing import ROUTES
from llm_provider._core.types.usage import Usage
from llm_provider._features.hosts.compatible_hosts import HOSTS
from support import copy_package, run_copy

TODAY = date(2026, 11, 20)
PARTS = (
    "output_reasoning", "input_audio", "cache_read_audio", "output_audio", "input_image", "output_image",
)  # fmt: skip
CLASSES = ("input", "cache_read", "cache_write", "cache_write_1h", "cache_write_12h", "output")
HEADER = ",".join(COLUMNS)


@pytest.fixture(scope="module")
def shipped() -> PriceTable:
    return PriceTable.load()


# The arithmetic

prices = st.decimals(min_value=0, max_value=999_999, places=6)
tokens = st.integers(min_value=0, max_value=10_000_000)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Any usage whose parts fit into their totals."""
    plain, read, short, hour, half_day = draw(st.tuples(tokens, tokens, tokens, tokens, tokens))
    output = draw(tokens)
    return Usage(
        input_tokens=plain + read + short + hour + half_day,
        output_tokens=output,
        cache_read_input_tokens=read,
        cache_write_input_tokens=short + hour + half_day,
        cache_write_1h_input_tokens=hour,
        cache_write_12h_input_tokens=half_day,
        reasoning_output_tokens=draw(st.integers(min_value=0, max_value=output)),
    )


@st.composite
def priced(draw: st.DrawFn) -> dict[str, object]:
    return {"provider": "openai", "model": "tiny", **{column: draw(prices) for column in CLASSES}}


def table_of(*rows: dict[str, object]) -> PriceTable:
    return PriceTable(check(mapping_lines(rows)))


def cost_of(table: PriceTable, usage: Usage) -> Decimal:
    cost = table.cost("openai", "tiny", usage)
    assert cost is not None
    return cost


@given(priced(), usages())
def test_each_token_is_billed_once_to_the_last_digit(row: dict[str, object], usage: Usage) -> None:
    price = {column: Fraction(str(row[column])) for column in CLASSES}
    fresh = usage.input_tokens - usage.cache_read_input_tokens - usage.cache_write_input_tokens
    kept = usage.cache_write_1h_input_tokens + usage.cache_write_12h_input_tokens
    five_minutes = usage.cache_write_input_tokens - kept
    by_hand = (
        price["input"] * fresh
        + price["cache_read"] * usage.cache_read_input_tokens
        + price["cache_write"] * five_minutes
        + price["cache_write_1h"] * usage.cache_write_1h_input_tokens
        + price["cache_write_12h"] * usage.cache_write_12h_input_tokens
        + price["output"] * usage.output_tokens
    ) / 1_000_000
    table = table_of(row)
    cost = str(cost_of(table, usage))
    assert Fraction(cost) == by_hand
    # The caller's decimal context changes nothing.
    with localcontext(Context(prec=2, rounding=ROUND_UP)):
        assert str(cost_of(table, usage)) == cost


# What is not known is None

USED = {
    "input": Usage(input_tokens=1),
    "cache_read": Usage(input_tokens=1, cache_read_input_tokens=1),
    "cache_write": Usage(input_tokens=1, cache_write_input_tokens=1),
    "cache_write_1h": Usage(input_tokens=1, cache_write_input_tokens=1, cache_write_1h_input_tokens=1),
    "cache_write_12h": Usage(input_tokens=1, cache_write_input_tokens=1, cache_write_12h_input_tokens=1),
    "output": Usage(output_tokens=1),
}


@pytest.mark.parametrize("column", CLASSES)
def test_a_missing_price_is_none_with_one_warning_and_only_if_used(column: str) -> None:
    table = table_of({"provider": "openai", "model": "tiny", **dict.fromkeys(CLASSES, 1), column: None})
    for used in CLASSES:
        if used != column:
            assert table.cost("openai", "tiny", USED[used]) == Decimal("0.000001")
    assert table.cost("openai", "tiny", USED[column]) is None
    reason = table.explain_cost("openai", "tiny", USED[column])
    assert reason == f"openai/tiny (standard): no price for {column} tokens"
    with pytest.warns(PriceWarning, match=f"no price for {column} tokens; the cost is unknown") as caught:
        warn_of_unknown_cost(reason)
        warn_of_unknown_cost(reason)
    assert len(caught) == 1
    assert table.cost("openai", "tiny", USED[column] + Usage(input_tokens=9)) is None


# Parts of the totals. Golden pairs have what they cost, and rows of one's own.


def test_a_part_with_a_standard_price_has_a_price_at_every_level(shipped: PriceTable) -> None:
    parts = [name for name in PARTS if name != "output_reasoning"]
    for row in shipped:
        standard = shipped.find(row.provider, row.model, at=TODAY)
        current = shipped.find(row.provider, row.model, variant=row.variant, at=TODAY)
        if standard is not None and current is not None and current.source != "none":
            for name in parts:
                apart = getattr(standard, name) is not None
                assert apart is (getattr(current, name) is not None), (row, name)


# Dates. Golden pairs have names, tiers and moments.


def test_now_is_a_moment_too(shipped: PriceTable) -> None:
    row = shipped.find("deepseek", "deepseek-v4-pro")
    assert row is not None
    assert row.variant in {"standard", "off_peak"}
    assert shipped.find("deepseek", "deepseek-v4-pro", variant="off_peak", at=TODAY) is not None
    # A price of one's own without hours holds at all of them.
    own = table_of({"provider": "deepseek", "model": "tiny", "input": 1})
    assert own.cost("deepseek", "tiny", Usage(input_tokens=1_000_000)) == 1


@pytest.mark.parametrize("begin", [1, 2, 200_000])
def test_a_tier_begins_with_its_first_token(begin: int) -> None:
    model = {"provider": "openai", "model": "tiny", "request": 5}
    table = table_of({**model, "input": 1}, {**model, "input": 3, "min_input_tokens": begin})
    first, last = table.find("openai", "tiny"), table.find("openai", "tiny", input_tokens=10**9)
    assert (first and first.min_input_tokens, last and last.min_input_tokens) == (0, begin)
    for size in {0, begin - 1, begin, begin + 1}:
        row = last if size >= begin else first
        assert table.find("openai", "tiny", input_tokens=size) == row
        assert table.applicable("openai", "tiny", input_tokens=size) == [first, last][: 1 + (size >= begin)]
        assert row is not None
        by_hand = ((row.input or 0) * size + 5_000) / Decimal(1_000_000)
        assert table.cost("openai", "tiny", Usage(input_tokens=size)) == by_hand
    assert table.applicable("openai", "tiny") == [first]


def test_a_row_that_comes_later_is_the_price_of_a_routers_host_too() -> None:
    table = PriceTable.load()
    names = "openrouter", "someone/tiny:cerebras"
    assert table.find_key(*names) is None
    table.replace_rows(check(mapping_lines([{"provider": "cerebras", "model": "tiny", "input": 1}])))
    assert table.find_key(*names) == ("cerebras", "tiny")
    rows = [{"provider": "cerebras", "model": model, "input": 1} for model in ("maker/tiny", "tiny")]
    assert table_of(*rows).find_key(*names) == ("cerebras", "tiny"), "the shortest name"


@pytest.mark.parametrize(("model", "is_named"), [("openai/tiny", True), ("tiny", False), ("other", False)])
def test_a_missing_price_names_the_row_that_was_perhaps_meant(model: str, is_named: bool) -> None:
    table = table_of({"provider": "mine", "model": model, "input": 1})
    missing = table.describe_missing("openai", "tiny")
    assert missing.startswith(" (provider 'openai', model 'tiny'")
    assert ("a row has the model 'openai/tiny'" in missing) == is_named


# Laziness, and the module


def test_the_shipped_rows_are_read_when_they_are_needed(tmp_path: Path) -> None:
    root = copy_package(tmp_path, ())
    rows = ["openai,good,standard,0,2" + "," * 16 + "here,2026-11-20", "openai,bad,standard,0,x" + "," * 17]
    (root / "prices.csv").rename(root / "later.csv")
    (root / "later.csv").write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    code = """
        import os, sys, warnings
        from llm_provider._core.money.pricing import PriceTable
        print(sorted({"csv", "decimal", "_decimal"} & set(sys.modules)))
        os.rename("later.csv", "prices.csv")  # the import reads nothing
        table = PriceTable.load()
        print(table.find("openai", "good").input)
        with warnings.catch_warnings(record=True, action="always") as caught:
            print(table.find("openai", "bad"), table.find("openai", "bad"), len(table))
        print(*(warning.message for warning in caught), sep="|")
        """
    ended = run_copy(root, "-W", "error", "-c", textwrap.dedent(code))
    loaded, good, bad, message = ended.stdout.splitlines()
    assert (loaded, good, bad) == ("[]", "2", "None None 1")
    assert message.startswith("prices.csv line 3 is skipped: input 'x' is not")
    assert "|" not in message


# The shipped table


def test_the_shipped_file_is_sorted_and_plain_and_loads_without_a_warning() -> None:
    text = Path(default_prices_path()).read_bytes().decode("ascii")
    header, *lines = text.splitlines()
    assert text.endswith("\n")
    assert header == HEADER
    day, rows = COLUMNS.index("effective_from"), [line.split(",") for line in lines]
    keys = [(*cells[:3], int(cells[3]), cells[day]) for cells in rows]
    assert keys == sorted(keys)
    assert not [cells for cells in rows if any(cell.startswith(("=", "+", "-", "@")) for cell in cells)]
    # A warning would be an error here.
    assert len(PriceTable.load(default_prices_path())) == len(lines)


def test_every_shipped_row_is_plausible_and_its_model_has_a_price_today(shipped: PriceTable) -> None:
    for row in shipped:
        current = shipped.find(row.provider, row.model, at=TODAY)
        assert current is not None, row
        assert current.input is not None, row
        if row.source == "none":
            assert [getattr(row, column) for column in PRICE_COLUMNS] == [None] * len(PRICE_COLUMNS), row
            continue
        assert row.input is not None, row
        assert row.input > 0, row
        # OpenRouter passes on the prices of its hosts. Embeddings have no output, and decisions a free one.
        is_free = row.provider == "openrouter" or row.model.startswith("decisions/")
        assert row.output is None or is_free or row.input <= row.output, row
        assert row.cache_read is None or 0 < row.cache_read <= row.input, row
        assert row.cache_write is None or row.cache_write >= row.input, row
        assert row.cache_write_1h is None or row.cache_write_1h >= (row.cache_write or row.input), row
        assert row.as_of <= datetime.now(UTC).date().isoformat(), row


def test_tiers_rise_and_discounts_discount(shipped: PriceTable) -> None:
    rows = {(row[0], row[1], row[2], row.effective_from, row.min_input_tokens): row for row in shipped}
    for (provider, model, variant, start, minimum), row in rows.items():
        if row.input is None or row.output is None:
            continue
        base = rows[provider, model, variant, start, 0]
        assert base.input is not None, row
        assert base.input <= row.input, row
        standard = rows.get((provider, model, "standard", start, minimum))
        if standard is None or standard.input is None or standard.output is None or variant == "standard":
            continue
        cheaper = variant in {"batch", "flex", "off_peak"}
        assert (row.input < standard.input) is cheaper, row
        assert (row.output < standard.output) is cheaper, row


def test_the_table_covers_the_direct_providers_and_hosts(shipped: PriceTable) -> None:
    providers = {row.provider for row in shipped}
    # A host that was added since has no rows until the next `make prices`.
    assert ROUTES.keys() - HOSTS.keys() - {"huggingface", "litellm", "local"} < providers < {*ROUTES, *CLOUDS}
    assert providers > CLOUDS
    # The prices of windows follow from the standard ones.
    assert {row.variant.removesuffix(AT_MOST) for row in shipped} == VARIANTS - WINDOW_SHARES.keys()


def test_prices_of_the_user_have_no_higher_figure_of_the_table_beside_them(shipped: PriceTable) -> None:
    for bound in [row for row in shipped if row.variant == f"standard{AT_MOST}"][:3]:
        same = {name: getattr(bound, name) for name in ("provider", "model", "effective_from")}
        table = PriceTable.load(overrides=[{**same, "input": 1, "output": 2}])
        (only,) = table.applicable(bound.provider, bound.model, input_tokens=10**9)
        assert (only.input, only.output) == (1, 2)
